"""What the server alone decides is taken from no body: each write × each such field is refused by name, or it says here why not.

What is accepted and ignored changes nothing.
"""

import itertools
from typing import Any

import pytest

from memory.api.operation import Shape
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World
from tests.api.makers import Place, record_body
from tests.api.rows import ROWS

pytestmark = pytest.mark.usefixtures("live_db")

SERVERS_OWN = (
    *("tenantId", "tenant_id", "tenant", "trust", "review", "reviewedBy", "version", "revisionId"),
    *("createdAt", "created_at", "createdBy", "created_by", "updatedAt", "updated_by", "writer"),
    *("attributedTo", "verifiedBy", "verifiedAt", "invalidatedAt", "invalidatedBy", "supersedes"),
    *("invalidationReason", "requestedBy", "timestamp", "sequence", "prevHash", "entryHash"),
    *("hashVersion", "payloadSalt", "digest", "prefix", "token", "secret", "pepperVersion"),
    *("holdCount", "isHeld", "legalHold", "expiresAt", "usage", "lifecycle", "status", "phase"),
    *("counts", "attempts", "forced", "superuser", "is_superuser", "isStaff", "user_id", "userId"),
    *("member_id", "principal", "roleGrantedAt", "leaseUntil", "sealed", "receipt", "undoUntil"),
)
TAKEN_FOR = {
    (
        "memory.remember",
        "usage",
    ): "the record's shape has it; ignored, but for what an app's key says of confirmations",
    (
        "memory.remember",
        "lifecycle",
    ): "sensitivity and what happens at the end; its status is ignored or refused",
    ("memory.actOnRoute", "prefix"): "the beginning of keys that are never to be inferred",
}
"""(operation, field) → why that route takes a field of this name."""
_JSON = [one for one in endpoints() if one.id in ROWS and one.takes_json]
_CLOSED = [one for one in _JSON if one.operation.body.schema.get("additionalProperties") is False]


def taken(shape: Shape) -> set[str]:
    return set(shape.schema.get("properties", {})) & set(SERVERS_OWN)


def test_a_route_takes_a_field_of_such_a_name_only_where_it_says_why() -> None:
    found = {(one.id, name) for one in _JSON for name in taken(one.operation.body)}
    assert found == set(TAKEN_FOR)


@pytest.mark.parametrize("endpoint", _CLOSED, ids=lambda endpoint: endpoint.id)
def test_every_other_is_refused_by_name_and_changes_nothing(
    endpoint: Endpoint, world: World
) -> None:
    row = ROWS[endpoint.id]
    ids = row.ids_in(world.mine)
    names = [name for name in SERVERS_OWN if name not in taken(endpoint.operation.body)]
    roles = itertools.cycle(sorted(row.statuses))
    body = row.smallest(world.mine)
    told = world.callers[next(roles)].request(
        endpoint.method, row.url(endpoint, ids), {**body, **dict.fromkeys(names, "x")}
    )
    assert told.status_code == 400, told.content
    error = told.json()["error"]
    assert error["code"] == "unknown-field"
    issues = {issue["path"] for issue in error["details"]["issues"]}
    assert issues <= {f"/{name}" for name in names}
    for name in names[:: max(1, len(names) // 6)]:
        one = world.callers[next(roles)].request(
            endpoint.method, row.url(endpoint, ids), {**body, name: "x"}
        )
        assert one.json()["error"]["details"]["issues"][0]["path"] == f"/{name}"


@pytest.mark.parametrize(
    "field", ["timestamp", "sequence", "prevHash", "entryHash", "contentHash", "writer"]
)
def test_an_entry_of_a_batch_brings_nothing_of_the_servers(field: str, world: World) -> None:
    entry = {"kind": "tool-call", "scope": world.mine.scope(), field: "x"}
    told = world.mine.client.post("/v1/memory/runs/r-owned/log/batch", {"entries": [entry]})
    assert told.status_code == 400
    assert told.json()["error"]["details"]["issues"][0]["path"] == f"/entries/0/{field}"


def test_what_a_record_says_of_its_own_use_and_life_is_ignored(world: World) -> None:
    place: Place = world.mine
    honest = place.make("POST", "/v1/memory/records", record_body(place))
    told = record_body(place)
    count = next(name for name, value in honest["usage"].items() if value == 0)
    told["usage"] = {**honest["usage"], count: 99}
    told["lifecycle"] = {**told.get("lifecycle", {}), **honest["lifecycle"], "status": "active"}
    made: dict[str, Any] = place.make("POST", "/v1/memory/records", told)
    assert made["usage"] == honest["usage"]
    for status in ("superseded", "deleted", "expired"):
        lying = record_body(place)
        lying["lifecycle"] = {**honest["lifecycle"], "status": status}
        refused = place.client.post("/v1/memory/records", lying)
        assert refused.status_code in (400, 422), refused.content


def test_a_scope_can_not_name_another_tenant(world: World) -> None:
    scope = {**world.mine.scope(), "tenantId": world.their_slug}
    for path, body in (
        ("/v1/memory/facts", {"type": "note", "scope": scope, "content": "x"}),
        ("/v1/memory/runs/r-owned/log", {"kind": "tool-call", "scope": scope}),
    ):
        told = world.mine.client.post(path, body)
        assert told.json()["error"]["code"] == "scope-mismatch"
