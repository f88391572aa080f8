"""Fills a tenant with facts that have content, words and a vector each: through the action, and beyond some thousand in bulk."""

import json
from typing import Any
from uuid import UUID

from tests.benchmarks.harness import usual_or_quick
from tests.benchmarks.lifecycle_bench import _CONTENTS, _HEADS, _REVISIONS
from tests.benchmarks.search_bench import _DOCUMENTS, VECTORS, execute, text_maker, unit

SCOPE = {"projectId": "p1"}
BY_ACTION = usual_or_quick(10_000, 500)
"""So many are written as a client's are; what is beyond is made of the same rows by SQL."""
_CHUNK = 2_000
_VECTORS = """
INSERT INTO fact_embedding (tenant_id, fact_id, model, dims, embedding)
SELECT %(tenant)s::uuid, 'f' || n, %(model)s::text, %(dims)s::int,
       ARRAY(SELECT random() - 0.5 + 0 * n FROM generate_series(1, %(dims)s::int))::real[]::halfvec
FROM generate_series(%(first)s::int, %(last)s::int) n
"""


def fill(tenant: Any, count: int, seed: int) -> None:
    """So many facts of one project."""
    _by_action(tenant, min(count, BY_ACTION), seed)
    if count > BY_ACTION:
        _in_bulk(tenant.id, BY_ACTION, count, seed + 1)


def _by_action(tenant: Any, count: int, seed: int) -> None:
    import numpy

    from memory.actions import write_fact as module
    from memory.embeddings.provider import default_model
    from memory.fact_shape import FactDraft
    from memory.search.analysis import analyse
    from memory.search.index import IndexPlan
    from memory.tenancy import tenant_context

    make_text, numbers, model = text_maker(seed), numpy.random.default_rng(seed), default_model()
    principal, own = tenant.principal("app", projects=["p1"]), module.index_plan

    def plan(principal: Any, policy: Any, content: Any) -> Any:
        vector = unit(numbers.standard_normal(VECTORS))
        return IndexPlan("english", analyse(str(content), "english"), model, vector)

    module.index_plan = plan
    try:
        for first in range(0, count, 200):
            with tenant_context(tenant.id):
                for _ in range(first, min(first + 200, count)):
                    draft = FactDraft(type="note", scope=SCOPE, content=make_text())
                    module.write_fact(principal=principal, draft=draft)
    finally:
        module.index_plan = own


def _in_bulk(tenant_id: UUID, start: int, count: int, seed: int) -> None:
    from memory.embeddings.provider import default_model
    from memory.search.analysis import analyse
    from memory.tenancy import tenant_context

    make_text, model = text_maker(seed), default_model()
    documents_statement = _DOCUMENTS.replace("'simple'", "'english'")
    for first in range(start, count, _CHUNK):
        last = min(first + _CHUNK, count) - 1
        documents = []
        for number in range(first, last + 1):
            found = analyse(make_text(), "english")
            words, counts = list(found.frequencies), list(found.frequencies.values())
            documents.append([f"f{number}", found.length, words, counts])
        given: dict[str, Any] = {"tenant": tenant_id, "first": first, "last": last}
        with tenant_context(tenant_id):
            execute("SET LOCAL statement_timeout = 0", {})
            for statement in (_HEADS, _REVISIONS, _CONTENTS):
                execute(statement, given)
            execute(documents_statement, {**given, "documents": json.dumps(documents)})
            execute(_VECTORS, {**given, "model": model, "dims": VECTORS})
