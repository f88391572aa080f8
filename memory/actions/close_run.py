"""Close a run: it ends with its newest entry, takes no more, and the log of seals says so.

The next seal covers what is left of the run and adds a `run-closed` leaf. Only the server's own words that a payload was erased
may follow it. There is no way back: an entry past that leaf is tampering to every verifier.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import LogNotFound, RunClosed, RunReserved
from memory.models.log import RESERVED_RUN_PREFIX

_CLOSE = """
UPDATE run_head SET closed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND closed_at IS NULL RETURNING next_sequence - 1
"""

_IS_THERE = "SELECT FROM run_head WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text"


@dataclass(frozen=True, slots=True)
class ClosedRun:
    run_id: str
    to_sequence: int


def close_run(*, principal: Principal, run_id: str) -> ClosedRun:
    """Close in the caller's transaction. Raises PermissionDenied, RunReserved, LogNotFound, RunClosed."""
    principal.needs_role("admin", "owner")
    if run_id.startswith(RESERVED_RUN_PREFIX):
        raise RunReserved(run_id=run_id)
    key: dict[str, Any] = {"tenant": principal.tenant_id, "run": run_id}
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE, key)
        closed = cursor.fetchone()
        if closed is None:
            cursor.execute(_IS_THERE, key)
            raise RunClosed(run_id=run_id) if cursor.fetchone() is not None else LogNotFound
    append_governance(
        principal=principal,
        payload={"type": "run.closed", "runId": run_id, "toSequence": closed[0]},
    )
    return ClosedRun(run_id, closed[0])
