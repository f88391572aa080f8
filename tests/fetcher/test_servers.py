"""Servers that lie, flood and stall: the fetcher leaves them, in time and with an error."""

import socket
import threading
import time

import pytest

from memory import fetcher
from memory.fetcher import (
    Fetched,
    FetchFailed,
    FetchRefused,
    FetchTimeout,
    FetchTooLarge,
    fetch,
)
from tests.fetcher.server import NAME, Server, answers, fetch_local, resolves_to, says

SOON = 0.3


# -- servers that lie ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308, 399])
def test_a_redirect_is_refused_and_not_followed(status):
    with Server(answers()) as other:
        answer = (
            b"HTTP/1.1 %d Moved\r\nlocation: http://127.0.0.1:%d/\r\ncontent-length: 0\r\n\r\n"
            % (status, other.port)
        )
        with Server(says(answer)) as server, pytest.raises(FetchRefused) as caught:
            fetch_local(server)
    assert caught.value.reason == "redirect"
    assert other.seen == []


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"deflate", b"x-bomb", b"identity, gzip"])
def test_a_compressed_answer_is_refused(encoding):
    compressed = answers(b"\x1f\x8b", b"Content-Encoding: %s\r\n" % encoding)
    with Server(compressed) as server, pytest.raises(FetchRefused) as caught:
        fetch_local(server)
    assert caught.value.reason == "content-encoding"


def test_an_announced_body_above_the_cap_is_not_read():
    with (
        Server(says(b"HTTP/1.1 200 OK\r\ncontent-length: 65537\r\n\r\n")) as server,
        pytest.raises(FetchTooLarge),
    ):
        fetch_local(server)


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"],
    ids=["announced", "not announced"],
)
def test_a_body_of_exactly_the_cap_is_read_and_one_byte_more_is_too_large(head):
    with Server(says(head + b"x" * 1_000)) as server:
        assert len(fetch_local(server, max_bytes=1_000).body) == 1_000
        with pytest.raises(FetchTooLarge):
            fetch_local(server, max_bytes=999)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
)
def test_a_body_without_an_end_is_cut_off_at_the_cap(head):
    sent = []

    def flood(connection, server):
        connection.sendall(head)
        piece = b"x" * 4_096
        if b"chunked" in head:
            piece = b"1000\r\n" + piece + b"\r\n"
        while not server.closing.is_set():
            connection.sendall(piece)
            sent.append(len(piece))

    with Server(flood) as server, pytest.raises(FetchTooLarge):
        fetch_local(server)
    assert sum(sent) < 20_000_000


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
    ids=range(9),
)
def test_an_answer_that_is_not_http_is_a_failure(answer):
    with Server(says(answer)) as server, pytest.raises(FetchFailed):
        fetch_local(server)


def test_a_certificate_for_another_name_is_a_failure(certificate, connections):
    serving, trusting = certificate
    with Server(answers(), tls=serving) as server:
        connections.leads_to = server.port
        with pytest.raises(FetchFailed, match="TLS"):
            fetch(
                "https://other.example/",
                resolver=resolves_to("93.184.215.14"),
                ssl_context=trusting,
                timeout_seconds=5,
            )
    assert server.seen == []


def test_a_certificate_that_nobody_signed_is_a_failure(certificate, connections):
    serving, _ = certificate
    with Server(answers(), tls=serving) as server:
        connections.leads_to = server.port
        with pytest.raises(FetchFailed, match="TLS"):
            fetch(f"https://{NAME}/", resolver=resolves_to("93.184.215.14"), timeout_seconds=5)
    assert server.seen == []


def test_a_server_without_tls_is_a_failure(certificate, connections):
    with Server(says(b"220 mail ready\r\n"), waits_for_request=False) as server:
        connections.leads_to = server.port
        with pytest.raises(FetchFailed, match="TLS"):
            fetch(
                f"https://{NAME}/",
                resolver=resolves_to("93.184.215.14"),
                ssl_context=certificate[1],
                timeout_seconds=5,
            )


