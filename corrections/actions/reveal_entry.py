"""Show an entry's payload to somebody who governs: who, which and why is logged first.

A reveal holds for 15 minutes for the same reader, so that going back or reloading is no second one.
"""

from corrections.actions.looking import check_reason, was_revealed
from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.log_entry import StoredEntry


def reveal_entry(*, principal: Principal, entry: StoredEntry, reason: str) -> str:
    """The id of the reveal. Raises PermissionDenied, BadInput for an unknown reason."""
    principal.needs_role("owner", "admin", "auditor")
    check_reason(reason)
    payload = {
        "type": "entry.revealed",
        "runId": entry.run_id,
        "sequence": entry.sequence,
        "logEntryId": entry.id,
        "reasonCode": reason,
    }
    return append_governance(principal=principal, payload=payload).id


def is_revealed(principal: Principal, entry: StoredEntry, reveal_id: str) -> bool:
    """Whether this reader revealed this entry a short while ago."""
    return was_revealed(principal, reveal_id, act="entry.revealed", name="logEntryId", of=entry.id)
