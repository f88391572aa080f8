"""What a hold keeps: counted in when it is placed, let go when it is released; of a large one batch by batch.

A hold that names little counts it all in the transaction that places it. One that names much is placed at once and protects
from that moment, since every destructive path also asks what it names (`memory/hold_naming.py`); its items are counted
afterwards, each batch a transaction that moves the hold's row on, so that any of them may be the last before a crash. Letting go
is the same: what is not counted down yet stays protected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import constraint_errors
from memory.hold_naming import (
    IS_THERE,
    facts_condition,
    named_facts,
    named_records,
    record_is_held,
    records_condition,
)
from memory.holds import HoldScope, NewHold
from memory.ledgers import write_ledger_after_commit
from memory.log_pseudonyms import with_pseudonyms
from memory.quarantines import is_anything_kept_back
from memory.records.sealing import keep_undo_copies
from memory.work import begin_soon

MOST_IN_ONE: Final = 2000
"""A hold that names, or keeps, more is large."""
BATCH: Final = 2000

_INSERT = """
INSERT INTO legal_hold
  (tenant_id, id, matter, reason, scope_text, placed_by, review_on, subject_ids, fact_types, run_ids, written_from,
   written_until, has_selector, covers_future, placed_at, taken_in_at)
VALUES (%(tenant)s::uuid, %(hold)s::uuid, %(matter)s::text, %(reason)s::text, %(scope)s::text, %(writer)s::text,
        %(review_on)s::date, %(subject_ids)s::text[], %(fact_types)s::text[], %(run_ids)s::text[],
        %(written_from)s::timestamptz, %(written_until)s::timestamptz, %(has_selector)s::bool, %(covers_future)s::bool,
        coalesce(%(placed_at)s::timestamptz, now()), CASE WHEN NOT %(large)s::bool THEN now() END)
