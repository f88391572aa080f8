"""What recall answers from the records that come into question for one key. A pure function over what SQL found.

Narrowest level first, then more bindings, then a user's word over a system record over an inference; the newest
decides only between records of one subject, level and bindings. A matching policy outranks the rest. Source: the
product contract, recall steps 2 to 6.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Literal

Decision = Literal["apply", "ask", "revalidate", "none"]
Reason = Literal[
    "user-stated",
    "user-correction",
    "confirmed-inference",
    "consequential",
    "unconfirmed-inference",
    "disputed",
    "conflict",
    "subject-unnamed",
    "out-of-context",
    "system-record",
    "policy-fetched",
    "source-unavailable",
    "source-not-allowed",
    "policy-as-of",
    "nothing-remembered",
]
"""The closed list; docs/records.md says when each is given."""

ENOUGH_OBSERVATIONS = 3


class Fit(IntEnum):
    """How a candidate fits the context; smaller outranks."""

    OVERDUE = 0
    """Past its last day, and to be expired as it was met."""
    POLICY = 1
    POINTER = 2
    """A policy that an agent pointed at and nobody confirmed: none beside one that somebody else did."""
    MATCH = 3
    ELSEWHERE = 4
    """Remembered, but not for this context."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """`several_people`: whether those that fit alike are about more than one person. `is_upcoming`: it has just begun, and
    takes the place of what else is in its slot.
    """

    id: str
    key: str
    fit: Fit
    subject_type: str
    subject_id: str
    source_type: str
    evidence_ref: str
    source_of_truth: str | None
    route: str
    url_template: str | None
    observations: int
    is_confirmed: bool
    is_disputed: bool
    level_rank: int
    binding_count: int
    source_rank: int
    bindings_text: str
    trust: str
    captured_at: datetime
    recorded_at: datetime
    is_upcoming: bool
    value_text: str | None
    several_people: bool = False

    @property
    def rank(self) -> tuple[int, int, int]:
        return (self.level_rank, -self.binding_count, self.source_rank)

    @property
    def slot(self) -> tuple[str, str, int, str]:
        return (self.subject_type, self.subject_id, self.level_rank, self.bindings_text)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`record`: the one answered with; `shows_value`: whether its value may go out; `used`: whether this counts as a
    use.
    """

    decision: Decision
    reason: Reason
    record: Candidate | None = None
    shows_value: bool = True
    candidates: Sequence[Candidate] = field(default=())
    used: bool = False


NOTHING = Verdict("none", "nothing-remembered")


def decide(
    candidates: Sequence[Candidate],
    *,
    is_consequential: bool,
    is_named: bool,
    own_subject: str | None = None,
) -> Verdict:
    """The answer for one key.

    `is_named`: the caller named a subject; `own_subject`: the person that the caller is.
    """
    for fit in (Fit.POLICY, Fit.POINTER, Fit.MATCH, Fit.ELSEWHERE):
        fitting = [one for one in candidates if one.fit is fit]
        if not fitting:
            continue
        if fit is Fit.ELSEWHERE:
            return _elsewhere(fitting, is_named=is_named, own_subject=own_subject)
        if _are_about_several_people(fitting):
            return Verdict("ask", "subject-unnamed")
        best = best_of(fitting)
        if fit in (Fit.POLICY, Fit.POINTER):
            return _of_policies(best)
        if len({one.value_text for one in best}) > 1:
            return Verdict("ask", "conflict", candidates=best)
        return _of_match(best[0], is_consequential=is_consequential)
    return NOTHING


def best_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The equally good ones, newest first, one a slot."""
    rank = min(one.rank for one in candidates)
    best = sorted(
        (one for one in candidates if one.rank == rank),
        key=lambda one: (one.is_upcoming, one.recorded_at, one.id),
        reverse=True,
    )
    by_slot: dict[tuple[str, str, int, str], Candidate] = {}
    for one in best:
        by_slot.setdefault(one.slot, one)
    return list(by_slot.values())


def _are_about_several_people(candidates: Sequence[Candidate]) -> bool:
    people = {one.subject_id for one in candidates if one.subject_type == "user"}
    return len(people) > 1 or any(one.several_people for one in candidates)


def _of_policies(best: Sequence[Candidate]) -> Verdict:
    if len({one.source_of_truth for one in best}) > 1:
        return Verdict("ask", "conflict", candidates=best)
    return Verdict("revalidate", "policy-fetched", record=best[0], used=True)


def _of_match(record: Candidate, *, is_consequential: bool) -> Verdict:
    if record.is_disputed:
        return Verdict("ask", "disputed", record=record, used=True)
    if record.source_type == "system_record":
        return Verdict("revalidate", "system-record", record=record, used=True)
    is_guess = record.source_type == "agent_inferred"
    if is_guess and (record.observations < ENOUGH_OBSERVATIONS or not record.is_confirmed):
        return Verdict("ask", "unconfirmed-inference", record=record, used=True)
    if is_consequential:
        return Verdict("ask", "consequential", record=record, used=True)
    if is_guess:
        return Verdict("apply", "confirmed-inference", record=record, used=True)
    if record.source_type == "user_correction":
        return Verdict("apply", "user-correction", record=record, used=True)
    return Verdict("apply", "user-stated", record=record, used=True)


def _elsewhere(
    candidates: Sequence[Candidate], *, is_named: bool, own_subject: str | None
) -> Verdict:
    best = best_of(candidates)
    is_shown = not _are_about_several_people(candidates) and (
        is_named
        or (
            own_subject is not None
            and all((one.subject_type, one.subject_id) == ("user", own_subject) for one in best)
        )
    )
    if not is_shown:
        return Verdict("ask", "out-of-context", shows_value=False)
    if len({one.value_text for one in best}) > 1:
        return Verdict("ask", "out-of-context", candidates=best)
    return Verdict("ask", "out-of-context", record=best[0])
