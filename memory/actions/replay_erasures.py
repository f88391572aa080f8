"""Replay the ledger after a restore: put back the rows that it lost, and run again those whose person, fact or thread is back.

Each reaches what was there before it was completed: who came back since, and wrote, is left alone. What an admin cancelled
stays so.

Also `resume_erasure` and `go_on_with_erasures`: try an unfinished one again now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.erasure.ledger import (
    HELD_UP,
    PERSON_KINDS,
    ErasureView,
    find_erasure,
    ledger_key_id,
)
from memory.erasure.reach import find_again
from memory.log_pseudonyms import pseudonym
from memory.work import begin_soon

_PUT_BACK = """
INSERT INTO erasure AS x (tenant_id, id, selector_kind, selector_id, selector_in_log, selector_digest, key_id, status, phase,
                          requested_by, created_at, reaches_before, cancelled_at, completed_at, replayed_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(kind)s::text, %(selector)s::text, %(in_log)s::text, %(digest)s::bytea, %(key)s::text,
        CASE WHEN %(selector)s::text IS NULL THEN 'completed' ELSE 'pending' END,
        CASE WHEN %(selector)s::text IS NULL THEN 'done' ELSE 'seed' END, %(by)s::text, %(created)s::timestamptz,
        %(before)s::timestamptz, %(cancelled)s::timestamptz,
        CASE WHEN %(selector)s::text IS NULL THEN coalesce(%(completed)s::timestamptz, clock_timestamp()) END, clock_timestamp())
ON CONFLICT ON CONSTRAINT erasure_pkey DO UPDATE
SET selector_id = excluded.selector_id, selector_in_log = excluded.selector_in_log,
    status = excluded.status, phase = excluded.phase, store = 'facts', after_run = NULL,
    after_sequence = NULL, completed_at = excluded.completed_at, replayed_at = clock_timestamp(), next_at = clock_timestamp(),
    reaches_before = excluded.reaches_before, runner = NULL, lease_until = NULL
WHERE x.status = 'completed' AND x.cancelled_at IS NULL AND excluded.selector_id IS NOT NULL
"""
_CANCEL = """
UPDATE erasure SET status = 'completed', phase = 'done', selector_id = NULL, selector_in_log = NULL,
       completed_at = %(cancelled)s::timestamptz, cancelled_at = %(cancelled)s::timestamptz, runner = NULL, lease_until = NULL
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status <> 'completed'
"""


@dataclass(frozen=True, slots=True)
class Replay:
    """`replayed`: found again, run again; `restored`: only put back; `unmatched`: (id, no-keyed-hash or unknown-key)."""

    replayed: Sequence[str]
    restored: Sequence[str]
    unmatched: Sequence[tuple[str, str]]

    def wire(self) -> dict[str, Any]:
        return {
            "replayed": list(self.replayed),
            "restored": list(self.restored),
            "unmatched": [{"id": one, "reason": reason} for one, reason in self.unmatched],
        }


def replay_erasures(*, principal: Principal, entries: Sequence[Mapping[str, Any]]) -> Replay:
    """Take a ledger as the export gave it. Raises PermissionDenied."""
    principal.needs_role("admin", "owner")
    unmatched: list[tuple[str, str]] = []
    known: list[tuple[Mapping[str, Any], tuple[str, bytes]]] = []
    for entry in entries:
        if entry.get("selectorHmac") is None:
            unmatched.append((entry["id"], "no-keyed-hash"))
        elif entry.get("keyId") != ledger_key_id():
            unmatched.append((entry["id"], "unknown-key"))
        else:
            known.append((entry, (entry["selectorKind"], bytes.fromhex(entry["selectorHmac"]))))
    wanted = [key for entry, key in known if entry["status"] != "cancelled"]
    found = find_again(principal.tenant_id, wanted)
    replayed: list[str] = []
    restored: list[str] = []
    with connection.cursor() as cursor:
        for entry, key in known:
            is_cancelled = entry["status"] == "cancelled"
            selector = None if is_cancelled else found.get(key)
            completed = entry.get("completedAt")
            parameters = {
                "tenant": principal.tenant_id,
                "id": UUID(entry["id"]),
                "kind": key[0],
                "selector": selector,
                "in_log": pseudonym(principal.tenant_id, selector)
                if selector is not None and key[0] in PERSON_KINDS
                else None,
                "digest": key[1],
                "key": entry["keyId"],
                "by": entry["requestedBy"],
                "created": entry["createdAt"],
                "completed": completed,
                "before": entry.get("reachesBefore") or completed or entry["createdAt"],
                "cancelled": (completed or entry["createdAt"]) if is_cancelled else None,
            }
            if is_cancelled:
                cursor.execute(_CANCEL, parameters)
            cursor.execute(_PUT_BACK, parameters)
            (restored if selector is None else replayed).append(entry["id"])
    if replayed:
        begin_soon("run-erasures", principal.tenant_id)
    append_governance(
        principal=principal,
        payload={
            "type": "erasure.replayed",
            "replayed": len(replayed),
            "restored": len(restored),
            "unmatched": len(unmatched),
        },
    )
    return Replay(replayed, restored, unmatched)


def resume_erasure(*, principal: Principal, erasure_id: str, force: bool = False) -> ErasureView:
    """The erasure, to be tried again now; a completed one as it is. Raises PermissionDenied, ErasureNotFound."""
    principal.needs_role("admin", "owner")
    erasure = find_erasure(principal.tenant_id, erasure_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE erasure SET next_at = clock_timestamp(), is_forced = is_forced OR %s::bool "
            "WHERE tenant_id = %s::uuid AND id = %s::uuid AND status <> 'completed'",
            [force, principal.tenant_id, erasure.id],
        )
    begin_soon("run-erasures", principal.tenant_id)
    return find_erasure(principal.tenant_id, erasure_id)


def go_on_with_erasures(tenant_id: UUID) -> None:
    """After the release of a hold: try at once what waits for one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE erasure SET next_at = clock_timestamp() "
            "WHERE tenant_id = %s::uuid AND status <> 'completed' AND last_error = %s::text",
            [tenant_id, HELD_UP],
        )
        if cursor.rowcount:
            begin_soon("run-erasures", tenant_id)
