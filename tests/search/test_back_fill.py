"""Vectors that a write leaves open are made later, and never for a text that is no longer the fact's."""

from collections.abc import Iterator

import pytest
from django.db import connection

from memory.actions.back_fill_embeddings import back_fill_embeddings
from memory.actions.reindex_facts import reindex_facts
from memory.embeddings.provider import (
    EmbeddingBadAnswer,
    EmbeddingUnavailable,
    provider_registered,
)
from memory.search.progress import ModelProgress, embedding_progress
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.search.providers import StubProvider
from tests.search.test_retrieve import ids, retrieve, write


@pytest.fixture
def remote() -> Iterator[StubProvider]:
    with provider_registered(StubProvider(model="remote", is_local=False), as_default=True) as one:
        assert isinstance(one, StubProvider)
        yield one


@pytest.fixture
def app(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("app", projects=["p1"])


def progress(kit: TenantKit) -> list[ModelProgress]:
    with tenant_context(kit.id):
        return embedding_progress(kit.id)


def make_due(kit: TenantKit) -> None:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE embedding_task SET next_at = now() WHERE tenant_id = %s::uuid", [kit.id]
        )


def test_a_remote_model_is_asked_by_the_back_fill_and_not_by_the_write(
    live_acme: TenantKit, app: ApiClient, remote: StubProvider
) -> None:
    fact = write(app, "window seat")
    assert remote.asked == []
    assert app.get(f"/v1/memory/facts/{fact}").json()["meta"] == {"embedding": "pending"}
    assert ids(retrieve(app, mode="keyword", query="seat")) == [fact]
    assert ids(retrieve(app, mode="semantic", query="seat")) == []

    done = back_fill_embeddings(tenant_id=live_acme.id)
    assert (done.stored, done.postponed, done.was_full) == (1, 0, False)
    assert remote.asked[-1] == "window seat"
    assert ids(retrieve(app, mode="semantic", query="seat")) == [fact]
    assert "meta" not in app.get(f"/v1/memory/facts/{fact}").json()
    assert back_fill_embeddings(tenant_id=live_acme.id).stored == 0


def test_a_provider_that_is_down_is_tried_again_later(
    live_acme: TenantKit, app: ApiClient, remote: StubProvider
) -> None:
    fact = write(app, "window seat")
    remote.failure = EmbeddingUnavailable("remote", "answered 503", retry_after_seconds=7)
    assert back_fill_embeddings(tenant_id=live_acme.id).postponed == 1
    assert progress(live_acme) == [ModelProgress("remote", 0, 1, "embedding-unavailable")]
    remote.failure = None
    assert back_fill_embeddings(tenant_id=live_acme.id).stored == 0, "not due yet"
    make_due(live_acme)
    assert back_fill_embeddings(tenant_id=live_acme.id).stored == 1
    assert ids(retrieve(app, mode="semantic", query="seat")) == [fact]


def test_one_text_that_the_provider_chokes_on_does_not_keep_the_others_waiting(
    live_acme: TenantKit, app: ApiClient, remote: StubProvider
) -> None:
    def vector_of(text: str) -> list[float]:
        if text == "poison":
            raise EmbeddingBadAnswer("remote", "answered 400")
        return [1.0, 0.0, 0.0]

    remote.vector_of = vector_of
    good = [write(app, "seat one"), write(app, "seat two")]
    write(app, "poison")
    done = back_fill_embeddings(tenant_id=live_acme.id)
    assert (done.stored, done.postponed) == (2, 1)
    assert sorted(ids(retrieve(app, mode="semantic", query="seat"))) == sorted(good)


def test_a_text_that_changes_while_it_is_embedded_gets_no_vector_of_the_old_one(
    live_acme: TenantKit, app: ApiClient, remote: StubProvider
) -> None:
    fact = write(app, "aisle")

    def vector_of(text: str) -> list[float]:
        if text == "aisle":
            changed = app.post(f"/v1/memory/facts/{fact}/supersede", {"content": "window"})
            assert changed.status_code == 200
        return [1.0, 0.0, 0.0]

    remote.vector_of = vector_of
    assert back_fill_embeddings(tenant_id=live_acme.id).stored == 0
    assert progress(live_acme) == [ModelProgress("remote", 0, 1, None)]
    assert back_fill_embeddings(tenant_id=live_acme.id).stored == 1
    assert remote.asked == ["aisle", "window"]


def test_a_fact_that_is_deleted_while_it_is_embedded_gets_no_vector(
    live_acme: TenantKit, app: ApiClient, remote: StubProvider
) -> None:
    fact = write(app, "aisle")

    def vector_of(text: str) -> list[float]:
        assert app.delete(f"/v1/memory/facts/{fact}").status_code == 200
        return [1.0, 0.0, 0.0]

    remote.vector_of = vector_of
    assert back_fill_embeddings(tenant_id=live_acme.id).stored == 0
    assert progress(live_acme) == []


def test_a_change_of_model_leaves_no_fact_unfound_while_it_goes_on(
    live_acme: TenantKit, app: ApiClient
) -> None:
    old = StubProvider(model="old", vector_of=lambda text: [0.6, 0.8, 0.0])
    new = StubProvider(model="new", dimensions=2, vector_of=lambda text: [1.0, 0.0])
    with provider_registered(old, as_default=True):
        facts = [write(app, f"seat {n}") for n in range(3)]
        with provider_registered(new, as_default=True):
            done = reindex_facts(tenant_id=live_acme.id, language="english")
            assert (done.facts, done.pending) == (3, 3)
            assert back_fill_embeddings(tenant_id=live_acme.id, limit=1).was_full
            assert [(one.model, one.indexed, one.pending) for one in progress(live_acme)] == [
                ("new", 1, 2),
                ("old", 2, 0),
            ]
            found = retrieve(app, mode="semantic", query="seat")
            assert sorted(ids(found)) == sorted(facts)
            assert found["meta"]["candidates"] == 3
            only_old = retrieve(app, mode="semantic", query="seat", embeddingModel="old")
            assert len(ids(only_old)) == 2
            back_fill_embeddings(tenant_id=live_acme.id)
            assert [(one.model, one.indexed) for one in progress(live_acme)] == [("new", 3)]
            assert sorted(ids(retrieve(app, mode="semantic", query="seat"))) == sorted(facts)


def test_reindexing_cuts_texts_in_the_language_that_the_tenant_has_now(
    live_acme: TenantKit, app: ApiClient
) -> None:
    write(app, "Flüge nach Berlin")
    done = reindex_facts(tenant_id=live_acme.id, language="german")
    assert (done.facts, done.pending) == (1, 0)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT language, lexemes FROM fact_document WHERE tenant_id = %s::uuid", [live_acme.id]
        )
        language, lexemes = cursor.fetchone()
    assert language == "german"
    assert "flug" in lexemes
