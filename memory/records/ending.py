"""The one way that records end: superseded, expired, forgotten. Everything destructive goes through here.

What ends takes along what was derived from it. Rows are locked first, by id, and the set is taken again until it no
longer grows; then held values are sealed, values go, kept answers are withheld. Superseding what is held is refused.
Source: the product contract, I5, I7 and "Hold".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.errors import LegalHoldActive, RecordChanged
from memory.hold_naming import record_is_held
from memory.records import fingerprints
from memory.records.copies import copies_of
from memory.records.guard import may_read_record
from memory.records.record import Record
from memory.records.sealing import destroy_undo_copies, seal_for_hold, seal_for_undo
from memory.records.store import update_records
from memory.records.words_searched import remove_words

FingerprintKind = Literal["forgotten-key", "forgotten-value", "retired-value", "never-infer"]


@dataclass(frozen=True, slots=True)
class Ending:
    """A record that ended, as it was before.

    `keeps_value`: past its end, for the history; never what is sensitive.
    """

    id: str
    status: str
    review: str | None
    subject_type: str
    subject_id: str
    key: str
    level: str
    bindings_text: str
    keeps_value: bool
    is_held: bool
    value_text: str | None

    def is_readable_by(self, principal: Principal) -> bool:
        return may_read_record(
            principal, self.subject_type, self.subject_id, json.loads(self.bindings_text)
        )


@dataclass(frozen=True, slots=True)
class Undo:
    """Until when, and under which receipt, values are kept sealed for an undo."""

    receipt: str
    until: datetime


DESCENDANTS = """
WITH RECURSIVE gone (id) AS (
  SELECT unnest(%(roots)s::text[])
  UNION
  SELECT l.record_id FROM gone g JOIN record_lineage l ON l.tenant_id = %(tenant)s::uuid AND l.parent_id = g.id
)
"""
# UNION drops what was seen, so cycles end. Forgetting also takes the earlier versions that a record superseded,
# what an undo brought back from any of them, and what it was brought back from.
FORGOTTEN_WITH = """
WITH RECURSIVE gone (id) AS (
  SELECT unnest(%(roots)s::text[])
  UNION
  SELECT n.id FROM gone g, LATERAL (
    SELECT l.record_id AS id FROM record_lineage l WHERE l.tenant_id = %(tenant)s::uuid AND l.parent_id = g.id
    UNION ALL
    SELECT s.superseded_id FROM record_supersession s WHERE s.tenant_id = %(tenant)s::uuid AND s.successor_id = g.id
    UNION ALL
    SELECT a.record_id FROM record_act a
    WHERE a.tenant_id = %(tenant)s::uuid AND a.from_record_id = g.id AND a.act = 'undone'
    UNION ALL
    SELECT a.from_record_id FROM record_act a
    WHERE a.tenant_id = %(tenant)s::uuid AND a.record_id = g.id AND a.act = 'undone' AND a.from_record_id IS NOT NULL
  ) n
)
"""
# Whoever destroys shares this lock, so that a large hold is placed before or after; the set is always taken twice, so that the
# last look, a statement of its own, sees a hold that it had to wait for.
_LOCK = """
{closure}, sharing AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(new_items_lock(%(tenant)s::uuid)))
SELECT r.id, r.status, r.review, r.subject_type, r.subject_id, r.key, r.level, r.bindings_text,
       r.retain_value AND r.sensitivity <> 'sensitive', {held}, v.value_text
