"""Search by meaning compares every vector that the caller may see, and says so when it did not."""

import random
from collections.abc import Iterator

import pytest
from django.db import connection, connections

from memory.embeddings.provider import provider_registered
from memory.search import semantic
from memory.search.found import Found
from memory.search.semantic import models_in_use, search_by_meaning
from memory.search.vector_index import (
    build_vector_index,
    drop_vector_index,
    has_vector_index,
    index_name,
)
from memory.search.visible import Filters
from memory.tenancy import tenant_context
from memory.type_policy import TypePolicy
from tests.at_once import at_once
from tests.builders import TenantKit, make_tenant
from tests.search.bulk import DIMS, MODEL, load_facts
from tests.search.facts import add_fact, change_fact, count_rows
from tests.search.providers import StubProvider
from tests.search.test_large_tenants import assert_nearest, cosines

TOWARDS = {
    "east": [1.0, 0.0, 0.0],
    "north": [0.0, 1.0, 0.0],
    "north-east": [0.6, 0.8, 0.0],
    "west": [-1.0, 0.0, 0.0],
}
POLICY = TypePolicy("note", keyword=False, embedding_model="compass")


@pytest.fixture
def compass() -> Iterator[StubProvider]:
    provider = StubProvider(model="compass", vector_of=lambda text: TOWARDS[text])
    with provider_registered(provider):
        yield provider


def nearest(
    kit: TenantKit,
    vector: list[float],
    *,
    model: str = "compass",
    limit: int = 10,
    filters: Filters | None = None,
    **grants: object,
) -> Found:
    principal = kit.principal("agent", **(grants or {"everything": True}))
    with tenant_context(kit.id):
        return search_by_meaning(
            principal, vectors={model: vector}, filters=filters or Filters(), limit=limit
        )


def test_the_score_is_the_cosine_and_orders_the_facts(
    acme: TenantKit, compass: StubProvider
) -> None:
    for direction in TOWARDS:
        add_fact(acme.id, direction, direction, policy=POLICY)
    found = nearest(acme, TOWARDS["east"])
    assert [hit.fact_id for hit in found.hits] == ["east", "north-east", "north", "west"]
    assert [hit.score for hit in found.hits] == pytest.approx([1, 0.6, 0, -1], abs=1e-3)
    assert (found.how, found.exhaustive, found.candidates) == ("exact", True, 4)
    assert len(nearest(acme, TOWARDS["east"], limit=3).hits) == 3


def test_equal_distances_come_newest_first(acme: TenantKit, compass: StubProvider) -> None:
    for minute in range(5):
        add_fact(acme.id, f"f{minute}", "east", policy=POLICY, minute=minute)
    assert [hit.fact_id for hit in nearest(acme, TOWARDS["east"], limit=3).hits] == [
        "f4",
        "f3",
        "f2",
    ]


def test_only_facts_that_the_caller_may_see_are_compared(
    acme: TenantKit, compass: StubProvider
) -> None:
    add_fact(acme.id, "mine", "west", policy=POLICY, scope={"projectId": "p1"})
    add_fact(acme.id, "theirs", "east", policy=POLICY, scope={"projectId": "p2"})
    add_fact(acme.id, "ours", "north", policy=POLICY)
    globex = make_tenant()
    add_fact(globex.id, "other", "east", policy=POLICY, scope={"projectId": "p1"})
    found = nearest(acme, TOWARDS["east"], projects=["p1"])
    assert [hit.fact_id for hit in found.hits] == ["ours", "mine"]
    assert found.candidates == 2
    by_scope = Filters(scope={"projectId": "p1"})
    assert [hit.fact_id for hit in nearest(acme, TOWARDS["east"], filters=by_scope).hits] == [
        "mine"
    ]


def test_a_vector_leaves_with_the_text_it_was_made_of(
    acme: TenantKit, compass: StubProvider
) -> None:
    add_fact(acme.id, "it", "east", policy=POLICY)
    change_fact(acme.id, "it", content="west")
    assert nearest(acme, TOWARDS["east"]).hits == []
    assert count_rows(acme.id, "fact_embedding") == 0


def test_vectors_of_another_model_or_length_are_not_compared(
    acme: TenantKit, compass: StubProvider
) -> None:
    add_fact(acme.id, "it", "east", policy=POLICY)
    assert nearest(acme, [1.0, 0.0], model="compass").hits == []
    assert nearest(acme, TOWARDS["east"], model="other").hits == []
    with tenant_context(acme.id):
        assert models_in_use(acme.id) == ["compass"]


