"""What a correction asks, which record it is about, and whether that is still the one that the caller saw.

The record pointed at, or the one that recall would answer with in the same context. Source: the product contract, I4
and I9.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.access import Principal
from memory.errors import BadInput, RecordChanged, SubjectRequired
from memory.queries.recall_candidates import Question, Subject, recall_candidates
from memory.records import clock
from memory.records.bindings import Context
from memory.records.decision import Candidate, Fit, best_of
from memory.records.guard import may_read_record
from memory.records.record import Record
from memory.records.store import find_record, readable_record


@dataclass(frozen=True, slots=True)
class Correction:
    """What is asked.

    `record_id`: the record that the caller points at; else `key` and context find it. `expect`: the record seen;
    `seen`: the others that were shown to end with it.
    """

    new_value: Any
    context: Context
    key: str | None = None
    record_id: str | None = None
    subject: Subject | None = None
    broaden: bool = False
    expect: str | None = None
    seen: Sequence[str] = ()
    evidence: tuple[str, str] | None = None
    reason: str | None = None
    route: str = "fix-value"

    def body(self) -> dict[str, Any]:
        """As it is kept while it waits for review."""
        named = {
            "new_value": self.new_value,
            "context": {**self.context.values, "broaden_to": self.context.broaden_to},
            "key": self.key,
            "record_id": self.record_id,
            "subject": None if self.subject is None else [self.subject.type, self.subject.id],
            "broaden": self.broaden,
            "evidence": None if self.evidence is None else list(self.evidence),
            "reason": self.reason,
            "route": self.route,
        }
        return {name: value for name, value in named.items() if value is not None}


def target_of(principal: Principal, asked: Correction) -> Record | None:
    """The record that is corrected: the one pointed at, else what recall would answer with in this context."""
    if asked.record_id is not None:
        record = readable_record(principal, asked.record_id)
        if record.status != "active":
            raise RecordChanged(
                active_id=record.superseded_by,
                expected_id=record.id,
                status=record.status,
                differs=["status"],
            )
        if asked.key is not None and asked.key != record.key:
            raise BadInput.at("/key", "is not the key of this record")
        _check_subject(asked, record)
        return record
    found = _matching(principal, asked)
    return find_record(principal.tenant_id, found.id) if found is not None else None


def check_one_person(asked: Correction) -> None:
    """Raises BadInput when the subject is one person and the context another's."""
    user_id, subject = asked.context.user_id, asked.subject
    if subject is not None and subject.type == "user" and user_id not in (None, subject.id):
        raise BadInput.at("/context/user_id", "is not the person named as the subject")


def _check_subject(asked: Correction, record: Record) -> None:
    """Raises BadInput when the case is one of another person, project, client or org than the record is about."""
    kind, subject_id = record.subject_type, record.subject_id
    if asked.subject is not None and asked.subject.type == kind and asked.subject.id != subject_id:
        raise BadInput.at("/subject", "is not the subject of this record")
    name = f"{kind}_id"
    if name in asked.context.values and asked.context.values[name] != subject_id:
        raise BadInput.at(f"/context/{name}", f"is not the {kind} that this record is about")


def _matching(principal: Principal, asked: Correction) -> Candidate | None:
    question = Question(
        context=asked.context, keys=[asked.key or ""], subject=_named(principal, asked)
    )
    candidates = recall_candidates(principal, question, clock.now())
    for fit in (Fit.POLICY, Fit.POINTER, Fit.MATCH):
        fitting = [one for one in candidates if one.fit is fit]
        if not fitting:
            continue
        people = {one.subject_id for one in fitting if one.subject_type == "user"}
        if len(people) > 1 or any(one.several_people for one in fitting):
            raise SubjectRequired
        return best_of(fitting)[0]
    return None


def _named(principal: Principal, asked: Correction) -> Subject | None:
    if asked.subject is not None:
        return asked.subject
    if asked.context.user_id is not None:
        return Subject("user", asked.context.user_id)
    return Subject("user", principal.subject) if principal.subject is not None else None


def subject_of(principal: Principal, asked: Correction, target: Record | None) -> Subject:
    """Whom the correction is about: as the record corrected, where the caller may write about that; else the person
    named.
    """
    named = _named(principal, asked)
    if target is None:
        if named is None:
            raise SubjectRequired
        return named
    is_theirs = may_read_record(principal, target.subject_type, target.subject_id, target.bindings)
    return Subject(target.subject_type, target.subject_id) if is_theirs or named is None else named


def check_unchanged(asked: Correction, seen: Record | None, target: Record | None) -> None:
    seen_id = seen.id if seen is not None else None
    active_id = target.id if target is not None else None
    expected = asked.expect if asked.expect is not None else seen_id
    if active_id == seen_id and active_id == expected:
        return
    raise changed(expected, target)


def check_instance(asked: Correction, occupant: Record | None) -> None:
    """Of two who saw the same record and correct the same instance of it, the second has not seen the first's correction.

    occupant: what is active in the instance's own place. Raises RecordChanged.
    """
    if asked.record_id is None or asked.expect is None or occupant is None:
        return
    if occupant.id != asked.expect and occupant.id not in asked.seen:
        raise changed(asked.expect, occupant)


def changed(expected_id: str | None, target: Record | None) -> RecordChanged:
    """The refusal that shows what is there instead of what was expected."""
    return RecordChanged(
        active_id=target.id if target is not None else None,
        expected_id=expected_id,
        differs=["value"] if target is not None else ["status"],
        current=None
        if target is None
        else {
            "recordId": target.id,
            "value": target.value,
            "sourceType": target.source_type,
            "scope": {"level": target.level, "bindings": target.bindings},
        },
    )
