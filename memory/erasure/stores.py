"""What an erasure clears, store by store. Each function is one batch in the caller's transaction and says how much it cleared.

Tombstones keep their shape: subject, evidence and binding values are keyed hashes afterwards.
"""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.canonical import canonical
from memory.destruction import Due, destroy_facts
from memory.erasure.ledger import PERSON_KINDS, ErasureView, pseudonym
from memory.erasure.payloads import clear_entries
from memory.erasure.reach import (
    entries_condition,
    facts_condition,
    in_time,
    is_named_plainly,
    records_condition,
    selected,
)
from memory.errors import LegalHoldActive
from memory.records import clock
from memory.records.acts import Act, ended
from memory.records.ending import Ending, forget
from memory.records.sealing import destroy_undo_copies
from memory.records.store import bindings_hash, find_record

FACTS_AT_ONCE = 500
RECORDS_AT_ONCE = 20
ENTRIES_AT_ONCE = 200
REASON = "erased"

Counts = dict[str, int]


def _reached(tenant_id: UUID, erasure: ErasureView) -> dict[str, Any]:
    """The parameters of what it reaches."""
    return selected(tenant_id, erasure.selector_id or "", erasure.reaches_before)


def clear_facts(principal: Principal, erasure: ErasureView) -> Counts:
    """Up to FACTS_AT_ONCE facts, every revision, with their index; empty when none is left. Raises LegalHoldActive."""
    tenant_id = principal.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.id FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND {in_time(facts_condition(erasure.kind), 'f')}"
            " ORDER BY f.id LIMIT %(limit)s::int FOR UPDATE OF f",
            {**_reached(tenant_id, erasure), "limit": FACTS_AT_ONCE},
        )
        ids = [row[0] for row in cursor.fetchall()]
    if not ids:
        return {}
    done = destroy_facts(
        tenant_id=tenant_id,
        due=[Due(one, "erasure") for one in ids],
        cause="erasure",
        cause_id=erasure.id,
        shown_ids={one: pseudonym(tenant_id, one) for one in ids},
    )
    if done.held:
        # Whole or not at all: what this batch took comes back with the rollback.
        raise LegalHoldActive(ids=list(done.held))
    return {f"facts.{table}": count for table, count in done.rows.items() if count}


def clear_records(principal: Principal, erasure: ErasureView) -> Counts:
    """Up to RECORDS_AT_ONCE records with all derived from them; empty when none is left. Raises LegalHoldActive."""
    tenant_id = principal.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT m.id FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid"
            f" AND {in_time(records_condition(erasure.kind), 'm')}"
            " AND m.deleted_reason IS DISTINCT FROM %(reason)s::text ORDER BY m.id LIMIT %(limit)s::int FOR UPDATE OF m",
            {**_reached(tenant_id, erasure), "reason": REASON, "limit": RECORDS_AT_ONCE},
        )
        ids = [row[0] for row in cursor.fetchall()]
    gone: dict[str, None] = {}
    ended_by: dict[str, list[Ending]] = {}
    for record_id in ids:
        gone[record_id] = None
        record = find_record(tenant_id, record_id)
        if record is None or record.status == "deleted":
            continue
        endings = forget(tenant_id, record, clock.now(), reason=REASON)
        if held := [one.id for one in endings if one.is_held]:
            raise LegalHoldActive(ids=held)
        ended_by[record_id] = endings
        gone |= dict.fromkeys(one.id for one in endings)
    # Only then: an entry keeps the head of the run, and who places a hold asks for that with records of this batch in hand.
    for record_id, endings in ended_by.items():
        act = Act(principal, "erased")
        entry = act.log(
            recordId=record_id, erasureId=str(erasure.id), tombstoned=[one.id for one in endings]
        )
        act.keep(ended(endings, "deleted"), entry, reason_code=REASON)
    if not gone:
        return {}
    copies = destroy_undo_copies(tenant_id, record_ids=list(gone))
    _hide(principal, erasure, list(gone))
    return {"records": len(gone), **({"records.sealedCopies": copies} if copies else {})}


