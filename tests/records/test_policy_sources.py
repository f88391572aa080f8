"""Policy values come from registered sources at recall: fetched now, never stored, and unavailable when anything is wrong."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from memory.policy_sources.reading import Unavailable, at_pointer
from memory.policy_sources.sources import belongs_to, is_match
from tests.builders import TenantKit
from tests.records.builders import body_of, refusal
from tests.records.conftest import ANN, Memory

SOURCES = "/v1/memory/policy-sources"


class Source:
    """A local HTTP server that says what a test tells it to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Any = (200, {}, b"{}")
        self.wait_seconds = 0.0
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, str(self.headers)))
                if outer.wait_seconds:
                    time.sleep(outer.wait_seconds)
                status, headers, body = outer.answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def says(self, document: Any) -> None:
        self.answer = (200, {"Content-Type": "application/json"}, json.dumps(document).encode())


@pytest.fixture
def source(settings: Any) -> Iterator[Source]:
    settings.KINDMEM_DEVELOPMENT = True
    running = Source()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def policy(live_acme: TenantKit, source: Source) -> Memory:
    """A remembered policy with a registered source; recall it with `limit`."""
    admin = live_acme.client("admin")
    body = {
        "match": "https://policies.example.com/travel",
        "fetch_url": source.url + "/now?x=1",
        "pointer": "/limits/meal",
    }
    body_of(admin.post(SOURCES, body), 201)
    app = Memory(live_acme.client("app", users=["ann"]))
    app.remember(
        None,
        key="expense.limit",
        authority="policy",
        source_of_truth="https://policies.example.com/travel/meal",
    )
    return app


def limit(memory: Memory) -> tuple[str, str, Any]:
    answer = memory.recall("expense.limit", context={**ANN, "trip_id": "secret-trip"})
    assert answer["record_id"] is not None
    return answer["decision"], answer["reason"], answer["value"]


def test_the_value_is_what_the_source_says_now_and_is_kept_nowhere(
    policy: Memory, source: Source, superuser_url: str
) -> None:
    source.says({"limits": {"meal": {"amount": 4711.5, "currency": "EUR"}}})
    assert limit(policy) == (
        "revalidate",
        "policy-fetched",
        {"amount": 4711.5, "currency": "EUR"},
    )
    source.says({"limits": {"meal": 4712.25}})
    assert limit(policy) == ("revalidate", "policy-fetched", 4712.25)
    assert len(source.asked) == 2
    assert "secret-trip" not in str(source.asked)
    assert "ann" not in str(source.asked)
    with psycopg.connect(superuser_url) as database:
        tables = database.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            query = f"SELECT count(*) FROM {table} t WHERE t::text LIKE '%4711.5%' OR t::text LIKE '%4712.25%'"
            assert database.execute(query).fetchone() == (0,), table


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}, b"{}"),
        (404, {}, b"{}"),
        (204, {}, b""),
        (302, {"Location": "http://127.0.0.1/x"}, b""),
        (200, {}, b""),
        (200, {}, b"not json"),
        (200, {}, b'{"limits": {"meal": 1, "meal": 2}}'),
        (200, {}, b'{"limits": {"meal": NaN}}'),
        (200, {}, b'{"limits": {"meal": null}}'),
        (200, {}, b'{"limits": {}}'),
        (200, {}, b'[{"limits": {"meal": 1}}]'),
        (200, {}, b'{"limits": {"meal": "' + b"x" * 70_000 + b'"}}'),
        (200, {"Content-Encoding": "gzip"}, b'{"limits": {"meal": 1}}'),
    ],
)
def test_a_source_that_lies_redirects_or_overflows_is_unavailable(
    policy: Memory, source: Source, answer: Any
) -> None:
    source.answer = answer
    assert limit(policy) == ("revalidate", "source-unavailable", None)


def test_a_slow_source_is_given_up_after_two_seconds(policy: Memory, source: Source) -> None:
    source.wait_seconds = 4
    started = time.monotonic()
    assert limit(policy) == ("revalidate", "source-unavailable", None)
    assert time.monotonic() - started < 3.5


def test_a_source_that_is_down_is_unavailable(policy: Memory, source: Source) -> None:
    source.server.shutdown()
    source.server.server_close()
    assert limit(policy) == ("revalidate", "source-unavailable", None)


def test_several_policies_are_read_side_by_side(
    policy: Memory, source: Source, live_acme: TenantKit
) -> None:
    policy.remember(
        None,
        key="expense.hotel",
        authority="policy",
        source_of_truth="https://policies.example.com/travel",
    )
    policy.remember(
        None,
        key="expense.other",
        authority="policy",
        source_of_truth="https://elsewhere.example.com/",
    )
    source.says({"limits": {"meal": 50}})
    source.wait_seconds = 1.2
    body = {"key_prefix": "expense", "context": ANN}
    answer = body_of(policy.client.post("/v1/memory/recall", body), 200)["results"]
    assert {key: (one["reason"], one["value"]) for key, one in answer.items()} == {
        "expense.limit": ("policy-fetched", 50),
        "expense.hotel": ("policy-fetched", 50),
        "expense.other": ("source-not-allowed", None),
    }


