"""The index holds what the current revisions say, past the product's own code too."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import override_settings

from memory.embeddings.provider import (
    EmbeddingTimeout,
    EmbeddingUnavailable,
    default_model,
    get_provider,
    provider_registered,
)
from memory.errors import constraint_of
from memory.search.index import IndexPlan, prepare, remove_index, write_index
from memory.tenancy import tenant_context
from memory.type_policy import TypePolicy
from tests.builders import TenantKit
from tests.search.facts import add_fact, change_fact, count_rows
from tests.search.providers import StubProvider

BOTH = TypePolicy("note")


def rows(kit: TenantKit, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(sql, [kit.id, *params])
        return list(cursor.fetchall())


@pytest.fixture
def stub() -> Iterator[None]:
    with provider_registered(StubProvider(), as_default=True):
        yield


def postings(kit: TenantKit) -> list[tuple[Any, ...]]:
    return rows(
        kit,
        "SELECT d.fact_id, p.lexeme, p.frequency, p.length FROM posting p"
        " JOIN fact_document d ON d.tenant_id = p.tenant_id AND d.number = p.document"
        " WHERE p.tenant_id = %s::uuid ORDER BY 1, 2",
    )


def test_the_built_in_model_makes_its_vector_with_the_plan() -> None:
    get_provider().embed(["once it is loaded"])
    plan = prepare(policy=BOTH, language="english", content="a window seat")
    assert plan.embedding_model == default_model()
    assert plan.vector is not None
    assert not plan.pending


@pytest.mark.parametrize(
    ("policy", "has_lexemes", "has_model"),
    [
        (TypePolicy("note", keyword=False), False, True),
        (TypePolicy("note", semantic=False), True, False),
        (TypePolicy("note", keyword=False, semantic=False), False, False),
    ],
)
def test_the_type_says_what_is_indexed(
    policy: TypePolicy, has_lexemes: bool, has_model: bool
) -> None:
    plan = prepare(policy=policy, language="english", content="seat")
    assert (plan.analysis is not None, plan.embedding_model is not None) == (has_lexemes, has_model)
    assert not plan.pending


@pytest.mark.parametrize("error", [EmbeddingTimeout, EmbeddingUnavailable])
def test_a_model_that_is_late_or_away_leaves_the_vector_pending(error: Any) -> None:
    provider = StubProvider(failure=error("stub", "not now"))
    with provider_registered(provider, as_default=True):
        plan = prepare(policy=BOTH, language="english", content="seat")
    assert plan.pending
    assert plan.embedding_model == "stub"


def test_a_model_that_nobody_has_leaves_the_vector_pending() -> None:
    policy = TypePolicy("note", embedding_model="not-here-yet")
    assert prepare(policy=policy, language="english", content="seat").pending


def test_without_any_model_nothing_is_pending() -> None:
    with override_settings(KINDMEM_EMBEDDINGS="none"):
        plan = prepare(policy=BOTH, language="english", content="seat")
    assert (plan.embedding_model, plan.pending) == (None, False)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        [],
        {},
        0,
        True,
        "x" * 60_000,
        "word " * 12_000,
        "成" * 20_000,
        "\u202e\u200b",
        "a " * 30_000,
        [[[["deep"]]]],
        {"": ""},
        "🛫" * 10_000,
        [f"w{n}" for n in range(9_000)],
        "e\u0301" * 10_000,
    ],
    ids=lambda content: str(content)[:12].encode("ascii", "replace").decode(),
)
def test_no_content_makes_the_index_fail(acme: TenantKit, content: Any) -> None:
    add_fact(acme.id, "it", content)
    ((length, lexemes),) = rows(
        acme, "SELECT length, cardinality(lexemes) FROM fact_document WHERE tenant_id = %s::uuid"
    )
    assert count_rows(acme.id, "posting") == lexemes <= length <= 140_000


def test_postings_follow_their_document_through_every_change(acme: TenantKit) -> None:
    add_fact(acme.id, "a", "seat seat window")
    add_fact(acme.id, "b", "seat")
    assert postings(acme) == [("a", "seat", 2, 3), ("a", "window", 1, 3), ("b", "seat", 1, 1)]
    change_fact(acme.id, "a", content="aisle seat")
    assert postings(acme) == [("a", "aisl", 1, 2), ("a", "seat", 1, 2), ("b", "seat", 1, 1)]
    with tenant_context(acme.id):
        remove_index(tenant_id=acme.id, fact_ids=["a", "never-was"])
    assert postings(acme) == [("b", "seat", 1, 1)]
    assert count_rows(acme.id, "posting") == 1


def test_raw_changes_of_documents_take_their_postings_along(acme: TenantKit) -> None:
    add_fact(acme.id, "a", "seat window")
    rows(
        acme,
        "UPDATE fact_document SET lexemes = '{other}', frequencies = '{1}', length = 1"
        " WHERE tenant_id = %s::uuid RETURNING 1",
    )
    assert postings(acme) == [("a", "other", 1, 1)]
    rows(acme, "DELETE FROM fact_document WHERE tenant_id = %s::uuid RETURNING 1")
    assert count_rows(acme.id, "posting") == 0


def test_the_same_text_again_rewrites_no_posting(acme: TenantKit) -> None:
    add_fact(acme.id, "a", "seat window")
    before = rows(acme, "SELECT ctid, lexeme FROM posting WHERE tenant_id = %s::uuid ORDER BY 2")
    change_fact(acme.id, "a", content="seat window")
    after = rows(acme, "SELECT ctid, lexeme FROM posting WHERE tenant_id = %s::uuid ORDER BY 2")
    assert after == before


@pytest.mark.parametrize("table", ["fact_document", "fact_embedding"])
@pytest.mark.usefixtures("stub")
def test_a_search_row_says_what_its_fact_says_whatever_is_sent(acme: TenantKit, table: str) -> None:
    scope = {"projectId": "p1", "userId": "u1"}
    soon = datetime.now(UTC) + timedelta(days=1)
    add_fact(acme.id, "it", "seat", policy=BOTH, scope=scope, type="real", expires_at=soon)
    columns = {
        "fact_document": "number, length, language, lexemes, frequencies",
        "fact_embedding": "model, dims, embedding",
    }[table]
    (kept,) = rows(acme, f"DELETE FROM {table} WHERE tenant_id = %s::uuid RETURNING {columns}")
    holes = ", ".join(
        "%s::halfvec" if name == "embedding" else "%s" for name in columns.split(", ")
    )
    rows(
        acme,
        f"INSERT INTO {table} (tenant_id, fact_id, type, project_id, created_at, {columns})"
        f" VALUES (%s::uuid, 'it', 'forged', 'p2', now(), {holes}) RETURNING 1",
        *kept,
    )
    found = rows(
        acme,
        f"SELECT type, project_id, user_id, org_id, expires_at, review FROM {table} WHERE tenant_id = %s::uuid",
    )
    assert found == [("real", "p1", "u1", None, soon, None)]
    change_fact(acme.id, "it", expires_at=None, review="pending")
    assert rows(acme, f"SELECT expires_at, review FROM {table} WHERE tenant_id = %s::uuid") == [
        (None, "pending")
    ]


def test_a_fact_that_is_deleted_or_never_was_gets_no_search_row(acme: TenantKit) -> None:
    plan = prepare(policy=BOTH, language="english", content="seat")
    add_fact(acme.id, "gone", "seat")
    change_fact(acme.id, "gone", deleted_at=datetime.now(UTC))
    for fact_id in ("gone", "never-was"):
        with pytest.raises(DatabaseError) as refused, tenant_context(acme.id):
            write_index(tenant_id=acme.id, fact_id=fact_id, plan=plan)
        assert constraint_of(refused.value) in (
            "fact_document_says_what_its_fact_says",
            "fact_embedding_says_what_its_fact_says",
        )


def test_a_fact_is_not_destroyed_while_it_is_in_the_index(acme: TenantKit) -> None:
    add_fact(acme.id, "it", "seat")
    with pytest.raises(DatabaseError) as refused:
        rows(acme, "DELETE FROM fact WHERE tenant_id = %s::uuid RETURNING 1")
    assert constraint_of(refused.value) == "fact_document_belongs_to_fact"


@pytest.mark.usefixtures("stub")
def test_a_plan_without_anything_clears_what_was_there(acme: TenantKit) -> None:
    add_fact(acme.id, "it", "seat", policy=BOTH)
    empty = IndexPlan(language="english", analysis=None, embedding_model=None)
    with tenant_context(acme.id):
        write_index(tenant_id=acme.id, fact_id="it", plan=empty)
    for table in ("posting", "fact_document", "fact_embedding", "embedding_task"):
        assert count_rows(acme.id, table) == 0


def test_an_unknown_search_language_is_read_as_simple(acme: TenantKit) -> None:
    add_fact(acme.id, "it", "running seats", language="klingon")
    assert [row[1] for row in postings(acme)] == ["running", "seats"]
