"""What answers when no view did: the API's envelope under /v1/ and for clients that want JSON, a plain page otherwise."""

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse

from memory.api.errors import respond
from memory.errors import BadInput, CsrfFailed, DomainError, InternalError, NotFound

_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
    "<h1>{title}</h1><p>{text}</p><p>Request {request_id}</p></html>"
)
_PAGE_TEXTS = {
    400: ("Bad request", "The request could not be read."),
    403: ("Not allowed", "You may not do this here."),
    404: ("Nothing here", "There is no such page, or it is not yours to see."),
    500: ("Something went wrong", "Nothing was lost. Try again, and quote the request number."),
}


def _answer(request: HttpRequest, error: DomainError, status: int) -> HttpResponse:
    accepts = request.META.get("HTTP_ACCEPT", "")
    if request.path.startswith("/v1/") or "text/html" not in accepts:
        return respond(error, request)
    title, text = _PAGE_TEXTS[status]
    page = _PAGE.format(title=title, text=text, request_id=getattr(request, "request_id", ""))
    return HttpResponse(page, status=status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, NotFound(), 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, InternalError(), 500)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, CsrfFailed(), 403)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    what = "is not a request this host takes"
    if isinstance(exception, SuspiciousOperation):
        what = "holds something that is never valid"
    return _answer(request, BadInput.at("", what), 400)
