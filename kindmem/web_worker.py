"""How the web server answers what is no HTTP request: with the API's envelope, once, and by ending the connection.

Bytes that can't be read as a request never reach the application. A body whose framing breaks while it is read is for the
application like one whose sender went away; where the next request would begin is not known then.
"""

import contextlib
import errno
import http
import socket
from typing import Any

from gunicorn import util
from gunicorn.http.errors import (
    InvalidHeader,
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)
from gunicorn.workers.gthread import ThreadWorker

from memory.api.errors import STATUS, body_of, domain_error_of
from memory.api.json_text import dumps
from memory.errors import BadInput
from memory.ids import new_text_id


class _BodyReader:
    """Reads a body as the server's own reader does, and says of broken framing what is said of a lost connection."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._reader.read(size)
        except ParseException as error:
            raise ConnectionResetError(errno.ECONNRESET, "the body is framed wrongly") from error
        return data


class Worker(ThreadWorker):
    """Threads, as the server has them."""

    def handle_request(self, req: Any, conn: Any) -> Any:
        # The server itself would let it pass, and the host would be a guess from the socket.
        if req.version >= (1, 1) and all(name != "HOST" for name, _ in req.headers):
            raise InvalidHeader("HOST", req=req)
        req.body.reader = _BodyReader(req.body.reader)
        return super().handle_request(req, conn)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:
        is_ours = isinstance(exc, InvalidResponseHeader | InvalidResponseHeaderName)
        if isinstance(exc, ParseException) and not is_ours:
            error = domain_error_of(BadInput.at("", _what_is_wrong(exc)))
        else:
            error = domain_error_of(exc)
        request_id = new_text_id()
        body = dumps(body_of(error, request_id)).encode()
        status = http.HTTPStatus(STATUS[error.code])
        head = "\r\n".join(
            [
                f"HTTP/1.1 {status.value} {status.phrase}",
                "Connection: close",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                "Cache-Control: no-store",
                "X-Content-Type-Options: nosniff",
                f"X-Request-Id: {request_id}",
            ]
        )
        with contextlib.suppress(OSError):
            util.write_nonblock(client, f"{head}\r\n\r\n".encode() + body)


def _what_is_wrong(error: ParseException) -> str:
    if isinstance(error, LimitRequestLine):
        return "has too long a request line"
    if isinstance(error, LimitRequestHeaders):
        return "has too many or too long headers"
    return "is not a valid HTTP request"
