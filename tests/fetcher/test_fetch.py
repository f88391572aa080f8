"""What the guarded fetcher asks, whom it connects to, and when it does nothing."""

import socket

import pytest
from django.db import transaction

from memory import fetcher
from memory.fetcher import (
    FetchFailed,
    FetchRefused,
    fetch,
    is_in_transaction,
)
from tests.fetcher.server import NAME, Server, answers, fetch_local, resolves_to, says
from tests.fetcher.test_rules import INWARD

# -- the ordinary case -----------------------------------------------------------------------


def test_an_https_source_is_fetched_by_name_from_the_address_that_was_checked(
    certificate, connections
):
    serving, trusting = certificate
    asked = []

    def resolver(host, port):
        asked.append((host, port))
        return ["93.184.215.14"]

    with Server(answers(b'{"limit": 5}', b'ETag: "v1"\r\n'), tls=serving) as server:
        connections.leads_to = server.port
        fetched = fetch(
            f"https://{NAME}/limits?at=now#part",
            headers={"If-None-Match": '"v0"'},
            resolver=resolver,
            ssl_context=trusting,
            timeout_seconds=5,
        )
    assert fetched.status == 200
    assert fetched.body == b'{"limit": 5}'
    assert fetched.headers["etag"] == '"v1"'
    assert asked == [(NAME, 443)]
    assert connections.made == [("93.184.215.14", 443)]
    assert server.names == [NAME]
    lines = server.seen[0].decode().lower().split("\r\n")
    assert lines[0] == "get /limits?at=now http/1.1"
    assert f"host: {NAME}" in lines
    assert "accept-encoding: identity" in lines
    assert 'if-none-match: "v0"' in lines


def test_not_modified_and_errors_of_the_source_are_answers(connections):
    for status in (304, 404, 500):
        with Server(says(b"HTTP/1.1 %d X\r\ncontent-length: 0\r\n\r\n" % status)) as server:
            assert fetch_local(server).status == status


def test_a_post_carries_its_content():
    def behave(connection, server):
        while not server.seen[-1].endswith(b"hello"):
            server.seen[-1] += connection.recv(100)
        answers(b"done")(connection, server)

    with Server(behave) as server:
        fetched = fetch_local(server, method="POST", content=b"hello", headers={"X-Signature": "s"})
    assert fetched.body == b"done"
    assert server.seen[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"content-length: 5\r\n" in server.seen[0].lower()


def test_a_chunked_answer_and_one_that_ends_with_the_connection_are_read_whole():
    chunked = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    for answer in (chunked, b"HTTP/1.0 200 OK\r\n\r\nabcde"):
        with Server(says(answer)) as server:
            assert fetch_local(server).body == b"abcde"


def test_repeated_headers_are_joined():
    with Server(answers(b"", b"Vary: a\r\nVary: b\r\n")) as server:
        assert fetch_local(server).headers["vary"] == "a, b"


def test_letters_outside_ascii_are_encoded(connections):
    with Server(answers()) as server:
        fetch_local(server, "/größe?q=ä%20b")
    assert server.seen[0].startswith(b"GET /gr%C3%B6%C3%9Fe?q=%C3%A4%20b HTTP/1.1\r\n")
    asked = []

    def resolver(host, port):
        asked.append(host)
        return []

    with pytest.raises(FetchFailed):
        fetch("https://bücher.example/", resolver=resolver)
    assert asked == ["xn--bcher-kva.example"]


# -- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize("address", INWARD)
def test_an_address_that_is_not_public_is_refused_alone_and_beside_a_public_one(
    address, connections
):
    for answer in ([address], ["93.184.215.14", address], [address, "2606:4700::1111"]):
        with pytest.raises(FetchRefused) as caught:
            fetch(f"https://{NAME}/", resolver=resolves_to(*answer))
        assert caught.value.reason == "address"
    assert connections.made == []


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "2a00:1450::1"])
def test_a_public_address_is_connected_to(address, connections):
    with pytest.raises(FetchFailed):
        fetch(f"https://{NAME}/", resolver=resolves_to(address))
    assert connections.made == [(address, 443)]


def test_a_name_whose_answer_flips_is_asked_once_and_connected_to_what_was_checked(connections):
    answers = iter([["93.184.215.14"], ["127.0.0.1"], ["169.254.169.254"]])
    asked = []

    def flipping(host, port):
        asked.append(host)
        return next(answers)

    with pytest.raises(FetchFailed):
        fetch(f"https://{NAME}/", resolver=flipping)
    assert asked == [NAME]
    assert connections.made == [("93.184.215.14", 443)]
    with pytest.raises(FetchRefused):
        fetch(f"https://{NAME}/", resolver=flipping)
    assert len(connections.made) == 1


