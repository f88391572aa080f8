"""Every POST that changes something is done once for one Idempotency-Key; one that changes nothing takes and ignores it."""

import secrets
from typing import Any

import pytest
from django.db import connection

from memory.api.idempotency import stored_key
from memory.tenancy import tenant_context, tenant_id_of
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World
from tests.api.rows import ROWS, SHOWN_ONCE

pytestmark = pytest.mark.usefixtures("live_db")

_POSTS = [endpoint for endpoint in endpoints() if endpoint.method == "POST"]
_CHANGING = [endpoint for endpoint in _POSTS if endpoint.operation.changes]
IGNORING = {
    "memory.retrieve": "reads",
    "memory.recall": "reads; usage is counted for each time it is asked",
    "memory.verifyRun": "reads",
}
NEITHER = {
    "memory.previewQuarantine": "reads",
    "memory.previewErasure": "reads",
    "memory.simulateRetention": "reads",
    "memory.previewHold": "reads",
}


NO_OTHER = {"memory.dryRunSweep": "takes no body and names nothing"}
# Bodies that are the same each time: what makes them another one.
OTHERWISE: dict[str, dict[str, Any]] = {
    "memory.writeFact": {"content": "y"},
    "memory.replayErasures": {
        "erasures": [
            {
                "id": "0190a3a0-0000-7000-8000-000000000000",
                "selectorKind": "user",
                "selectorHmac": "0" * 64,
                "requestedBy": "user:7",
                "status": "completed",
                "createdAt": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "memory.decideReviews": {"items": [{"kind": "record", "id": "another"}]},
    "memory.makePageLink": {"subject": "person-else"},
}


def a_role(endpoint: Endpoint) -> str:
    """One that is let through."""
    statuses = ROWS[endpoint.id].statuses
    return min(statuses, key=lambda role: (statuses[role] >= 300, role))


def kept_keys(world: World, key: str) -> int:
    slug = world.mine.client.get("/v1/memory/me").json()["tenant"]["id"]
    tenant_id = tenant_id_of(slug)
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM idempotency_key WHERE tenant_id = %s::uuid AND key = %s",
            [tenant_id, stored_key(tenant_id, key)],
        )
        return int(cursor.fetchone()[0])


def test_every_post_either_keeps_its_answer_or_is_named_with_the_reason() -> None:
    assert {one.id for one in _POSTS if one.operation.ignores_key} == set(IGNORING)
    plain = {one.id for one in _POSTS} - {one.id for one in _CHANGING} - set(IGNORING)
    assert plain == set(NEITHER)


ANSWERS_A_FILE = {"memory.exportRun"}
_TELLING = [endpoint for endpoint in _CHANGING if endpoint.id not in ANSWERS_A_FILE]


@pytest.mark.parametrize("endpoint", _TELLING, ids=lambda endpoint: endpoint.id)
def test_the_same_key_and_body_replay_the_first_answer_and_another_body_is_refused(
    endpoint: Endpoint, world: World
) -> None:
    row = ROWS[endpoint.id]
    client, key = world.callers[a_role(endpoint)], secrets.token_hex(8)
    url, body = row.url(endpoint, row.ids_in(world.mine)), row.smallest(world.mine)
    first = client.post(url, body, Idempotency_Key=key)
    again = client.post(url, body, Idempotency_Key=key)
    assert first.status_code in row.statuses.values(), first.content
    assert again.status_code == first.status_code
    if first.status_code >= 400:
        assert again.json()["error"]["code"] == first.json()["error"]["code"]
        assert kept_keys(world, key) == 0  # a refusal did nothing, so it is not kept
        return
    # Ids and times that are made anew for each call are the first ones; a secret is shown once.
    told = first.json()
    if endpoint.id in SHOWN_ONCE:
        secret = told.pop(SHOWN_ONCE[endpoint.id])
        assert secret.encode() not in again.content
    assert again.json() == told
    assert again["Idempotency-Replayed"] == "true"
    assert kept_keys(world, key) == 1
    if endpoint.id in NO_OTHER:
        return
    another = _another_request(endpoint, world, body)
    told = client.post(another[0] or url, another[1], Idempotency_Key=key)
    assert told.status_code == 409, told.content
    assert told.json()["error"]["code"] == "idempotency-key-body-mismatch"


def _another_request(
    endpoint: Endpoint, world: World, body: dict[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """A well-formed request to the same route that is not the same: another body, or the same to something else."""
    row = ROWS[endpoint.id]
    again = row.smallest(world.mine)
    if again != body:
        return None, again
    if row.ids:
        return row.url(endpoint, row.ids_in(world.mine)), body
    return None, {**body, **OTHERWISE[endpoint.id]}


@pytest.mark.parametrize("name", sorted(IGNORING))
def test_a_read_takes_the_header_and_answers_anew(name: str, world: World) -> None:
    endpoint = next(one for one in _POSTS if one.id == name)
    row, key = ROWS[name], secrets.token_hex(8)
    client = world.callers["admin"]
    ids = row.ids_in(world.mine)
    for body in (row.smallest(world.mine), row.smallest(world.mine)):
        told = client.post(row.url(endpoint, ids), body, Idempotency_Key=key)
        assert told.status_code == row.statuses["admin"], told.content
    assert kept_keys(world, key) == 0


@pytest.mark.parametrize("key", ["", "x" * 257, "tab\tin", "é\x7f"])
def test_a_key_of_the_wrong_form_is_refused_by_name(key: str, world: World) -> None:
    told = world.callers["admin"].post(
        "/v1/memory/runs/r/log", {"kind": "tool-call", "scope": {}}, Idempotency_Key=key
    )
    assert told.status_code == 400
    assert told.json()["error"]["code"] == "bad-input"
