"""Searches read by index under row-level security, whatever the statistics say, and no index on vectors picks the candidates."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections

from memory.embeddings.provider import provider_registered
from memory.queries.retrieve import Retrieval, retrieve
from memory.search import semantic
from memory.search.semantic import search_by_meaning
from memory.search.vector_index import build_vector_index, drop_vector_index, index_name
from memory.search.visible import Filters
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.search.bulk import DIMS, MODEL, load_facts
from tests.search.providers import StubProvider

TABLES = {"fact", "fact_document", "posting", "fact_embedding", "embedding_task"}


@pytest.fixture
def explained() -> Iterator[list[dict[str, Any]]]:
    """The plans of all statements on the tables of search that run in the test."""
    plans: list[dict[str, Any]] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if any(f" {table} " in sql for table in TABLES):
            with context["connection"].cursor() as cursor:
                raw = cursor.cursor
                raw.execute("EXPLAIN (FORMAT JSON) " + sql, params)
                found = raw.fetchone()[0]
                plans.append((found if isinstance(found, list) else json.loads(found))[0]["Plan"])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield plans


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def scans_of(plans: list[dict[str, Any]], table: str) -> set[tuple[str, str | None]]:
    return {
        (node["Node Type"], node.get("Index Name"))
        for plan in plans
        for node in nodes(plan)
        if node.get("Relation Name") == table
    }


@pytest.fixture
def kit(live_db: None) -> TenantKit:
    large, kit = make_tenant(), make_tenant()
    load_facts(large.id, 4_000)
    load_facts(kit.id, 200)
    return kit


@pytest.mark.parametrize("statistics", ["none", "analysed", "vacuumed"])
@pytest.mark.parametrize("grants", [{"everything": True}, {"projects": ["p1"]}], ids=["all", "p1"])
def test_every_search_reads_by_index(
    kit: TenantKit, explained: list[dict[str, Any]], statistics: str, grants: dict[str, Any]
) -> None:
    if statistics != "none":
        verb = "ANALYZE" if statistics == "analysed" else "VACUUM (ANALYZE)"
        with connections["owner"].cursor() as cursor:
            cursor.execute(f"{verb} fact, fact_document, posting, fact_embedding")
    principal = kit.principal("agent", **grants)
    provider = StubProvider(model=MODEL, dimensions=16, vector_of=lambda text: [1.0] * 16)
    with provider_registered(provider):
        for _ in range(8):  # the sixth run of a prepared statement may be by a generic plan
            found = retrieve(
                principal,
                Retrieval(mode="both", query="all only7 mod7x3", embedding_model=MODEL),
            )
    assert found.meta["candidates"] == (200 if "everything" in grants else 20)
    assert scans_of(explained, "posting") == {("Index Only Scan", "posting_pkey")}
    for table in TABLES:
        assert not [scan for scan in scans_of(explained, table) if scan[0] == "Seq Scan"], table
    for plan in explained:
        for node in nodes(plan):
            assert "hnsw" not in str(node.get("Index Name"))
            text = json.dumps(node)
            if node.get("Relation Name") in TABLES and "Index Cond" in node:
                assert "tenant_id" in text


@pytest.mark.parametrize("statistics", ["none", "vacuumed"])
def test_a_large_tenants_vectors_are_found_by_its_own_index_whatever_the_statistics_say(
    kit: TenantKit,
    explained: list[dict[str, Any]],
    statistics: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(semantic, "_SAMPLE", 50)
    monkeypatch.setattr(semantic, "_SURELY_LARGE", 60)
    build_vector_index(kit.id, MODEL, DIMS)
    if statistics == "vacuumed":
        with connections["owner"].cursor() as cursor:
            cursor.execute("VACUUM (ANALYZE) fact_embedding")
    principal = kit.principal("agent", everything=True)
    with tenant_context(kit.id):
        found = search_by_meaning(
            principal, vectors={MODEL: [1.0] * DIMS}, filters=Filters(), limit=5
        )
    drop_vector_index(kit.id, MODEL)
    assert found.how == "approximate"
    assert ("Index Scan", index_name(kit.id, MODEL)) in scans_of(explained, "fact_embedding")
