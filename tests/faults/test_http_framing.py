"""Where a request ends, for the served product: one answer to each, none to one hidden in another, and no effect of half a one.

Ambiguous framing ends the connection, so that nothing behind it is ever taken for a request.
"""

import contextlib
import json
import socket

import pytest

from tests.api.web_server import (
    HOST,
    JSON,
    Web,
    assert_is_refusal,
    chunked,
    fact_body,
    message,
    replies,
)

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("nothing_unexpected_is_logged")]

LAST = message("GET", "/livez", HOST, "Connection: close")
MIB = 1 << 20
LENGTH = f"Content-Length: {len(fact_body())}"
PLAIN, CHUNKED = fact_body(), chunked(fact_body())
AMBIGUOUS: dict[str, tuple[tuple[str, ...], bytes]] = {
    "length, then chunked": ((LENGTH, "Transfer-Encoding: chunked"), CHUNKED),
    "chunked, then length": (("Transfer-Encoding: chunked", LENGTH), CHUNKED),
    "length of nothing and chunked": (("Content-Length: 0", "Transfer-Encoding: chunked"), CHUNKED),
    "the same length twice": ((LENGTH, LENGTH), PLAIN),
    "two lengths": ((LENGTH, "Content-Length: 0"), PLAIN),
    "a list of lengths": ((f"{LENGTH}, {len(PLAIN)}",), PLAIN),
    "a length with a sign": ((LENGTH.replace(" ", " +"),), PLAIN),
    "a negative length": (("Content-Length: -1",), PLAIN),
    "a length in hex": (("Content-Length: 0x10",), PLAIN),
    "a length with an underscore": (("Content-Length: 1_0",), PLAIN),
    "a length with a fraction": (("Content-Length: 10.0",), PLAIN),
    "a length of other digits": (("Content-Length: \xb2",), PLAIN),
    "no length in the header": (("Content-Length:",), PLAIN),
    "chunked twice": (("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), CHUNKED),
    "chunked in chunks": (("Transfer-Encoding: chunked, chunked",), CHUNKED),
    "chunked before another": (("Transfer-Encoding: chunked, gzip",), CHUNKED),
    "chunked before identity": (("Transfer-Encoding: chunked, identity",), CHUNKED),
    "identity": (("Transfer-Encoding: identity", LENGTH), PLAIN),
    "a coding that nobody knows": (("Transfer-Encoding: xchunked",), CHUNKED),
    "chunked with a parameter": (("Transfer-Encoding: chunked;q=1",), CHUNKED),
    "chunked in quotes": (('Transfer-Encoding: "chunked"',), CHUNKED),
    "no coding in the header": (("Transfer-Encoding:", LENGTH), PLAIN),
    "a space before the colon": (("Transfer-Encoding : chunked",), CHUNKED),
    "a folded header": (("Transfer-Encoding:\r\n chunked",), CHUNKED),
    "a vertical tab": (("Transfer-Encoding: \x0bchunked",), CHUNKED),
    "a bare line feed": (("X-A: b\nTransfer-Encoding: chunked",), CHUNKED),
    "a header without a name": ((": x", LENGTH), PLAIN),
    "a header without a colon": (("Content-Length", LENGTH), PLAIN),
    "two hosts": (("Host: evil.example", LENGTH), PLAIN),
    "two content types": (("Content-Type: text/plain", LENGTH), PLAIN),
    "an expectation that nobody meets": (("Expect: more", LENGTH), PLAIN),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_framing_is_refused_and_ends_the_connection(name: str, web: Web) -> None:
    headers, body = AMBIGUOUS[name]
    before = web.facts()
    told = web.ask(web.post(*headers, body=body) + LAST)
    assert len(told) == 1
    assert_is_refusal(told[0], 400)
    assert told[0].headers["connection"] == "close"
    assert web.facts() == before


@pytest.mark.parametrize("coding", ["gzip, chunked", "deflate, chunked", "identity, chunked"])
def test_a_body_in_another_coding_is_not_taken(coding: str, web: Web) -> None:
    before = web.facts()
    told = web.ask(web.post(f"Transfer-Encoding: {coding}", body=CHUNKED))
    assert_is_refusal(told[0], 415)
    assert (len(told), web.facts()) == (1, before)


BROKEN = {
    "a size that is no number": b"zz\r\n" + PLAIN + b"\r\n0\r\n\r\n",
    "a negative size": b"-1\r\n" + PLAIN,
    "a size with an underscore": b"1_0\r\n" + PLAIN,
    "a size in hex with its prefix": b"0x10\r\n" + PLAIN,
    "no size": b"\r\n" + PLAIN,
    "a chunk that is longer than its size": b"1\r\n" + PLAIN,
    "an extension that is none": b"1;\x00\r\n{",
    "a bare line feed after the size": b"1\n{\n0\n\n" + b" " * 9000,
    "an endless size": b"1" * 20_000,
    "a trailer that frames": CHUNKED[:-2] + b"Content-Length: 5\r\n\r\n",
    "a trailer that is none": CHUNKED[:-2] + b"nonsense\r\n\r\n",
    "too long a trailer": CHUNKED[:-2] + b"X: " + b"x" * 10_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_chunked_body_that_breaks_is_refused_and_nothing_after_it_is_answered(
    name: str, web: Web
) -> None:
    before = web.facts()
    with socket.create_connection(("127.0.0.1", web.port), 30) as connection:
        connection.sendall(web.post("Transfer-Encoding: chunked", body=BROKEN[name]))
        first = connection.recv(65536)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(LAST)
            while more := connection.recv(65536):
                first += more
    (told,) = replies(first)
    assert_is_refusal(told, 400)
    assert web.facts() == before


@pytest.mark.parametrize(
    "body",
    [
        framed
        for piece in (b"", PLAIN[:9], PLAIN)
        for framed in (
            ("Content-Length: 1000", piece),
            ("Transfer-Encoding: chunked", b"%x\r\n%b" % (len(PLAIN), piece)),
        )
    ]
    + [("Transfer-Encoding: chunked", CHUNKED[:-5]), ("Transfer-Encoding: chunked", CHUNKED[:-2])],
    ids=lambda body: f"{body[0]}, {len(body[1])} bytes",
)
def test_a_body_that_ended_early_does_nothing_even_where_it_is_valid(
    body: tuple[str, bytes], web: Web
) -> None:
    before = web.facts()
    (told,) = web.ask(web.post(body[0], body=body[1]))
    assert_is_refusal(told, 400)
    assert web.facts() == before


def test_what_a_reader_of_nothing_leaves_unread_is_never_taken_for_a_request(web: Web) -> None:
    smuggled = message("GET", "/v1/memory/me", HOST, web.key)
    for method, path in (("GET", "/livez"), ("GET", "/v1/memory/me"), ("DELETE", "/v1/nosuch")):
        for headers, body in (
            (f"Content-Length: {len(smuggled)}", smuggled),
            ("Transfer-Encoding: chunked", chunked(smuggled)),
        ):
            told = web.ask(message(method, path, HOST, web.key, headers, body=body) + LAST)
            assert len(told) == 2
            assert told[1].body == b'{"status": "ok"}'
    told = web.ask(message("GET", "/livez", HOST, "Transfer-Encoding: chunked", body=b"zz\r\n"))
    assert [reply.status for reply in told] == [200]


def test_a_body_may_come_in_chunks_without_its_length(web: Web) -> None:
    before = web.facts()
    for number, body in enumerate(
        (
            chunked(fact_body("a")),
            chunked(*(bytes([byte]) for byte in fact_body("b"))),
            b"%x;name=value\r\n%b\r\n0\r\n\r\n" % (len(fact_body("c")), fact_body("c")),
            chunked(fact_body("d"))[:-2] + b"X-Checksum: 1\r\n\r\n",
            b"%X\r\n%b\r\n000\r\n\r\n" % (len(fact_body("e")), fact_body("e")),
        ),
        1,
    ):
        told = web.ask(web.post("Transfer-Encoding: chunked", body=body) + LAST)
        assert [reply.status for reply in told] == [201, 200]
        assert web.facts() == before + number


@pytest.mark.parametrize(("path", "limit"), [("log", MIB), ("log/batch", 8 * MIB)])
def test_a_body_is_counted_as_it_is_read(path: str, limit: int, web: Web) -> None:
    entry = b'{"kind":"tool-call","scope":{"projectId":"p"},"payload":"x"}'
    body = b'{"entries":[' + entry + b"]}" if path == "log/batch" else entry
    whole = body + b" " * (limit - len(body))
    for extra, status in ((b"", 201), (b" ", 413), (b" " * MIB, 413)):
        sent = whole + extra
        pieces = [sent[at : at + 65_000] for at in range(0, len(sent), 65_000)]
        for framed in (
            web.post(f"Content-Length: {len(sent)}", body=sent, path=f"/v1/memory/runs/r/{path}"),
            web.post(
                "Transfer-Encoding: chunked",
                body=chunked(*pieces),
                path=f"/v1/memory/runs/r/{path}",
            ),
        ):
            told = web.ask(framed)
            assert [reply.status for reply in told] == [status]
            if status == 413:
                assert_is_refusal(told[0], 413)


def test_pipelined_requests_are_answered_in_order_each_to_its_own_caller(web: Web) -> None:
    other = f"Authorization: Bearer {web.other.token}"
    mine, theirs = (
        json.loads(web.ask(message("GET", "/v1/memory/me", HOST, key))[0].body)["tenant"]["id"]
        for key in (web.key, other)
    )
    body = fact_body()
    pieces = []
    for number in range(20):
        key = web.key if number % 2 else other
        pieces.append(message("GET", "/v1/memory/me", HOST, key, f"X-Request-Id: me-{number}"))
        pieces.append(
            message(
                *("POST", "/v1/memory/facts", HOST, key, JSON, f"X-Request-Id: fact-{number}"),
                f"Content-Length: {len(body)}",
                body=body,
            )
        )
    told = web.ask(b"".join(pieces) + LAST)
    assert [reply.headers["x-request-id"] for reply in told[:-1]] == [
        f"{what}-{number}" for number in range(20) for what in ("me", "fact")
    ]
    for number in range(20):
        me, fact = (json.loads(reply.body) for reply in told[2 * number : 2 * number + 2])
        tenant = mine if number % 2 else theirs
        assert me["tenant"]["id"] == fact["scope"]["tenantId"] == tenant
