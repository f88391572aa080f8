"""What becomes of a write when its slot (subject, key, level, bindings) is filled. A pure decision.

Source: the product contract, I8: the same value is the first record; a newer user's word supersedes; an inference
against a person's word waits; anything else is told that the record changed. A slot has two places: what holds now, and
what will hold from a later day on; on that day the one takes the place of the other.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from uuid import UUID

from memory.records.overdue import as_shown
from memory.records.record import Record
from memory.records.shape import Draft
from memory.records.store import record_in_slot


class Outcome(Enum):
    INSERT = "insert"
    FIRST = "first"
    SUPERSEDE = "supersede"
    PAST = "past"
    """It held before the active record does: superseded from the start."""
    PENDING = "pending"
    CHANGED = "changed"
    POLICY = "policy"
    """A policy stands there, and only a policy takes its place."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Its active records: what holds now, and what will."""

    present: Record | None = None
    upcoming: Record | None = None

    def on(self, today: date) -> "Slot":
        """As it is on a day, whether or not anybody let it begin and end there: for who only reads."""
        present, upcoming = (
            None if one is None or as_shown(one, today).status != "active" else one
            for one in (self.present, self.upcoming)
        )
        if (
            upcoming is not None
            and upcoming.valid_from is not None
            and upcoming.valid_from <= today
        ):
            return Slot(upcoming)
        return Slot(present, upcoming)


@dataclass(frozen=True, slots=True)
class Filling:
    """`occupant`: the record that the outcome is about; `ends`: those whose place it takes at once."""

    outcome: Outcome
    occupant: Record | None = None
    ends: tuple[Record, ...] = ()


def filling(
    slot: Slot, draft: Draft, *, begins_later: bool, speaks: bool, spoken_at: datetime
) -> Filling:
    """A write that begins later leaves what holds now in its place; one without a first day is about then, too."""
    if begins_later:
        # Of two words about a time to come, the newer one stands, whichever begins first.
        undated = replace(draft, valid_from=None)
        rival = slot.upcoming or slot.present
        what = outcome(rival, undated, speaks=speaks, spoken_at=spoken_at)
        if what is not Outcome.SUPERSEDE or rival is None:
            return Filling(what, rival)
        if rival is slot.present and _RANK[draft.source_type] <= _RANK[rival.source_type]:
            return Filling(Outcome.INSERT, rival)
        return Filling(what, rival, (rival,))
    rival = slot.present or (slot.upcoming if draft.valid_from is None else None)
    what = outcome(rival, draft, speaks=speaks, spoken_at=spoken_at)
    is_users_word = speaks and draft.source_type in ("user_stated", "user_correction")
    if rival is not None and rival is slot.upcoming and is_users_word and what is Outcome.CHANGED:
        # An older word, and nothing holds until then: it does.
        is_outranked = _RANK[rival.source_type] > _RANK[draft.source_type]
        return Filling(what if is_outranked else Outcome.INSERT, rival)
    if rival is None or what not in (Outcome.SUPERSEDE, Outcome.FIRST):
        return Filling(what, rival)
    if rival is slot.upcoming:
        # The same is said of now what was said of later: it holds from now on.
        what = Outcome.SUPERSEDE if is_users_word else what
        return Filling(what, rival, (rival,) if what is Outcome.SUPERSEDE else ())
    if what is Outcome.FIRST:
        return Filling(what, rival)
    later = slot.upcoming
    if later is None or draft.valid_from is not None or not is_users_word:
        return Filling(what, rival, (rival,))
    of_later = outcome(later, draft, speaks=speaks, spoken_at=spoken_at)
    is_taken_back = of_later in (Outcome.SUPERSEDE, Outcome.FIRST)
    return Filling(what, rival, (rival, later) if is_taken_back else (rival,))


_RANK = {"user_stated": 1, "user_correction": 1, "system_record": 2, "agent_inferred": 3}
"""As recall ranks them: of two in one slot, the one that begins later must not be outranked when it does."""


def outcome(occupant: Record | None, draft: Draft, *, speaks: bool, spoken_at: datetime) -> Outcome:
    """`speaks`: the writer's acts count, or an agent's evidence resolved. `spoken_at`: when the word was captured."""
    if occupant is None:
        return Outcome.INSERT
    is_named = speaks and occupant.id in draft.supersedes
    if "policy" in (occupant.authority, draft.authority):
        return _of_policy(occupant, draft, is_named=is_named)
    is_users_word = speaks and draft.source_type in ("user_stated", "user_correction")
    is_guess = occupant.source_type == "agent_inferred"
    if occupant.value_text == draft.value_text:
        return Outcome.SUPERSEDE if is_users_word and is_guess else Outcome.FIRST
    if draft.source_type == "agent_inferred" and occupant.is_a_persons_word:
        return Outcome.PENDING
    if is_named:
        return Outcome.SUPERSEDE
    if speaks and draft.source_type != "agent_inferred" and _held_before(draft, occupant):
        return Outcome.PAST
    # Its writer's clock may have been ahead of ours: it was said by the time it was told.
    if is_users_word and (is_guess or spoken_at >= min(occupant.captured_at, occupant.recorded_at)):
        return Outcome.SUPERSEDE
    return Outcome.CHANGED


def _of_policy(occupant: Record, draft: Draft, *, is_named: bool) -> Outcome:
    if draft.authority != "policy":
        return Outcome.POLICY
    if occupant.authority == "policy" and occupant.source_of_truth == draft.source_of_truth:
        return Outcome.FIRST
    return Outcome.SUPERSEDE if is_named else Outcome.CHANGED


def _held_before(draft: Draft, occupant: Record) -> bool:
    return (
        draft.valid_from is not None
        and occupant.valid_from is not None
        and draft.valid_from < occupant.valid_from
    )


def other_in_slot_of(
    tenant_id: UUID,
    record: Record,
    *,
    level: str | None = None,
    bindings_text: str | None = None,
    upcoming: bool | None = None,
) -> Record | None:
    """Another active record that fills the slot of this one, or the slot that it would have with what is given."""
    occupant = record_in_slot(
        tenant_id,
        record.subject_type,
        record.subject_id,
        record.key,
        record.level if level is None else level,
        record.bindings_text if bindings_text is None else bindings_text,
        upcoming=record.is_upcoming if upcoming is None else upcoming,
    )
    return occupant if occupant is not None and occupant.id != record.id else None
