"""A list's whole state is in its address: this page's own with some of it changed, and the one that the reader came from."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

BACK = "back"
_BACK_MAX = 600
"""Characters; a longer address is not carried along: a page holds it once a link."""


def address(request: HttpRequest, *, drop: tuple[str, ...] = (), **changed: Any) -> str:
    """This page's address with some parameters changed; None takes one away."""
    kept = {
        name: value
        for name, value in request.GET.items()
        if name not in drop and name not in changed
    }
    kept |= {name: str(value) for name, value in changed.items() if value is not None}
    kept = {name: value for name, value in kept.items() if value != ""}
    return f"{request.path}?{urlencode(kept)}" if kept else request.path


def came_from(request: HttpRequest) -> str | None:
    """The address that the reader came from and goes back to, with its filters and its place; only ever one on this site."""
    given = request.POST.get(BACK) or request.GET.get(BACK) or ""
    is_ours = given.startswith("/") and url_has_allowed_host_and_scheme(given, allowed_hosts=None)
    return given if is_ours and len(given) <= _BACK_MAX else None


def back_query(address: str | None) -> str:
    """What to add to an address without a query, so that its page knows the way back. A list without filters is found anyway."""
    if not address or "?" not in address or len(address) > _BACK_MAX:
        return ""
    return "?" + urlencode({BACK: address})
