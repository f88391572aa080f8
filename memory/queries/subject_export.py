"""Everything that is kept about one person, for their export: records, facts, where they were used, receipts. Read in pieces.

A person is one subject id, wherever it stands (see memory/erasure/reach.py). What waits for review, or was said to be about
somebody else, is not in it: nothing reads that before it is decided. Values of tombstones are gone, sealed copies stay sealed.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.erasure.reach import entries_condition, facts_condition, records_condition, selected
from memory.errors import FactNotFound
from memory.instants import instant_text
from memory.queries.batches import in_batches
from memory.queries.facts import fact_revisions
from memory.queries.records import today_of, values_shown
from memory.queries.run_log import STAMP
from memory.records.overdue import as_shown
from memory.records.receipts import find_receipt
from memory.records.record import RECORD_COLUMNS, RECORD_TABLES, record_of

_AT_ONCE = 500
_MINE = records_condition("user")
_RECORDS = f"""
SELECT {RECORD_COLUMNS},
  (SELECT json_agg(json_build_object('id', h.id, 'placedAt', h.placed_at, 'reviewOn', h.review_on) ORDER BY h.id)
   FROM record_hold k JOIN legal_hold h ON h.tenant_id = k.tenant_id AND h.id = k.hold_id
   WHERE k.tenant_id = m.tenant_id AND k.record_id = m.id)::text,
  ARRAY(SELECT DISTINCT f.kind FROM forgotten_fingerprint f
        WHERE f.tenant_id = m.tenant_id AND f.record_id = m.id AND f.kind <> 'never-infer' ORDER BY f.kind)
FROM {RECORD_TABLES} JOIN memory_record m ON m.tenant_id = r.tenant_id AND m.id = r.id
WHERE m.tenant_id = %(tenant)s::uuid AND ({_MINE}) AND m.review IS NULL
  AND (m.recorded_at, m.id) > (%(after_at)s::timestamptz, %(after_id)s::text)
ORDER BY m.recorded_at, m.id LIMIT %(limit)s::int
"""


def records_of(principal: Principal, subject_id: str) -> Iterator[dict[str, Any]]:
    """Lines of kind `record`, in the order in which they were written."""

    def batch(last: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
        after = None if last is None else record_of(last[:-2])
        return _rows(
            _RECORDS,
            principal,
            subject_id,
            after_at=after.recorded_at if after else "-infinity",
            after_id=after.id if after else "",
        )

    today = today_of(principal)
    for *columns, holds, forgotten in in_batches(batch, _AT_ONCE):
        record = as_shown(record_of(columns), today)
        line: dict[str, Any] = {
            "kind": "record",
            "record": record.wire(),
            "trust": record.trust,
            "recordedAt": instant_text(record.recorded_at),
            "forgotten": forgotten,
        }
        if record.ended_at is not None:
            line["endedAt"] = instant_text(record.ended_at)
        if record.disputed_at is not None:
            line["disputedAt"] = instant_text(record.disputed_at)
        if holds is not None:
            line["holds"] = [_hold(one) for one in json.loads(holds)]
        yield line


def _rows(
    statement: str, principal: Principal, subject_id: str, **given: Any
) -> list[tuple[Any, ...]]:
    """A batch, by the statement's own parameters and those that all have."""
    named = {**selected(principal.tenant_id, subject_id), "limit": _AT_ONCE, **given}
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        return cursor.fetchall()


def _hold(said: dict[str, str]) -> dict[str, str]:
    """Which hold, and until when at least: neither matter nor reason, which the person may not know of."""
    placed = instant_text(datetime.fromisoformat(said["placedAt"]))
    return {"id": said["id"], "placedAt": placed, "reviewOn": said["reviewOn"]}


_FACTS = (
    f"SELECT f.id FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND ({facts_condition('user')}) "
    "AND f.id > %(after)s::text ORDER BY f.id LIMIT %(limit)s::int"
)


def facts_of(principal: Principal, subject_id: str) -> Iterator[dict[str, Any]]:
    """Lines of kind `fact`: one a fact, with its revisions, newest first, those of deleted facts too."""

    def batch(last: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
        return _rows(_FACTS, principal, subject_id, after=last[0] if last else "")

    for (fact_id,) in in_batches(batch, _AT_ONCE):
        try:
            revisions = fact_revisions(principal, fact_id)
        except FactNotFound:
            continue  # past its expiry, or awaiting review: nothing reads it
        yield {"kind": "fact", "id": fact_id, "revisions": [one.wire() for one in revisions]}


# Entries about the person, acts on what is remembered about them, and recalls that used it.
_ENTRIES = f"""
WITH mine AS MATERIALIZED (
  SELECT m.id FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND ({_MINE}) AND m.review IS NULL
), entry AS (
  SELECT e.id, 'about' AS why FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid AND {entries_condition("user")}
  UNION ALL
  SELECT a.log_entry_id, 'act' FROM record_act a JOIN mine ON mine.id = a.record_id WHERE a.tenant_id = %(tenant)s::uuid
  UNION ALL
  SELECT e.id, 'use' FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.kind = 'retrieval' AND e.payload_text IS NOT NULL
    AND jsonb_path_query_array(e.payload_text::jsonb, 'lax $.results[*].recordId') ?| ARRAY(SELECT id FROM mine)
), named AS (
  SELECT id, array_agg(DISTINCT why ORDER BY why) AS why FROM entry WHERE id > %(after)s::text
  GROUP BY id ORDER BY id LIMIT %(limit)s::int
)
SELECT e.id, e.run_id, e.sequence, e.kind, {STAMP.format(column="e.recorded_at")}, n.why
FROM named n JOIN log_entry e ON e.tenant_id = %(tenant)s::uuid AND e.id = n.id ORDER BY e.id
"""


def entries_of(principal: Principal, subject_id: str) -> Iterator[dict[str, Any]]:
    """Lines of kind `log-entry`: where it was used, who acted on it, and what else the log says of the person; no payloads."""
    most = _AT_ONCE * 20

    def batch(last: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
        return _rows(_ENTRIES, principal, subject_id, after=last[0] if last else "", limit=most)

    for entry_id, run_id, sequence, kind, at, why in in_batches(batch, most):
        yield {
            "kind": "log-entry",
            "id": entry_id,
            "runId": run_id,
            "sequence": sequence,
            "entryKind": kind,
            "timestamp": at,
            "because": why,
        }


def receipts_of(principal: Principal, subject_id: str) -> Iterator[dict[str, Any]]:
    """Lines of kind `receipt`, with the values before and after that are still there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.number FROM receipt p JOIN memory_record m ON m.tenant_id = p.tenant_id AND m.id = p.record_id "
            f"WHERE p.tenant_id = %(tenant)s::uuid AND ({_MINE}) AND m.review IS NULL ORDER BY p.made_at, p.number",
            selected(principal.tenant_id, subject_id),
        )
        numbers = [row[0] for row in cursor.fetchall()]
    for number in numbers:
        receipt = find_receipt(principal.tenant_id, number)
        if receipt is not None:
            shown = values_shown(principal, [*receipt.before_ids, *receipt.after_ids])
            yield {"kind": "receipt", "receipt": receipt.wire(shown)}
