"""Undo what a receipt tells of, until its deadline and while nothing happened to its records since.

What was taken away comes back as new records with new ids, written from sealed copies; tombstones stay. What was only
marked is unmarked. Source: the product contract, "Built-in correction routes".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.api.parameters import instant
from memory.canonical import canonical
from memory.errors import LegalHoldActive, ReceiptNotFound, UndoClosed
from memory.ids import new_text_id
from memory.queries.records import begins_later
from memory.queries.undoable import undo_refusals
from memory.records.acts import Act, Touched, ended, scope_of, scope_text
from memory.records.ending import drop_fingerprints, expire, supersede
from memory.records.guard import check_record_write, decides_for_people, may_read_record
from memory.records.lineage import Bounds, tighten_descendants
from memory.records.pending import put_off
from memory.records.receipts import (
    Receipt,
    find_receipt,
    mark_undone,
    new_number,
    write_receipt,
)
from memory.records.record import Record
from memory.records.sealing import destroy_undo_copies, open_for_undo
from memory.records.slot import other_in_slot_of
from memory.records.store import (
    NewRecord,
    bindings_hash,
    find_record,
    find_records,
    insert_record,
    update_records,
)
from memory.records.upcoming import lock_thing_today
from memory.records.words_searched import index_record


@dataclass(frozen=True, slots=True)
class Undone:
    """The records as they are now, and the receipt of the undo with the values that it may show; or the id under which it
    waits."""

    records: list[Record] = field(default_factory=list)
    receipt: Receipt | None = None
    pending_id: str | None = None
    values: Mapping[str, str | None] = field(default_factory=dict)


def undo_receipt(*, principal: Principal, number: str) -> Undone:
    """Undo one act. Raises ReceiptNotFound, UndoClosed, PermissionDenied."""
    receipt = find_receipt(principal.tenant_id, number, lock=True)
    record = find_record(principal.tenant_id, receipt.record_id) if receipt is not None else None
    if (
        receipt is None
        or record is None
        or not may_read_record(principal, record.subject_type, record.subject_id, record.bindings)
    ):
        raise ReceiptNotFound
    check_record_write(principal, record.subject_type, record.subject_id, record.bindings)
    act = Act(principal, "undone")
    if not decides_for_people(principal):
        return Undone(
            pending_id=put_off(
                Act(principal, "proposed"),
                name="undo",
                body={"number": number},
                reason_code="no-word",
                record_id=record.id,
                subject=(record.subject_type, record.subject_id),
                key=record.key,
            )
        )
    lock_thing_today(principal, record.subject_type, record.subject_id, record.key)
    _check_open(receipt, act)
    record = find_record(act.tenant_id, receipt.record_id) or record
    undoing = _Undoing(act, receipt, record, _touched_by(act, receipt))
    ids = _WAYS.get(receipt.route, _Undoing.of_correction)(undoing) or [record.id]
    drop_fingerprints(act.tenant_id, number)
    destroy_undo_copies(act.tenant_id, receipt=number)
    return _written(act, receipt, record, undoing, ids)


def _check_open(receipt: Receipt, act: Act) -> None:
    """Raises UndoClosed, LegalHoldActive: as the pages read it that offer an undo, or don't."""
    refusal = undo_refusals(act.tenant_id, [receipt.number], act.at).get(receipt.number)
    if refusal == "legal-hold":
        raise LegalHoldActive(ids=receipt.after_ids[:1])
    if refusal is not None:
        raise UndoClosed(reason=refusal)


