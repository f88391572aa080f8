"""The witness over HTTP: `POST /add-checkpoint`, and nothing else.

For loopback; TLS is the business of the proxy in front. Each connection has a few seconds, each request 64 KiB.
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import structlog

from memory.integrity.witnessing import REQUEST_MAX_BYTES, Answered, Witness

log = structlog.get_logger("kindmem.witness")

_SECONDS: Final = 5.0


class WitnessServer(ThreadingHTTPServer):
    """Answers for one witness; `serve_forever` until it is shut down."""

    daemon_threads = True

    def __init__(self, witness: Witness, host: str, port: int) -> None:
        self.witness = witness
        super().__init__((host, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: WitnessServer
    timeout = _SECONDS

    def do_POST(self) -> None:
        self._answer(self._asked())

    def do_GET(self) -> None:
        self._answer(Answered(404, "POST /add-checkpoint is all there is\n"))

    def _asked(self) -> Answered:
        length = self.headers.get("Content-Length", "")
        if self.path != "/add-checkpoint":
            return Answered(404, "POST /add-checkpoint is all there is\n")
        if not (length.isascii() and length.isdigit()):
            return Answered(411, "a length is wanted\n")
        if len(length) > 9 or int(length) > REQUEST_MAX_BYTES:
            return Answered(413, f"at most {REQUEST_MAX_BYTES} bytes\n")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            return Answered(400, "the request ended early\n")
        try:
            return self.server.witness.add_checkpoint(body)
        except OSError as error:
            log.error("the state of the witness was not kept", error=type(error).__name__)
            return Answered(503, "the state could not be kept; nothing was signed\n")

    def _answer(self, answered: Answered) -> None:
        body = answered.text.encode()
        self.send_response(answered.status)
        self.send_header("Content-Type", answered.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        log.info("asked", method=self.command, status=str(args[1]) if len(args) > 1 else None)
