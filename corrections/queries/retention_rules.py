"""Which rules a workspace has about how long facts stay, and how many facts each speaks for."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from memory.access import Principal

_RULES = """
SELECT p.type, p.keep_days, p.delete_after_days, p.updated_at, p.updated_by,
       (SELECT count(*) FROM (SELECT FROM fact f WHERE f.tenant_id = p.tenant_id AND f.type = p.type AND f.deleted_at IS NULL
                              LIMIT %(counted)s::int) n)
FROM fact_type p
WHERE p.tenant_id = %(tenant)s::uuid AND (p.keep_days IS NOT NULL OR p.delete_after_days IS NOT NULL)
  AND (%(after)s::text IS NULL OR p.type > %(after)s::text)
ORDER BY p.type LIMIT %(limit)s::int
"""
COUNTED_MOST = 10_000


@dataclass(frozen=True, slots=True)
class TypeRule:
    """`facts`: of this type, counted up to COUNTED_MOST."""

    type: str
    keep_days: int | None
    delete_after_days: int | None
    updated_at: object
    updated_by: str
    facts: int

    @property
    def is_more(self) -> bool:
        return self.facts >= COUNTED_MOST


def type_rules(principal: Principal, *, after: str | None, limit: int) -> Sequence[TypeRule]:
    """The types that say how long their facts stay, by name; those after one."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RULES,
            {
                "tenant": principal.tenant_id,
                "after": after,
                "limit": limit,
                "counted": COUNTED_MOST,
            },
        )
        return [TypeRule(*row) for row in cursor.fetchall()]
