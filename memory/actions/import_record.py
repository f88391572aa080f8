"""Import one record, in whatever state it was: served ones by the rules of remembering, ended ones as history.

Nothing that a person forgot or replaced here comes back: what was captured before it was forgotten is refused, a tombstone stays
one, and a record that is there stays as it is. A hold that kept the record where it was exported keeps it here.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID, uuid5

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.remember import remember
from memory.errors import Forgotten, IdReused, InvariantViolated
from memory.hold_items import insert_hold, keep_records
from memory.holds import REVIEW_AFTER_DAYS, HoldScope, NewHold
from memory.ids import new_id
from memory.importers.record_lines import NamedHold, RecordLine
from memory.records import clock, fingerprints
from memory.records.acts import Act, Touched, scope_text
from memory.records.ending import FingerprintKind, add_fingerprints
from memory.records.guard import check_record_write
from memory.records.lineage import TRUST, lock_parents
from memory.records.record import Record
from memory.records.routes import register_unconfigured
from memory.records.rules import bygones, check_invariants
from memory.records.shape import Draft
from memory.records.store import (
    NewRecord,
    find_record,
    find_records,
    insert_record,
    link_imported,
    lock_lineage,
    update_records,
)
from memory.records.upcoming import lock_thing_today, slot_of
from memory.trust.instructions import reads_like_instruction

_HOLDS = UUID("6f0d3a5e-6b0b-5c6e-9d1c-2f3c7a1b9e44")
"""Names the holds that an import places after those they stand for, so that one is placed once."""


@dataclass(frozen=True, slots=True)
class Imported:
    """`present`: it, or the same thing, was there. `pending`: it contradicts a person and waits for a decision."""

    outcome: Literal["added", "present", "pending"]
    record_id: str
    held: bool = False


def import_record(*, principal: Principal, line: RecordLine) -> Imported:
    """One line, in the caller's transaction.

    Raises what `remember` does; Forgotten for what was captured before it was forgotten here; IdReused for an id that is another
    record's, or a tombstone's.
    """
    principal.needs_role("admin", "owner")
    draft, tenant_id = line.draft, principal.tenant_id
    check_record_write(principal, draft.subject_type, draft.subject_id, draft.bindings)
    check_invariants(principal, draft)
    lock_thing_today(principal, draft.subject_type, draft.subject_id, draft.key)
    earlier = None if draft.id is None else find_record(tenant_id, draft.id)
    if earlier is not None:
        return _there_already(principal, line, earlier)
    if line.status == "deleted":
        return _ended(principal, line)
    gone_at = bygones(tenant_id, draft).forgotten_at
    if gone_at is not None and draft.captured_at <= gone_at:
        raise Forgotten
    return _active(principal, line) if line.status == "active" else _ended(principal, line)


def keep_bygones(*, principal: Principal, line: RecordLine) -> None:
    """Obey from now on what the line says was forgotten or retired. After every record of the file, which is older than that."""
    draft, tenant_id = line.draft, principal.tenant_id
    record = None if draft.id is None else find_record(tenant_id, draft.id)
    if record is None or record.status != line.status or record.ended_at is None:
        return
    kinds = _IMPLIED.get(line.status, ()) if line.forgotten is None else line.forgotten
    about = (draft.subject_type, draft.subject_id, draft.key)
    digests: list[tuple[bytes, FingerprintKind, str]] = []
    if "forgotten-key" in kinds:
        digests.append((fingerprints.of_key(tenant_id, *about), "forgotten-key", record.id))
    if "retired-value" in kinds and draft.value_text is not None:
        value = fingerprints.of_value(tenant_id, *about, draft.value)
        digests.append((value, "retired-value", record.id))
    add_fingerprints(tenant_id, digests, record.ended_at, None)


_IMPLIED = {"deleted": ("forgotten-key",), "superseded": ("retired-value",)}


def _there_already(principal: Principal, line: RecordLine, earlier: Record) -> Imported:
    """Raises IdReused when it is another record, or when the line would bring a tombstone back or make one."""
    if "deleted" in (earlier.status, line.status):
        is_same = earlier.status == line.status
    else:
        is_same = _identity(earlier) == _identity(line.draft) and (
            line.draft.value_text in (None, earlier.value_text) or earlier.value_text is None
        )
    if not is_same:
        raise IdReused(id=earlier.id)
    if earlier.review is not None:
        return Imported("pending", earlier.id)
    link_imported(
        principal.tenant_id,
        earlier.id,
        superseded=line.draft.supersedes,
        by=line.superseded_by,
    )
    return Imported("present", earlier.id, held=_hold(principal, line, earlier.id))


def _identity(one: Record | Draft) -> tuple[object, ...]:
    return (
        one.subject_type,
        one.subject_id,
        one.key,
        one.authority,
        one.source_type,
        one.evidence_ref,
        one.captured_at,
        one.captured_by,
    )


def _active(principal: Principal, line: RecordLine) -> Imported:
    """By the rules of remembering; then trust, dispute and use as they were, trust never above the importer's own."""
    draft, tenant_id = line.draft, principal.tenant_id
    before = slot_of(
        tenant_id,
        (draft.subject_type, draft.subject_id, draft.key),
        draft.level,
        draft.bindings_text,
    )
    told = remember(
        principal=principal,
        draft=replace(draft, supersedes=()),
        is_hearsay=_is_hearsay(principal, draft),
    )
    record = told.record
    if record is None:
        return Imported("pending", str(told.pending_id))
    if record.id in {one.id for one in (before.present, before.upcoming) if one is not None}:
        return Imported("present", record.id, held=_hold(principal, line, record.id))
    at = clock.now()
    trust = min(_trust(line), record.trust, key=TRUST.index)
    disputed = record.disputed_at or (min(line.disputed_at, at) if line.disputed_at else None)
    digest = fingerprints.of_request(tenant_id, draft.normal_form())
    update_records(
        tenant_id, [record.id], at, trust=trust, disputed_at=disputed, request_digest=digest
    )
    return _added(principal, line, record.id)


