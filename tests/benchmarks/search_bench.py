"""How fast searches and the index are against the best plain SQL. Run: python -m tests.benchmarks.search_bench [part …]

Times are of the database's own process (CPU milliseconds), so that what else runs on the machine matters little; ratios are of
measures that ran interleaved.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.benchmarks.harness import database, interleaved, ratio, usual_or_quick

VECTORS = 384
VOCABULARY = 20_000
ROUNDS = 7
SEMANTIC = (
    usual_or_quick(1_000, 100),
    usual_or_quick(10_000, 200),
    usual_or_quick(20_000, 300),
)
KEYWORD = usual_or_quick(60_000, 500)
WRITTEN = usual_or_quick(150, 5)

_HEADS = """
INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)
SELECT %(tenant)s::uuid, u.id, 'note', '{"projectId":"p1"}', 1, '2026-01-01'::timestamptz + u.n * interval '1 second'
FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS u (id, n)
"""
_DOCUMENTS = """
INSERT INTO fact_document (tenant_id, fact_id, number, length, language, lexemes, frequencies)
SELECT %(tenant)s::uuid, one ->> 0, (random() * 2 ^ 61)::bigint * 2, (one ->> 1)::int, 'simple',
       ARRAY(SELECT jsonb_array_elements_text(one -> 2)), ARRAY(SELECT jsonb_array_elements_text(one -> 3)::smallint)