"""
_SIZE = """
SELECT (SELECT count(*) FROM ({facts} LIMIT %(most)s::int) x) + (SELECT count(*) FROM ({records} LIMIT %(most)s::int) y)
"""
# Who is counted already is left out, so that the second look adds the newcomers alone.
_KEEP = """
WITH named AS MATERIALIZED (
  SELECT x.id FROM {table} x WHERE x.tenant_id = %(tenant)s::uuid AND x.id IN ({named})
    AND NOT EXISTS (SELECT 1 FROM {match} k WHERE k.tenant_id = x.tenant_id AND k.hold_id = %(hold)s::uuid AND k.{column} = x.id)
  ORDER BY x.id FOR UPDATE OF x
), kept AS (
  UPDATE {table} x SET hold_count = x.hold_count + 1 FROM named WHERE x.tenant_id = %(tenant)s::uuid AND x.id = named.id
  RETURNING x.id
), matched AS (
  INSERT INTO {match} (tenant_id, hold_id, {column}) SELECT %(tenant)s::uuid, %(hold)s::uuid, id FROM kept
)
INSERT INTO hold_item (tenant_id, hold_id, kind, item_id, is_later)
SELECT %(tenant)s::uuid, %(hold)s::uuid, '{kind}', id, false FROM kept
"""
_ONE_BY_ONE = "SELECT unnest(%(ids)s::text[])"
# Of what a large hold names, at once: an undo's end would destroy it meanwhile, and asks no hold.
_ONLY_FOR_UNDO = """SELECT n.id FROM ({records}) n JOIN sealed_copy s
  ON s.tenant_id = %(tenant)s::uuid AND s.record_id = n.id AND s.purpose = 'undo'"""


def _keep(kind: str, named: str) -> str:
    if kind == "fact":
        return _KEEP.format(
            table="fact", match="fact_hold", column="fact_id", kind="fact", named=named
        )
    return _KEEP.format(
        table="memory_record", match="record_hold", column="record_id", kind="record", named=named
    )


def insert_hold(principal: Principal, new: NewHold) -> tuple[int, int]:
    """Place a hold; how many facts and records are counted. In the caller's transaction, and not logged here.

    Of a large one only what it names one by one, and what only an undo keeps: the rest is protected, and counted by the worker.
    """
    new.scope.check()
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "hold": new.id,
        "matter": new.matter,
        "reason": new.reason,
        "scope": new.scope.text(),
        "writer": new.placed_by or principal.writer,
        "placed_at": new.placed_at,
        "review_on": new.review_on,
        "most": MOST_IN_ONE + 1,
        **new.scope.parameters(),
        # In the log a person may have another name.
        "subject_ids": with_pseudonyms(principal.tenant_id, new.scope.subject_ids),
    }
    facts, records = named_facts(new.scope), named_records(new.scope)
    with connection.cursor() as cursor:
        cursor.execute(_SIZE.format(facts=facts, records=records), parameters)
        (size,) = cursor.fetchone()
        parameters["large"] = size > MOST_IN_ONE
        cursor.execute(_INSERT, parameters)
        if parameters["large"]:
            return _begin(cursor, principal.tenant_id, new, parameters)
        counts = [0, 0]
        # First what is there, then, once every writer that could not know of it has ended, what came meanwhile.
        for turn in range(2 if new.scope.has_selector else 1):
            if turn:
                _wait_for_others(cursor, principal.tenant_id)
            for place, keep in enumerate((_keep("fact", facts), _keep("record", records))):
                cursor.execute(keep, parameters)
                counts[place] += cursor.rowcount
    keep_undo_copies(principal.tenant_id, new.id)
    write_ledger_after_commit(principal.tenant_id)
    return counts[0], counts[1]


def _wait_for_others(cursor: Any, tenant_id: UUID) -> None:
    """Until those have ended that write something new, or destroy, and could not know of the hold."""
    cursor.execute("SELECT pg_advisory_xact_lock(new_items_lock(%s::uuid))", [tenant_id])


def _begin(
    cursor: Any, tenant_id: UUID, new: NewHold, parameters: dict[str, Any]
) -> tuple[int, int]:
    cursor.execute(_keep("fact", _ONE_BY_ONE), {**parameters, "ids": list(new.scope.fact_ids)})
    facts = int(cursor.rowcount)
    some = named_records(HoldScope(record_ids=new.scope.record_ids))
    only_for_undo = _ONLY_FOR_UNDO.format(records=named_records(new.scope))
    cursor.execute(_keep("record", f"{some} UNION {only_for_undo}"), parameters)
    records = int(cursor.rowcount)
    keep_undo_copies(tenant_id, new.id)
    write_ledger_after_commit(tenant_id)
    _wait_for_others(cursor, tenant_id)
    cursor.execute(
        "UPDATE legal_hold SET named_until = clock_timestamp() WHERE tenant_id = %s::uuid AND id = %s::uuid",
        [tenant_id, new.id],
    )
    begin_soon("finish-holds", tenant_id)
    return facts, records


def keep_records(tenant_id: UUID, hold_id: UUID, record_ids: tuple[str, ...]) -> int:
    """Let an active hold keep these records too; how many it didn't keep before. In the caller's transaction."""
    scope = HoldScope(record_ids=record_ids)
    with connection.cursor() as cursor:
        cursor.execute(
            _keep("record", named_records(scope)),
            {"tenant": tenant_id, "hold": hold_id, **scope.parameters()},
        )
        kept = int(cursor.rowcount)
    keep_undo_copies(tenant_id, hold_id)
    return kept


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """A hold that is still taking in; `of`: facts or records; `after`: the last id that it looked at."""

    id: UUID
    of: str
    after: str
    scope: HoldScope
    parameters: dict[str, Any]


_NEXT = """
SELECT id, taking_in, taken_in_after, subject_ids, fact_types, run_ids, written_from, written_until, covers_future, named_until
FROM legal_hold
WHERE tenant_id = %(tenant)s::uuid AND taken_in_at IS NULL AND released_at IS NULL
ORDER BY placed_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
# Locked in a statement of its own, so that the count below sees what a writer counted that held the lock before.
_LOCK_FACTS = """
SELECT f.id FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.id > %(after)s::text AND {condition}
  AND (%(covers_future)s::bool OR f.created_at < %(named_until)s::timestamptz)
ORDER BY f.id LIMIT %(limit)s::int FOR UPDATE OF f
"""
_LOCK_RECORDS = """
SELECT m.id FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND m.id > %(after)s::text AND {condition} AND {there}
  AND (%(covers_future)s::bool OR m.recorded_at < %(named_until)s::timestamptz)
ORDER BY m.id LIMIT %(limit)s::int FOR UPDATE OF m
"""
_MOVE_ON = """
UPDATE legal_hold SET taking_in = %(of)s::text, taken_in_after = %(after)s::text,
       taken_in_at = CASE WHEN %(done)s::bool THEN clock_timestamp() END
WHERE tenant_id = %(tenant)s::uuid AND id = %(hold)s::uuid
"""
_EVER_KEPT = """
SELECT count(*) FILTER (WHERE kind = 'fact'), count(*) FILTER (WHERE kind = 'record') FROM hold_item
WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid
"""