def test_the_next_address_is_tried_when_one_does_not_answer(connections, certificate):
    serving, trusting = certificate
    with (
        Server(answers(b"here"), tls=serving) as server,
        socket.create_server(("127.0.0.1", 0)) as gone,
    ):
        free = gone.getsockname()[1]
        gone.close()
        ports = iter([free, server.port])
        connect = connections

        def next_port(address, timeout=None, **options):
            connect.leads_to = next(ports)
            return connect(address, timeout, **options)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(socket, "create_connection", next_port)
            fetched = fetch(
                f"https://{NAME}/",
                resolver=resolves_to("93.184.215.14", "93.184.215.15"),
                ssl_context=trusting,
                timeout_seconds=5,
            )
    assert fetched.body == b"here"
    assert connections.made == [("93.184.215.14", 443), ("93.184.215.15", 443)]


def test_the_systems_resolver_is_asked_when_none_is_given(monkeypatch, connections):
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, port, **options: [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", port)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", port)),
        ],
    )
    assert fetcher.resolve(NAME, 443) == ["10.0.0.7"]
    with pytest.raises(FetchRefused):
        fetch(f"https://{NAME}/")


def test_a_name_that_does_not_resolve_is_a_failure():
    def resolver(host, port):
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(FetchFailed, match="does not resolve"):
        fetch(f"https://{NAME}/", resolver=resolver)


@pytest.mark.parametrize(
    "url", ["http://policies.example/", "https://127.0.0.1/", "https://a@b.example/"]
)
def test_an_address_outside_the_rules_is_refused_before_its_name_is_asked_for(url, connections):
    asked = []
    with pytest.raises(FetchRefused):
        fetch(url, resolver=lambda host, port: asked.append(host) or ["93.184.215.14"])
    assert asked == []
    assert connections.made == []


def test_a_header_outside_the_rules_is_refused_before_its_name_is_asked_for(connections):
    with pytest.raises(FetchRefused) as caught:
        fetch(f"https://{NAME}/", headers={"Host": "other"}, resolver=resolves_to("8.8.8.8"))
    assert caught.value.reason == "header"
    assert connections.made == []


def test_another_method_is_refused():
    with pytest.raises(FetchRefused) as caught:
        fetch(f"https://{NAME}/", method="DELETE")
    assert caught.value.reason == "method"


# -- the development setting -----------------------------------------------------------------


def test_with_the_development_setting_loopback_is_reached_over_http_by_name_and_by_address():
    with Server(answers(b"local")) as server:
        for host in ("127.0.0.1", "localhost", "policies.example"):
            fetched = fetch(
                f"http://{host}:{server.port}/",
                allow_loopback=True,
                resolver=resolves_to("127.0.0.1"),
                timeout_seconds=5,
            )
            assert fetched.body == b"local"
    assert f"host: policies.example:{server.port}".encode() in server.seen[-1].lower()


@pytest.mark.parametrize(
    ("url", "addresses", "reason"),
    [
        ("http://policies.example/", ["93.184.215.14"], "scheme"),
        ("https://policies.example:8443/", ["93.184.215.14"], "port"),
        ("http://policies.example/", ["10.0.0.1"], "address"),
        ("http://policies.example/", ["127.0.0.1", "93.184.215.14"], "address"),
        ("http://policies.example/", ["127.0.0.1", "169.254.169.254"], "address"),
        ("http://policies.example/", ["::ffff:127.0.0.1"], "address"),
        ("http://10.0.0.1/", [], "address"),
        ("http://169.254.169.254/", [], "address"),
        ("http://0.0.0.0/", [], "address"),
    ],
)
def test_the_development_setting_opens_loopback_alone(url, addresses, reason, connections):
    with pytest.raises(FetchRefused) as caught:
        fetch(url, allow_loopback=True, resolver=resolves_to(*addresses))
    assert caught.value.reason == reason
    assert connections.made == []


def test_proxies_of_the_environment_are_not_asked(monkeypatch):
    with Server(answers(b"proxy")) as proxy, Server(answers(b"source")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert fetch_local(server).body == b"source"
    assert proxy.seen == []


def test_inside_a_transaction_nothing_is_fetched(connections):
    with pytest.raises(FetchRefused) as caught:
        fetch(f"https://{NAME}/", in_transaction=lambda: True)
    assert caught.value.reason == "in-transaction"
    assert connections.made == []


def test_an_error_names_the_host_and_neither_path_nor_query():
    with pytest.raises(FetchRefused) as caught:
        fetch(f"https://{NAME}/private?token=s3cret", resolver=resolves_to("10.0.0.1"))
    assert str(caught.value) == "policies.example: address"
    assert caught.value.code == "fetch-refused"


def test_a_transaction_is_noticed_while_it_is_open(live_db):
    assert not is_in_transaction()
    with transaction.atomic():
        assert is_in_transaction()
    assert not is_in_transaction()
