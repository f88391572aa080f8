"""What a sweep costs a fact, in a small tenant and in a large one. Run: python -m tests.benchmarks.lifecycle_bench [large]

Each round makes as many facts due in both, spread over all of them, and sweeps them: content, revisions, index, evidence.
Growth is of the time a fact, large against small, interleaved; the rate is of this machine. A million takes some minutes to make,
so 200,000 is the large tenant unless said.
"""

import math
import statistics
import sys
import time
from typing import Any

from tests.benchmarks.harness import database, interleaved, ratio, usual_or_quick
from tests.benchmarks.search_bench import execute

SMALL, LARGE = usual_or_quick((10_000, 200_000), (400, 800))
DUE_A_ROUND, ROUNDS = usual_or_quick(1_000, 20), 5
CHUNK = 10_000
GROWTH_MOST = 1.5

_HEADS = """
INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)
SELECT %(tenant)s::uuid, 'f' || n, 'note', '{"projectId":"p1"}', 1, '2026-01-01'::timestamptz + n * interval '1 second'
FROM generate_series(%(first)s::int, %(last)s::int) n
"""
_REVISIONS = """
INSERT INTO fact_revision (tenant_id, fact_id, version, revision_id, recorded_at, content_hash, size_bytes, trust,
                           attributed_kind, attributed_id, written_by, written_by_role)
SELECT %(tenant)s::uuid, 'f' || n, 1, 'f' || n, '2026-01-01'::timestamptz + n * interval '1 second', sha256(n::text::bytea), 90,
       'asserted', 'service', 'k', 'service:k', 'app'
FROM generate_series(%(first)s::int, %(last)s::int) n
"""
_CONTENTS = """
INSERT INTO fact_content (tenant_id, fact_id, version, content_text)
SELECT %(tenant)s::uuid, 'f' || n, 1, '"' || repeat('some words of ordinary length ', 3) || n || '"'
FROM generate_series(%(first)s::int, %(last)s::int) n
"""
_DOCUMENTS = """
INSERT INTO fact_document (tenant_id, fact_id, number, length, language, lexemes, frequencies)
SELECT %(tenant)s::uuid, 'f' || n, (random() * 2 ^ 61)::bigint * 2, 12, 'simple',
       ARRAY(SELECT 'w' || (n::bigint * 7919 + k * 104729) %% 20000 FROM generate_series(1, 12) k),
       array_fill(1::smallint, ARRAY[12])
FROM generate_series(%(first)s::int, %(last)s::int) n
"""
_VECTORS = """
INSERT INTO fact_embedding (tenant_id, fact_id, model, dims, embedding)
SELECT %(tenant)s::uuid, 'f' || n, 'bench', 384, %(vector)s::halfvec FROM generate_series(%(first)s::int, %(last)s::int) n
"""
_MAKE_DUE = """
UPDATE fact SET expires_at = now() - interval '1 minute' WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[])
"""


def load(tenant_id: Any, count: int) -> None:
    """`count` facts as the product writes them, with content, index and vector."""
    from django.db import connection

    from memory.tenancy import tenant_context

    vector = "[" + ",".join(["0.05"] * 384) + "]"
    for first in range(0, count, CHUNK):
        given = {
            "tenant": tenant_id,
            "first": first,
            "last": min(first + CHUNK, count) - 1,
            "vector": vector,
        }
        with tenant_context(tenant_id), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0")
            for statement in (_HEADS, _REVISIONS, _CONTENTS, _DOCUMENTS, _VECTORS):
                cursor.execute(statement, given)


class Swept:
    """One tenant, and a turn of making some of its facts due and sweeping them."""

    def __init__(self, tenant: Any, count: int) -> None:
        self.tenant, self.count, self.turns = tenant, count, 0
        load(tenant.id, count)

    def seconds_a_fact(self) -> float:
        from memory.access import system_principal
        from memory.actions.sweep_retention import sweep_retention
        from memory.tenancy import tenant_context

        step = self.count // DUE_A_ROUND
        ids = [f"f{n * step + self.turns}" for n in range(DUE_A_ROUND)]
        self.turns += 1
        with tenant_context(self.tenant.id):
            execute(_MAKE_DUE, {"tenant": self.tenant.id, "ids": ids})
        principal = system_principal(self.tenant.id, self.tenant.slug, id="sweeper")
        started = time.perf_counter()
        result = sweep_retention(principal=principal)
        took = time.perf_counter() - started
        assert result.destroyed == DUE_A_ROUND, result
        return took / DUE_A_ROUND


def main() -> int:
    large = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    with database():
        from django.db import connections

        from tests.builders import make_tenant

        tenants = {"small": Swept(make_tenant(), SMALL), "large": Swept(make_tenant(), large)}
        with connections["owner"].cursor() as cursor:
            cursor.execute("ANALYZE")
        for tenant in tenants.values():
            tenant.seconds_a_fact()
        figures = interleaved(
            {name: tenant.seconds_a_fact for name, tenant in tenants.items()}, ROUNDS
        )
    growth = ratio(figures, "large", "small")
    for name, count in (("small", SMALL), ("large", large)):
        rate = 1 / statistics.median(figures[name])
        print(f"{f'facts swept a second among {count}':75} {rate:10.2f}")
    name = f"time to sweep a fact, among {large} / among {SMALL} (at most {GROWTH_MOST})"
    print(f"{name:75} {growth:10.2f}")
    return 0 if growth <= usual_or_quick(GROWTH_MOST, math.inf) else 1


if __name__ == "__main__":
    sys.exit(main())
