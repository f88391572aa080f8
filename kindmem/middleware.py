"""Gives every request an id: the client's when it has the right shape, else a new one. Echoed, and bound to the log lines.

Also leaves out the body of an answer to HEAD, which views make as they do for GET, and refuses addresses that are no text; an
address that is only for a form says so to whoever opens it. A client that sends its key over plain http is told so, and not led
on to https.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import structlog
from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from kindmem.failures import not_allowed
from memory.ids import new_text_id

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = given if REQUEST_ID.fullmatch(given) else new_text_id()
        request.request_id = request_id  # type: ignore[attr-defined]  # read by the API, pages and logs
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        response["X-Request-Id"] = request_id
        if request.method == "HEAD" and not response.streaming:
            response.content = b""  # its length was said before
        return response


NOT_TEXT = "kindmem.address_is_not_text"
"""Set in the environment of a request whose path or query holds bytes that are no UTF-8."""


def is_text(environ: Mapping[str, Any]) -> bool:
    """Whether path and query, as the gateway gives them, are UTF-8. Django writes something in place of what is not."""
    try:
        environ.get("PATH_INFO", "").encode("latin-1").decode()
        unquote_to_bytes(environ.get("QUERY_STRING", "")).decode()
    except UnicodeError:
        return False
    return True


class TextMiddleware:
    """Refuses an address that is no text: with something in the place of its bytes, two addresses would be one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.META.get(NOT_TEXT):
            raise BadRequest("has an address that is not UTF-8")
        return self.get_response(request)


class WrongMethodMiddleware:
    """Puts words into the empty answer that Django gives to a method which a view does not take."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if isinstance(response, HttpResponseNotAllowed) and not response.content:
            return not_allowed(request, response["Allow"])
        return response


class PlainHttpMiddleware:
    """Where people are led from http to https, the API refuses: one that was led on would go on sending its key in the clear."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_api = request.path.startswith("/v1/memory/")
        if settings.SECURE_SSL_REDIRECT and is_api and not request.is_secure():
            raise BadRequest("came over plain http: use https, and replace a key that was sent so")
        return self.get_response(request)
