"""One URL gives one full page, and to htmx at most one fragment of it: the server decides which of the two is asked for."""

from typing import Any, Protocol, TypeVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

VARY = ("HX-Request", "HX-Request-Type", "HX-History-Restore-Request")


_Response = TypeVar("_Response", bound=HttpResponseBase)


class _Details(Protocol):
    history_restore_request: bool

    def __bool__(self) -> bool: ...


def is_htmx(request: HttpRequest) -> bool:
    return bool(getattr(request, "htmx", False))


def wants_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page. Going back asks for the whole one."""
    htmx: _Details | None = getattr(request, "htmx", None)
    return (
        bool(htmx)
        and htmx is not None
        and not htmx.history_restore_request
        and request.headers.get("HX-Request-Type") != "full"
    )


def render_page(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    fragment: str | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, or its fragment when htmx asks for that and there is one."""
    is_fragment = fragment is not None and wants_fragment(request)
    shown = fragment if is_fragment and fragment is not None else template
    response = render(request, shown, {**context, "is_fragment": is_fragment}, status=status)
    return unkept(response)


def unkept(response: _Response) -> _Response:
    """Nothing of a signed-in page stays in a cache."""
    response["Cache-Control"] = "no-store"
    patch_vary_headers(response, VARY)
    return response