def take_in_more(principal: Principal, *, limit: int = BATCH) -> bool:
    """Count a batch of what the oldest unfinished hold names; whether there was one. In the caller's transaction."""
    tenant_id = principal.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"tenant": tenant_id})
        row = cursor.fetchone()
        if row is None:
            return False
        hold = _unfinished(tenant_id, row)
        lock = (
            _LOCK_FACTS.format(condition=facts_condition(hold.scope))
            if hold.of == "facts"
            else _LOCK_RECORDS.format(condition=records_condition(hold.scope), there=IS_THERE)
        )
        cursor.execute(lock, {**hold.parameters, "limit": limit})
        ids = [found for (found,) in cursor.fetchall()]
        kind = "fact" if hold.of == "facts" else "record"
        cursor.execute(_keep(kind, _ONE_BY_ONE), {**hold.parameters, "ids": ids})
        is_end = len(ids) < limit
        done = is_end and hold.of == "records"
        cursor.execute(
            _MOVE_ON,
            {
                **hold.parameters,
                "of": "records" if is_end else hold.of,
                "after": "" if is_end else ids[-1],
                "done": done,
            },
        )
        if done:
            cursor.execute(_EVER_KEPT, hold.parameters)
            facts, records = cursor.fetchone()
            append_governance(
                principal=principal,
                payload={
                    "type": "hold.taken-in",
                    "holdId": str(hold.id),
                    "facts": facts,
                    "records": records,
                },
            )
    return True


def _unfinished(tenant_id: UUID, row: tuple[Any, ...]) -> _Unfinished:
    hold_id, of, after, subjects, types, runs, since, until, covers_future, named_until = row
    scope = HoldScope(
        subject_ids=tuple(subjects),
        fact_types=tuple(types),
        run_ids=tuple(runs),
        written_from=since,
        written_until=until,
        covers_future=covers_future,
    )
    named = {
        "tenant": tenant_id,
        "hold": hold_id,
        "after": after,
        "named_until": named_until,
        **scope.parameters(),
    }
    return _Unfinished(hold_id, of, after, scope, named)


