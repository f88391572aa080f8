"""What the served product answers to requests that no honest client sends: in JSON, once, and as if the tricks were not there."""

import gzip

import pytest
from allauth.account.adapter import get_adapter
from django.test import RequestFactory

from tests.api.endpoints import PLAIN_ROUTES, Route, routes
from tests.api.web_server import HOST, Web, assert_is_refusal, chunked, fact_body, message

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("nothing_unexpected_is_logged")]

MIB = 1 << 20

TOO_MUCH = {
    "a long header": message("GET", "/livez", HOST, "X-A: " + "a" * 9000),
    "many headers": message("GET", "/livez", HOST, *(f"X-{n}: a" for n in range(100))),
    "an endless header": b"GET /livez HTTP/1.1\r\nX-A: " + b"a" * 700_000,
    "a long line": message("GET", "/livez?" + "a" * 9000, HOST),
    "an endless line": b"GET /" + b"a" * 700_000,
    "a small method": message("get", "/livez", HOST),
    "no method": message("", "/livez", HOST),
    "a method of other signs": message("G\xcbT", "/livez", HOST),
    "no version": b"GET /livez\r\n\r\n",
    "another version": b"GET /livez HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "no host": message("GET", "/livez"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a NUL in the path": message("GET", "/live\x00z", HOST),
    "a NUL in a header": message("GET", "/livez", HOST, "X-A: \x00"),
    "raw bytes in the path": message("GET", "/v1/memory/facts/\xff", HOST),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_no_request_or_too_much_of_one_is_refused(name: str, web: Web) -> None:
    (told,) = web.ask(TOO_MUCH[name])
    assert_is_refusal(told, 400)
    assert told.headers["connection"] == "close"


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil.example:80", "localhost, evil.example"),
        *("<b>", "localhost/..", "user@localhost", "[::1", "\xe9", "127.1", "0x7f.1"),
    ],
)
def test_a_host_that_is_not_ours_is_refused(host: str, web: Web) -> None:
    asked = ("GET", "/v1/memory/me")
    (told,) = web.ask(message(*asked, f"Host: {host}", web.key))
    assert_is_refusal(told, 400)
    assert "evil" not in told.body.decode()
    (plain,) = web.ask(message(*asked, HOST, web.key))
    for name in ("X-Forwarded-Host", "X-Host", "Forwarded", "X_Forwarded_Host"):
        value = f"host={host}" if name == "Forwarded" else host
        (same,) = web.ask(message(*asked, HOST, web.key, f"{name}: {value}"))
        assert (same.status, same.body) == (200, plain.body)


SPOOFS = (
    *("X-Forwarded-For: 10.0.0.1", "X_Forwarded_For: 10.0.0.1", "X-Real-IP: 10.0.0.1"),
    *("Forwarded: for=10.0.0.1;host=evil.example", "Client-IP: 10.0.0.1", "REMOTE_ADDR: 10.0.0.1"),
    *("SCRIPT_NAME: /v1", "SCRIPT_NAME: /nosuch", "SCRIPT-NAME: /v1", "PATH_INFO: /livez"),
    *("PATH-INFO: /livez", "X-Original-URL: /livez", "X-Rewrite-URL: /livez"),
    *("REMOTE_USER: admin", "REMOTE-USER: admin", "X-Forwarded-User: admin", "X-Remote-User: root"),
    *("X-HTTP-Method-Override: DELETE", "X_HTTP_Method_Override: DELETE", "Kindmem_Tenant: other"),
    *("X-Forwarded-Prefix: /nosuch", "X-Forwarded-Port: 1", "Proxy: http://evil.example"),
)


@pytest.mark.parametrize("spoof", SPOOFS)
def test_no_header_says_who_asks_or_for_what(spoof: str, web: Web) -> None:
    asked = ("GET", "/v1/memory/me", HOST)
    (plain,) = web.ask(message(*asked, web.key))
    (told,) = web.ask(message(*asked, web.key, spoof))
    assert (told.status, told.body) == (200, plain.body)
    (nobody,) = web.ask(message(*asked, spoof))
    assert_is_refusal(nobody, 401)


