"""Gives every request an id: the client's when it has the right shape, else a new one. Echoed, and bound to the log lines.

Also leaves out the body of an answer to HEAD, which views make as they do for GET.
"""

import re
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

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
