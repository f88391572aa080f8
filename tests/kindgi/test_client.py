"""The PyPI package `kindgi`, as it is, against this server: everything its client has for facts and retrieve."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest
from kindgi.client import AsyncKindgi, Kindgi
from kindgi.client._errors import (
    AuthError,
    ConflictError,
    InvalidRequestError,
    KindgiApiError,
    NotFoundError,
)
from kindgi.client._models import (
    FactScope,
    FactSubject,
    Retention,
    SupersedeFactBody,
    WriteFactBody,
)

from tests.builders import TenantKit
from tests.kindgi.server import served

Connect = Callable[..., Kindgi]


@pytest.fixture(scope="module")
def base_url(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[str]:
    with django_db_blocker.unblock(), served() as url:  # type: ignore[attr-defined]  # pytest-django's blocker
        yield url


@pytest.fixture
def connect(live_acme: TenantKit, base_url: str) -> Iterator[Connect]:
    """A client with a key of this role and these grants."""
    clients: list[Kindgi] = []

    def make(role: str = "app", **grants: object) -> Kindgi:
        token = live_acme.token(role, **(grants or {"projects": ["p1"]}))  # type: ignore[arg-type]
        client = Kindgi(
            base_url, token=token, http_client=httpx.Client(trust_env=False), max_retries=0
        )
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def scope(live_acme: TenantKit) -> dict[str, str]:
    return {"tenantId": live_acme.slug, "projectId": "p1"}


def test_a_fact_is_written_read_changed_verified_and_deleted(
    connect: Connect, scope: dict[str, str]
) -> None:
    memory = connect().memory
    fact = memory.write_fact(type="note", scope=scope, content={"seat": "window"})
    assert (fact.version, fact.content, fact.trust) == (1, {"seat": "window"}, "asserted")
    assert fact.scope.tenant_id == scope["tenantId"]
    assert memory.get_fact(fact.id) == fact

    second = memory.supersede_fact(fact.id, content={"seat": "aisle"}, expect_version=1)
    assert (second.version, second.supersedes, second.created_at) == (2, fact.id, fact.created_at)
    assert second.updated_at is not None
    assert memory.get_fact(fact.id, version=1).content == {"seat": "window"}
    assert fact.updated_at is not None
    assert memory.get_fact(fact.id, as_of=fact.updated_at.isoformat()).version == 1

    verified = memory.verify_fact(fact.id, expect_version=2)
    assert (verified.version, verified.trust, verified.content) == (3, "verified", second.content)
    assert verified.verified_by is not None

    closed = memory.delete_fact(fact.id, expect_version=3)
    assert closed.invalidation_reason == "deleted"
    with pytest.raises(NotFoundError) as missing:
        memory.get_fact(fact.id)
    assert missing.value.server_code == "fact-not-found"
    history = memory.list_fact_revisions(fact.id).data
    assert [one.version for one in history] == [3, 2, 1]
    assert [one.invalidation_reason for one in history] == ["deleted", "superseded", "superseded"]


def test_the_clients_own_models_go_in_and_every_field_comes_back(
    connect: Connect, live_acme: TenantKit
) -> None:
    memory = connect(projects=["p1"], participants=["u-7"]).memory
    body = WriteFactBody(
        type="note",
        scope=FactScope(
            tenant_id=live_acme.slug, project_id="p1", participant_id="u-7", session_id="s"
        ),
        content=["any", 1, None],
        retention=Retention(keep_days=30),
        subjects=[FactSubject(kind="participant", id="u-7")],
        valid_from=datetime(2026, 1, 1, tzinfo=UTC),
        valid_until=datetime(2027, 1, 1, tzinfo=UTC),
        observed_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    )
    fact = memory.write_fact(body)
    assert fact.scope == body.scope
    assert (fact.content, fact.subjects, fact.retention) == (
        body.content,
        body.subjects,
        body.retention,
    )
    assert (fact.valid_from, fact.valid_until) == (body.valid_from, body.valid_until)
    assert fact.observed_at == body.observed_at
    assert fact.expires_at is not None
    changed = memory.supersede_fact(fact.id, SupersedeFactBody(content=1))
    assert (changed.subjects, changed.valid_from, changed.retention) == (
        body.subjects,
        body.valid_from,
        body.retention,
    )


def test_facts_are_listed_in_pages_and_by_every_filter(
    connect: Connect, scope: dict[str, str]
) -> None:
    memory = connect().memory
    made = [memory.write_fact(type=kind, scope=scope, content=1).id for kind in ("a", "b", "a")]
    first = memory.list_facts(limit=2)
    assert first.has_more
    rest = memory.list_facts(limit=2, cursor=first.next_cursor)
    assert [fact.id for fact in first.data + rest.data] == made[::-1]
    assert not rest.has_more
    assert rest.next_cursor is None
    assert [fact.id for fact in memory.list_facts(type="b").data] == [made[1]]
    assert len(memory.list_facts(scope=json.dumps({"projectId": "p1"})).data) == 3
    assert len(memory.list_facts(scope_kind="project", scope_id="p1", inherit=True).data) == 3
    assert memory.list_facts(scope_kind="project", scope_id="p2").data == []
    assert memory.list_facts(as_of="2020-01-01T00:00:00Z").data == []


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_facts_are_retrieved_in_every_mode(
    connect: Connect, scope: dict[str, str], mode: str
) -> None:
    memory = connect().memory
    seat = memory.write_fact(
        type="note", scope=scope, content={"text": "She prefers a window seat"}
    )
    memory.write_fact(type="other", scope=scope, content={"text": "The invoice was paid in March"})
    asked = {} if mode == "list" else {"query": "window seat"}
    result = memory.retrieve(mode=mode, type="note", limit=5, **asked)
    assert [hit.fact.id for hit in result.results] == [seat.id]
    assert result.results[0].fact == memory.get_fact(seat.id)
    scored = memory.retrieve(
        {"mode": mode, "query": "window seat", "scope": scope, "limit": 1}
    ).results
    assert len(scored) == 1
    assert (scored[0].score is None) == (mode == "list")


def test_refusals_are_the_clients_own_typed_errors(
    connect: Connect, scope: dict[str, str], base_url: str
) -> None:
    memory = connect().memory
    fact = memory.write_fact(type="note", scope=scope, content=1)
    memory.supersede_fact(fact.id, content=2)
    with pytest.raises(ConflictError) as changed:
        memory.supersede_fact(fact.id, content=3, expect_version=1)
    assert (changed.value.server_code, changed.value.details["currentVersion"]) == (
        "fact-changed",
        2,
    )
    with pytest.raises(InvalidRequestError) as unknown:
        memory.write_fact({"type": "note", "scope": scope, "content": 1, "trust": "verified"})
    assert unknown.value.server_code == "unknown-field"
    with pytest.raises(AuthError) as forbidden:
        connect("agent", projects=["p1"]).memory.verify_fact(fact.id)
    assert forbidden.value.reason == "forbidden"
    held = memory.write_fact(type="note", scope=scope, content=1, retention={"legalHold": True})
    with pytest.raises(ConflictError) as refused:
        memory.delete_fact(held.id)
    assert refused.value.server_code == "legal-hold"
    with pytest.raises(KindgiApiError) as too_large:
        memory.write_fact(type="note", scope=scope, content="x" * 70_000)
    assert (too_large.value.status, too_large.value.server_code) == (413, "content-too-large")
    nobody = Kindgi(base_url, token="nonsense", http_client=httpx.Client(trust_env=False))
    with nobody, pytest.raises(AuthError) as unauthenticated:
        nobody.memory.list_facts()
    assert unauthenticated.value.reason == "unauthenticated"


def test_a_call_with_the_clients_idempotency_key_is_done_once(
    connect: Connect, scope: dict[str, str]
) -> None:
    memory = connect().memory
    first = memory.write_fact(type="note", scope=scope, content=1, idempotency_key="k")
    assert memory.write_fact(type="note", scope=scope, content=1, idempotency_key="k") == first
    assert len(memory.list_facts().data) == 1
    with pytest.raises(ConflictError) as other:
        memory.write_fact(type="note", scope=scope, content=2, idempotency_key="k")
    assert other.value.server_code == "idempotency-key-body-mismatch"


def test_the_asynchronous_client_works_too(
    live_acme: TenantKit, base_url: str, scope: dict[str, str]
) -> None:
    token = live_acme.token("app", projects=["p1"])

    async def life() -> tuple[int, str | None]:
        transport = httpx.AsyncClient(trust_env=False)
        async with transport, AsyncKindgi(base_url, token=token, http_client=transport) as client:
            fact = await client.memory.write_fact(type="note", scope=scope, content=1)
            await client.memory.supersede_fact(fact.id, content=2)
            closed = await client.memory.delete_fact(fact.id)
            return closed.version, closed.invalidation_reason

    # In a thread: a browser test earlier in this process leaves its event loop running in this one.
    with ThreadPoolExecutor(max_workers=1) as pool:
        assert pool.submit(asyncio.run, life()).result() == (2, "deleted")