def _touched_by(act: Act, receipt: Receipt) -> dict[str, str | None]:
    """The records that the act touched, with their status before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT record_id, from_status FROM record_act WHERE tenant_id = %s::uuid AND act_id = %s::uuid "
            "ORDER BY is_main DESC, record_id",
            [act.tenant_id, receipt.act_id],
        )
        return dict(cursor.fetchall())


def _written(
    act: Act, undone: Receipt, record: Record, undoing: "_Undoing", ids: list[str]
) -> Undone:
    number = new_number()
    mark_undone(act.tenant_id, undone.number, by=number, at=act.at)
    found = {
        one.id: one
        for one in find_records(act.tenant_id, "r.id = ANY(%(ids)s::text[])", {"ids": ids})
    }
    records = [found[one] for one in ids]
    entry = act.log(
        receipt=number,
        undoes=undone.number,
        recordIds=ids,
        restored=undoing.restored or None,
        expired=[one.record_id for one in undoing.fell if one.record_id not in found],
    )
    origin = {new: old for old, new in undoing.restored.items()}
    act.keep(
        [
            Touched(
                record_id=one.id,
                to_status=one.status,
                scope_text=scope_text(one.level, one.bindings_text),
                from_record_id=origin.get(one.id),
                is_main=place == 0,
            )
            for place, one in enumerate(records)
        ]
        + [one for one in undoing.fell if one.record_id not in found],
        entry,
        reason_code="undo",
        receipt=number,
    )
    receipt = write_receipt(
        act,
        entry,
        number=number,
        route="undo",
        record=undoing.taken_back or record,
        before=[undoing.taken_back or record],
        after=[one for one in records if one.status == "active"],
    )
    shown = [*records, *([undoing.taken_back] if undoing.taken_back is not None else [])]
    return Undone(records, receipt, values={one.id: one.value_text for one in reversed(shown)})


@dataclass(slots=True)
class _Undoing:
    """`restored`: old id → new id; `fell`: what ended by the undo; `taken_back`: the correction that it took back.

    Each way answers the ids to show, the main one first.
    """

    act: Act
    receipt: Receipt
    record: Record
    touched: Mapping[str, str | None]
    restored: dict[str, str] = field(default_factory=dict)
    fell: list[Touched] = field(default_factory=list)
    taken_back: Record | None = None

    def of_correction(self) -> list[str]:
        """The correction ends; what it superseded comes back in its place, and what ended with that."""
        after = find_record(self.act.tenant_id, self.receipt.after_ids[0])
        if after is None or after.status != "active" or after.review is not None:
            raise UndoClosed(reason="changed")
        # Not what it took the place of since, on its first day.
        ids = [one for one in after.supersedes if one in self.touched]
        replaced = find_records(
            self.act.tenant_id,
            "r.id = ANY(%(ids)s::text[]) AND r.status = 'superseded'",
            {"ids": ids},
        )
        if len(replaced) != len(ids):
            raise UndoClosed(reason="changed")
        replaced, self.taken_back = self._without_what_is_past(replaced), after
        if not replaced:
            self.fell = ended(expire(self.act.tenant_id, [after.id], self.act.at), "expired")
            return [after.id]
        others = supersede(self.act.tenant_id, [after], self.act.at, retire_unless=None)
        taken = Touched(after.id, "superseded", scope_of(after), from_status="active")
        self.fell = [taken, *ended(others, "expired")]
        for place, one in enumerate(replaced):
            self._restore(one, one.value_text, superseded=[after.id] if place == 0 else [])
        self._restore_ended()
        return list(self.restored.values())

    def _without_what_is_past(self, replaced: list[Record]) -> list[Record]:
        """Of two that one correction replaced in a slot: once the later one's day has come, it would have ended the other."""
        begun = {
            (one.level, one.bindings_text)
            for one in replaced
            if one.is_upcoming and not self._is_upcoming(one)
        }
        return [
            one
            for one in replaced
            if one.is_upcoming or (one.level, one.bindings_text) not in begun
        ]

    def of_confirmation(self) -> list[str]:
        """Back to what it said before, where nobody confirmed or widened it since."""
        if self.record.status != "active" or self.record.confirmed_at != self.receipt.made_at:
            raise UndoClosed(reason="changed")
        before = self.receipt.state_before
        was = replace(
            self.record, level=before["level"], bindings_text=canonical(before["bindings"])
        )
        # A parent may have come or tightened since: not even an undo goes beyond it.
        bounds = self._bounds_of(was, self.record.valid_until)
        bindings_text = canonical(bounds.bindings)
        update_records(
            self.act.tenant_id,
            [self.record.id],
            self.act.at,
            level=bounds.level,
            bindings_text=bindings_text,
            bindings_hash=bindings_hash(bindings_text),
            broadened=before["broadened"],
            confirmed_at=_instant(before["confirmed_at"]),
            disputed_at=_instant(before["disputed_at"]),
        )
        # What was derived from it while it was wider may have been as wide.
        now = replace(self.record, level=bounds.level, bindings_text=bindings_text)
        tighten_descendants(self.act.tenant_id, now, self.act.at, is_new=False)
        return [self.record.id]

    def of_ending(self) -> list[str]:
        """What was taken away comes back from its sealed copies."""
        self._restore_ended()
        if self.record.status != "active" and self.record.id not in self.restored:
            raise UndoClosed(reason="changed")
        first = self.restored.get(self.record.id, self.record.id)
        return [first, *(one for one in self.restored.values() if one != first)]

    def of_withdrawal(self) -> list[str]:
        found = self._still("r.review = 'withdrawn'")
        for one in found:
            self._check_slot_is_free(one, one.level, one.bindings_text)
        self._unmark(found, review=None, review_reason=None)
        for one in found:
            index_record(self.act.tenant_id, one, self.act.principal.search_language)
        return [one.id for one in found]

    def of_dispute(self) -> list[str]:
        found = [
            one
            for one in self._still("r.disputed_at IS NOT NULL")
            if one.disputed_at == self.receipt.made_at
        ]
        self._unmark(found, disputed_at=None)
        return [one.id for one in found]

    def _still(self, condition: str) -> list[Record]:
        """The touched records that are still as the act left them, the main one first."""
        found = find_records(
            self.act.tenant_id,
            f"r.id = ANY(%(ids)s::text[]) AND r.status = 'active' AND {condition}",
            {"ids": list(self.touched)},
        )
        if self.record.id not in {one.id for one in found}:
            raise UndoClosed(reason="changed")
        return sorted(found, key=lambda one: one.id != self.record.id)

    def _unmark(self, found: list[Record], **columns: Any) -> None:
        if not found:
            raise UndoClosed(reason="changed")
        update_records(self.act.tenant_id, [one.id for one in found], self.act.at, **columns)

    def _restore_ended(self) -> None:
        """What the act ended: from its sealed copy, or as it stands where its value was to be retained."""
        sealed = open_for_undo(self.act.tenant_id, self.receipt.number)
        gone = find_records(
            self.act.tenant_id,
            "r.id = ANY(%(ids)s::text[]) AND r.review IS NULL AND r.status IN ('expired', 'deleted')",
            {"ids": [one for one, status in self.touched.items() if status == "active"]},
        )
        texts = {one.id: sealed.get(one.id, one.value_text) for one in gone}
        wanted = [one for one in gone if texts[one.id] is not None or one.authority == "policy"]
        # New ids first: what was derived among them names the new ones.
        self.restored |= {one.id: new_text_id() for one in wanted}
        for one in wanted:
            self._restore(one, texts[one.id])

    def _restore(
        self, old: Record, text: str | None, *, superseded: list[str] | None = None
    ) -> None:
        record_id = self.restored.setdefault(old.id, new_text_id())
        before = self.receipt.state_before if old.id == self.receipt.record_id else None
        ends = before["valid_until"] if before is not None else None
        valid_until = date.fromisoformat(ends) if ends is not None else None
        bounds = self._bounds_of(old, valid_until if before is not None else old.valid_until)
        insert_record(
            self.act.tenant_id,
            NewRecord.saying(
                old,
                by=self.act.principal,
                at=self.act.at,
                id=record_id,
                value_text=text,
                level=bounds.level,
                bindings_text=canonical(bounds.bindings),
                valid_until=bounds.valid_until,
                derived_from=[self.restored.get(one, one) for one in old.derived_from],
                retain_value=bounds.retain_value,
                trust=bounds.trust,
                confirmed_at=old.confirmed_at,
                disputed_at=old.disputed_at,
                is_upcoming=self._is_upcoming(old),
            ),
            language=self.act.principal.search_language,
            superseded=superseded or [],
        )

    def _bounds_of(self, old: Record, valid_until: date | None) -> Bounds:
        """What it may say again, within the parents that are not restored along with it. Raises UndoClosed."""
        bounds = Bounds(
            level=old.level,
            bindings=old.bindings,
            valid_until=valid_until,
            trust=old.trust,
            retain_value=old.retain_value,
        )
        others = [one for one in old.derived_from if one not in self.restored]
        for parent in find_records(
            self.act.tenant_id, "r.id = ANY(%(ids)s::text[])", {"ids": others}
        ):
            bounds = bounds.within(parent)
        if bounds.is_pending:
            raise UndoClosed(reason="changed")
        self._check_slot_is_free(old, bounds.level, canonical(bounds.bindings))
        return bounds

    def _is_upcoming(self, record: Record) -> bool:
        return begins_later(self.act.principal, record.valid_from)

    def _check_slot_is_free(self, record: Record, level: str, bindings_text: str) -> None:
        occupant = other_in_slot_of(
            self.act.tenant_id,
            record,
            level=level,
            bindings_text=bindings_text,
            upcoming=self._is_upcoming(record),
        )
        if occupant is not None:
            raise UndoClosed(reason="changed")


def _instant(text: str | None) -> Any:
    return None if text is None else instant(text)


_WAYS: Mapping[str, Callable[[_Undoing], list[str]]] = {
    "confirm": _Undoing.of_confirmation,
    "out-of-date": _Undoing.of_ending,
    "forget": _Undoing.of_ending,
    "never-infer": _Undoing.of_ending,
    "wrong-person": _Undoing.of_withdrawal,
    "dispute": _Undoing.of_dispute,
}
"""By the receipt's route; any other is a correction."""