# A bound and arrays: a plan that joins may be made while the tables are not yet counted, and then reads them whole each time.
_LET_GO = """
WITH matches AS (
  DELETE FROM {match} WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid AND {column} <= (
    SELECT max(b.{column}) FROM (
      SELECT k.{column} FROM {match} k WHERE k.tenant_id = %(tenant)s::uuid AND k.hold_id = %(hold)s::uuid
      ORDER BY k.{column} LIMIT %(limit)s::int) b)
  RETURNING {column} AS id
), named AS MATERIALIZED (
  SELECT x.id FROM {table} x WHERE x.tenant_id = %(tenant)s::uuid AND x.id = ANY (ARRAY(SELECT id FROM matches))
  ORDER BY x.id FOR UPDATE OF x
)
UPDATE {table} x SET hold_count = x.hold_count - 1
WHERE x.tenant_id = %(tenant)s::uuid AND x.id = ANY (ARRAY(SELECT id FROM named))
RETURNING x.id
"""
# In a statement of its own: it sees every hold that was placed while it waited for the rows.
_DESTROY_SEALED = f"""
DELETE FROM sealed_copy s USING memory_record x
WHERE s.tenant_id = %(tenant)s::uuid AND s.purpose = 'hold' AND s.record_id = ANY(%(ids)s::text[])
  AND x.tenant_id = s.tenant_id AND x.id = s.record_id AND NOT {record_is_held("x")}
"""
_MATCHES = """
SELECT (SELECT count(*) FROM fact_hold WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid),
       (SELECT count(*) FROM record_hold WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid)
"""
_IS_LEFT = """
SELECT EXISTS (SELECT FROM fact_hold WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid)
    OR EXISTS (SELECT FROM record_hold WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid)
"""
_RELEASED = """
SELECT h.id FROM legal_hold h WHERE h.tenant_id = %(tenant)s::uuid AND h.released_at IS NOT NULL
  AND (EXISTS (SELECT FROM fact_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id)
       OR EXISTS (SELECT FROM record_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id))
ORDER BY h.released_at, h.id LIMIT 1
"""


def let_go(tenant_id: UUID, hold_id: UUID) -> Mapping[str, int]:
    """Count down what a released hold kept, and destroy the sealed copies of records that no hold keeps any more.

    Of a large one it is counted what goes, and the worker does it. It also rolls back what a hold kept from that.
    """
    if is_anything_kept_back(tenant_id):
        begin_soon("finish-holds", tenant_id)
    with connection.cursor() as cursor:
        cursor.execute(_MATCHES, {"tenant": tenant_id, "hold": hold_id})
        facts, records = cursor.fetchone()
    if facts + records <= MOST_IN_ONE:
        return _let_go(tenant_id, hold_id, limit=MOST_IN_ONE)
    begin_soon("finish-holds", tenant_id)
    return {"fact.released": facts, "memory_record.released": records}


def let_go_more(principal: Principal, *, limit: int = BATCH) -> bool:
    """Count down a batch of what a released hold still keeps; whether there was one. In the caller's transaction."""
    tenant_id = principal.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(_RELEASED, {"tenant": tenant_id})
        row = cursor.fetchone()
    if row is None:
        return False
    _let_go(tenant_id, row[0], limit=limit)
    with connection.cursor() as cursor:
        cursor.execute(_IS_LEFT, {"tenant": tenant_id, "hold": row[0]})
        (is_left,) = cursor.fetchone()
    if not is_left:
        append_governance(
            principal=principal, payload={"type": "hold.let-go", "holdId": str(row[0])}
        )
    return True


def _let_go(tenant_id: UUID, hold_id: UUID, *, limit: int) -> dict[str, int]:
    freed: dict[str, int] = {}
    with constraint_errors(), connection.cursor() as cursor:
        for table, match, column in (
            ("fact", "fact_hold", "fact_id"),
            ("memory_record", "record_hold", "record_id"),
        ):
            cursor.execute(
                _LET_GO.format(table=table, match=match, column=column),
                {"tenant": tenant_id, "hold": hold_id, "limit": limit},
            )
            ids = [found for (found,) in cursor.fetchall()]
            freed[f"{table}.released"] = len(ids)
        cursor.execute(_DESTROY_SEALED, {"tenant": tenant_id, "ids": ids})
        freed["sealed_copy.destroyed"] = cursor.rowcount
    return freed
