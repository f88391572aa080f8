"""Confirm what is remembered, and perhaps widen it. A person's word; an agent's needs evidence."""

from dataclasses import dataclass, field
from typing import Any

from memory.access import Principal
from memory.errors import InvariantViolated, RecordChanged
from memory.records.acts import Act, Touched, scope_text
from memory.records.guard import check_record_write
from memory.records.lineage import Bounds, is_within, lock_parents
from memory.records.pending import put_off
from memory.records.person_word import waits_for_review
from memory.records.receipts import Receipt, new_number, undo_deadline, write_receipt
from memory.records.record import Record
from memory.records.slot import other_in_slot_of
from memory.records.store import (
    bindings_hash,
    find_record,
    readable_record,
    update_records,
)
from memory.records.upcoming import lock_thing_today
from memory.records.widening import Scope, is_over, read_broaden_to


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The record and the receipt; or the id under which the act waits."""

    record: Record | None = None
    receipt: Receipt | None = None
    values: dict[str, str | None] = field(default_factory=dict)
    pending_id: str | None = None


def confirm_record(
    *,
    principal: Principal,
    record_id: str,
    evidence: tuple[str, str] | None = None,
    broaden_to: Any = None,
    reason: str | None = None,
) -> Confirmed:
    """Say of a record that it is right; `broaden_to {level, bindings}` also says that it holds more widely.

    Raises RecordNotFound, RecordChanged, PermissionDenied, BadInput, InvariantViolated.
    """
    record = active_record(principal, record_id)
    check_record_write(principal, record.subject_type, record.subject_id, record.bindings)
    scope = None if broaden_to is None else read_broaden_to(principal, broaden_to, "/broaden_to")
    lock_thing_today(principal, record.subject_type, record.subject_id, record.key)
    record = active_record(principal, record_id)
    act = Act(principal, "confirmed")
    why = waits_for_review(
        act,
        record.subject_type,
        record.subject_id,
        [evidence[1] if evidence else None],
        newer_than=record.recorded_at,
        said=[evidence, broaden_to, reason],
    )
    if why is not None:
        body = {"evidence": list(evidence or ()), "broaden_to": broaden_to}
        return Confirmed(
            pending_id=put_off(
                Act(principal, "proposed"),
                name="confirm",
                body=body,
                reason_code=why,
                record_id=record.id,
                subject=(record.subject_type, record.subject_id),
                key=record.key,
            )
        )
    changes: dict[str, Any] = {"confirmed_at": act.at, "disputed_at": None}
    if scope is not None:
        _check_widening(act, record, scope)
        changes |= {
            "level": scope.level,
            "bindings_text": scope.text,
            "bindings_hash": bindings_hash(scope.text),
            "broadened": True,
        }
    update_records(act.tenant_id, [record.id], act.at, **changes)
    return _written(act, record, evidence, reason, is_widened=scope is not None)


def _check_widening(act: Act, record: Record, scope: Scope) -> None:
    """Wider, within what it was derived from, and in nobody's place."""
    if not is_over(scope, record.level, record.bindings):
        raise InvariantViolated(invariant="I4")
    wanted = Bounds(
        level=scope.level,
        bindings=scope.bindings,
        valid_until=record.valid_until,
        trust=record.trust,
        retain_value=record.retain_value,
    )
    if not is_within(wanted, lock_parents(act.principal, record.derived_from)):
        raise InvariantViolated(invariant="I10")
    occupant = other_in_slot_of(act.tenant_id, record, level=scope.level, bindings_text=scope.text)
    if occupant is not None:
        raise RecordChanged(active_id=occupant.id, expected_id=record.id, differs=["scope"])


def _written(
    act: Act,
    before: Record,
    evidence: tuple[str, str] | None,
    reason: str | None,
    *,
    is_widened: bool,
) -> Confirmed:
    after = find_record(act.tenant_id, before.id)
    if after is None:
        raise RecordChanged(expected_id=before.id)
    number = new_number()
    entry = act.log(
        recordId=after.id, receipt=number, level=after.level, broadened=is_widened or None
    )
    act.keep(
        [
            Touched(
                record_id=after.id,
                from_status="active",
                to_status="active",
                scope_text=scope_text(after.level, after.bindings_text),
                is_main=True,
            )
        ],
        entry,
        reason_code="broadened" if is_widened else "confirmed",
        reason=reason,
        receipt=number,
    )
    receipt = write_receipt(
        act,
        entry,
        number=number,
        route="confirm",
        record=before,
        before=[before],
        after=[after],
        evidence_ref=evidence[1] if evidence else None,
        reason=reason,
        undo_until=undo_deadline(act.tenant_id, act.at),
    )
    return Confirmed(record=after, receipt=receipt, values={after.id: after.value_text})


def active_record(principal: Principal, record_id: str) -> Record:
    """The readable record, still active. Raises RecordNotFound, RecordChanged."""
    record = readable_record(principal, record_id)
    if record.status != "active":
        raise RecordChanged(
            active_id=record.superseded_by,
            expected_id=record.id,
            status=record.status,
            differs=["status"],
        )
    return record
