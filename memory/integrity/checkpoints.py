"""Checkpoint rows: reading them, and holding one against its note, its origin and the keys that may sign.

A row is no evidence by itself; what it says must be what its signed note says.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory.hashing import tag
from memory.integrity.anchors import epoch_of
from memory.integrity.chain_sql import Cursor
from memory.integrity.notes import Note, NoteError, parse_checkpoint, signers_of

_COLUMNS: Final = """
c.size, c.origin, c.root_hash, c.note_text,
to_char(c.signed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
(SELECT to_char(min(a.anchored_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
 FROM anchor a WHERE a.tenant_id = c.tenant_id AND a.size = c.size),
(SELECT to_char(a.anchored_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
 FROM anchor a WHERE a.tenant_id = c.tenant_id AND a.size = c.size AND a.place = 'file'),
ARRAY(SELECT a.answer FROM anchor a
 WHERE a.tenant_id = c.tenant_id AND a.size = c.size AND starts_with(a.place, 'witness:') ORDER BY a.place)
"""


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """One row, as it stands."""

    size: int
    origin: str
    root_hash: bytes
    note_text: str
    signed_at: str
    anchored_at: str | None
    cosignatures: tuple[str, ...] = ()
    filed_at: str | None = None
    """When it was written into the anchor file, as the database has it."""

    @property
    def cosigned_note(self) -> str:
        """The signed note with the lines of its witnesses."""
        return self.note_text + "".join(self.cosignatures)

    def as_wire(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "size": self.size,
            "origin": self.origin,
            "rootHash": tag(self.root_hash),
            "signedAt": self.signed_at,
        }
        if self.anchored_at is not None:
            answer["anchoredAt"] = self.anchored_at
        return answer


def stored_checkpoints(
    cursor: Cursor,
    tenant_id: UUID,
    *,
    size: int | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> list[StoredCheckpoint]:
    """Rows, the largest first. `size`: that one; `before`: smaller ones only."""
    cursor.execute(
        f"SELECT {_COLUMNS} FROM checkpoint c WHERE c.tenant_id = %(tenant)s::uuid "
        "AND (%(size)s::bigint IS NULL OR c.size = %(size)s::bigint) "
        "AND (%(before)s::bigint IS NULL OR c.size < %(before)s::bigint) "
        "ORDER BY c.size DESC LIMIT %(limit)s::bigint",
        {"tenant": tenant_id, "size": size, "before": before, "limit": limit},
    )
    return [
        StoredCheckpoint(
            row[0], row[1], bytes(row[2]), row[3], row[4], row[5], tuple(row[7]), row[6]
        )
        for row in cursor.fetchall()
    ]


def note_of(row: StoredCheckpoint, tenant_slug: str) -> Note | None:
    """The row's note, when row and note say the same of this tenant's log, in whatever epoch of it; else None."""
    try:
        note = parse_checkpoint(row.note_text)
    except NoteError:
        return None
    is_same = (note.size, note.origin, note.root_hash) == (row.size, row.origin, row.root_hash)
    return note if is_same and epoch_of(note.origin, tenant_slug) is not None else None


def signer_of(note: Note, public_keys: Iterable[bytes]) -> bytes | None:
    """The first of the keys that signed the note."""
    return next(iter(signers_of(note, public_keys)), None)
