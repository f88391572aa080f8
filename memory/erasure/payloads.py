"""Clearing the payloads of log entries: text and salt go, the moment is set, and an entry of governance attests each.

Everything else of an entry is hashed and stays, and so do the ids in its scope: how many is counted and said.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance

_CLEAR = """
UPDATE log_entry SET payload_text = NULL, payload_salt = NULL, payload_erased_at = clock_timestamp()
WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[]) AND payload_text IS NOT NULL
RETURNING id
"""


def erase_payloads(principal: Principal, *, erasure_id: UUID, entry_ids: Sequence[str]) -> int:
    """Clear these entries' payloads in the caller's transaction; how many had one."""
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR, {"tenant": principal.tenant_id, "ids": list(entry_ids)})
        cleared = sorted(row[0] for row in cursor.fetchall())
    for entry_id in cleared:
        append_governance(
            principal=principal,
            payload={
                "type": "payload.erased",
                "logEntryId": entry_id,
                "reasonCode": "erasure",
                "erasureId": str(erasure_id),
            },
        )
    return len(cleared)
