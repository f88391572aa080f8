"""How far the index of meaning is: how many facts each model's vectors cover, and how many are still to be made."""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

_PROGRESS = """
SELECT coalesce(e.model, t.model), coalesce(e.facts, 0), coalesce(t.facts, 0), t.failure
FROM (SELECT model, count(*) AS facts FROM fact_embedding WHERE tenant_id = %(tenant)s::uuid GROUP BY model) e
FULL JOIN (
  SELECT model, count(*) AS facts, max(last_failure) AS failure
  FROM embedding_task WHERE tenant_id = %(tenant)s::uuid GROUP BY model
) t ON t.model = e.model
ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """`pending` facts wait for a vector of this model; `last_failure` is the code of a failed try, if any."""

    model: str
    indexed: int
    pending: int
    last_failure: str | None


def embedding_progress(tenant_id: UUID) -> list[ModelProgress]:
    """One row a model that the tenant's facts have or wait for, by name."""
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, {"tenant": tenant_id})
        return [ModelProgress(*row) for row in cursor.fetchall()]
