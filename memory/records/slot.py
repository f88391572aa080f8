"""What becomes of a write when its slot (subject, key, level, bindings) is filled. A pure decision.

Source: the product contract, I8: the same value is the first record; a newer user's word supersedes; an inference
against a person's word waits; anything else is told that the record changed.
"""

from datetime import datetime
from enum import Enum

from memory.records.record import Record
from memory.records.shape import Draft


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
    if is_users_word and (is_guess or spoken_at >= occupant.captured_at):
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
