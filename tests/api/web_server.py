"""The product behind its own web server's settings, on a port of its own, and clients that write their bytes themselves."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.builders import ApiClient

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 60.0
HOST, JSON = "Host: localhost", "Content-Type: application/json"


@dataclass(frozen=True)
class Reply:
    """One response: its status, its headers in lower case, its body."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextlib.contextmanager
def gunicorn(database_url: str, errors: Path, **environ: str) -> Iterator[int]:
    """gunicorn as `up` starts it, with one worker; its port. `errors` takes what it writes."""
    with socket.socket() as listener, errors.open("wb") as log:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        descriptor = listener.fileno()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "--config", "python:kindmem.web_server"),
                *("--bind", f"fd://{descriptor}", "--workers", "1", "--threads", "4"),
            ],
            cwd=_ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(_ROOT),
                "DATABASE_URL": database_url,
                "KINDMEM_EMBEDDINGS": "none",
                **environ,
            },
            pass_fds=[descriptor],
            stdout=log,
            stderr=log,
        )
        port = listener.getsockname()[1]
        try:
            alive = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            until = time.monotonic() + _PATIENCE_SECONDS
            while not _is_alive(port, alive):
                assert process.poll() is None, errors.read_text()
                assert time.monotonic() < until, "the web server did not come up"
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()
            process.wait(30)


def _is_alive(port: int, request: bytes) -> bool:
    with contextlib.suppress(OSError):
        return [reply.status for reply in exchange(port, request)] == [200]
    return False


def exchange(port: int, *pieces: bytes, ends: bool = True, seconds: float = 30.0) -> list[Reply]:
    """Every response on one connection to these bytes; `ends`: nothing more is sent, and the server is told so."""
    with socket.create_connection(("127.0.0.1", port), seconds) as connection:
        with contextlib.suppress(OSError):  # it may have answered and gone before it had all
            for piece in pieces:
                connection.sendall(piece)
            if ends:
                connection.shutdown(socket.SHUT_WR)
        received = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                received += piece
    heads = [request.split(b" ", 1)[0] == b"HEAD" for request in pieces]
    return list(replies(bytes(received), is_head=heads[:1] == [True]))


def replies(received: bytes, *, is_head: bool = False) -> Iterator[Reply]:
    """The responses in what was received, one after the other; anything else fails."""
    while received:
        head, separator, received = received.partition(b"\r\n\r\n")
        assert separator, head
        first, *lines = head.decode("latin-1").split("\r\n")
        version, status, *_ = first.split(" ")
        assert version in ("HTTP/1.1", "HTTP/1.0"), first
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            assert name.lower() not in headers or name.lower() in ("vary", "set-cookie"), name
            headers[name.lower()] = value.strip()
        if int(status) == 100:
            continue
        if "transfer-encoding" in headers and not is_head:
            body, received = _dechunked(received)
        else:
            length = 0 if is_head else int(headers["content-length"])
            body, received = received[:length], received[length:]
            assert len(body) == length
        yield Reply(int(status), headers, body)


def _dechunked(received: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, _, received = received.partition(b"\r\n")
        length = int(size, 16)
        body, received = body + received[:length], received[length + 2 :]
        if not length:
            return body, received


def message(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    """The bytes of a request; headers as they are given, in that order."""
    lines = [f"{method} {target} HTTP/1.1", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def chunked(*pieces: bytes) -> bytes:
    """A chunked body of these pieces."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@dataclass(frozen=True)
class Web:
    """The served product, a key of one tenant and a key of another."""

    port: int
    client: ApiClient
    other: ApiClient
    errors: Path

    @property
    def key(self) -> str:
        return f"Authorization: Bearer {self.client.token}"

    def ask(self, *pieces: bytes) -> list[Reply]:
        return exchange(self.port, *pieces)

    def post(self, *headers: str, body: bytes, path: str = "/v1/memory/facts") -> bytes:
        return message("POST", path, HOST, self.key, JSON, *headers, body=body)

    def facts(self) -> int:
        (reply,) = self.ask(message("GET", "/v1/memory/facts?limit=200", HOST, self.key))
        return len(json.loads(reply.body)["data"])


def assert_is_refusal(reply: Reply, *statuses: int) -> None:
    assert reply.status in statuses, reply
    assert reply.headers["content-type"] == "application/json"
    error = json.loads(reply.body)["error"]
    assert set(error) == {"code", "message", "details", "requestId"}
    assert error["requestId"] == reply.headers["x-request-id"]


def fact_body(name: str = "x") -> bytes:
    """A fact that is taken."""
    body = {"type": "note", "scope": {"projectId": "p"}, "content": name}
    return json.dumps(body).encode()
