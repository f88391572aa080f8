"""The whole application behind a real socket on loopback, for clients that speak HTTP themselves."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.core.wsgi import get_wsgi_application
from django.db import connections


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The base URL. One thread answers, one request after the other, on a database connection of its own."""
    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=_Quiet)

    def serve() -> None:
        try:
            server.serve_forever(poll_interval=0.05)
        finally:
            connections.close_all()

    thread = threading.Thread(target=serve, name="served", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
