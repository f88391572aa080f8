"""A list's whole state is in its address: this page's own with some of it changed."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest


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
