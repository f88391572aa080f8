"""End an erasure that a hold stops: what it cleared stays cleared, what the hold keeps is counted, and the id is taken out.

Only such a one: any other runs to its end within seconds. It stays in the ledger as cancelled, so that no restore takes it up
again.
"""

from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.canonical import canonical
from memory.erasure.ledger import HELD_UP, ErasureView, find_erasure
from memory.erasure.reach import held_in_reach
from memory.errors import ErasureNotHeldUp
from memory.ledgers import write_ledger_after_commit

_MOST_COUNTED = 100_000
_LOCK = """
SELECT FROM erasure WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status <> 'completed'
  AND last_error = %(held_up)s::text AND (lease_until IS NULL OR lease_until <= clock_timestamp()) FOR UPDATE
"""
_CANCEL = """
UPDATE erasure SET status = 'completed', phase = 'done', selector_id = NULL, selector_in_log = NULL, after_run = NULL,
       after_sequence = NULL, completed_at = clock_timestamp(), cancelled_at = clock_timestamp(), runner = NULL,
       lease_until = NULL, counts_text = %(counts)s::text
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""


def cancel_erasure(*, principal: Principal, erasure_id: str) -> ErasureView:
    """The erasure, cancelled. Raises PermissionDenied, ErasureNotFound, ErasureNotHeldUp."""
    principal.needs_role("admin", "owner")
    tenant_id = principal.tenant_id
    named: dict[str, Any] = {
        "tenant": tenant_id,
        "id": find_erasure(tenant_id, erasure_id).id,
        "held_up": HELD_UP,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, named)
        if cursor.fetchone() is None:
            raise ErasureNotHeldUp
        erasure = find_erasure(tenant_id, erasure_id)
        held = held_in_reach(
            tenant_id,
            erasure.kind,
            erasure.selector_id or "",
            before=erasure.reaches_before,
            limit=_MOST_COUNTED,
        )
        counts = {**erasure.counts, "held": len(held)}
        cursor.execute(_CANCEL, {**named, "counts": canonical(counts)})
    append_governance(
        principal=principal,
        payload={
            "type": "erasure.cancelled",
            "erasureId": str(erasure.id),
            "selectorKind": erasure.kind,
            "selectorHmac": None if erasure.digest is None else bytes(erasure.digest).hex(),
            "counts": counts,
        },
    )
    write_ledger_after_commit(tenant_id)
    return find_erasure(tenant_id, erasure_id)
