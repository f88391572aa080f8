"""Forget what is remembered: a tombstone at once, and of everything derived from it, and of what agents inferred of the
same. A person's word; an agent's needs evidence.

Over the API there is no way back; the route that a person opens leaves one until the tenant's undo deadline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.hold_naming import record_is_held
from memory.records.acts import Act, Touched, scope_of
from memory.records.ending import Ending, Undo, forget
from memory.records.guard import check_record_write
from memory.records.pending import put_off
from memory.records.person_word import waits_for_review
from memory.records.receipts import (
    Receipt,
    new_number,
    receipt_of_forgetting,
    undo_deadline,
    write_receipt,
)
from memory.records.record import Record
from memory.records.store import readable_record
from memory.records.upcoming import lock_thing_today

DEFAULT_REASON = "user-requested"


@dataclass(frozen=True, slots=True)
class ForgottenRecord:
    """The receipt, the tombstones that the caller may see, how many there are, and which are still held.

    Or the id under which the act waits.
    """

    receipt: Receipt | None = None
    tombstoned: Sequence[str] = ()
    tombstone_count: int = 0
    held: Sequence[str] = ()
    pending_id: str | None = None

    def wire(self) -> dict[str, Any]:
        receipt = self.receipt.wire({}) if self.receipt is not None else {}
        return {
            **receipt,
            "tombstoned": list(self.tombstoned),
            "tombstone_count": self.tombstone_count,
            "held": [{"record_id": one, "reason": "legal-hold"} for one in self.held],
        }


def forget_record(
    *,
    principal: Principal,
    record_id: str,
    reason: str | None = None,
    evidence: tuple[str, str] | None = None,
    with_undo: bool = False,
) -> ForgottenRecord:
    """Tombstone the record, all that was derived from it, and its copies. Again, it answers with the first receipt.

    Raises RecordNotFound, PermissionDenied.
    """
    record = readable_record(principal, record_id)
    check_record_write(principal, record.subject_type, record.subject_id, record.bindings)
    lock_thing_today(principal, record.subject_type, record.subject_id, record.key, expires=False)
    record = readable_record(principal, record_id)
    if record.status == "deleted":
        return _again(principal, record)
    act = Act(principal, "forgotten")
    why = waits_for_review(
        act,
        record.subject_type,
        record.subject_id,
        [evidence[1] if evidence else None],
        newer_than=record.recorded_at,
        said=[evidence, reason],
    )
    if why is not None:
        return ForgottenRecord(
            pending_id=put_off(
                Act(principal, "proposed"),
                name="forget",
                body={"reason": reason, "evidence": list(evidence or ())},
                reason_code=why,
                record_id=record.id,
                subject=(record.subject_type, record.subject_id),
                key=record.key,
            )
        )
    number = new_number()
    until = undo_deadline(act.tenant_id, act.at) if with_undo else None
    endings = forget(
        act.tenant_id,
        record,
        act.at,
        reason=reason or DEFAULT_REASON,
        undo=None if until is None else Undo(number, until),
        receipt=number,
        with_copies=True,
    )
    held = [one.id for one in endings if one.is_held]
    entry = act.log(
        recordId=record.id,
        receipt=number,
        tombstoned=[one.id for one in endings],
        held=held,
        valueDigest=act.digest(record.value_text),
    )
    act.keep(
        [_touched(one, is_main=one.id == record.id) for one in endings],
        entry,
        reason_code=DEFAULT_REASON,
        reason=reason,
        receipt=number,
    )
    receipt = write_receipt(
        act,
        entry,
        number=number,
        route="forget",
        record=record,
        before=[record],
        evidence_ref=evidence[1] if evidence else None,
        reason=reason,
        undo_until=until,
    )
    return _answer(principal, receipt, endings, held)


def _answer(
    principal: Principal, receipt: Receipt, endings: Sequence[Ending], held: Sequence[str]
) -> ForgottenRecord:
    seen = [one.id for one in endings if one.review is None and one.is_readable_by(principal)]
    return ForgottenRecord(
        receipt=receipt,
        tombstoned=seen,
        tombstone_count=len(endings),
        held=[one for one in held if one in seen],
    )


def _again(principal: Principal, record: Record) -> ForgottenRecord:
    """What was answered when it was forgotten, with what is a tombstone of that act now."""
    receipt = receipt_of_forgetting(principal.tenant_id, record.id)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT r.id, {record_is_held('r')} FROM record_act a "
            "JOIN memory_record r ON r.tenant_id = a.tenant_id AND r.id = a.record_id "
            "WHERE a.tenant_id = %(tenant)s::uuid AND a.act = 'forgotten' AND a.act_id = ("
            "SELECT act_id FROM record_act WHERE tenant_id = %(tenant)s::uuid AND record_id = %(id)s::text "
            "AND act = 'forgotten' ORDER BY acted_at LIMIT 1) AND r.review IS NULL ORDER BY r.id",
            {"tenant": principal.tenant_id, "id": record.id},
        )
        rows = cursor.fetchall()
    mine = [row for row in rows if row[0] == record.id]
    return ForgottenRecord(
        receipt=receipt,
        tombstoned=[row[0] for row in mine],
        tombstone_count=len(rows),
        held=[row[0] for row in mine if row[1]],
    )


def _touched(ending: Ending, *, is_main: bool) -> Touched:
    return Touched(
        record_id=ending.id,
        from_status=ending.status,
        to_status="deleted",
        scope_text=scope_of(ending),
        is_main=is_main,
    )
