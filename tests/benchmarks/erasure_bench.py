"""How fast an erasure clears a person's facts, and whether a fact costs more in a table of a million than in one of ten thousand.

Run: python -m tests.benchmarks.erasure_bench [smaller larger]. Fails when a fact costs more than 1.5 times as much in the larger.
"""

import math
import os
import statistics
import sys
import time
from typing import Any

from tests.benchmarks.harness import database, usual_or_quick

SMALLER, LARGER = usual_or_quick((10_000, 1_000_000), (200, 400))
PEOPLE = usual_or_quick(5, 2)
FACTS_OF_ONE = usual_or_quick(1_000, 20)
GROWTH_MAX = 1.5

_HEADS = """
INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)
SELECT %(tenant)s::uuid, %(prefix)s::text || n, 'note', json_build_object('userId', %(user)s::text)::text, 1,
       '2026-01-01'::timestamptz + n * interval '1 second'
FROM generate_series(1, %(count)s::int) AS n
"""
_REVISIONS = """
INSERT INTO fact_revision (tenant_id, fact_id, revision_id, version, {columns})
SELECT tenant_id, %(prefix)s::text || n, %(prefix)s::text || n, version, {columns}
FROM fact_revision, generate_series(1, %(count)s::int) AS n
WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(model)s::text AND version = 1
"""
_CONTENTS = """
INSERT INTO fact_content (tenant_id, fact_id, version, content_text)
SELECT %(tenant)s::uuid, %(prefix)s::text || n, 1, '{{"said":"something about a seat, number ' || n || '"}}'
FROM generate_series(1, %(count)s::int) AS n
"""


def load_person(kit: Any, user: str, count: int) -> None:
    """A person with this many facts, each with a revision and its content, as one written through the API has them."""
    from django.db import connection

    from memory.tenancy import tenant_context
    from tests.records.builders import body_of

    app = kit.client("app", users=[user])
    model = {"type": "note", "scope": {"userId": user}, "content": {"said": "the first one"}}
    first = body_of(app.post("/v1/memory/facts", model), 201)["id"]
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "
            "WHERE table_name = 'fact_revision' AND is_generated = 'NEVER' "
            "AND column_name NOT IN ('tenant_id', 'fact_id', 'revision_id', 'version')"
        )
        [columns] = cursor.fetchone()
        given = {
            "tenant": kit.id,
            "prefix": f"{user}-",
            "user": user,
            "count": count,
            "model": first,
        }
        for statement in (_HEADS, _REVISIONS, _CONTENTS):
            cursor.execute(statement.format(columns=columns), given)


def seconds_a_fact(kit: Any, user: str) -> float:
    """Erase the person, from the request to the end, and say what one fact cost."""
    from memory.access import system_principal
    from memory.actions.create_erasure import create_erasure
    from memory.actions.run_erasure import run_erasure
    from memory.tenancy import tenant_context

    principal = system_principal(kit.id, kit.slug, id="eraser")
    began = time.perf_counter()
    with tenant_context(kit.id):
        erasure = create_erasure(principal=principal, kind="user", selector_id=user)
    done = run_erasure(principal=principal, erasure_id=erasure.id)
    seconds = time.perf_counter() - began
    assert done.status == "completed"
    return seconds / done.counts["facts.fact"]


def measured(size: int) -> float:
    """Seconds a fact in a table of about this many facts; the middle of several people."""
    from django.db import connections

    from tests.builders import make_tenant
    from tests.search.bulk import load_facts

    kit = make_tenant()
    began = time.perf_counter()
    load_facts(kit.id, size, vectors=False)
    for number in range(PEOPLE):
        load_person(kit, f"person-{number}", FACTS_OF_ONE)
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE")
    print(f"{size} facts loaded in {time.perf_counter() - began:.0f} s", flush=True)
    costs = [seconds_a_fact(kit, f"person-{number}") for number in range(PEOPLE)]
    return statistics.median(costs)


def main() -> int:
    os.environ["KINDMEM_ALLOWED_HOSTS"] = "testserver"
    smaller, larger = [int(one) for one in sys.argv[1:3]] or [SMALLER, LARGER]
    with database():
        few, many = measured(smaller), measured(larger)
    growth = many / few
    for count, seconds in ((smaller, few), (larger, many)):
        print(f"{f'facts erased a second among {count}':75} {1 / seconds:10.2f}")
    name = f"time to erase a fact, among {larger} / among {smaller} (at most {GROWTH_MAX})"
    print(f"{name:75} {growth:10.2f}")
    return 0 if growth <= usual_or_quick(GROWTH_MAX, math.inf) else 1


if __name__ == "__main__":
    sys.exit(main())
