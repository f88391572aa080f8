"""Let a proposed record be used: an admin's decision, under the rules that hold for what an admin remembers.

It takes the place of what fills its slot and of what it said it supersedes. What was forgotten, retired or forbidden since
stays so; what it was derived from bounds it as it is now. Source: the product contract, I8, I10 and "Trust and poisoning".
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.canonical import canonical
from memory.errors import Forgotten, InferenceRefused, InvariantViolated, RecordChanged, Retired
from memory.queries.review_effect import begins_later_than_today, would_end
from memory.queries.reviews import ReviewItem
from memory.records.acts import Act, Touched, ended, scope_of, scope_text
from memory.records.ending import Ending, supersede
from memory.records.lineage import Bounds, bounded, lock_parents, tighten_descendants
from memory.records.record import Record
from memory.records.routes import register_unconfigured
from memory.records.rules import bygones
from memory.records.store import bindings_hash, find_record, update_records
from memory.records.superseding import refuse_policy
from memory.records.upcoming import slot_of
from memory.records.words_searched import index_record


def admit_record(act: Act, item: ReviewItem, record: Record, expect: str | None) -> Record:
    """The record, in use. `record` was read under its thing's lock.

    Raises Forgotten, Retired, InferenceRefused, InvariantViolated, LineageForgotten, PolicyNotCorrectable, RecordChanged,
    LegalHoldActive.
    """
    _check_bygones(act, record)
    bounds = _bounds(act, record)
    bindings_text = canonical(bounds.bindings)
    item = replace(item, level=bounds.level, bindings_text=bindings_text)
    later = begins_later_than_today(act.principal, record)
    targets = would_end(act.principal, item, is_later=later)
    check_seen(expect, targets)
    thing = (record.subject_type, record.subject_id, record.key)
    present = slot_of(act.tenant_id, thing, bounds.level, bindings_text).present
    for one in (*targets, *([present] if present is not None else [])):
        if one.authority == "policy" and record.authority != "policy":
            raise refuse_policy(act.principal, one)
    others = supersede(act.tenant_id, targets, act.at, retire_unless=record.value_text)
    if {*(one.id for one in targets), *(one.id for one in others)} & set(record.derived_from):
        # It would outlive what it was derived from.
        raise InvariantViolated(invariant="I10")
    register_unconfigured(act.principal, record.route, act.at)
    _link(act.tenant_id, record.id, [one.id for one in targets], act.at)
    update_records(
        act.tenant_id,
        [record.id],
        act.at,
        review=None,
        review_reason=None,
        is_upcoming=later,
        level=bounds.level,
        bindings_text=bindings_text,
        bindings_hash=bindings_hash(bindings_text),
        valid_until=bounds.valid_until,
        retain_value=bounds.retain_value,
        disputed_at=act.at if bounds.is_disputed else None,
    )
    return _written(act, item, record, targets, others)


def check_seen(expect: str | None, targets: Sequence[Record]) -> None:
    """Raise RecordChanged when something else stands there than who decides has seen; `expect` None says nothing."""
    active = targets[0] if targets else None
    if expect is None or expect == (active.id if active is not None else ""):
        return
    raise RecordChanged(
        active_id=active.id if active is not None else None,
        expected_id=expect or None,
        differs=["value"],
        current=active.wire() if active is not None else None,
    )


def _check_bygones(act: Act, record: Record) -> None:
    gone = bygones(act.tenant_id, record)
    if gone.inference_refused and record.source_type == "agent_inferred":
        raise InferenceRefused
    if gone.value_forgotten_at is not None:
        raise Forgotten
    if gone.value_retired_at is not None:
        raise Retired


def _bounds(act: Act, record: Record) -> Bounds:
    asked = Bounds(
        level=record.level,
        bindings=record.bindings,
        valid_until=record.valid_until,
        trust=record.trust,
        retain_value=record.retain_value,
    )
    bounds = bounded(asked, lock_parents(act.principal, record.derived_from))
    if bounds.is_pending:
        # What it was derived from waits itself, or has ended.
        raise InvariantViolated(invariant="I10")
    return bounds


def _link(tenant_id: UUID, record_id: str, superseded: Sequence[str], at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at) "
            "SELECT %(tenant)s::uuid, s, %(id)s::text, %(at)s::timestamptz FROM unnest(%(ids)s::text[]) AS s",
            {"tenant": tenant_id, "id": record_id, "ids": list(superseded), "at": at},
        )


def _written(
    act: Act, item: ReviewItem, record: Record, targets: Sequence[Record], others: Sequence[Ending]
) -> Record:
    payload: dict[str, Any] = {
        "recordId": record.id,
        "reviewReason": item.reason,
        "supersedes": [one.id for one in targets],
        "expired": [one.id for one in others],
        "valueDigest": act.digest(record.value_text),
    }
    entry = act.log(**payload)
    act.keep(
        [
            Touched(
                record_id=record.id,
                to_status="active",
                from_status="active",
                scope_text=scope_text(str(item.level), item.bindings_text or "{}"),
                from_record_id=targets[0].id if targets else None,
                is_main=True,
            ),
            *(
                Touched(one.id, "superseded", scope_of(one), from_status="active")
                for one in targets
            ),
            *ended(others, "expired"),
        ],
        entry,
        reason_code="approved",
    )
    after = find_record(act.tenant_id, record.id)
    if after is None:
        raise RecordChanged(expected_id=record.id)
    index_record(act.tenant_id, after, act.principal.search_language)
    tighten_descendants(act.tenant_id, after, act.at)
    return after
