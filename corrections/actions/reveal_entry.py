"""Show an entry's payload to somebody who governs: who, which and why is logged first.

A reveal holds for 15 minutes for the same reader, so that going back or reloading is no second one.
"""

from django.db import connection
from django.utils import timezone

from corrections.actions.looking import HOLDS_FOR, check_reason
from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.log_entry import StoredEntry
from memory.models.log import GOVERNANCE_RUN


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
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid AND e.id = %(id)s::text "
            "AND e.run_id = %(run)s::text AND e.writer = %(writer)s::text "
            "AND e.payload_text::jsonb ->> 'type' = 'entry.revealed' "
            "AND e.payload_text::jsonb ->> 'logEntryId' = %(entry)s::text "
            "AND e.recorded_at > %(since)s::timestamptz)",
            {
                "tenant": principal.tenant_id,
                "id": reveal_id,
                "run": GOVERNANCE_RUN,
                "writer": principal.writer,
                "entry": entry.id,
                "since": timezone.now() - HOLDS_FOR,
            },
        )
        return bool(cursor.fetchone()[0])
