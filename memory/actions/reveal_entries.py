"""Show an auditor payloads that are left out for them: which, and why by a code, is in the log before they are shown.

Entries of the server's own runs hold ids, codes and digests, no one's words: they are shown as they are.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.log_entry import StoredEntry
from memory.models.log import RESERVED_RUN_PREFIX

REVEAL_REASONS: Final = ("complaint", "incident", "routine-audit", "legal-request", "debugging")
"""Why somebody looked: codes, since the log of governance takes no free text."""


def is_masked(principal: Principal, entry: StoredEntry) -> bool:
    """Whether the entry's payload is left out for this reader until they say why."""
    return (
        principal.role == "auditor"
        and entry.payload_text is not None
        and not entry.run_id.startswith(RESERVED_RUN_PREFIX)
    )


def reveal_entries(*, principal: Principal, entries: Sequence[StoredEntry], reason: str) -> None:
    """Write down who is shown these entries' payloads. Others than auditors see them anyway: nothing is written.

    entries: of one or several runs, each run's in the order of the log. reason: one of `REVEAL_REASONS`.
    """
    masked = [entry for entry in entries if is_masked(principal, entry)]
    for run_id, group in groupby(masked, key=lambda entry: entry.run_id):
        shown = list(group)
        append_governance(
            principal=principal,
            payload={
                "type": "entries.revealed",
                "runId": run_id,
                "logEntryIds": [entry.id for entry in shown],
                "fromSequence": shown[0].sequence,
                "toSequence": shown[-1].sequence,
                "reasonCode": reason,
            },
        )
