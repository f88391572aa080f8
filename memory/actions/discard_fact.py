"""End a fact that was not served: closed, out of the index, never read again; the sweep destroys it.

What a hold keeps is not closed.
"""

from typing import Any, Literal

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.idempotency import withhold
from memory.endings import write_down_after_commit
from memory.errors import LegalHoldActive, ReviewNotFound, constraint_errors
from memory.hold_naming import FACT_IS_HELD
from memory.search.index import remove_index

_LOCK = f"""
SELECT {FACT_IS_HELD} FROM fact f
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text AND f.review = %(review)s::text AND f.deleted_at IS NULL
FOR UPDATE
"""
_CLOSE = """
WITH closed AS (
  UPDATE fact_revision r
  SET invalidated_at = greatest(clock_timestamp(), r.recorded_at + interval '1 microsecond'),
      invalidated_by = %(writer)s::text, invalidation_reason = 'deleted'
  WHERE r.tenant_id = %(tenant)s::uuid AND r.fact_id = %(id)s::text AND r.invalidated_at IS NULL
  RETURNING r.invalidated_at AS at
)
UPDATE fact f SET deleted_at = closed.at FROM closed
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text
"""


def discard_fact(
    *,
    principal: Principal,
    fact_id: str,
    review: Literal["pending", "quarantined"] = "pending",
) -> None:
    """`review`: why it is not served now. Raises ReviewNotFound, LegalHoldActive."""
    named: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "id": fact_id,
        "writer": principal.writer,
        "review": review,
    }
    held = LegalHoldActive(ids=[fact_id])
    with constraint_errors(fact_is_not_held=held), connection.cursor() as cursor:
        cursor.execute(_LOCK, named)
        row = cursor.fetchone()
        if row is None:
            raise ReviewNotFound
        if row[0]:
            raise held
        cursor.execute(_CLOSE, named)
    remove_index(tenant_id=principal.tenant_id, fact_ids=[fact_id])
    write_down_after_commit(principal.tenant_id)
    withhold(principal.tenant_id, f"fact:{fact_id}")
    append_governance(
        principal=principal, payload={"type": "fact.rejected", "factId": fact_id, "was": review}
    )
