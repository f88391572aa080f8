"""A correction: another value, in the case at hand, and elsewhere only where a person's word widens it.

It binds to the instance: everything that the context says but the control keys. What it replaces is superseded when
the bindings are the same, when it was an earlier correction of the instance, or when the correction was widened over
it; otherwise the wider record stays in use elsewhere. Source: the product contract, I4, I9 and "Trust and poisoning".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from memory.access import Principal
from memory.errors import BadInput, RecordChanged
from memory.ids import new_text_id
from memory.queries.recall_candidates import Subject
from memory.records.acts import Act, Touched, ended, scope_of, scope_text
from memory.records.correction_target import (
    Correction,
    check_instance,
    check_one_person,
    check_unchanged,
    subject_of,
    target_of,
)
from memory.records.ending import Undo, supersede
from memory.records.guard import check_record_write
from memory.records.pending import put_off
from memory.records.person_word import waits_for_review
from memory.records.receipts import Receipt, new_number, undo_deadline, write_receipt
from memory.records.record import Record
from memory.records.routes import register_unconfigured
from memory.records.shape import value_text
from memory.records.store import (
    NewRecord,
    find_record,
    insert_record,
)
from memory.records.superseding import refuse_policy
from memory.records.upcoming import lock_thing_today, slot_of
from memory.records.widening import Scope, check_takes_in, is_over, read_scope

_CAPTURED_BY = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Corrected:
    """The correction and its receipt, with the values that the receipt may show; or the id under which it waits."""

    record: Record | None = None
    receipt: Receipt | None = None
    values: dict[str, str | None] = field(default_factory=dict)
    pending_id: str | None = None


def correct(*, principal: Principal, asked: Correction) -> Corrected:
    """Correct what is remembered.

    Raises RecordNotFound, BadInput, InstanceUnnamed, SubjectRequired, PolicyNotCorrectable, RecordChanged,
    PermissionDenied, InvariantViolated, LegalHoldActive, ValueTooLarge.
    """
    text = value_text(asked.new_value)
    if asked.new_value is None:
        raise BadInput.at("/new_value", "must not be null; to have it forgotten, forget it")
    check_one_person(asked)
    scope = read_scope(principal, asked.context, broaden=asked.broaden)
    seen = target_of(principal, asked)
    if asked.broaden:
        own = seen.bindings if seen is not None and asked.record_id is not None else {}
        check_takes_in(scope, asked.context, own)
    subject = subject_of(principal, asked, seen)
    key = seen.key if seen is not None else asked.key or ""
    lock_thing_today(principal, subject.type, subject.id, key)
    if seen is not None and (seen.subject_type, seen.subject_id) != (subject.type, subject.id):
        lock_thing_today(principal, seen.subject_type, seen.subject_id, key)
    # Looked at again under the lock: whoever acted meanwhile was first, and the caller has not seen what they did.
    target = target_of(principal, asked)
    check_unchanged(asked, seen, target)
    check_record_write(principal, subject.type, subject.id, scope.bindings)
    return _Correcting(
        Act(principal, "corrected"),
        asked,
        text,
        scope,
        Subject(subject.type, subject.id),
        key,
        target,
    ).run()


@dataclass(slots=True)
class _Correcting:
    act: Act
    asked: Correction
    value_text: str
    scope: Scope
    subject: Subject
    key: str
    target: Record | None

    def run(self) -> Corrected:
        target = self.target
        if target is not None and target.authority == "policy":
            raise refuse_policy(self.act.principal, target)
        if (why := self._waits_for()) is not None:
            return Corrected(
                pending_id=put_off(
                    Act(self.act.principal, "proposed"),
                    name="correct",
                    body=self.asked.body(),
                    reason_code=why,
                    record_id=target.id if target is not None else None,
                    subject=(self.subject.type, self.subject.id),
                    key=self.key,
                )
            )
        occupants = self._occupants()
        for occupant in occupants:
            if occupant.authority == "policy":
                raise refuse_policy(self.act.principal, occupant)
        check_instance(self.asked, occupants[0] if occupants else None)
        targets = self._superseded(occupants)
        number, until = new_number(), undo_deadline(self.act.tenant_id, self.act.at)
        others = supersede(
            self.act.tenant_id,
            targets,
            self.act.at,
            retire_unless=self.value_text,
            receipt=number,
            undo=None if until is None else Undo(number, until),
        )
        return self._write(
            targets, [one.id for one in others], ended(others, "expired"), number, until
        )

    def _waits_for(self) -> str | None:
        """Why it waits for review, if it does. Widening takes a confirmation of its own."""
        evidence = self.asked.evidence
        refs = [evidence[1] if evidence else self.asked.context.named("message_ref")]
        if self.asked.broaden:
            refs.append(self.asked.context.named("confirmation_ref"))
        return waits_for_review(
            self.act,
            self.subject.type,
            self.subject.id,
            refs,
            newer_than=self.target.recorded_at if self.target is not None else None,
            said=self.asked,
        )

    @property
    def _begins_later(self) -> bool:
        """Whether it corrects what is said of a later time: then it is about that time, too."""
        return self.target is not None and self.target.is_upcoming

    def _occupants(self) -> list[Record]:
        """What is in the correction's own place. What is said of now is said of later, too, and takes both."""
        slot = slot_of(
            self.act.tenant_id,
            (self.subject.type, self.subject.id, self.key),
            self.scope.level,
            self.scope.text,
        )
        places = [slot.upcoming] if self._begins_later else [slot.present, slot.upcoming]
        return [one for one in places if one is not None]

    def _superseded(self, occupants: Sequence[Record]) -> list[Record]:
        """What the correction takes the place of, the record corrected first."""
        targets: dict[str, Record] = {}
        target = self.target
        if (
            target is not None
            and (target.subject_type, target.subject_id) == (self.subject.type, self.subject.id)
            and self._takes_the_place_of(target)
        ):
            targets[target.id] = target
        for occupant in occupants:
            targets.setdefault(occupant.id, occupant)
        return list(targets.values())

    def _takes_the_place_of(self, target: Record) -> bool:
        if not self.asked.broaden:
            return self.scope.text == target.bindings_text
        return is_over(self.scope, target.level, target.bindings)

    def _write(
        self,
        targets: Sequence[Record],
        expired: list[str],
        also_ended: list[Touched],
        number: str,
        until: datetime | None,
    ) -> Corrected:
        act, template = self.act, self.target
        record_id = new_text_id()
        before = targets[0] if targets else template
        entry = act.log(
            recordId=record_id,
            receipt=number,
            route=self.asked.route,
            corrects=template.id if template is not None else None,
            supersedes=[one.id for one in targets],
            expired=expired,
            level=self.scope.level,
            broadened=self.asked.broaden,
            valueBefore=act.digest(before.value_text) if before is not None else None,
            valueAfter=act.digest(self.value_text),
        )
        kind, ref = self.asked.evidence or self._evidence(entry.id)
        new = self._new(record_id, kind, ref)
        register_unconfigured(act.principal, new.route, act.at)
        insert_record(
            act.tenant_id,
            new,
            language=act.principal.search_language,
            superseded=[one.id for one in targets],
        )
        act.keep(
            [
                Touched(
                    record_id=record_id,
                    to_status="active",
                    scope_text=scope_text(new.level, new.bindings_text),
                    from_record_id=before.id if before is not None else None,
                    is_main=True,
                ),
                *(
                    Touched(one.id, "superseded", scope_of(one), from_status="active")
                    for one in targets
                ),
                *also_ended,
            ],
            entry,
            reason_code="user_correction",
            reason=self.asked.reason,
            receipt=number,
        )
        record = find_record(act.tenant_id, record_id)
        if record is None:
            raise RecordChanged(expected_id=record_id)
        receipt = write_receipt(
            act,
            entry,
            number=number,
            route=self.asked.route,
            record=before or record,
            before=targets or ([template] if template is not None else []),
            after=[record],
            evidence_ref=ref,
            reason=self.asked.reason,
            undo_until=until,
        )
        values = {one.id: one.value_text for one in (*targets, record)}
        if template is not None:
            values.setdefault(template.id, template.value_text)
        return Corrected(record=record, receipt=receipt, values=values)

    def _evidence(self, entry_id: str) -> tuple[str, str]:
        message = self.asked.context.named("message_ref")
        return ("message", message) if message is not None else ("trace", entry_id)

    def _new(self, record_id: str, evidence_kind: str, evidence_ref: str) -> NewRecord:
        template, principal, at = self.target, self.act.principal, self.act.at
        return NewRecord(
            id=record_id,
            subject_type=self.subject.type,
            subject_id=self.subject.id,
            key=self.key,
            value_text=self.value_text,
            authority=template.authority if template is not None else "fact",
            source_type="user_correction",
            evidence_kind=evidence_kind,
            evidence_ref=evidence_ref,
            observations=1,
            captured_at=at,
            captured_by=_captured_by(principal, self.asked.context.named("agent")),
            source_of_truth=None,
            level=self.scope.level,
            bindings_text=self.scope.text,
            valid_from=template.valid_from if template is not None and self._begins_later else None,
            valid_until=template.valid_until if template is not None else None,
            revalidate_on=template.revalidate_on if template is not None else (),
            route=template.route if template is not None else self.asked.route,
            broadened=self.asked.broaden,
            derived_from=(),
            sensitivity=template.sensitivity if template is not None else "none",
            retain_value=template.retain_value if template is not None else False,
            trust="unverified" if principal.is_agent else "asserted",
            written_by=principal.writer,
            written_by_role=principal.role,
            recorded_at=at,
            is_upcoming=self._begins_later,
        )


def _captured_by(principal: Principal, agent: str | None) -> str:
    if agent is not None and _CAPTURED_BY.fullmatch(agent):
        return agent
    if principal.kind in ("member", "link"):
        return f"page@{settings.KINDMEM_VERSION}"
    return f"{principal.name}@1"