FROM memory_record r CROSS JOIN sharing LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
WHERE r.tenant_id = %(tenant)s::uuid AND r.id IN (SELECT id FROM gone) AND {condition}
ORDER BY r.id FOR UPDATE OF r
"""


def lock_closure(
    tenant_id: UUID, roots: Sequence[str], closure: str, condition: str
) -> list[Ending]:
    """The set, locked. What joins it while we wait for a lock is found by taking the set once more."""
    known: set[str] | None = None
    statement = _LOCK.format(closure=closure, condition=condition, held=record_is_held("r"))
    while True:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"tenant": tenant_id, "roots": list(roots)})
            endings = [Ending(*row) for row in cursor.fetchall()]
        ids = {one.id for one in endings}
        if not endings or ids == known:
            return endings
        known = ids


def expire(
    tenant_id: UUID, ids: Sequence[str], at: datetime, *, undo: Undo | None = None
) -> list[Ending]:
    """Expire active records and the active ones derived from them. Values go unless they are to be retained."""
    endings = lock_closure(tenant_id, ids, DESCENDANTS, "r.status = 'active'")
    if not endings:
        return []
    gone = [one.id for one in endings]
    update_records(tenant_id, gone, at, status="expired", ended_at=at)
    _stop_serving(tenant_id, gone, at)
    drop_values(tenant_id, [one for one in endings if not one.keeps_value], at, undo)
    return endings


def forget(
    tenant_id: UUID,
    root: Record,
    at: datetime,
    *,
    reason: str,
    undo: Undo | None = None,
    receipt: str | None = None,
    with_copies: bool = False,
) -> list[Ending]:
    """Tombstone a record, its earlier versions, all derived from them, and what waits for review of the same
    (subject, key); with its copies, what agents inferred there of the same values, too.

    The root's key and every value get a fingerprint. Values of held ones are sealed.
    """
    roots = [root.id, *_waiting(tenant_id, root)]
    endings = lock_closure(tenant_id, roots, FORGOTTEN_WITH, "r.status <> 'deleted'")
    while with_copies and (more := _copies(tenant_id, root, endings)):
        roots += more
        endings = lock_closure(tenant_id, roots, FORGOTTEN_WITH, "r.status <> 'deleted'")
    if not endings:
        return []
    gone = [one.id for one in endings]
    destroy_undo_copies(tenant_id, record_ids=gone)
    drop_values(tenant_id, endings, at, undo)
    bury(tenant_id, endings, at, reason)
    _stop_serving(tenant_id, gone, at)
    # The answer to a correction holds what it replaced, too.
    withhold_answers(tenant_id, replaced_by(tenant_id, gone), at)
    forget_traces(tenant_id, gone, at)
    digests: list[tuple[bytes, FingerprintKind, str]] = [
        (
            fingerprints.of_key(tenant_id, root.subject_type, root.subject_id, root.key),
            "forgotten-key",
            root.id,
        )
    ]
    digests += [
        (digest, "forgotten-value", one.id)
        for one in endings
        if (digest := value_digest(tenant_id, one))
    ]
    add_fingerprints(tenant_id, digests, at, receipt)
    return endings


def bury(tenant_id: UUID, endings: Sequence[Ending], at: datetime, reason: str) -> None:
    """Make tombstones of them; what had ended before keeps its time."""
    tomb: dict[str, Any] = {"status": "deleted", "deleted_at": at, "deleted_reason": reason}
    for was_active in (True, False):
        if ids := [one.id for one in endings if (one.status == "active") is was_active]:
            ended = {"ended_at": at} if was_active else {}
            update_records(tenant_id, ids, at, request_digest=None, **tomb, **ended)


def supersede(
    tenant_id: UUID,
    targets: Sequence[Record],
    at: datetime,
    *,
    retire_unless: str | None,
    receipt: str | None = None,
    undo: Undo | None = None,
) -> list[Ending]:
    """End active records for a successor that is written next; what else ended for it is returned.

    `retire_unless`: the successor's value text; any other value of the targets is retired, and what agents inferred of
    the same value expires along. None: nothing is retired. Raises LegalHoldActive, RecordChanged.
    """
    if held := [one.id for one in targets if one.hold_count > 0]:
        raise LegalHoldActive(ids=held)
    ids = [one.id for one in targets]
    if not ids:
        return []
    locked = lock_closure(
        tenant_id,
        ids,
        "WITH gone (id) AS (SELECT unnest(%(roots)s::text[]))",
        "r.status = 'active'",
    )
    if held := [one.id for one in locked if one.is_held]:
        raise LegalHoldActive(ids=held)
    if len(locked) != len(set(ids)):
        raise RecordChanged(expected_id=ids[0], differs=["status"])
    update_records(tenant_id, ids, at, status="superseded", ended_at=at)
    _stop_serving(tenant_id, ids, at)
    along: list[str] = []
    if retire_unless is not None:
        digests: list[tuple[bytes, FingerprintKind, str]] = [
            (digest, "retired-value", one.id)
            for one in locked
            if one.value_text != retire_unless and (digest := value_digest(tenant_id, one))
        ]
        add_fingerprints(tenant_id, digests, at, receipt)
        retired = [one.value_text for one in locked if one.value_text != retire_unless]
        along = copies_of(tenant_id, _thing(locked[0]), retired)
    children = [*_children(tenant_id, ids), *along]
    return expire(tenant_id, children, at, undo=undo) if children else []


def descendants(tenant_id: UUID, *record_ids: str) -> list[Ending]:
    """Records and the active ones derived from them, locked."""
    return lock_closure(tenant_id, record_ids, DESCENDANTS, "r.status = 'active'")


def withhold(tenant_id: UUID, ids: Sequence[str], at: datetime) -> None:
    """Take records out of search and every kept answer, without ending them."""
    _stop_serving(tenant_id, ids, at)


def drop_fingerprints(tenant_id: UUID, receipt: str) -> None:
    """Take back what an act forbade; for its undo."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM forgotten_fingerprint WHERE tenant_id = %s::uuid AND receipt_number = %s::text",
            [tenant_id, receipt],
        )


def value_digest(tenant_id: UUID, ending: Ending) -> bytes | None:
    """The fingerprint of an ended record's value."""
    if ending.value_text is None:
        return None
    return fingerprints.of_value(
        tenant_id,
        ending.subject_type,
        ending.subject_id,
        ending.key,
        json.loads(ending.value_text),
    )


