"""What a verifier reads: stored entries, the head row, and how far it came.

These are values, not models: they come from the database, from a bundle or from a test alike.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from memory.integrity.states import FirstBad

ERASED: Final = "payload.erased"
"""The payload type of an entry that attests an erasure; only the server writes it."""


class EntryRow(NamedTuple):
    """One stored entry. Texts are as stored, hashes 32 raw bytes, `timestamp` as it is hashed.

    The verifier looks for columns that the table's owner emptied, whatever the types here say.
    A named tuple, not a dataclass: a long run makes hundreds of thousands of them.
    """

    sequence: int
    id: str
    kind: str
    scope_text: str
    actor: str | None
    timestamp: str
    payload_text: str | None
    payload_salt: str | None
    content_hash: bytes | None
    prev_hash: bytes
    entry_hash: bytes
    hash_version: int
    caused_by: str | None
    is_erased: bool


class HeadRow(NamedTuple):
    """The run's head row, read in the same snapshot as the entries."""

    next_sequence: int
    head_hash: bytes
    entry_count: int
    prev_hash: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a verification came: enough to go on in another batch or another process.

    To start from a sealed head, give its sequence and hash and leave the rest.
    """

    sequence: int
    entry_hash: bytes
    prev_hash: bytes | None = None
    entries: int = 0
    erased: int = 0
    linkage_only: int = 0
    unattested: tuple[tuple[str, int], ...] = ()
    first_bad: FirstBad | None = None


def erasure_payload(entry_id: str, reason_code: str) -> dict[str, str]:
    """Return the payload of the `event-emitted` entry that attests an erasure in the same run.

    Verifiers recognise its canonical text: `logEntryId` first, `type` last. Further keys must sort
    between the two.
    """
    return {"logEntryId": entry_id, "reasonCode": reason_code, "type": ERASED}


def lacking(row: EntryRow) -> str:
    """The first of what each entry has and this one has not: somebody changed the table itself."""
    each = {
        "id": row.id,
        "kind": row.kind,
        "scope": row.scope_text,
        "timestamp": row.timestamp,
        "prevHash": row.prev_hash,
        "entryHash": row.entry_hash,
        "hashVersion": row.hash_version,
    }
    return next(name for name, value in each.items() if value is None)
