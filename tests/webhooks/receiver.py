"""A receiver of webhooks on loopback, and a check of signatures that shares nothing with the product's."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from memory.housekeeping import deliver, deliver_slowly
from tests.builders import TenantKit


@dataclass(frozen=True)
class Heard:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told


@dataclass
class Receiver:
    """Answers what `answer(heard)` says: a status, and headers."""

    answer: Callable[[Heard], tuple[int, dict[str, str]]] = field(default=lambda heard: (200, {}))
    heard: list[Heard] = field(default_factory=list)

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                heard = Heard(self.path, headers, body)
                receiver.heard.append(heard)
                status, more = receiver.answer(heard)
                self.send_response(status)
                for name, value in {"content-length": "0", **more}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def types(self) -> list[str]:
        return [heard.event["type"] for heard in self.heard]


def is_signed(heard: Heard, secret: str) -> bool:
    """By the text of the specification: HMAC-SHA256 over `id.timestamp.payload`, one of the space-separated `v1,` signatures."""
    key = base64.b64decode(secret[len("whsec_") :], validate=True)
    content = b".".join(
        (heard.id.encode(), heard.headers["webhook-timestamp"].encode(), heard.body)
    )
    digest = hmac.HMAC(key, content, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    return any(
        hmac.compare_digest(expected, one.encode())
        for one in heard.headers["webhook-signature"].split(" ")
    )


def tell(kit: TenantKit) -> None:
    """A turn of the worker for the webhooks that answer, and one for the slow."""
    deliver.turn(kit.id, kit.slug)
    deliver_slowly.turn(kit.id, kit.slug)
