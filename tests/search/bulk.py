"""Very many facts at once, generated in SQL: heads, lexemes and vectors, without contents.

Fact n of a load has the lexemes `all`, `mod7x<n mod 7>`, `mod100x<n mod 100>`, `only<n>` and a random unit-free vector.
"""

from uuid import UUID

from django.db import connection

from memory.tenancy import tenant_context

DIMS = 16
MODEL = "generated"

_HEADS = """
INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)
SELECT %(tenant)s::uuid, %(prefix)s::text || n, 'note', json_build_object('projectId', 'p' || n %% %(projects)s::int)::text, 1,
       '2026-01-01'::timestamptz + n * interval '1 second'
FROM generate_series(%(first)s::int, %(last)s::int) AS n
"""
_DOCUMENTS = """
INSERT INTO fact_document (tenant_id, fact_id, number, length, language, lexemes, frequencies)
SELECT %(tenant)s::uuid, %(prefix)s::text || n, (random() * 2 ^ 61)::bigint * 2, 5 + n %% 11, 'simple',
       ARRAY['all', 'mod7x' || n %% 7, 'mod100x' || n %% 100, 'only' || n], ARRAY[1 + n %% 3, 1, 1, 1]::smallint[]
FROM generate_series(%(first)s::int, %(last)s::int) AS n
"""
_EMBEDDINGS = """
INSERT INTO fact_embedding (tenant_id, fact_id, model, dims, embedding)
SELECT %(tenant)s::uuid, %(prefix)s::text || n, %(model)s::text, %(dims)s::int,
       ARRAY(SELECT random() - 0.5 + 0 * n FROM generate_series(1, %(dims)s::int))::real[]::halfvec
FROM generate_series(%(first)s::int, %(last)s::int) AS n
"""
_BATCH = 2_000


def load_facts(
    tenant_id: UUID, count: int, *, prefix: str = "g", projects: int = 10, vectors: bool = True
) -> None:
    for first in range(0, count, _BATCH):
        given = {
            "tenant": tenant_id,
            "prefix": prefix,
            "projects": projects,
            "first": first,
            "last": min(first + _BATCH, count) - 1,
            "model": MODEL,
            "dims": DIMS,
        }
        with tenant_context(tenant_id), connection.cursor() as cursor:
            for statement in (_HEADS, _DOCUMENTS, *([_EMBEDDINGS] if vectors else [])):
                cursor.execute(statement, given)
