"""How often somebody may fail to sign in: few times for an account from one address, more from that address for all accounts.

So who guesses is stopped where they guess, and neither the account's owner elsewhere nor others behind the same address are. A
bound for the account from everywhere is wide: it slows those who guess from many addresses. What is counted is what was typed,
whether there is such an account or not, and the answer is the same. It says how long to wait.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from allauth.core.internal import ratelimit
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import ngettext

_APP = "kindmem"


@dataclass(frozen=True, slots=True)
class _Bound:
    """`rate` as the sign-in library writes it; `of`: what it counts by."""

    name: str
    rate: str
    of: Callable[[HttpRequest, str], str]


_BOUNDS = (
    _Bound("sign-in-here", "5/5m/key", lambda request, login: f"{login}|{_place(request)}"),
    _Bound("sign-in-place", "100/5m/key", lambda request, login: _place(request)),
    _Bound("sign-in-account", "100/60m/key", lambda request, login: login),
)


def _place(request: HttpRequest) -> str:
    return ratelimit.get_ip(request)


class Tries:
    """What one attempt counts for; taken back when it succeeds."""

    def __init__(self) -> None:
        self._used: list[ratelimit.RateLimitUsage] = []

    def count(self, request: HttpRequest, login: str) -> None:
        """Raises ValidationError, with how long to wait, when there were too many."""
        for bound in _BOUNDS:
            key = bound.of(request, login)
            usage = ratelimit.consume(
                request, app=_APP, action=bound.name, config={bound.name: bound.rate}, key=key
            )
            if usage is None:
                self.take_back()
                seconds = _wait(request, bound, key)
                request.sign_in_wait = seconds  # type: ignore[attr-defined]  # read by the middleware
                raise ValidationError(_words(seconds), code="too_many_login_attempts")
            self._used.append(usage)

    def take_back(self) -> None:
        while self._used:
            self._used.pop().rollback()


def _wait(request: HttpRequest, bound: _Bound, key: str) -> int:
    """Seconds until the oldest of those that count does so no more."""
    rate = ratelimit.parse_rate(bound.rate)
    where = ratelimit.get_cache_key(request, app=_APP, action=bound.name, rate=rate, key=key)
    moments = sorted(cache.get(where, []), reverse=True)[: rate.amount]
    if len(moments) < rate.amount:
        return 1
    return max(1, math.ceil(moments[-1] + rate.duration - time.time()))


def _words(seconds: int) -> str:
    if seconds < 60:
        words = ngettext(
            "Too many failed tries. Try again in %(n)d second.",
            "Too many failed tries. Try again in %(n)d seconds.",
            seconds,
        )
        return words % {"n": seconds}
    minutes = math.ceil(seconds / 60)
    words = ngettext(
        "Too many failed tries. Try again in %(n)d minute.",
        "Too many failed tries. Try again in %(n)d minutes.",
        minutes,
    )
    return words % {"n": minutes}


class SignInWaitMiddleware:
    """Gives the page that says how long to wait its status, and says it to programs too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        seconds = getattr(request, "sign_in_wait", None)
        if seconds is not None:
            response.status_code = 429
            response["Retry-After"] = str(seconds)
        return response
