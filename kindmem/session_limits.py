"""A browser session ends an hour after it was last used, and twelve hours after its person signed in, however much it is used.

A page that asks by itself whether something is new counts as no use: a tab that was left open would keep its session for ever.
"""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

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
        if settings.SESSION_COOKIE_NAME in request.COOKIES and is_over(request.session):
            request.session.flush()
        response = self.get_response(request)
        if request.session.accessed and SESSION_KEY in request.session:
            _note_use(request)
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
