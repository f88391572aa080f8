"""Which rule a violated constraint of the database is: its name → the class that the rule raises in Python.

Unknown names re-raise.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error as DatabaseError
from django.db import IntegrityError

from memory.errors.base import DomainError, InvariantViolated
from memory.errors.callers import MemberKeepsAnOwner
from memory.errors.facts import IdTaken
from memory.errors.lifecycle import ErasureInProgress, LegalHoldActive
from memory.errors.records import IdReused, PolicySourceExists, RecordChanged, RouteExists
from memory.errors.run_log import EntryIdTaken, RunClosed


def _invariant(name: str) -> Callable[[], DomainError]:
    return lambda: InvariantViolated(invariant=name)


CONSTRAINT_ERRORS: dict[str, Callable[[], DomainError]] = {
    "member_keeps_an_owner": MemberKeepsAnOwner,
    "fact_pkey": lambda: IdTaken(id=""),
    "log_entry_id_is_unique": lambda: EntryIdTaken(id=""),
    "fact_is_not_held": lambda: LegalHoldActive(ids=[]),
    "fact_hold_keeps_fact": lambda: LegalHoldActive(ids=[]),
    "erasure_is_not_running": ErasureInProgress,
    "fact_participant_needs_project": _invariant("participant-needs-project"),
    "fact_revision_valid_times_in_order": _invariant("valid-times-in-order"),
    "log_entry_append_only": _invariant("log-append-only"),
    "run_head_is_open": lambda: RunClosed(run_id=""),
    "log_entry_continues_chain": _invariant("log-continues-chain"),
    "memory_record_pkey": lambda: IdReused(id=""),
    "memory_record_one_active_per_slot": lambda: RecordChanged(),
    "memory_record_wide_inference_is_confirmed": _invariant("I1"),
    "memory_record_policy_points_to_its_source": _invariant("I2"),
    "memory_record_correction_is_of_one_instance": _invariant("I4"),
    "memory_record_sensitive_ends": _invariant("I6"),
    "memory_record_valid_dates_in_order": _invariant("valid-dates-in-order"),
    "memory_record_moves_forward": lambda: RecordChanged(),
    "record_supersession_one_successor": lambda: RecordChanged(),
    "record_value_held_is_sealed": lambda: LegalHoldActive(ids=[]),
    "correction_route_pkey": lambda: RouteExists(name=""),
    "policy_source_once_per_match": PolicySourceExists,
}
"""Constraint name → what the rule is called when it refuses."""


def constraint_of(error: BaseException) -> str | None:
    """The name of the constraint that a database error speaks of, if any."""
    cause = error.__cause__
    diagnostics = getattr(cause, "diag", None)
    return getattr(diagnostics, "constraint_name", None)


@contextmanager
def constraint_errors(**named: DomainError) -> Iterator[None]:
    """Turn a violated constraint into its rule's error; `named` says it better for this place.

    The transaction is spent afterwards: let the error leave it. Unknown constraint names re-raise.
    """
    try:
        yield
    except (IntegrityError, DatabaseError) as error:
        name = constraint_of(error)
        if name in named:
            raise named[name] from error
        if name in CONSTRAINT_ERRORS:
            raise CONSTRAINT_ERRORS[name]() from error
        raise