_READ = """
SELECT id, subject_type, subject_id, evidence_ref, bindings_text, level FROM memory_record
WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[]) AND status = 'deleted' ORDER BY id FOR UPDATE
"""
_HIDE_RECORD = """
UPDATE memory_record SET subject_id = %(subject)s::text, evidence_ref = %(evidence)s::text, bindings_text = %(bindings)s::text,
       bindings_hash = %(hash)s::bytea, deleted_reason = %(reason)s::text, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::text
"""
_HIDE_ACTS = """
UPDATE record_act
SET reason = NULL,
    scope_text = '{"bindings":{},"level":' || coalesce((scope_text::jsonb) -> 'level', '"instance"')::text || '}',
       actor = CASE WHEN actor = %(writer)s::text THEN %(hidden)s::text ELSE actor END
WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[])
"""
_HIDE_RECEIPTS = """
UPDATE receipt SET reason = NULL, statement = NULL, evidence_ref = %(hidden)s::text,
       before_scope_text =
         '{"bindings":{},"level":' || coalesce((before_scope_text::jsonb) -> 'level', '"instance"')::text || '}',
       scope_text = '{"bindings":{},"level":' || coalesce((scope_text::jsonb) -> 'level', '"instance"')::text || '}',
       actor = CASE WHEN actor = %(writer)s::text THEN %(hidden)s::text ELSE actor END
WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[])
"""
_HIDE_PENDING = """
UPDATE pending_act SET body_text = NULL, subject_id = CASE WHEN subject_id IS NULL THEN NULL ELSE %(hidden)s::text END,
       decision = coalesce(decision, 'forgotten'), decided_at = coalesce(decided_at, clock_timestamp()),
       decided_by = coalesce(decided_by, 'service:kindmem')
WHERE tenant_id = %(tenant)s::uuid
  AND (record_id = ANY(%(ids)s::text[]) OR (%(person)s::bool AND subject_id = %(selector)s::text))
"""


def _hide(principal: Principal, erasure: ErasureView, ids: Sequence[str]) -> None:
    """Put keyed hashes where a tombstone names someone, and free text away from its acts and receipts."""
    tenant_id, selector = principal.tenant_id, erasure.selector_id or ""
    hidden = pseudonym(tenant_id, selector)
    parameters: dict[str, Any] = {
        "tenant": tenant_id,
        "ids": list(ids),
        "hidden": hidden,
        "writer": f"user:{selector}",
        "selector": selector,
        "person": erasure.kind in PERSON_KINDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_READ, parameters)
        for record_id, subject_type, subject, evidence, bindings_text, _ in cursor.fetchall():
            is_theirs = subject_type == "user" and subject == selector
            bindings = canonical(
                {
                    name: pseudonym(tenant_id, canonical(value))
                    for name, value in json.loads(bindings_text).items()
                }
            )
            cursor.execute(
                _HIDE_RECORD,
                {
                    "tenant": tenant_id,
                    "id": record_id,
                    "subject": hidden if is_theirs else subject,
                    "evidence": pseudonym(tenant_id, evidence),
                    "bindings": bindings,
                    "hash": bindings_hash(bindings),
                    "reason": REASON,
                },
            )
        cursor.execute(_HIDE_ACTS, parameters)
        cursor.execute(_HIDE_RECEIPTS, parameters)
        cursor.execute(_HIDE_PENDING, parameters)


def clear_payloads(
    principal: Principal, erasure: ErasureView, after: tuple[str, int] | None
) -> tuple[Counts, tuple[str, int] | None]:
    """Up to ENTRIES_AT_ONCE payloads in the order of the log; and where to go on, None at its end."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.run_id, e.sequence, e.id, {is_named_plainly(erasure.kind)} FROM log_entry e"
            " WHERE e.tenant_id = %(tenant)s::uuid"
            " AND (e.run_id, e.sequence) > (%(run)s::text, %(sequence)s::bigint)"
            f" AND {in_time(entries_condition(erasure.kind), 'e')} ORDER BY e.run_id, e.sequence LIMIT %(limit)s::int",
            {
                **_reached(principal.tenant_id, erasure),
                "run": after[0] if after else "",
                "sequence": after[1] if after else -1,
                "limit": ENTRIES_AT_ONCE,
            },
        )
        rows = cursor.fetchall()
    if not rows:
        return {}, None
    cleared = clear_entries(principal, erasure, [row[2] for row in rows])
    counts: Counts = {}
    if named := sum(row[3] for row in rows):
        counts["log.identifiersRetained"] = named
    if cleared:
        counts["log.payloads"] = cleared
    return counts, (rows[-1][0], rows[-1][1])


def has_remains(tenant_id: UUID, erasure: ErasureView) -> bool:
    """Whether anything in reach is still there: what the last look before the end asks."""
    parameters = {**_reached(tenant_id, erasure), "reason": REASON}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM fact f WHERE f.tenant_id = %(tenant)s::uuid"
            f" AND {in_time(facts_condition(erasure.kind), 'f')})"
            " OR EXISTS (SELECT FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid"
            f" AND {in_time(records_condition(erasure.kind), 'm')} AND m.deleted_reason IS DISTINCT FROM %(reason)s::text)"
            " OR EXISTS (SELECT FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid"
            f" AND {in_time(entries_condition(erasure.kind), 'e')} AND e.payload_text IS NOT NULL)",
            parameters,
        )
        return bool(cursor.fetchone()[0])
