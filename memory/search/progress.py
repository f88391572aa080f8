"""How far the index of a tenant, or of one of its types, is: vectors of each model, and what is still to be made or looked at."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

_PROGRESS = """
SELECT coalesce(e.model, t.model), coalesce(e.facts, 0), coalesce(t.facts, 0), t.failure
FROM (
  SELECT model, count(*) AS facts FROM fact_embedding
  WHERE tenant_id = %(tenant)s::uuid AND (%(type)s::text IS NULL OR type = %(type)s::text) GROUP BY model
) e
FULL JOIN (
  SELECT t.model, count(*) AS facts, max(t.last_failure) AS failure
  FROM embedding_task t JOIN fact f ON f.tenant_id = t.tenant_id AND f.id = t.fact_id
  WHERE t.tenant_id = %(tenant)s::uuid AND (%(type)s::text IS NULL OR f.type = %(type)s::text) GROUP BY t.model
) t ON t.model = e.model
ORDER BY 1
"""
_REINDEXING = """
SELECT (
  SELECT count(*) FROM fact f
  WHERE f.tenant_id = r.tenant_id AND f.type = r.type AND f.deleted_at IS NULL AND f.id > r.after_fact_id
)
FROM reindexing r WHERE r.tenant_id = %(tenant)s::uuid AND r.type = %(type)s::text AND r.looked_through_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """`pending` facts wait for a vector of this model; `last_failure` is the code of a failed try, if any."""

    model: str
    indexed: int
    pending: int
    last_failure: str | None

    def wire(self) -> dict[str, Any]:
        said = {"model": self.model, "indexed": self.indexed, "pending": self.pending}
        return said if self.last_failure is None else {**said, "lastFailure": self.last_failure}


@dataclass(frozen=True, slots=True)
class TypeProgress:
    """`to_look_at`: facts that a changed declaration has not reached yet. `models`: as of the whole tenant, of the type."""

    to_look_at: int
    models: list[ModelProgress]

    def wire(self) -> dict[str, Any]:
        return {"toLookAt": self.to_look_at, "models": [one.wire() for one in self.models]}


def embedding_progress(tenant_id: UUID, type: str | None = None) -> list[ModelProgress]:
    """One row a model that the tenant's facts, or those of one type, have or wait for, by name."""
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, {"tenant": tenant_id, "type": type})
        return [ModelProgress(*row) for row in cursor.fetchall()]


def type_progress(tenant_id: UUID, type: str) -> TypeProgress | None:
    """How far the index of one type is; None when it is what the declaration says."""
    with connection.cursor() as cursor:
        cursor.execute(_REINDEXING, {"tenant": tenant_id, "type": type})
        row = cursor.fetchone()
    models = embedding_progress(tenant_id, type)
    if row is None and not any(one.pending for one in models):
        return None
    return TypeProgress(0 if row is None else row[0], models)
