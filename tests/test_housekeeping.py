"""The worker's jobs: what is late is made up for, what is over goes, and one tenant's trouble is its own."""

from uuid import UUID

import pytest
from django.db import connection

from memory.api.idempotency import stored_key
from memory.embeddings import provider
from memory.errors import TenantClosed
from memory.housekeeping import JOBS, drop_old_answers, fill_in_vectors, for_each_tenant
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant


def rows(tenant: TenantKit, query: str) -> int:
    with tenant_context(tenant.id), connection.cursor() as cursor:
        cursor.execute(query, [tenant.id])
        return int(cursor.fetchone()[0])


def test_a_vector_that_came_too_late_for_its_write_is_filled_in(
    live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = live_acme.client("app", projects=["p1"])

    def down(*_: object, **__: object) -> list[list[float]]:
        raise provider.EmbeddingTimeout("all-MiniLM-L6-v2-int8", "too slow")

    local = type(provider.get_provider())
    with monkeypatch.context() as patched:
        patched.setattr(local, "embed", down)
        body = {
            "type": "t",
            "scope": {"projectId": "p1"},
            "content": "an aisle seat near the front",
        }
        assert client.post("/v1/memory/facts", body).json()["meta"] == {"embedding": "pending"}
    ask = {"mode": "semantic", "query": "where to sit"}
    assert client.post("/v1/memory/retrieve", ask).json()["results"] == []
    fill_in_vectors()
    assert len(client.post("/v1/memory/retrieve", ask).json()["results"]) == 1


def test_answers_kept_for_retries_go_when_their_day_is_over(live_acme: TenantKit) -> None:
    client = live_acme.client("agent", projects=["p1"])
    entry = {"kind": "tool-call", "scope": {"projectId": "p1"}}
    for key in ("old", "new"):
        client.post("/v1/memory/runs/r/log", entry, Idempotency_Key=key)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET expires_at = now() - interval '1 second' "
            "WHERE tenant_id = %s::uuid AND key = %s",
            [live_acme.id, stored_key(live_acme.id, "old")],
        )
    drop_old_answers()
    assert rows(live_acme, "SELECT count(*) FROM idempotency_key WHERE tenant_id = %s::uuid") == 1


def test_a_rule_that_refuses_in_one_tenant_keeps_no_other_from_its_turn(live_db: None) -> None:
    first, second = make_tenant(), make_tenant()
    seen: set[UUID] = set()

    def step(tenant_id: UUID, slug: str) -> None:
        seen.add(tenant_id)
        raise TenantClosed

    for_each_tenant(step)()
    assert {first.id, second.id} <= seen


def test_every_job_has_a_name_and_a_pace() -> None:
    assert len({name for name, _, _ in JOBS}) == len(JOBS)
    assert all(seconds >= 1 for _, seconds, _ in JOBS)
