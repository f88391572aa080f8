"""Clients that begin a request and do not go on: others are served all the same, and they are let go in time."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import pytest

from kindmem import web_worker
from tests.api.web_server import HOST, JSON, Web

pytestmark = pytest.mark.faults

PATH = "/v1/memory/facts"
SOCKETS = 24
"""Several times as many as the server has threads."""


@pytest.fixture
def slow(web: Web) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        opened: list[socket.socket] = []
        for _ in range(SOCKETS):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=60))
            opened.append(one)
        yield opened


def begin(sockets: list[socket.socket], *headers: str) -> None:
    head = "\r\n".join([f"POST {PATH} HTTP/1.1", HOST, JSON, "Content-Length: 500", *headers])
    for one in sockets:
        one.sendall(f"{head}\r\n\r\n{{".encode())


def livez_seconds(web: Web) -> float:
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as one:
        one.sendall(f"GET /livez HTTP/1.1\r\n{HOST}\r\nConnection: close\r\n\r\n".encode())
        assert one.recv(12) == b"HTTP/1.1 200"
    return time.monotonic() - begun


def test_who_names_no_caller_is_answered_before_the_body_is_there(
    web: Web, slow: list[socket.socket]
) -> None:
    begin(slow)
    for one in slow:
        assert one.recv(12) == b"HTTP/1.1 401"
    assert livez_seconds(web) < SOCKETS * web_worker.BODY_SECONDS / 4


def test_a_body_that_does_not_come_is_not_waited_for(web: Web, slow: list[socket.socket]) -> None:
    begin(slow[:4], f"Authorization: Bearer {web.client.token}")
    begun = time.monotonic()
    for one in slow[:4]:
        said = b"".join(iter(lambda one=one: one.recv(65536), b""))
        assert said.startswith(b"HTTP/1.1 400"), said
        assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad-input"
    assert time.monotonic() - begun < 3 * web_worker.BODY_SECONDS


def test_a_head_that_does_not_end_is_not_waited_for(web: Web, slow: list[socket.socket]) -> None:
    for one in slow[:4]:
        one.sendall(f"GET /livez HTTP/1.1\r\n{HOST}\r\n".encode())
    begun = time.monotonic()
    for one in slow[:4]:
        assert one.recv(65536) == b""
    assert time.monotonic() - begun < 4 * web_worker.HEAD_SECONDS
    assert livez_seconds(web) < web_worker.HEAD_SECONDS


@pytest.mark.full
def test_a_trickle_ends_too(web: Web) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as one:
        begin([one], f"Authorization: Bearer {web.client.token}")
        begun = time.monotonic()
        one.settimeout(0.25)
        while True:
            with contextlib.suppress(TimeoutError):
                said = one.recv(65536)
                break
            with contextlib.suppress(OSError):
                one.sendall(b" ")
        assert said.startswith(b"HTTP/1.1 400")
        assert time.monotonic() - begun < 3 * web_worker.BODY_SECONDS
