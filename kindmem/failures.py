"""What answers when no view did: the API's envelope under /v1/ and for clients that want JSON, a page otherwise."""

from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import Resolver404, is_valid_path
from django.utils.http import escape_leading_slashes

from corrections.failure_pages import failure_page, of_error
from memory.api.errors import respond
from memory.errors import (
    BadInput,
    CsrfFailed,
    DomainError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    RateLimited,
)


def _answer(request: HttpRequest, error: DomainError, status: int) -> HttpResponse:
    accepts = request.META.get("HTTP_ACCEPT", "")
    if request.path.startswith("/v1/") or "text/html" not in accepts:
        return respond(error, request)
    return of_error(request, error) if status == 429 else failure_page(request, status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    slashed = _slashed(request, exception)
    if slashed is not None:
        return HttpResponseRedirect(slashed)
    return _answer(request, NotFound(), 404)


def _slashed(request: HttpRequest, exception: Exception | None) -> str | None:
    """Where somebody left out the slash at the end of a page's address: the page, with the query.

    Only the shape of the address decides, never what it names, so it says nothing of what exists.
    """
    is_read = request.method in ("GET", "HEAD")
    if not is_read or not isinstance(exception, Resolver404) or request.path.startswith("/v1/"):
        return None
    if request.path.endswith("/") or not is_valid_path(f"{request.path_info}/"):
        return None
    return escape_leading_slashes(request.get_full_path(force_append_slash=True))


def not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    response = _answer(request, MethodNotAllowed(allowed=allowed.split(", ")), 405)
    response["Allow"] = allowed
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, InternalError(), 500)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, CsrfFailed(), 403)


def too_many(request: HttpRequest) -> HttpResponse:
    """What the sign-in library answers when a form is sent too often: each of its windows is a minute or less."""
    return _answer(request, RateLimited(retry_after_seconds=60), 429)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    where, what = "", "is not a request this host takes"
    if isinstance(exception, DisallowedHost):
        where = "Host"
        what = "is none of the names that this server answers for (KINDMEM_ALLOWED_HOSTS)"
    elif isinstance(exception, SuspiciousOperation):
        what = "holds something that is never valid"
    elif isinstance(exception, BadRequest):
        what = str(exception)
    return _answer(request, BadInput.at(where, what), 400)
