"""A declaration that changes a type's model or searches: its facts follow in the background, seen and still found."""

import io
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from memory import housekeeping
from memory.actions import reindex_facts as module
from memory.actions.back_fill_embeddings import back_fill_embeddings
from memory.actions.reindex_facts import reindex_changed_types
from memory.embeddings.provider import EmbeddingUnavailable, provider_registered
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.commands.commands import answered
from tests.search.providers import StubProvider
from tests.search.test_retrieve import ids, retrieve, write

TYPE = "/v1/memory/types/note"


@pytest.fixture
def new() -> Iterator[StubProvider]:
    """A model that runs elsewhere, beside the default."""
    stub = StubProvider(
        model="new", dimensions=2, is_local=False, vector_of=lambda text: [1.0, 0.0]
    )
    old = StubProvider(model="old", vector_of=lambda text: [0.6, 0.8, 0.0])
    with provider_registered(old, as_default=True), provider_registered(stub):
        yield stub


@pytest.fixture
def app(live_acme: TenantKit, new: StubProvider) -> ApiClient:
    return live_acme.client("app", projects=["p1"])


@pytest.fixture
def admin(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("admin")


def reindexed(kit: TenantKit) -> int:
    return reindex_changed_types(tenant_id=kit.id, language="english", most_seconds=30)


def waiting(kit: TenantKit) -> int:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM reindexing WHERE tenant_id = %s::uuid", [kit.id])
        return int(cursor.fetchone()[0])


def make_older(kit: TenantKit) -> None:
    """As if the request were so long ago that no write can follow the declaration before it."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE reindexing SET requested_at = requested_at - interval '2 minutes' WHERE tenant_id = %s::uuid",
            [kit.id],
        )


def test_another_model_is_filled_in_by_the_worker_and_both_answer_until_it_is(
    live_acme: TenantKit, app: ApiClient, admin: ApiClient, new: StubProvider
) -> None:
    facts = [write(app, f"seat {n}") for n in range(3)]
    other = write(app, "seat of another type", type="other")
    said = admin.put(TYPE, {"embeddingModel": "new"}).json()
    old = {"model": "old", "indexed": 3, "pending": 0}
    assert said["indexing"] == {"toLookAt": 3, "models": [old]}
    assert new.asked == []

    assert reindexed(live_acme) == 3
    pending = {"model": "new", "indexed": 0, "pending": 3}
    assert admin.get(TYPE).json()["indexing"] == {"toLookAt": 0, "models": [pending, old]}
    back_fill_embeddings(tenant_id=live_acme.id, limit=1)
    found = retrieve(app, mode="semantic", query="seat")
    assert sorted(ids(found)) == sorted([*facts, other])

    jobs = {name: call for name, _, call in housekeeping.JOBS}
    jobs["fill-in-vectors"]()
    assert "indexing" not in admin.get(TYPE).json()
    for fact in facts:
        assert app.get(f"/v1/memory/facts/{fact}").json()["embeddingModel"] == "new"
    assert app.get(f"/v1/memory/facts/{other}").json()["embeddingModel"] == "old"
    assert sorted(ids(retrieve(app, mode="semantic", query="seat"))) == sorted([*facts, other])


@pytest.mark.parametrize("search", ["keyword", "semantic"])
def test_a_search_that_is_switched_off_loses_the_facts_that_are_there_and_on_again_finds_them(
    live_acme: TenantKit, app: ApiClient, admin: ApiClient, search: str
) -> None:
    fact = write(app, "window seat")
    admin.put(TYPE, {search: False})
    reindexed(live_acme)
    assert ids(retrieve(app, mode=search, query="seat")) == []
    admin.put(TYPE, {})
    assert reindexed(live_acme) == 1
    back_fill_embeddings(tenant_id=live_acme.id)
    assert ids(retrieve(app, mode=search, query="seat")) == [fact]


def test_a_declaration_that_changes_no_search_asks_for_nothing(
    live_acme: TenantKit, app: ApiClient, admin: ApiClient
) -> None:
    write(app, "window seat")
    for body in ({}, {"retention": {"keepDays": 3}}, {"embeddingModel": "old"}):
        assert "indexing" not in admin.put(TYPE, body).json()
    assert waiting(live_acme) == 0


def test_a_write_that_still_followed_the_declaration_before_is_found_by_a_second_look(
    live_acme: TenantKit, app: ApiClient, admin: ApiClient, superuser_url: str
) -> None:
    fact = write(app, "window seat")
    admin.put(TYPE, {"embeddingModel": "new"})
    reindexed(live_acme)
    back_fill_embeddings(tenant_id=live_acme.id)
    assert waiting(live_acme) == 1
    assert reindexed(live_acme) == 0
    with psycopg.connect(superuser_url) as late:
        late.execute("UPDATE fact_embedding SET model = 'old' WHERE fact_id = %s", [fact])
    make_older(live_acme)
    assert reindexed(live_acme) == 1
    assert waiting(live_acme) == 0
    back_fill_embeddings(tenant_id=live_acme.id)
    assert app.get(f"/v1/memory/facts/{fact}").json()["embeddingModel"] == "new"


def test_it_goes_on_where_it_was_and_back_when_the_declaration_changes_again(
    live_acme: TenantKit, app: ApiClient, admin: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        write(app, f"seat {number}")
    monkeypatch.setattr(module, "BATCH", 2)
    admin.put(TYPE, {"keyword": False})
    with tenant_context(live_acme.id):
        assert module._one_batch(live_acme.id, "english") == 2
    assert admin.get(TYPE).json()["indexing"]["toLookAt"] == 3
    admin.put(TYPE, {"keyword": True})
    assert admin.get(TYPE).json()["indexing"]["toLookAt"] == 5
    jobs = {name: call for name, _, call in housekeeping.JOBS}
    jobs["reindex"]()
    assert "indexing" not in admin.get(TYPE).json()
    assert len(ids(retrieve(app, mode="keyword", query="seat"))) == 5


def test_an_operator_changes_the_model_of_a_type_and_waits_for_the_vectors(
    live_acme: TenantKit, app: ApiClient, admin: ApiClient
) -> None:
    facts = [write(app, f"seat {n}") for n in range(3)]
    admin.put(TYPE, {"retention": {"keepDays": 3}, "contentSchema": {"type": "string"}})
    said = answered("reindex", live_acme.slug, "--type", "note", "--model", "new")
    assert said == {
        "tenant": live_acme.slug,
        "type": "note",
        "facts": 3,
        "models": [{"model": "new", "indexed": 3, "pending": 0}],
    }
    declared = admin.get(TYPE).json()
    assert (declared["embeddingModel"], declared["retention"]) == ("new", {"keepDays": 3})
    assert declared["contentSchema"] == {"type": "string"}
    assert sorted(ids(retrieve(app, mode="semantic", query="seat"))) == sorted(facts)


def test_an_operator_is_told_which_vectors_can_not_be_made(
    live_acme: TenantKit, app: ApiClient, new: StubProvider
) -> None:
    write(app, "window seat")
    new.failure = EmbeddingUnavailable("new", "answered 503")
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("reindex", live_acme.slug, type="note", model="new", json=True, stdout=out)
    assert ended.value.code == 1
    by_model: dict[str, Any] = {one["model"]: one for one in json.loads(out.getvalue())["models"]}
    assert by_model["new"] == {
        "model": "new",
        "indexed": 0,
        "pending": 1,
        "lastFailure": "embedding-unavailable",
    }
    assert by_model["old"]["indexed"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model", "new"], "say which with --type"),
        (["--type", "note", "--model", "nobody's"], "embedding model"),
    ],
)
def test_what_can_not_be_reindexed_is_said(
    live_acme: TenantKit, new: StubProvider, arguments: list[str], says: str
) -> None:
    from django.core.management import CommandError

    with pytest.raises(CommandError, match=says):
        call_command("reindex", live_acme.slug, *arguments)
