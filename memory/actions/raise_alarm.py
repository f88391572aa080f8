"""Say that something of a tenant's log was found bad, once for each finding: to the lists and pages of integrity, as an error in
the server's log, and in the tenant's record of governance.

What is wrong with the log of seals itself is kept under its own name, `kindmem.seals`, as no run is to blame for it.
"""

from typing import Any
from uuid import UUID

import structlog

from memory.access import system_principal
from memory.actions.append_log_entries import append_governance
from memory.errors import RunDamaged
from memory.integrity.sealed_log import SEALS_RUN, SealedLog
from memory.integrity.states import FirstBad, State
from memory.models.log import GOVERNANCE_RUN
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.integrity")

_REMEMBER = """
INSERT INTO run_verification (tenant_id, run_id, state, verified_to, first_bad_sequence, first_bad_class, verified_by)
VALUES (%(tenant)s::uuid, %(run)s::text, %(state)s::text, %(bad)s::bigint - 1, %(bad)s::bigint, %(class)s::text, %(by)s::text)
ON CONFLICT (tenant_id, run_id) DO UPDATE
SET state = excluded.state, verified_to = excluded.verified_to, first_bad_sequence = excluded.first_bad_sequence,
    first_bad_class = excluded.first_bad_class, verified_at = clock_timestamp(), verified_by = excluded.verified_by
WHERE run_verification.state <> excluded.state OR %(is_exact)s::boolean AND (
  run_verification.first_bad_sequence IS DISTINCT FROM excluded.first_bad_sequence
  OR run_verification.first_bad_class IS DISTINCT FROM excluded.first_bad_class)
"""

_SETTLE = """
UPDATE run_verification
SET state = %(state)s::text, verified_to = %(to)s::bigint, first_bad_sequence = NULL, first_bad_class = NULL,
    verified_at = clock_timestamp(), verified_by = %(by)s::text
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text
"""


def remember(
    cursor: Any,
    tenant_id: UUID,
    bad: FirstBad,
    *,
    by: str,
    state: State = State.TAMPERED,
    is_exact: bool = True,
) -> bool:
    """Keep for lists and pages what is wrong; whether that is news.

    `by`: a writer. `is_exact`: another place in what is known to be bad is news, too.
    """
    cursor.execute(
        _REMEMBER,
        {
            "tenant": tenant_id,
            "run": bad.run_id,
            "state": state.value,
            "bad": bad.sequence,
            "class": bad.tampering.value,
            "by": by,
            "is_exact": is_exact,
        },
    )
    return bool(cursor.rowcount)


def raise_alarm(
    tenant_id: UUID, tenant_slug: str, bad: FirstBad, *, words: str, act: str, **said: Any
) -> None:
    """Write it to the server's log and, where that is not itself what was found bad, to the record of governance."""
    log.error(
        words,
        tenant=tenant_slug,
        run=bad.run_id,
        sequence=bad.sequence,
        found=bad.tampering.value,
        **said,
    )
    if bad.run_id == GOVERNANCE_RUN:
        return
    payload = {
        "type": act,
        "runId": bad.run_id,
        "firstBad": {"sequence": bad.sequence, "class": bad.tampering.value},
        **said,
    }
    principal = system_principal(tenant_id, tenant_slug, id="sealer")
    try:
        with tenant_context(tenant_id):
            append_governance(principal=principal, payload=payload)
    except RunDamaged:
        log.error("the record of governance was damaged, too", tenant=tenant_slug)


def settle_seals(cursor: Any, tenant_id: UUID, log_of_seals: SealedLog, *, by: str) -> None:
    """A whole verification looked at the log of seals: keep what it found where something was found before, or is now."""
    bad = log_of_seals.bad_anywhere
    if bad is not None:
        remember(cursor, tenant_id, bad, by=by)
        return
    is_lost = log_of_seals.unanchored_from is not None
    cursor.execute(
        _SETTLE,
        {
            "tenant": tenant_id,
            "run": SEALS_RUN,
            "state": (State.UNANCHORED if is_lost else State.VERIFIED).value,
            "to": log_of_seals.size - 1,
            "by": by,
        },
    )
