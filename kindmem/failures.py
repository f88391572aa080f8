"""What answers when no view did: the API's envelope under /v1/ and for clients that want JSON, a page otherwise."""

from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.http import HttpRequest, HttpResponse

from corrections.failure_pages import failure_page
from memory.api.errors import respond
from memory.errors import (
    BadInput,
    CsrfFailed,
    DomainError,
    InternalError,
    MethodNotAllowed,
    NotFound,
)


def _answer(request: HttpRequest, error: DomainError, status: int) -> HttpResponse:
    accepts = request.META.get("HTTP_ACCEPT", "")
    if request.path.startswith("/v1/") or "text/html" not in accepts:
        return respond(error, request)
    return failure_page(request, status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, NotFound(), 404)


def not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    response = _answer(request, MethodNotAllowed(allowed=allowed.split(", ")), 405)
    response["Allow"] = allowed
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, InternalError(), 500)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, CsrfFailed(), 403)


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