def test_a_port_where_nobody_listens_is_a_failure():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(FetchFailed, match="connected"):
        fetch(f"http://127.0.0.1:{port}/", allow_loopback=True, timeout_seconds=5)


# -- servers that stall ----------------------------------------------------------------------


def _drips(head, drop):
    def behave(connection, server):
        connection.sendall(head)
        while not server.closing.wait(0.01):
            connection.sendall(drop)

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        lambda connection, server: server.closing.wait(),
        _drips(b"HTTP/1.1 200 OK\r\nx: ", b"y"),
        _drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        _drips(b"HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n", b"z"),
        _drips(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nz\r\n"),
    ],
    ids=["silent", "drips a header", "drips 100s", "drips a body", "drips chunks"],
)
def test_a_stalling_server_is_left_at_the_deadline(behave):
    with Server(behave) as server:
        started = time.monotonic()
        with pytest.raises(FetchTimeout):
            fetch_local(server, timeout_seconds=SOON)
        assert time.monotonic() - started < SOON + 1


def test_a_server_that_never_shakes_hands_is_left_at_the_deadline(certificate, connections):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections.leads_to = listener.getsockname()[1]
        with pytest.raises(FetchTimeout):
            fetch(
                f"https://{NAME}/",
                resolver=resolves_to("93.184.215.14"),
                ssl_context=certificate[1],
                timeout_seconds=SOON,
            )


def test_a_server_that_does_not_read_a_post_is_left_at_the_deadline():
    with (
        Server(lambda connection, server: server.closing.wait()) as server,
        pytest.raises(FetchTimeout),
    ):
        fetch_local(server, method="POST", content=b"x" * 50_000_000, timeout_seconds=SOON)


def test_an_address_that_swallows_connections_is_left_at_the_deadline(monkeypatch):
    def swallow(address, timeout=None, **options):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", swallow)
    with pytest.raises(FetchTimeout):
        fetch(f"https://{NAME}/", resolver=resolves_to("93.184.215.14"))


def test_a_resolver_that_hangs_is_left_at_the_deadline():
    may_answer = threading.Event()

    def hanging(host, port):
        may_answer.wait(30)
        return ["93.184.215.14"]

    started = time.monotonic()
    with pytest.raises(FetchTimeout):
        fetch(f"https://{NAME}/", resolver=hanging, timeout_seconds=SOON)
    assert time.monotonic() - started < SOON + 1
    may_answer.set()


def test_no_more_than_the_bound_run_at_once_and_waiting_counts():
    may_answer = threading.Event()
    arrived = threading.Barrier(fetcher.AT_ONCE + 1)

    def behave(connection, server):
        arrived.wait(10)
        may_answer.wait(10)
        answers()(connection, server)

    results = []
    with Server(behave) as server:

        def run():
            results.append(fetch_local(server, timeout_seconds=10))

        threads = [threading.Thread(target=run) for _ in range(fetcher.AT_ONCE)]
        for thread in threads:
            thread.start()
        arrived.wait(10)
        with pytest.raises(FetchTimeout):
            fetch_local(server, timeout_seconds=SOON)
        assert len(server.seen) == fetcher.AT_ONCE
        may_answer.set()
        for thread in threads:
            thread.join()
    assert [fetched.status for fetched in results] == [200] * fetcher.AT_ONCE


def test_every_end_gives_its_place_back(monkeypatch):
    monkeypatch.setattr(fetcher, "_running", threading.BoundedSemaphore(1))
    for _ in range(3):
        with pytest.raises(FetchRefused):
            fetch(f"https://{NAME}/", resolver=resolves_to("10.0.0.1"))
        with pytest.raises(FetchFailed):
            fetch(f"https://{NAME}/", resolver=resolves_to())
    with Server(answers()) as server:
        assert fetch_local(server) == Fetched(200, {"content-length": "2"}, b"{}")