def add_fingerprints(
    tenant_id: UUID,
    digests: Sequence[tuple[bytes, FingerprintKind, str]],
    at: datetime,
    receipt: str | None,
) -> None:
    """Keep (digest, kind, record id). One that is there already stays as it is."""
    if not digests:
        return
    unique = list(dict.fromkeys(digests))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO forgotten_fingerprint (tenant_id, digest, kind, record_id, receipt_number, made_at) "
            "SELECT %(tenant)s::uuid, f.digest, f.kind, f.record_id, %(receipt)s::text, %(at)s::timestamptz "
            "FROM unnest(%(digests)s::bytea[], %(kinds)s::text[], %(ids)s::text[]) AS f (digest, kind, record_id) "
            "ON CONFLICT ON CONSTRAINT forgotten_fingerprint_pkey DO NOTHING",
            {
                "tenant": tenant_id,
                "receipt": receipt,
                "at": at,
                "digests": [one[0] for one in unique],
                "kinds": [one[1] for one in unique],
                "ids": [one[2] for one in unique],
            },
        )


def _children(tenant_id: UUID, ids: Sequence[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT record_id FROM record_lineage WHERE tenant_id = %s::uuid AND parent_id = ANY(%s::text[])",
            [tenant_id, list(ids)],
        )
        return [row[0] for row in cursor.fetchall()]


def replaced_by(tenant_id: UUID, ids: Sequence[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT record_id FROM record_act WHERE tenant_id = %s::uuid AND from_record_id = ANY(%s::text[])",
            [tenant_id, list(ids)],
        )
        return [row[0] for row in cursor.fetchall()]


def _thing(one: Record | Ending) -> tuple[str, str, str]:
    return one.subject_type, one.subject_id, one.key


def _copies(tenant_id: UUID, root: Record, endings: Sequence[Ending]) -> list[str]:
    """Copies of what the endings said of the root's (subject, key). A proposal that waits says nothing yet."""
    said = [one.value_text for one in endings if one.review is None and _thing(one) == _thing(root)]
    return copies_of(tenant_id, _thing(root), said, known=[one.id for one in endings])


def _waiting(tenant_id: UUID, root: Record) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM memory_record WHERE tenant_id = %(tenant)s::uuid AND subject_type = %(type)s::text "
            "AND subject_id = %(subject)s::text AND key = %(key)s::text AND review = 'pending' AND status = 'active'",
            {
                "tenant": tenant_id,
                "type": root.subject_type,
                "subject": root.subject_id,
                "key": root.key,
            },
        )
        return [row[0] for row in cursor.fetchall()]


def drop_values(
    tenant_id: UUID, endings: Sequence[Ending], at: datetime, undo: Undo | None
) -> None:
    values: Mapping[str, str] = {
        one.id: one.value_text for one in endings if one.value_text is not None
    }
    seal_for_hold(
        tenant_id,
        {one.id: values[one.id] for one in endings if one.is_held and one.id in values},
        at,
    )
    if undo is not None:
        seal_for_undo(tenant_id, values, at, receipt=undo.receipt, until=undo.until)
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM record_value WHERE tenant_id = %s::uuid AND record_id = ANY(%s::text[])",
            [tenant_id, list(values)],
        )


def _stop_serving(tenant_id: UUID, ids: Sequence[str], at: datetime) -> None:
    """Out of the search, and of every retried answer: of the record itself, and of acts on several that it was one
    of.
    """
    remove_words(tenant_id, ids)
    withhold_answers(tenant_id, ids, at)


def withhold_answers(tenant_id: UUID, ids: Sequence[str], at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET answer = NULL, withheld_at = %(at)s::timestamptz "
            "WHERE tenant_id = %(tenant)s::uuid AND withheld_at IS NULL AND item_ref IN ("
            "SELECT unnest(%(refs)s::text[]) UNION ALL "
            "SELECT 'receipt:' || receipt_number FROM record_act "
            "WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[]) AND receipt_number IS NOT NULL)",
            {
                "tenant": tenant_id,
                "at": at,
                "ids": list(ids),
                "refs": [f"record:{one}" for one in ids],
            },
        )


def forget_traces(tenant_id: UUID, ids: Sequence[str], at: datetime) -> None:
    """Where it was observed, what people said about it, and acts that wait for a decision: all may hold what was forgotten."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH observations AS ("
            "DELETE FROM record_observation WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[])"
            "), said AS ("
            "UPDATE receipt SET reason = NULL, statement = NULL "
            "WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[])"
            "), why AS ("
            "UPDATE record_act SET reason = NULL "
            "WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[]) AND reason IS NOT NULL) "
            "UPDATE pending_act SET body_text = NULL, decision = 'forgotten', decided_at = %(at)s::timestamptz, "
            "decided_by = 'service:kindmem' "
            "WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[]) AND decided_at IS NULL",
            {"tenant": tenant_id, "ids": list(ids), "at": at},
        )
