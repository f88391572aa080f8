"""What a derived record may be: never wider, more trusted or longer-lived than what it was derived from.

A record is cut to its parents when it is written, and again when a parent appears or tightens: the narrowest level,
all of the parents' bindings, the earliest end, the least trust. What no context could match is refused, or waits for
review when its parent came later. Source: the product contract, I7 and I10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.canonical import canonical
from memory.errors import InvariantViolated, LineageForgotten
from memory.models.record import LEVELS
from memory.records.bindings import agree, covers
from memory.records.guard import may_read_record
from memory.records.record import Record
from memory.records.slot import other_in_slot_of
from memory.records.store import bindings_hash, find_records, update_records
from memory.records.words_searched import remove_words

TRUST = ("unverified", "asserted", "verified")
_MOST_TIGHTENED = 10_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What parents bound. `is_pending`: it waits for review, since a parent does or since nothing can match it."""

    level: str
    bindings: dict[str, Any]
    valid_until: date | None
    trust: str
    retain_value: bool
    is_disputed: bool = False
    is_pending: bool = False

    def within(self, parent: "Record") -> "Bounds":
        """These bounds, cut to one parent's."""
        theirs = parent.bindings
        ends = [day for day in (self.valid_until, parent.valid_until) if day is not None]
        return replace(
            self,
            level=min(self.level, parent.level, key=LEVELS.index),
            bindings={**theirs, **self.bindings},
            valid_until=min(ends, default=None),
            trust=min(self.trust, parent.trust, key=TRUST.index),
            retain_value=self.retain_value and parent.retain_value,
            is_disputed=self.is_disputed or parent.disputed_at is not None,
            is_pending=self.is_pending
            or parent.review is not None
            or parent.status != "active"
            or not agree(theirs, self.bindings),
        )


def lock_parents(principal: Principal, parent_ids: Sequence[str]) -> list[Record]:
    """The parents that are there for the caller, kept from ending until the transaction does.

    One that the caller may not read is as one that is not there yet: named, and obeyed when it ends or tightens. Raises
    LineageForgotten for a tombstone.
    """
    tenant_id = principal.tenant_id
    if not parent_ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM memory_record WHERE tenant_id = %s::uuid AND id = ANY(%s::text[]) ORDER BY id FOR SHARE",
            [tenant_id, list(parent_ids)],
        )
    parents = [
        one
        for one in find_records(tenant_id, "r.id = ANY(%(ids)s::text[])", {"ids": list(parent_ids)})
        if may_read_record(principal, one.subject_type, one.subject_id, one.bindings)
    ]
    gone = sorted(one.id for one in parents if one.status == "deleted" and one.review is None)
    if gone:
        raise LineageForgotten(ids=gone)
    return parents


def bounded(bounds: Bounds, parents: Sequence[Record]) -> Bounds:
    """The bounds cut to every parent's. One that ended, or whose bindings contradict, is InvariantViolated (I10)."""
    for parent in parents:
        fits = parent.status == "active" and agree(parent.bindings, bounds.bindings)
        if parent.review is None and not fits:
            raise InvariantViolated(invariant="I10")
        bounds = bounds.within(parent)
    return bounds


def is_within(scope: Bounds, parents: Sequence[Record]) -> bool:
    """Whether a wider scope that somebody asks for is still within every parent's."""
    return all(
        LEVELS.index(scope.level) <= LEVELS.index(parent.level)
        and covers(parent.bindings, scope.bindings)
        for parent in parents
    )


def tighten_descendants(
    tenant_id: UUID, parent: Record, at: datetime, *, is_new: bool = True
) -> None:
    """Cut what was derived from a record that just appeared or, where it isn't new, tightened; and what was derived
    from that.
    """
    waiting, tightened = [parent], 0
    # Each cut only tightens, so circles and diamonds come to rest; the bound is for what nobody would write by hand.
    while waiting and tightened < _MOST_TIGHTENED:
        above = waiting.pop()
        for child in _active_children(tenant_id, above.id):
            changed = _tighten(tenant_id, child, above, at, is_new=is_new)
            if changed is not None:
                tightened += 1
                waiting.append(changed)


def _is_of_another_person(child: Record, parent: Record) -> bool:
    return parent.subject_type == "user" and (child.subject_type, child.subject_id) != (
        parent.subject_type,
        parent.subject_id,
    )


def _active_children(tenant_id: UUID, parent_id: str) -> list[Record]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id FROM memory_record r JOIN record_lineage l ON l.tenant_id = r.tenant_id AND l.record_id = r.id "
            "WHERE r.tenant_id = %s::uuid AND l.parent_id = %s::text AND r.status = 'active' ORDER BY r.id FOR UPDATE OF r",
            [tenant_id, parent_id],
        )
        ids = [row[0] for row in cursor.fetchall()]
    return find_records(tenant_id, "r.id = ANY(%(ids)s::text[])", {"ids": ids}) if ids else []


def _tighten(
    tenant_id: UUID, child: Record, parent: Record, at: datetime, *, is_new: bool
) -> Record | None:
    """The child as it is now, or None when the parent bounds nothing of it."""
    before = Bounds(
        level=child.level,
        bindings=child.bindings,
        valid_until=child.valid_until,
        trust=child.trust,
        retain_value=child.retain_value,
        is_disputed=child.disputed_at is not None,
        is_pending=child.review is not None,
    )
    after = before.within(parent)
    # Its readers must not learn from its bounds what is remembered about somebody else.
    if _is_of_another_person(child, parent) and (is_new or after != before):
        after = replace(before, is_pending=True)
    if after == before:
        return None
    bindings_text = canonical(after.bindings)
    if after.valid_until is not None and child.valid_from is not None:
        is_empty = after.valid_until < child.valid_from
        after = replace(
            after,
            valid_until=child.valid_until if is_empty else after.valid_until,
            is_pending=after.is_pending or is_empty,
        )
    if not after.is_pending:
        occupant = other_in_slot_of(
            tenant_id, child, level=after.level, bindings_text=bindings_text
        )
        after = replace(after, is_pending=occupant is not None)
    changes: dict[str, Any] = {
        "level": after.level,
        "bindings_text": bindings_text,
        "bindings_hash": bindings_hash(bindings_text),
        "valid_until": after.valid_until,
        "trust": after.trust,
        "retain_value": after.retain_value,
        "disputed_at": (child.disputed_at or at) if after.is_disputed else None,
    }
    if after.is_pending and child.review is None:
        changes |= {"review": "pending", "review_reason": "lineage"}
        remove_words(tenant_id, [child.id])
    update_records(tenant_id, [child.id], at, **changes)
    return replace(
        child,
        level=after.level,
        bindings_text=bindings_text,
        valid_until=after.valid_until,
        trust=after.trust,
        retain_value=after.retain_value,
        disputed_at=changes["disputed_at"],
        review=changes.get("review", child.review),
    )
