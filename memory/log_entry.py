"""What an entry is before and after it is appended.

Before, it is text around the holes that only the database knows (previous hash, sequence, time; see hashing.py); after, it is
what a reader gets.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from memory.access import Scope
from memory.api.json_text import Raw
from memory.canonical import canonical
from memory.hashing import (
    EntryPieces,
    content_hash_v1,
    content_hash_v2,
    entry_pieces_v1,
    entry_pieces_v2,
    new_salt,
    tag,
)


class Absent:
    """No payload, which is not the payload null."""


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class NewEntry:
    """One event to append. `payload` is any admitted JSON value; ABSENT for none."""

    kind: str
    scope: Scope
    id: str
    actor: str | None = None
    payload: Any = ABSENT
    caused_by: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedEntry:
    """A new entry as canonical texts, and the pieces that its hash is made of."""

    entry: NewEntry
    scope_text: str
    payload_text: str | None
    payload_salt: str | None
    content_hash: bytes | None
    hash_version: int
    pieces: EntryPieces


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as it is kept. timestamp: `YYYY-MM-DDTHH:MM:SS.mmmZ`; hashes: 32 bytes."""

    id: str
    run_id: str
    sequence: int
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
    payload_erased_at: str | None
    writer: str

    def wire(self, *, masked: bool = False) -> dict[str, Any]:
        """The LogEntry of the kindgi memory schema 1.3.0, stored texts as they are; absent keys left out.

        `masked` leaves the payload and its salt out and says so. What only the table's owner can take away or spoil is left out,
        or a plain string, and `meta.damaged` says so: a verification names what it is.
        """
        scope, payload = _json(self.scope_text), _json(self.payload_text)
        hashes = (self.content_hash, self.prev_hash, self.entry_hash)
        content_hash, prev_hash, entry_hash = (one and tag(one) for one in hashes)
        body: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "scope": scope,
            "runId": self.run_id,
            "actor": self.actor,
            "timestamp": self.timestamp,
            "sequence": self.sequence,
            "payload": None if masked else payload,
            "contentHash": content_hash,
            "prevHash": prev_hash,
            "entryHash": entry_hash,
            "causedByLogId": self.caused_by,
            "hashVersion": None if self.hash_version == 1 else self.hash_version,
            "payloadSalt": None if masked else self.payload_salt,
            "payloadErasedAt": self.payload_erased_at,
        }
        body = {name: value for name, value in body.items() if value is not None}
        meta: dict[str, Any] = {"masked": True} if masked else {}
        always = (self.id, self.kind, scope, self.timestamp, prev_hash, entry_hash)
        is_whole = None not in (*always, self.hash_version)
        if not is_whole or type(scope) is not Raw or type(payload) not in (Raw, type(None)):
            meta["damaged"] = True
        if meta:
            body["meta"] = meta
        return body


def _json(text: str | None) -> Raw | str | None:
    """A stored text as the JSON it is; as a plain string where it is none."""
    if text is None:
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return str(text)
    return Raw(text)


def prepare_entry(entry: NewEntry, *, run_id: str, hash_version: int) -> PreparedEntry:
    """Canonical texts, content hash and the fixed pieces of the hashed text. Source: docs/integrity.md."""
    scope_text = canonical(dict(entry.scope))
    payload_text = None if isinstance(entry.payload, Absent) else canonical(entry.payload)
    salt = content_hash = None
    named: dict[str, Any] = {
        "id": entry.id,
        "kind": entry.kind,
        "run_id": run_id,
        "scope_text": scope_text,
        "actor": entry.actor,
    }
    if hash_version == 2:
        if payload_text is not None:
            salt = new_salt()
            content_hash = content_hash_v2(payload_text, salt)
        pieces = entry_pieces_v2(**named, content_hash=content_hash, caused_by=entry.caused_by)
    else:
        if payload_text is not None:
            content_hash = content_hash_v1(payload_text)
        pieces = entry_pieces_v1(**named, payload_text=payload_text)
    return PreparedEntry(
        entry=entry,
        scope_text=scope_text,
        payload_text=payload_text,
        payload_salt=salt,
        content_hash=content_hash,
        hash_version=hash_version,
        pieces=pieces,
    )


def same_content(stored: StoredEntry, prepared: PreparedEntry, run_id: str, writer: str) -> bool:
    """Whether a stored entry is what a retry of the same append would have made."""
    entry = prepared.entry
    return (
        stored.run_id == run_id
        and stored.writer == writer
        and stored.kind == entry.kind
        and stored.actor == entry.actor
        and stored.scope_text == prepared.scope_text
        and stored.caused_by == entry.caused_by
        and stored.payload_erased_at is None
        and stored.payload_text == prepared.payload_text
    )