FROM jsonb_array_elements(%(documents)s::jsonb) AS one
"""
_EMBEDDINGS = """
INSERT INTO fact_embedding (tenant_id, fact_id, model, dims, embedding)
SELECT %(tenant)s::uuid, u.id, 'bench', 384, u.vector::halfvec FROM unnest(%(ids)s::text[], %(vectors)s::text[]) AS u (id, vector)
"""
_RAW_NEAREST = """
SELECT e.fact_id, e.embedding <=> %(vector)s::halfvec AS distance FROM fact_embedding e
WHERE e.tenant_id = %(tenant)s::uuid ORDER BY distance LIMIT 10
"""
_RAW_POSTINGS = """
SELECT count(*) FROM posting p WHERE p.tenant_id = %(tenant)s::uuid AND p.lexeme = ANY (%(lexemes)s::text[])
"""


class BackendClock:
    """CPU time of the backend that this process is connected to."""

    def __init__(self) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._path = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")

    def milliseconds(self, work: Callable[[], Any], times: int = 3) -> float:
        before = self._now()
        for _ in range(times):
            work()
        return max((self._now() - before) / times, 1e-6)

    def _now(self) -> float:
        return int(self._path.read_text().split()[0]) / 1e6


def text_maker(seed: int) -> Callable[[], str]:
    """Texts of 12 to 30 words, whose frequencies fall as those of a language do."""
    chance = random.Random(seed)
    words = [f"w{n:x}" for n in range(VOCABULARY)]
    weights = [1 / (n + 3) for n in range(VOCABULARY)]
    pool = chance.choices(words, weights, k=400_000)
    return lambda: " ".join(chance.choices(pool, k=chance.randint(12, 30)))


def load(tenant_id: UUID, count: int, *, vectors: bool, seed: int = 1) -> None:
    """`count` indexed facts, in transactions of 500."""
    import numpy

    from memory.search.analysis import analyse
    from memory.search.index import vector_text
    from memory.tenancy import tenant_context

    make_text, numbers = text_maker(seed), numpy.random.default_rng(seed)
    for first in range(0, count, 500):
        ids = [f"f{n}" for n in range(first, min(first + 500, count))]
        documents = []
        for fact_id in ids:
            found = analyse(make_text(), "simple")
            lexemes, counts = list(found.frequencies), list(found.frequencies.values())
            documents.append([fact_id, found.length, lexemes, counts])
        given: dict[str, Any] = {"tenant": tenant_id, "ids": ids}
        with tenant_context(tenant_id):
            execute(_HEADS, given)
            execute(_DOCUMENTS, {**given, "documents": json.dumps(documents)})
            if vectors:
                made = [vector_text(unit(numbers.standard_normal(VECTORS))) for _ in ids]
                execute(_EMBEDDINGS, {**given, "vectors": made})


def unit(numbers: Any) -> list[float]:
    import numpy

    vector: list[float] = (numbers / numpy.linalg.norm(numbers)).tolist()
    return vector


def execute(statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return list(cursor.fetchall()) if cursor.description else []


def semantic() -> dict[str, float]:
    import numpy

    from memory.search.index import vector_text
    from memory.search.semantic import _EXACT, search_by_meaning
    from memory.search.visible import Filters, visible
    from memory.tenancy import tenant_context
    from tests.builders import make_tenant

    figures: dict[str, float] = {}
    for size in SEMANTIC:
        kit = make_tenant()
        load(kit.id, size, vectors=True)
        vacuum()
        principal = kit.principal("agent", projects=["p1"])
        vector = unit(numpy.random.default_rng(9).standard_normal(VECTORS))
        given = {"tenant": kit.id, "vector": vector_text(vector)}
        with tenant_context(kit.id):
            execute("SET LOCAL transaction_timeout = 0", {})
            clock = BackendClock()

            def ours(principal: Any = principal, vector: list[float] = vector) -> Any:
                return search_by_meaning(
                    principal, vectors={"bench": vector}, filters=Filters(), limit=10
                )

            def raw(given: dict[str, Any] = given) -> Any:
                return execute(_RAW_NEAREST, given)

            condition, guarded = visible(principal, Filters(), "e")
            statement = _EXACT.format(visible=condition, count="NULL::bigint")
            guarded |= {**given, "model": "bench", "dims": VECTORS, "limit": 10}

            def alone(statement: str = statement, guarded: dict[str, Any] = guarded) -> Any:
                return execute(statement, guarded)

            plain = (
                f"SELECT e.fact_id, e.embedding <=> %(vector)s::halfvec AS distance FROM fact_embedding e WHERE {condition}"
                " AND e.model = %(model)s::text ORDER BY distance, e.created_at DESC, e.fact_id DESC LIMIT 10"
            )

            def guarded_raw(plain: str = plain, guarded: dict[str, Any] = guarded) -> Any:
                return execute(plain, guarded)

            right = {row[0] for row in raw()} & {hit.fact_id for hit in ours().hits}
            measured = interleaved(
                {
                    "ours": lambda c=clock, w=ours: c.milliseconds(w),  # type: ignore[misc]
                    "alone": lambda c=clock, w=alone: c.milliseconds(w),  # type: ignore[misc]
                    "raw": lambda c=clock, w=raw: c.milliseconds(w),  # type: ignore[misc]
                    "guarded raw": lambda c=clock, w=guarded_raw: c.milliseconds(w),  # type: ignore[misc]
                },
                ROUNDS,
            )
        figures[f"semantic, {size} facts: its statement alone / best exact SQL with guard"] = ratio(
            measured, "alone", "guarded raw"
        )
        figures[f"semantic, {size} facts: its statement alone / best exact SQL"] = ratio(
            measured, "alone", "raw"
        )
        figures[f"semantic, {size} facts: search / best exact SQL"] = ratio(measured, "ours", "raw")
        figures[f"semantic, {size} facts: CPU ms"] = sorted(measured["ours"])[ROUNDS // 2]
        figures[f"semantic, {size} facts: recall@10"] = len(right) / 10
    return figures


def keyword() -> dict[str, float]:
    from memory.search.keyword import search_by_keyword
    from memory.search.visible import Filters
    from memory.tenancy import tenant_context
    from tests.builders import make_tenant

    size, kit = KEYWORD, make_tenant(search_language="simple")
    load(kit.id, size, vectors=False)
    vacuum()
    principal = kit.principal("agent", projects=["p1"])
    questions = {
        "rare words": "w7d0 wbb8 wfa0",
        "rare and common words": "w1 w8 w64 w3e8 w7d0",
        "common words only": "w1 w2 w3 w5 w8",
    }
    figures: dict[str, float] = {}
    with tenant_context(kit.id):
        execute("SET LOCAL transaction_timeout = 0", {})
        clock = BackendClock()
        for name, question in questions.items():
            given = {"tenant": kit.id, "lexemes": question.split()}
            measured = interleaved(
                {
                    "ours": lambda q=question: clock.milliseconds(  # type: ignore[misc]
                        lambda: search_by_keyword(
                            principal, question=q, filters=Filters(), limit=10
                        )
                    ),
                    "raw": lambda g=given: clock.milliseconds(lambda: execute(_RAW_POSTINGS, g)),  # type: ignore[misc]
                },
                ROUNDS,
            )
            figures[f"keyword, {size} facts, {name}: CPU ms"] = sorted(measured["ours"])[
                ROUNDS // 2
            ]
            figures[f"keyword, {size} facts, {name}: search / counting its postings"] = ratio(
                measured, "ours", "raw"
            )
    return figures


def writing() -> dict[str, float]:
    """Durable writes a second through the action, with no index, with words, and with words and a ready vector."""
    import numpy

    from memory.actions import write_fact as module
    from memory.fact_shape import FactDraft
    from memory.search.analysis import analyse
    from memory.search.index import IndexPlan
    from memory.tenancy import tenant_context
    from tests.builders import make_tenant

    count, kit = WRITTEN, make_tenant()
    principal = kit.principal("app", projects=["p1"])
    make_text = text_maker(2)
    vector = unit(numpy.random.default_rng(3).standard_normal(VECTORS))
    plans: dict[str, Callable[[str], IndexPlan | None]] = {
        "no index": lambda text: None,
        "words": lambda text: IndexPlan("english", analyse(text, "english"), None),
        "words and vector": lambda text: IndexPlan(
            "english", analyse(text, "english"), "bench", vector
        ),
    }

    def rate(plan_of: Callable[[str], IndexPlan | None]) -> float:
        module.index_plan = lambda principal, policy, content: plan_of(str(content))
        started = time.perf_counter()
        for _ in range(count):
            with tenant_context(kit.id):
                draft = FactDraft(type="note", scope={"projectId": "p1"}, content=make_text())
                module.write_fact(principal=principal, draft=draft)
        return count / (time.perf_counter() - started)

    own = module.index_plan
    try:
        measured = interleaved({name: lambda p=plan: rate(p) for name, plan in plans.items()})  # type: ignore[misc]
    finally:
        module.index_plan = own
    return {
        "write with words / without index": ratio(measured, "words", "no index"),
        "write with words and vector / without index": ratio(
            measured, "words and vector", "no index"
        ),
    }


def sizes() -> dict[str, float]:
    """Bytes a fact in each table of search, indexes included, over all that was loaded."""
    rows = execute(
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
        " WHERE relname IN ('fact_document', 'posting', 'fact_embedding')",
        {},
    )
    counts = dict(
        execute("SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'fact_%%'", {})
    )
    of = {"posting": "fact_document"}
    return {f"{name}: bytes a fact": size / counts[of.get(name, name)] for name, size in rows}


def vacuum() -> None:
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) fact, fact_document, posting, fact_embedding")


def main() -> None:
    parts = {"writing": writing, "semantic": semantic, "keyword": keyword, "sizes": sizes}
    with database():
        for part in sys.argv[1:] or parts:
            for name, figure in parts[part]().items():
                print(f"{name:75} {figure:10.2f}", flush=True)


if __name__ == "__main__":
    main()