def test_a_source_that_is_switched_off_answers_for_nothing(
    policy: Memory, source: Source, live_acme: TenantKit
) -> None:
    source.says({"limits": {"meal": 50}})
    admin = live_acme.client("admin")
    (known,) = body_of(admin.get(SOURCES), 200)["data"]
    path = f"{SOURCES}/{known['id']}"
    assert body_of(admin.request("PATCH", path, {"enabled": False}), 200)["enabled"] is False
    assert limit(policy) == ("revalidate", "source-not-allowed", None)
    body_of(admin.request("PATCH", path, {"enabled": True, "pointer": "/limits"}), 200)
    assert limit(policy) == ("revalidate", "policy-fetched", {"meal": 50})
    refusal(
        admin.request("PATCH", f"{SOURCES}/{known['id'][:-1]}x", {}), 404, "policy-source-not-found"
    )


def test_use_of_a_policy_is_counted(policy: Memory, source: Source) -> None:
    source.says({"limits": {"meal": 50}})
    limit(policy)
    (record,) = policy.list()
    assert record["usage"]["use_count"] == 1


@pytest.mark.parametrize(
    ("pointer", "match", "belongs"),
    [
        ("https://p.example.com/a", "https://p.example.com/a", True),
        ("https://p.example.com/a/b?x=1#y", "https://p.example.com/a", True),
        ("https://P.EXAMPLE.com:443/a/b", "https://p.example.com/a/", True),
        ("https://p.example.com/anything", "https://p.example.com/", True),
        ("https://p.example.com/anything", "https://p.example.com", True),
        ("https://p.example.com/ab", "https://p.example.com/a", False),
        ("https://p.example.com.evil.com/a", "https://p.example.com/a", False),
        ("https://p.example.com@evil.com/a", "https://p.example.com/a", False),
        ("http://p.example.com/a", "https://p.example.com/a", False),
        ("https://p.example.com:8443/a", "https://p.example.com/a", False),
        ("https://p.example.com/a/../b", "https://p.example.com/a", False),
        ("https://p.example.com/a/%2e%2e/b", "https://p.example.com/a", False),
        ("https://p.example.com/a\\..\\b", "https://p.example.com/a", False),
        ("urn:policy:1", "https://p.example.com/", False),
    ],
)
def test_a_pointer_belongs_to_its_match_or_below(pointer: str, match: str, belongs: bool) -> None:
    assert belongs_to(pointer, match) is belongs


@pytest.mark.parametrize(
    ("uri", "development", "allowed"),
    [
        ("https://p.example.com/a", False, True),
        ("http://p.example.com/a", True, False),
        ("http://127.0.0.1:8000/a", False, False),
        ("http://127.0.0.1:8000/a", True, True),
        ("https://u@p.example.com/a", False, False),
        ("https://p.example.com/a?x=1", False, False),
        ("file:///etc/passwd", True, False),
    ],
)
def test_a_match_is_an_https_uri(uri: str, development: bool, allowed: bool) -> None:
    assert is_match(uri, allow_loopback=development) is allowed


def test_a_json_pointer_finds_what_rfc_6901_says() -> None:
    document = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "k": {"0": 3}}
    for pointer, found in (
        ("", document),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/m~0n", 8),
        ("/k/0", 3),
    ):
        assert at_pointer(document, pointer) == found
    for pointer in ("/foo/2", "/foo/-1", "/foo/01", "/foo/x", "/nothing", "/k/0/1"):
        with pytest.raises(Unavailable):
            at_pointer(document, pointer)


def test_sources_are_the_admins_and_lead_to_public_https(acme: TenantKit) -> None:
    body = {"match": "https://p.example.com/", "fetch_url": "https://p.example.com/x.json"}
    for role in ("agent", "app"):
        refusal(acme.client(role).post(SOURCES, body), 403, "permission-denied")
        refusal(acme.client(role).get(SOURCES), 403, "permission-denied")
    admin = acme.client("admin")
    for change in (
        {"match": "http://p.example.com/"},
        {"match": "https://p.example.com/?q=1"},
        {"fetch_url": "http://p.example.com/"},
        {"fetch_url": "https://127.0.0.1/"},
        {"fetch_url": "https://localhost/"},
        {"fetch_url": "https://user@p.example.com/"},
        {"fetch_url": "https://p.example.com:8443/"},
        {"pointer": "limits"},
    ):
        refusal(admin.post(SOURCES, {**body, **change}), 400, "bad-input")
    made = body_of(admin.post(SOURCES, body), 201)
    assert made["pointer"] == ""
    refusal(admin.post(SOURCES, body), 409, "policy-source-exists")
    assert body_of(admin.get(SOURCES), 200)["data"] == [made]