@pytest.fixture
def large(live_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[TenantKit]:
    """A tenant that counts as large, with an index of its own, beside another with vectors."""
    monkeypatch.setattr(semantic, "_SAMPLE", 100)
    monkeypatch.setattr(semantic, "_SURELY_LARGE", 500)
    kit, other = make_tenant(), make_tenant()
    load_facts(kit.id, 1_500, projects=10)
    load_facts(other.id, 500)
    build_vector_index(kit.id, MODEL, DIMS)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) fact_embedding")
    yield kit
    drop_vector_index(kit.id, MODEL)


def vectors(count: int) -> list[list[float]]:
    chance = random.Random(11)
    return [[chance.uniform(-1, 1) for _ in range(DIMS)] for _ in range(count)]


def test_a_large_tenant_with_an_index_is_answered_from_it_nearly_as_exactly(
    large: TenantKit,
) -> None:
    assert has_vector_index(large.id, MODEL)
    right = 0
    for vector in vectors(20):
        found = nearest(large, vector, model=MODEL)
        assert (found.how, found.exhaustive) == ("approximate", False)
        assert found.candidates == pytest.approx(1_500, rel=0.4)
        scores = [hit.score for hit in found.hits]
        assert scores == sorted(scores, reverse=True)
        right += len({hit.fact_id for hit in found.hits} & set([*cosines(large.id, vector)][:10]))
    assert right / 200 >= 0.99


def test_a_guard_that_leaves_few_makes_the_search_exact_also_beside_an_index(
    large: TenantKit,
) -> None:
    (vector,) = vectors(1)
    few = nearest(large, vector, model=MODEL, filters=Filters(type="none"))
    assert (few.hits, few.how, few.exhaustive) == ([], "exact", True)
    project = nearest(large, vector, model=MODEL, projects=["p1"], limit=100)
    assert project.how == "exact"
    assert_nearest(project.hits, cosines(large.id, vector, "project_id = 'p1'"), 100)


def test_a_walk_that_yields_too_few_is_followed_by_the_exact_search(
    large: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vector,) = vectors(1)
    monkeypatch.setattr(semantic, "_walk", lambda *_: [])
    found = nearest(large, vector, model=MODEL)
    assert (found.how, found.exhaustive) == ("exact", True)
    assert_nearest(found.hits, cosines(large.id, vector), 10)


def test_building_twice_leaves_one_index_and_dropping_leaves_none(large: TenantKit) -> None:
    build_vector_index(large.id, MODEL, DIMS)
    with connections["owner"].cursor() as cursor:
        name = index_name(large.id, MODEL)
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = %s", [name])
        assert cursor.fetchone() == (1,)
    drop_vector_index(large.id, MODEL)
    assert not has_vector_index(large.id, MODEL)
    assert nearest(large, vectors(1)[0], model=MODEL).how == "exact"


@pytest.mark.full
def test_an_index_stays_right_while_facts_come_and_go_and_the_table_is_vacuumed(
    large: TenantKit,
) -> None:
    """Faults of indexes on vectors that others had: parallel builds that overflow, vacuum that fails under churn."""

    def churn(writer: int) -> None:
        for round in range(4):
            prefix = f"c{writer}x{round}x"
            load_facts(large.id, 150, prefix=prefix)
            with tenant_context(large.id), connection.cursor() as cursor:
                for table in ("fact_embedding", "fact_document"):
                    cursor.execute(
                        f"DELETE FROM {table} WHERE tenant_id = %s::uuid AND fact_id LIKE %s",
                        [large.id, f"{prefix}1%"],
                    )

    def work(number: int) -> None:
        if number < 3:
            churn(number)
            return
        with connections["owner"].cursor() as cursor:
            for _ in range(6):
                cursor.execute("VACUUM (ANALYZE) fact_embedding")
        connections["owner"].close()

    assert at_once(4, work) == [None] * 4
    drop_vector_index(large.id, MODEL)
    build_vector_index(large.id, MODEL, DIMS)
    for vector in vectors(10):
        exact = cosines(large.id, vector)
        found = nearest(large, vector, model=MODEL)
        assert found.how == "approximate"
        assert len({hit.fact_id for hit in found.hits} & set([*exact][:10])) >= 9
        assert {hit.fact_id for hit in found.hits} <= set(exact)