@pytest.mark.parametrize(
    "said",
    [
        *("", "Bearer", "Bearer ", "Basic eDp5", "Negotiate x", "Bearer kmk_", "Bearer null"),
        *("Bearer kmk_aaaaaaaaaa_" + "\xe9" * 43, "Bearer kmk_" + "x" * 8000, "Bearer \xff\xfe"),
        *("Bearer kmk_%_" + "x" * 43, "Bearer kmk___________" + "x" * 43, "Token kmk_aaaaaaaaaa_x"),
    ],
)
def test_nothing_but_a_key_is_taken_for_one(said: str, web: Web) -> None:
    for asked in (("GET", "/v1/memory/me"), ("DELETE", "/v1/memory/facts/x")):
        (told,) = web.ask(message(*asked, HOST, f"Authorization: {said}"))
        assert_is_refusal(told, 401)
    (told,) = web.ask(message("GET", "/v1/memory/me", HOST, web.key, f"Authorization: {said}"))
    assert_is_refusal(told, 401)


def test_attempts_are_counted_by_the_peer_and_not_by_what_it_says() -> None:
    spoofed = {"X-Forwarded-For": "10.0.0.1", "X-Real-IP": "10.0.0.2", "Forwarded": "for=10.0.0.3"}
    request = RequestFactory().get("/account/login/", headers=spoofed, REMOTE_ADDR="192.0.2.7")
    assert get_adapter().get_client_ip(request) == "192.0.2.7"


@pytest.mark.parametrize("name", ["a", "abc-1", "A.b_c-9", "0" * 64])
def test_a_request_id_of_the_right_form_is_echoed(name: str, web: Web) -> None:
    for path, status in (("/v1/memory/me", 200), ("/v1/memory/facts/none", 404), ("/livez", 200)):
        (told,) = web.ask(message("GET", path, HOST, web.key, f"X-Request-Id: {name}"))
        assert (told.status, told.headers["x-request-id"]) == (status, name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "0" * 65,
        "a b",
        "a,b",
        "<script>",
        "../x",
        "\xe9",
        "a\tb",
        "'--",
        "%0d%0aX-A:1",
        "{{7*7}}",
    ],
)
def test_any_other_request_id_is_replaced(name: str, web: Web) -> None:
    asked = message("GET", "/v1/memory/facts/none", HOST, web.key, f"X-Request-Id: {name}")
    told = [web.ask(asked)[0] for _ in "12"]
    for reply in told:
        assert_is_refusal(reply, 404)
    assert len({reply.headers["x-request-id"] for reply in told} | {name}) == 3
    assert name not in web.errors.read_text() or len(name) < 2 or name in ("a b", "a,b", "'--")


_SERVED = [
    route for route in routes() if route.path.startswith("v1/") or route.path in PLAIN_ROUTES
]


@pytest.mark.parametrize("route", _SERVED, ids=lambda route: route.path)
def test_unusual_methods_are_answered_in_json_on_every_route(route: Route, web: Web) -> None:
    url = route.url(**dict.fromkeys(route.parameters, "x"))
    plain = web.ask(message("GET", url, HOST, web.key, "Accept: application/json"))[0]
    (head,) = web.ask(message("HEAD", url, HOST, web.key, "Accept: application/json"))
    assert (head.status, head.body) == (plain.status, b"")
    for method in ("OPTIONS", "TRACE", "CONNECT", "PROPFIND", "FOO", "PATCH"):
        (told,) = web.ask(
            message(method, url, HOST, web.key, "X-Canary: c4n4ry", "Content-Length: 0")
        )
        assert told.status < 500, method
        assert b"c4n4ry" not in told.body
        assert (web.client.token or "").encode() not in told.body
        if told.body:
            assert told.headers["content-type"] == "application/json", method


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(fact_body())),
        ("gzip", fact_body()),
        ("deflate", fact_body()),
        ("br", fact_body()),
        ("identity", fact_body()),
        ("gzip", gzip.compress(b" " * (64 * MIB))),
    ],
    ids=["gzip", "said gzip", "deflate", "br", "identity", "a bomb"],
)
def test_a_compressed_body_is_not_taken(coding: str, body: bytes, web: Web) -> None:
    before = web.facts()
    for framed in (
        web.post(f"Content-Encoding: {coding}", f"Content-Length: {len(body)}", body=body),
        web.post(f"Content-Encoding: {coding}", "Transfer-Encoding: chunked", body=chunked(body)),
    ):
        (told,) = web.ask(framed)
        assert_is_refusal(told, 415)
    assert web.facts() == before
