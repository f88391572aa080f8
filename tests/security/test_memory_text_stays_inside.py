"""A word planted in everything that a route takes is in no line of the log and no job; no key is in any answer."""

import base64
import json
import logging
import re
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from django.test import Client

from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import EVERY_ABILITY, member_client
from tests.api.makers import Place
from tests.api.rows import ROWS
from tests.builders import TenantKit, make_tenant
from tests.completeness.sources import ROOT

_ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]
BROKEN = [b'{"content": "%s", "content": 1}', b'{"%s": NaN}', b'["%s"]', b'"%s', b"\xff%s"]


@pytest.fixture(scope="module")
def kit(django_db_setup: None, django_db_blocker: Any) -> Iterator[TenantKit]:
    with django_db_blocker.unblock():
        yield make_tenant()
        connections.close_all()


@pytest.fixture(scope="module")
def planted(kit: TenantKit) -> Place:
    """Whatever is made of it holds its canary."""
    client = kit.client("admin", may=EVERY_ABILITY)
    return Place(client, canary=f"canary-{secrets.token_hex(8)}")


@pytest.fixture
def nothing_is_logged(
    live_db: None, planted: Place, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    records = caplog.get_records("call")
    assert records
    for record in records:
        said = f"{record.getMessage()} {record.args} {record.exc_text}"
        assert planted.canary not in said


@pytest.mark.usefixtures("nothing_is_logged")
@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_what_is_said_to_a_route_is_in_no_line_of_the_log(
    endpoint: Endpoint, planted: Place
) -> None:
    row, canary = ROWS[endpoint.id], planted.canary
    body = row.smallest(planted) if endpoint.takes_json else None
    url = row.url(endpoint, row.ids_in(planted))
    answer = planted.client.request(endpoint.method, url, body, Idempotency_Key=canary)
    assert answer.status_code < 500
    unknown = row.url(endpoint, dict.fromkeys(row.ids, canary))
    for path in (f"{url}?{canary}=1", f"{url}?limit={canary}", unknown):
        assert planted.client.request(endpoint.method, path, body).status_code < 500
    if endpoint.takes_json:
        for text in BROKEN:
            raw = text.replace(b"%s", canary.encode())
            refused = planted.client.request(endpoint.method, url, raw=raw)
            assert refused.status_code == 400, refused.content


def test_no_argument_of_a_job_holds_memory_text(
    planted: Place, live_db: None, superuser_url: str
) -> None:
    for endpoint in _ALL:
        if endpoint.operation.changes:
            row = ROWS[endpoint.id]
            body = row.smallest(planted) if endpoint.takes_json else None
            url = row.url(endpoint, row.ids_in(planted))
            planted.client.request(endpoint.method, url, body)
    with psycopg.connect(superuser_url) as connection:
        jobs = connection.execute("SELECT args::text FROM procrastinate_jobs").fetchall()
    assert jobs
    assert [one for (one,) in jobs if planted.canary in one] == []


def _spelled(key: bytes) -> set[str]:
    """How a key could stand in a text."""
    plain, safe = base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()
    return {key.hex(), plain, plain.rstrip("="), safe, safe.rstrip("=")}


def installation_keys() -> set[str]:
    state = settings.KINDMEM_STATE
    keys = [*state.peppers.values(), state.fingerprint_key, state.sealing_key]
    keys.append(state.signing_keys().seed)
    return {state.secret_key, *(word for key in keys for word in _spelled(key))}


def test_no_key_of_the_installation_is_in_an_answer_a_line_of_the_log_or_a_word_about_it(
    kit: TenantKit, planted: Place, live_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    texts = {
        "about the keys": f"{settings.KINDMEM_STATE!r} {settings.KINDMEM_STATE.signing_keys()!r}"
    }
    for path in ("/v1/openapi.json", "/v1/docs", "/v1/docs?script=", "/metrics", "/readyz"):
        texts[path] = Client().get(path).content.decode()
    auditor = member_client(kit, "auditor")
    for endpoint in _ALL:
        if endpoint.method == "GET":
            row = ROWS[endpoint.id]
            url = row.url(endpoint, row.ids_in(planted))
            for client in (planted.client, auditor):
                texts[f"{endpoint.id} {client}"] = client.request("GET", url).content.decode()
    texts["the log"] = caplog.text
    found = {
        (place, key[:3])
        for place, text in texts.items()
        for key in installation_keys()
        if key in text
    }
    assert found == set()


def test_no_example_of_the_description_and_no_file_holds_a_token_that_could_be_one(
    db: None,
) -> None:
    """A token's secret part has 43 characters: examples are shortened."""
    told = json.dumps(Client().get("/v1/openapi.json").json())
    texts = {"the description": told}
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"):
        texts[path.name] = path.read_text("utf-8")
    token = re.compile(r"kmk_[A-Za-z0-9]{6,16}_[A-Za-z0-9_-]{40,}|whsec_[A-Za-z0-9+/]{40,}")
    assert {name for name, text in texts.items() if token.search(text)} == set()