def _is_hearsay(principal: Principal, draft: Draft) -> bool:
    """Whether it is a guess that no person stands for: unconfirmed, or contradicted since by something that they said."""
    if draft.source_type != "agent_inferred":
        return False
    confirmed = draft.last_confirmed_at
    if confirmed is None:
        return True
    said = find_records(
        principal.tenant_id,
        "r.subject_type = %(type)s::text AND r.subject_id = %(subject)s::text AND r.key = %(key)s::text "
        "AND r.source_type IN ('user_stated', 'user_correction') AND r.status = 'active' AND r.review IS NULL "
        "AND r.captured_at > %(confirmed)s::timestamptz",
        {
            "type": draft.subject_type,
            "subject": draft.subject_id,
            "key": draft.key,
            "confirmed": confirmed,
        },
    )
    return bool(said)


def _trust(line: RecordLine) -> str:
    if line.trust is not None:
        return line.trust
    return "unverified" if line.draft.source_type == "agent_inferred" else "asserted"


def _ended(principal: Principal, line: RecordLine) -> Imported:
    """As history: read by its id and in the history of what replaced it, served by nothing.

    History waits for nobody, so a guess that no person stands for gives no orders there. A tombstone is kept whatever it says:
    that something was forgotten weighs more.
    """
    is_guess = line.status != "deleted" and _is_hearsay(principal, line.draft)
    if is_guess and reads_like_instruction(line):
        raise InvariantViolated(invariant="history-gives-no-orders")
    draft, act = line.draft, Act(principal, "imported")
    record_id = str(draft.id)
    lock_lineage(act.tenant_id, record_id, draft.derived_from)
    if line.status != "deleted":
        lock_parents(act.principal, draft.derived_from)
    register_unconfigured(principal, draft.route, act.at)
    entry = act.log(recordId=record_id, status=line.status)
    new = _row(act, line, record_id)
    insert_record(act.tenant_id, new, language=principal.search_language)
    touched = Touched(
        record_id, line.status, scope_text(draft.level, draft.bindings_text), is_main=True
    )
    act.keep([touched], entry, reason_code="imported")
    return _added(principal, line, record_id)


