"""What begins on a later day: until then the record that holds now keeps the slot, on that day it takes its place.

Recall needs nobody to have done so: of two in a slot it answers with the one that has begun. Whoever next writes about
the same thing, or the worker, or a recall that meets it, ends the earlier one as of that day's first moment.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memory.access import Principal
from memory.hold_naming import is_record_held
from memory.records import clock
from memory.records.acts import Act, Touched, ended, scope_of
from memory.records.ending import Ending, expire, supersede
from memory.records.record import Record
from memory.records.slot import Slot
from memory.records.store import (
    find_records,
    link_superseded,
    lock_thing,
    record_in_slot,
    update_records,
)

_BEGUN = (
    "r.is_upcoming AND r.status = 'active' AND r.review IS NULL AND r.valid_from <= %(today)s::date"
)
_OVERDUE = "r.status = 'active' AND r.review IS NULL AND r.valid_until < %(today)s::date"


def lock_thing_today(
    principal: Principal, subject_type: str, subject_id: str, key: str, *, expires: bool = True
) -> None:
    """Take the lock of one (subject, key), let what has begun there have its place, and expire what is past its last day.

    `expires` False: for who forgets it, and needs its value to know it again.
    """
    lock_thing(principal.tenant_id, subject_type, subject_id, key)
    today = clock.day_of(clock.now(), principal.time_zone)
    due = find_records(
        principal.tenant_id,
        "r.subject_type = %(type)s::text AND r.subject_id = %(subject)s::text AND r.key = %(key)s::text "
        f"AND ({_BEGUN} OR {_OVERDUE}) ORDER BY r.id",
        {"type": subject_type, "subject": subject_id, "key": key, "today": today},
    )
    overdue = [one.id for one in due if one.valid_until is not None and one.valid_until < today]
    for one in due:
        if one.is_upcoming:
            _begin(principal, one)
    if overdue and expires:
        _expire(principal, overdue)


def begun_things(
    principal: Principal, *, ids: Sequence[str] | None = None, limit: int
) -> list[tuple[str, str, str]]:
    """Subject type, subject id and key of what has begun and has not taken its place; of these ids, or of all."""
    found = find_records(
        principal.tenant_id,
        f"{_BEGUN} AND (%(ids)s::text[] IS NULL OR r.id = ANY(%(ids)s::text[])) "
        "ORDER BY r.valid_from, r.id LIMIT %(limit)s::int",
        {
            "ids": None if ids is None else list(ids),
            "limit": limit,
            "today": clock.day_of(clock.now(), principal.time_zone),
        },
    )
    return sorted({(one.subject_type, one.subject_id, one.key) for one in found})


def _expire(principal: Principal, ids: Sequence[str]) -> None:
    """What is past its last day is expired by whoever meets it: no act keeps it in use or answers with it."""
    act = Act(principal, "expired")
    endings = expire(principal.tenant_id, ids, act.at)
    if endings:
        entry = act.log(recordIds=[one.id for one in endings], reason="valid-until")
        act.keep(ended(endings, "expired"), entry, reason_code="valid-until")


def slot_of(tenant_id: UUID, thing: tuple[str, str, str], level: str, bindings_text: str) -> Slot:
    """What fills the two places of a slot of a thing (subject type, subject id, key)."""
    present, upcoming = (
        record_in_slot(tenant_id, *thing, level, bindings_text, upcoming=is_later)
        for is_later in (False, True)
    )
    return Slot(present, upcoming)


def _begin(principal: Principal, one: Record) -> None:
    present = slot_of(
        principal.tenant_id,
        (one.subject_type, one.subject_id, one.key),
        one.level,
        one.bindings_text,
    ).present
    began_at = _began_at(principal, one, present)
    act = Act(principal, "began")
    touched: list[Touched] = []
    others: list[Ending] = []
    if present is not None and _takes_the_place_of(act.tenant_id, one, present):
        others = supersede(
            act.tenant_id,
            [present],
            began_at,
            retire_unless=one.value_text if one.is_a_persons_word else None,
        )
        link_superseded(act.tenant_id, present.id, one.id, began_at)
        touched = [Touched(present.id, "superseded", scope_of(present), from_status="active")]
    elif present is not None:
        # What is held is sealed, and a rule gives way to nothing but a rule: one of the two ends without a successor.
        goes = one if present.authority == "policy" != one.authority else present
        others = expire(act.tenant_id, [goes.id], began_at)
    if one.id not in {other.id for other in others}:
        update_records(act.tenant_id, [one.id], began_at, is_upcoming=False)
        made = Touched(
            one.id,
            "active",
            scope_of(one),
            from_status="active",
            from_record_id=touched[0].record_id if touched else None,
            is_main=True,
        )
        touched = [made, *touched]
    expired = ended(others, "expired")
    if not any(row.is_main for row in touched):
        expired = [replace(row, is_main=row.record_id == one.id) for row in expired]
    entry = act.log(
        recordId=one.id,
        reason="valid-from",
        supersedes=[row.record_id for row in touched if not row.is_main],
        expired=[other.id for other in others],
    )
    act.keep([*touched, *expired], entry, reason_code="valid-from")


def _takes_the_place_of(tenant_id: UUID, one: Record, present: Record) -> bool:
    return not is_record_held(tenant_id, present.id) and (
        (present.authority == "policy") == (one.authority == "policy")
    )


def _began_at(principal: Principal, one: Record, present: Record | None) -> datetime:
    """The first moment of its first day; or when the later of the two was written, if that was after it."""
    began = clock.start_of(one.valid_from, principal.time_zone) if one.valid_from else clock.now()
    return max(began, one.recorded_at, present.recorded_at if present is not None else began)
