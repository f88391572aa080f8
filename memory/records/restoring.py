"""Bring back what a writer's records superseded, when those are rolled back: new records with new ids, as an undo writes them.

What was superseded by the same writer in turn is passed over for what that superseded. What was derived from something forgotten
since, or whose place is filled, does not come back.
"""

from collections.abc import Sequence

from django.db import connection

from memory.ids import new_text_id
from memory.quarantines import Selector, theirs_among
from memory.queries.records import begins_later
from memory.records.acts import Act
from memory.records.record import Record
from memory.records.slot import other_in_slot_of
from memory.records.store import NewRecord, find_records, insert_record

_MOST_STEPS = 100


def restore_superseded(act: Act, selector: Selector, record: Record) -> list[tuple[Record, str]]:
    """What came back in a record's place: (what it was, new id)."""
    return [
        (one, _restored(act, one))
        for one in _before(act, selector, record.supersedes)
        if _may_come_back(act, one)
    ]


def _before(act: Act, selector: Selector, ids: Sequence[str]) -> list[Record]:
    """The records of others that were superseded last."""
    found: dict[str, Record] = {}
    waiting = list(ids)
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        theirs = theirs_among(act.tenant_id, selector, waiting)
        records = find_records(
            act.tenant_id,
            "r.id = ANY(%(ids)s::text[]) AND r.status = 'superseded'",
            {"ids": waiting},
        )
        found |= {one.id: one for one in records if one.id not in theirs and one.review is None}
        waiting = [id for one in records if one.id in theirs for id in one.supersedes]
    return [found[one] for one in sorted(found)]


def _may_come_back(act: Act, old: Record) -> bool:
    if old.value_text is None and old.authority != "policy":
        return False
    parents = find_records(
        act.tenant_id, "r.id = ANY(%(ids)s::text[])", {"ids": list(old.derived_from)}
    )
    if any(one.status != "active" or one.review is not None for one in parents):
        return False
    later = begins_later(act.principal, old.valid_from)
    return other_in_slot_of(act.tenant_id, old, upcoming=later) is None


def _restored(act: Act, old: Record) -> str:
    record_id = new_text_id()
    with connection.cursor() as cursor:
        # Its value was retired for the one that is rolled back.
        cursor.execute(
            "DELETE FROM forgotten_fingerprint WHERE tenant_id = %s::uuid AND record_id = %s::text AND kind = 'retired-value'",
            [act.tenant_id, old.id],
        )
    insert_record(
        act.tenant_id,
        NewRecord(
            id=record_id,
            subject_type=old.subject_type,
            subject_id=old.subject_id,
            key=old.key,
            value_text=old.value_text,
            authority=old.authority,
            source_type=old.source_type,
            evidence_kind=old.evidence_kind,
            evidence_ref=old.evidence_ref,
            observations=old.observations,
            captured_at=old.captured_at,
            captured_by=old.captured_by,
            source_of_truth=old.source_of_truth,
            level=old.level,
            bindings_text=old.bindings_text,
            valid_from=old.valid_from,
            valid_until=old.valid_until,
            revalidate_on=old.revalidate_on,
            route=old.route,
            broadened=old.broadened,
            derived_from=old.derived_from,
            sensitivity=old.sensitivity,
            retain_value=old.retain_value,
            trust=old.trust,
            written_by=act.principal.writer,
            written_by_role=act.principal.role,
            recorded_at=act.at,
            confirmed_at=old.confirmed_at,
            disputed_at=old.disputed_at,
            is_upcoming=begins_later(act.principal, old.valid_from),
        ),
        language=act.principal.search_language,
    )
    return record_id