def _row(act: Act, line: RecordLine, record_id: str) -> NewRecord:
    draft, at = line.draft, act.at
    confirmed = draft.last_confirmed_at
    return NewRecord.saying(
        draft,
        by=act.principal,
        at=at,
        id=record_id,
        trust=min(_trust(line), "asserted", key=TRUST.index),
        confirmed_at=None if confirmed is None else min(confirmed, at),
        disputed_at=None if line.disputed_at is None else min(line.disputed_at, at),
        status=line.status,
        ended_at=min(line.ended_at or line.deleted_at or at, at),
        deleted_at=None if line.deleted_at is None else min(line.deleted_at, at),
        deleted_reason=line.deleted_reason,
    )


def _added(principal: Principal, line: RecordLine, record_id: str) -> Imported:
    tenant_id = principal.tenant_id
    if line.use_count:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE record_usage SET use_count = %s::bigint, last_used_at = %s::timestamptz "
                "WHERE tenant_id = %s::uuid AND record_id = %s::text",
                [line.use_count, line.last_used_at, tenant_id, record_id],
            )
    link_imported(tenant_id, record_id, superseded=line.draft.supersedes, by=line.superseded_by)
    return Imported("added", record_id, held=_hold(principal, line, record_id))


def _hold(principal: Principal, line: RecordLine, record_id: str) -> bool:
    """Whether holds that kept it elsewhere keep it here now. Of a tombstone there is nothing that could be kept."""
    if line.status == "deleted":
        return False
    kept = [_keep(principal, hold, record_id) for hold in line.holds]
    return any(kept)


def _keep(principal: Principal, hold: NamedHold, record_id: str) -> bool:
    tenant_id, at = principal.tenant_id, clock.now()
    hold_id = uuid5(_HOLDS, f"{tenant_id} {hold.id}")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s::text, 0))",
            [f"imported hold {hold_id}"],
        )
        cursor.execute(
            "SELECT h.released_at IS NOT NULL, EXISTS (SELECT 1 FROM hold_item i WHERE i.tenant_id = h.tenant_id "
            "AND i.hold_id = h.id AND i.kind = 'record' AND i.item_id = %(record)s::text) "
            "FROM legal_hold h WHERE h.tenant_id = %(tenant)s::uuid AND h.id = %(hold)s::uuid",
            {"tenant": tenant_id, "hold": hold_id, "record": record_id},
        )
        row = cursor.fetchone()
    if row is None:
        return _place(principal, hold, hold_id, record_id, at)
    is_released, was_kept = row
    if was_kept:
        return False
    if is_released:
        return _place(principal, hold, new_id(), record_id, at)
    kept = keep_records(tenant_id, hold_id, (record_id,))
    append_governance(
        principal=principal,
        payload={"type": "hold.extended", "holdId": str(hold_id), "recordIds": [record_id]},
    )
    return kept > 0


def _place(
    principal: Principal, hold: NamedHold, hold_id: UUID, record_id: str, at: datetime
) -> bool:
    earliest = (at + timedelta(days=REVIEW_AFTER_DAYS)).date()
    review_on = hold.review_on if hold.review_on and hold.review_on > at.date() else earliest
    new = NewHold(
        matter=f"Imported hold {hold.id}",
        reason="It was held where it was exported from.",
        scope=HoldScope(record_ids=(record_id,)),
        review_on=review_on,
        id=hold_id,
    )
    _, kept = insert_hold(principal, new)
    append_governance(
        principal=principal,
        payload={"type": "hold.placed", "holdId": str(hold_id), "recordIds": [record_id]},
    )
    return kept > 0
