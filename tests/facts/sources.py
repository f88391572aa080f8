"""Sources for the tests of refreshing: a loopback server whose answers a test sets, what it was asked, and views of it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.db import connection

from memory.tenancy import tenant_context
from tests.builders import TenantKit

LONG_AGO = "2026-01-01T00:00:00Z"


@dataclass
class Source:
    """`status`, `body` and `etag` of the next answers; a set `gate` keeps an answer back until it is opened."""

    url: str = ""
    status: int = 200
    body: bytes = b'{"seat": "window"}'
    etag: str | None = '"v1"'
    asked: list[str | None] = field(default_factory=list)
    gate: threading.Event | None = None
    was_asked: threading.Event = field(default_factory=threading.Event)


@contextmanager
def source_server() -> Iterator[Source]:
    source = Source()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("If-None-Match")
            source.asked.append(wanted)
            source.was_asked.set()
            if source.gate is not None:
                source.gate.wait(20)
            unchanged = wanted is not None and wanted == source.etag
            self.send_response(304 if unchanged else source.status)
            if source.etag:
                self.send_header("ETag", source.etag)
            body = b"" if unchanged else source.body
            if not unchanged:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    source.url = f"http://127.0.0.1:{server.server_port}/c/17"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield source
    finally:
        if source.gate is not None:
            source.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


def freshness_meta(fact: dict[str, Any]) -> dict[str, Any]:
    """What is said about freshness; the vector of a busy machine's first write may be said to be pending beside it."""
    return {name: said for name, said in fact.get("meta", {}).items() if name != "embedding"}


def set_settings(kit: TenantKit, **said: Any) -> None:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE tenant SET settings = %s::jsonb", [json.dumps(said)])


def view(
    *,
    uri: str | None = None,
    strategy: str = "manual",
    ttl: int | None = 60,
    verified: str | None = LONG_AGO,
    **refresh: Any,
) -> dict[str, Any]:
    """The source block of a cached view, stale unless `ttl` or `verified` say otherwise."""
    freshness: dict[str, Any] = {}
    if ttl is not None:
        freshness["ttlSeconds"] = ttl
    if verified is not None:
        freshness["lastVerifiedAt"] = verified
    source = {
        "kind": "http-api",
        "freshness": freshness,
        "refresh": {"strategy": strategy, **refresh},
    }
    return {**source, "uri": uri} if uri else source
