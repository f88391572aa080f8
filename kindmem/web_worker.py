"""How the web server answers what is no HTTP request: with the API's envelope, once, and by ending the connection.

Bytes that can't be read as a request never reach the application. A body whose framing breaks while it is read is for the
application like one whose sender went away; where the next request would begin is not known then. So is one that comes too
slowly: whoever sends a byte now and then must not keep a thread from others for long.
"""

import contextlib
import errno
import http
import socket
import time
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

HEAD_SECONDS = 5.0
BODY_SECONDS = 5.0
BODY_BYTES_A_SECOND = 100_000
LONGEST_BODY_SECONDS = 60.0
DRAIN_SECONDS = 0.5
LINGER_SECONDS = 0.5
SEND_SECONDS = 30.0
"""How long a request's head, its body (and so much longer by its length) and each piece of an answer may take."""


class _TimedSocket:
    """A connection's socket for its reader: what is not there in time will not be waited for."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.until = 0.0

    def recv(self, size: int) -> bytes:
        left_seconds = self.until - time.monotonic()
        if left_seconds <= 0:
            raise ConnectionResetError(errno.ECONNRESET, "the request comes too slowly")
        self._socket.settimeout(left_seconds)
        try:
            return self._socket.recv(size)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "the request comes too slowly") from None
        finally:
            self._socket.settimeout(SEND_SECONDS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


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
    """Threads, as the server has them, with an end to waiting for a request."""

    def handle(self, conn: Any) -> Any:
        if conn.initialized:
            _timed(conn).until = time.monotonic() + HEAD_SECONDS
        else:
            begin, has_data = conn.init, conn.wait_for_data
            # The server's poller waits for who says nothing; a thread would be kept from others.
            conn.wait_for_data = lambda timeout: has_data(0.0)

            def begin_timed() -> None:
                if not conn.initialized:
                    begin()
                    _timed(conn).until = time.monotonic() + HEAD_SECONDS

            conn.init = begin_timed
        kept = super().handle(conn)
        if not kept:
            # The server itself would linger in the one thread that takes every connection.
            util.close_graceful(conn.sock, timeout=LINGER_SECONDS)
            conn.close = _is_closed
        return kept

    def _keepalive_after(self, conn: Any, keepalive: Any) -> bool:
        # What is still to come of a body that was answered without it is waited for a moment, so that the answer arrives.
        if not keepalive:
            return False
        _timed(conn).until = until = time.monotonic() + DRAIN_SECONDS
        return bool(conn.parser.finish_body(deadline=until))

    def handle_request(self, req: Any, conn: Any) -> Any:
        # The server itself would let it pass, and the host would be a guess from the socket.
        if req.version >= (1, 1) and all(name != "HOST" for name, _ in req.headers):
            raise InvalidHeader("HOST", req=req)
        length = next((value for name, value in req.headers if name == "CONTENT-LENGTH"), "0")
        seconds = BODY_SECONDS + int(length) / BODY_BYTES_A_SECOND
        _timed(conn).until = time.monotonic() + min(seconds, LONGEST_BODY_SECONDS)
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


def _is_closed(graceful: bool = False) -> None:
    """In place of closing a connection that was closed by the thread that answered it."""


def _timed(conn: Any) -> _TimedSocket:
    """What the connection's requests are read from."""
    unreader = conn.parser.unreader
    if not isinstance(unreader.sock, _TimedSocket):
        unreader.sock = _TimedSocket(unreader.sock)
    return unreader.sock


def _what_is_wrong(error: ParseException) -> str:
    if isinstance(error, LimitRequestLine):
        return "has too long a request line"
    if isinstance(error, LimitRequestHeaders):
        return "has too many or too long headers"
    return "is not a valid HTTP request"
