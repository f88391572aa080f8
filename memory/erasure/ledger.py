"""The ledger of erasures: each knows whom it is about by a keyed hash, so that a replay after a restore finds them again.

The key is derived from one that lies outside the database: the ledger, or a backup of it, lets nobody test guesses. Wire shapes
are those of the public client (`MemoryErasure`, `MemoryErasureLedgerEntry`).
"""

import hmac
import json
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory.canonical import canonical
from memory.errors import ErasureNotFound
from memory.instants import instant_text
from memory.queries.one_row import as_uuid, one_row

PERSON_KINDS: Final = ("participant", "external", "user")
KINDS: Final = ("fact", *PERSON_KINDS, "conversation")
HELD_UP: Final = "legal-hold"
"""The last error of an erasure that a hold stops."""


def _ledger_key() -> bytes:
    root: bytes = settings.KINDMEM_STATE.fingerprint_key
    return hmac.new(root, b"kindmem erasure ledger 1", sha256).digest()


def ledger_key_id() -> str:
    """Which key made a hash: 16 hex digits that tell nothing of it."""
    return sha256(b"kindmem erasure ledger key id" + _ledger_key()).hexdigest()[:16]


def selector_digest(tenant_id: UUID, kind: str, selector_id: str) -> bytes:
    """32 bytes for whom or what an erasure is about."""
    message = canonical([str(tenant_id), kind, selector_id]).encode()
    return hmac.new(_ledger_key(), message, sha256).digest()


def pseudonym(tenant_id: UUID, text: str) -> str:
    """What stands on a tombstone where an identifier was."""
    message = canonical([str(tenant_id), "pseudonym", text]).encode()
    return "erased:" + hmac.new(_ledger_key(), message, sha256).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class ErasureView:
    """An erasure as stored. `counts_text`: canonical JSON, store → how many."""

    id: UUID
    kind: str
    selector_id: str | None
    digest: bytes | None
    key_id: str | None
    status: str
    phase: str
    store: str
    after_run: str | None
    after_sequence: int | None
    requested_by: str
    counts_text: str
    attempts: int
    last_error: str | None
    is_forced: bool
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    replayed_at: datetime | None
    reaches_before: datetime | None
    cancelled_at: datetime | None

    @property
    def state(self) -> str:
        """`status`, or `cancelled`."""
        return "cancelled" if self.cancelled_at is not None else self.status

    @property
    def is_held_up(self) -> bool:
        """Whether a hold stops it: it waits for the release, and no writer waits for it."""
        return self.status != "completed" and self.last_error == HELD_UP

    @property
    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(self.counts_text)
        return counts

    @property
    def selector(self) -> dict[str, Any] | None:
        if self.selector_id is None:
            return None
        if self.kind == "fact":
            return {"factId": self.selector_id}
        if self.kind == "conversation":
            return {"conversationId": self.selector_id}
        return {"subject": {"kind": self.kind, "id": self.selector_id}}

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": str(self.id),
            "selectorKind": self.kind,
            "selector": self.selector,
            "status": self.state,
            "phase": self.phase,
            "requestedBy": self.requested_by,
            "matchable": self.digest is not None,
            "counts": self.counts,
            "attempts": self.attempts,
            "lastError": self.last_error,
            "forced": True if self.is_forced else None,
            "createdAt": instant_text(self.created_at),
            "startedAt": _time(self.started_at),
            "completedAt": _time(self.completed_at),
            "replayedAt": _time(self.replayed_at),
            "reachesBefore": _time(self.reaches_before),
        }
        return {name: value for name, value in said.items() if value is not None}

    def ledger_entry(self) -> dict[str, Any]:
        """Content-free: what is kept off the machine."""
        said: dict[str, Any] = {
            "id": str(self.id),
            "selectorKind": self.kind,
            "selectorHmac": None if self.digest is None else bytes(self.digest).hex(),
            "keyId": self.key_id,
            "requestedBy": self.requested_by,
            "status": self.state,
            "createdAt": instant_text(self.created_at),
            "completedAt": _time(self.completed_at),
            "reachesBefore": _time(self.reaches_before),
        }
        return {name: value for name, value in said.items() if value is not None}


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


COLUMNS = """id, selector_kind, selector_id, selector_digest, key_id, status, phase, store, after_run, after_sequence,
requested_by, counts_text, attempts, last_error, is_forced, created_at, started_at, completed_at, replayed_at,
reaches_before, cancelled_at"""


def find_erasure(tenant_id: UUID, erasure_id: UUID | str) -> ErasureView:
    """One erasure. Raises ErasureNotFound."""
    statement = f"SELECT {COLUMNS} FROM erasure WHERE tenant_id = %s::uuid AND id = %s::uuid"
    given = [tenant_id, as_uuid(erasure_id, ErasureNotFound)]
    return one_row(statement, given, ErasureView, ErasureNotFound)


def list_erasures(
    tenant_id: UUID, *, after: tuple[str, str] | None, limit: int
) -> list[ErasureView]:
    """Erasures, newest first. after: (createdAt, id) of the last of the page before."""
    position = (
        ""
        if after is None
        else " AND (created_at, id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM erasure WHERE tenant_id = %(tenant)s::uuid{position}"
            " ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [ErasureView(*row) for row in cursor.fetchall()]


def whole_ledger(tenant_id: UUID) -> list[ErasureView]:
    """Every erasure, oldest first; small rows, one a request of an admin."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM erasure WHERE tenant_id = %s::uuid ORDER BY created_at, id",
            [tenant_id],
        )
        return [ErasureView(*row) for row in cursor.fetchall()]


def unfinished(tenant_id: UUID) -> list[UUID]:
    """What the worker should take up now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM erasure WHERE tenant_id = %s::uuid AND status <> 'completed' AND next_at <= clock_timestamp() "
            "AND (lease_until IS NULL OR lease_until <= clock_timestamp()) ORDER BY created_at, id LIMIT 100",
            [tenant_id],
        )
        return [row[0] for row in cursor.fetchall()]
