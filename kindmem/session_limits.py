"""A browser session ends an hour after it was last used, and twelve hours after its person signed in, however much it is used.

A page that asks by itself whether something is new counts as no use: a tab that was left open would keep its session for ever.
Who proves anew who they are goes on in a session of another name, so that a copy of the cookie from before is worth nothing then.
"""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

from memory.api.authentication import proved_at

IDLE_SECONDS = 3600
LONGEST_SECONDS = 12 * 3600
NOTED_SECONDS = 300
"""How exactly the last use is known: noting it is a write."""
SIGNED_IN_AT, USED_AT = "signed_in_at", "used_at"
ASKED_BY_THEMSELVES = frozenset({"newer-runs", "newer-entries", "verification-job"})


class SessionLimitsMiddleware:
    """After the session's middleware, which saves what is noted here, and before the one that says who is signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        has_cookie = settings.SESSION_COOKIE_NAME in request.COOKIES
        if has_cookie and is_over(request.session):
            request.session.flush()
        before = _proved(request) if has_cookie else None
        response = self.get_response(request)
        if request.session.accessed and SESSION_KEY in request.session:
            _note_use(request)
            if before is not None and _is_proved_anew(before, _proved(request)):
                _rename(request.session)
        return response


def is_over(session: SessionBase) -> bool:
    """Whether its time is up. One that nobody is signed in to has no other end than its cookie's."""
    if SESSION_KEY not in session:
        return False
    now = time.time()
    return (
        now - session.get(SIGNED_IN_AT, now) >= LONGEST_SECONDS
        or now - session.get(USED_AT, now) >= IDLE_SECONDS
    )


def _proved(request: HttpRequest) -> tuple[str | None, str | None, float]:
    """The session's name, who is signed in to it, and when they last proved who they are."""
    session = request.session
    return session.session_key, session.get(SESSION_KEY), proved_at(request) or 0.0


def _is_proved_anew(
    before: tuple[str | None, str | None, float], now: tuple[str | None, str | None, float]
) -> bool:
    """Whether the same session of the same person has a newer proof: signing in gives a new name by itself."""
    return before[:2] == now[:2] and before[1] is not None and before[2] < now[2]


def _rename(session: SessionBase) -> None:
    """Another name for the same session, here and in the list of where its person is signed in."""
    from allauth.usersessions.models import UserSession

    old = session.session_key
    session.cycle_key()
    UserSession.objects.filter(session_key=old).update(session_key=session.session_key)


def _note_use(request: HttpRequest) -> None:
    session, now = request.session, time.time()
    if SIGNED_IN_AT not in session:
        session[SIGNED_IN_AT] = session[USED_AT] = now
        return
    match = request.resolver_match
    if match is not None and match.url_name in ASKED_BY_THEMSELVES:
        return
    if now - session[USED_AT] >= NOTED_SECONDS:
        session[USED_AT] = now
