"""The receipt of one append: its entry sealed now, and the proof that a signed, anchored checkpoint covers it."""

from datetime import timedelta
from typing import Any

import structlog
from django.db import Error as DatabaseError
from django.utils import timezone

from memory.access import Principal
from memory.actions.seal_tenant import seal_tenant
from memory.errors import DomainError, RunNotSealed
from memory.queries.seal_proofs import RunProof, run_proof
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.integrity")

_LOOK_BACK = timedelta(minutes=2)
"""How far back runs are looked at: longer than a transaction may take, and than clocks may differ."""


def seal_receipt(principal: Principal, *, run_id: str, sequence: int) -> dict[str, Any]:
    """`{"state": "sealed", …}` as a proof answers, or `{"state": "not-sealed", "reason"}`; the entry is stored either way."""
    try:
        try:
            proof = _proof(principal, run_id, sequence)
        except RunNotSealed:
            seal_tenant(
                tenant_id=principal.tenant_id,
                tenant_slug=principal.tenant_slug,
                since=timezone.now() - _LOOK_BACK,
            )
            proof = _proof(principal, run_id, sequence)
        return {"state": "sealed", **proof.as_wire()}
    except DomainError as error:
        return {"state": "not-sealed", "reason": error.code}
    except (DatabaseError, OSError) as error:
        log.warning("an entry could not be sealed at once", error=type(error).__name__)
        return {"state": "not-sealed", "reason": "unavailable"}


def _proof(principal: Principal, run_id: str, sequence: int) -> RunProof:
    with tenant_context(principal.tenant_id):
        return run_proof(principal, run_id, sequence=sequence)
