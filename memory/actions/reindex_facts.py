"""Bring the index of a tenant's facts to what their types and the tenant's language say now.

Lexemes are cut again at once. A vector of another model than the type wants stays, and answers, until the back-fill has made the
new one. Batches in transactions of their own; it may be stopped anywhere and run again.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.search.index import reindex
from memory.tenancy import tenant_context
from memory.type_policy import TypePolicy, type_policy

BATCH = 200

_BATCH = """
SELECT f.id, f.type, c.content_text
FROM fact f
JOIN fact_content c ON c.tenant_id = f.tenant_id AND c.fact_id = f.id AND c.version = f.current_version
WHERE f.tenant_id = %(tenant)s::uuid AND f.id > %(after)s::text AND f.deleted_at IS NULL
  AND (%(type)s::text IS NULL OR f.type = %(type)s::text)
ORDER BY f.id LIMIT %(limit)s::int FOR SHARE OF f
"""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """`facts`: looked at. `pending`: how many of them the back-fill will make a vector for."""

    facts: int
    pending: int


def reindex_facts(
    *,
    tenant_id: UUID,
    language: str,
    type: str | None = None,
    progress: Callable[[int], Any] | None = None,
) -> Reindexed:
    """Re-index every live fact, or those of one type. `progress` is told the count after each batch."""
    policies: dict[str, TypePolicy] = {}
    after, facts, pending = "", 0, 0
    while True:
        with tenant_context(tenant_id, durable=True):
            with connection.cursor() as cursor:
                cursor.execute(
                    _BATCH, {"tenant": tenant_id, "after": after, "type": type, "limit": BATCH}
                )
                rows = cursor.fetchall()
            for fact_id, fact_type, content_text in rows:
                if fact_type not in policies:
                    policies[fact_type] = type_policy(tenant_id, fact_type)
                pending += reindex(
                    tenant_id=tenant_id,
                    fact_id=fact_id,
                    policy=policies[fact_type],
                    language=language,
                    content=json.loads(content_text),
                )
        if not rows:
            return Reindexed(facts, pending)
        after, facts = rows[-1][0], facts + len(rows)
        if progress is not None:
            progress(facts)
