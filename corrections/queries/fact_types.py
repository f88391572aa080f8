"""Every type that facts have or that somebody declared, with its declaration and whether its index is behind it."""

from dataclasses import dataclass

from django.db import connection

from memory.access import Principal

_TASKS_LOOKED_AT = 10_000

# Types of facts are found from one to the next by the index: there may be millions of facts, and there are few types.
_TYPES = """
WITH RECURSIVE seen (type) AS (
  SELECT (SELECT f.type FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.deleted_at IS NULL
            AND f.type > %(after)s::text ORDER BY f.type LIMIT 1)
  UNION ALL
  SELECT (SELECT f.type FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.deleted_at IS NULL
            AND f.type > s.type ORDER BY f.type LIMIT 1)
  FROM seen s WHERE s.type IS NOT NULL
), named AS (
  SELECT type FROM (SELECT type FROM seen WHERE type IS NOT NULL LIMIT %(limit)s::int) s
  UNION
  SELECT p.type FROM (SELECT type FROM fact_type WHERE tenant_id = %(tenant)s::uuid AND type > %(after)s::text
                      ORDER BY type LIMIT %(limit)s::int) p
  ORDER BY type LIMIT %(limit)s::int
), waiting AS (
  SELECT f.type, count(*) AS facts
  FROM (SELECT fact_id FROM embedding_task WHERE tenant_id = %(tenant)s::uuid LIMIT %(tasks)s::int) t
  JOIN fact f ON f.tenant_id = %(tenant)s::uuid AND f.id = t.fact_id GROUP BY f.type
)
SELECT n.type, p.type IS NOT NULL, coalesce(p.keyword, true), coalesce(p.semantic, true), p.embedding_model,
       p.content_schema IS NOT NULL, p.keep_days, p.delete_after_days,
       (r.type IS NOT NULL AND r.looked_through_at IS NULL) OR w.facts IS NOT NULL
FROM named n
LEFT JOIN fact_type p ON p.tenant_id = %(tenant)s::uuid AND p.type = n.type
LEFT JOIN reindexing r ON r.tenant_id = %(tenant)s::uuid AND r.type = n.type
LEFT JOIN waiting w ON w.type = n.type
ORDER BY n.type
"""


@dataclass(frozen=True, slots=True)
class TypeRow:
    """`embedding_model` None: the default. `is_behind`: the index does not say yet what the declaration says."""

    type: str
    is_declared: bool
    keyword: bool
    semantic: bool
    embedding_model: str | None
    has_schema: bool
    keep_days: int | None
    delete_after_days: int | None
    is_behind: bool


def types_known(principal: Principal, *, after: str = "", limit: int) -> list[TypeRow]:
    """Types by name, those after a name."""
    with connection.cursor() as cursor:
        cursor.execute(
            _TYPES,
            {
                "tenant": principal.tenant_id,
                "after": after,
                "limit": limit,
                "tasks": _TASKS_LOOKED_AT,
            },
        )
        return [TypeRow(*row) for row in cursor.fetchall()]
