"""Legal holds: what one names, how its items are counted, and the one question that every destructive path asks.

`hold_count` on a fact's or record's head is how many holds keep it; it moves only here and in the trigger that catches later
items, always in the transaction of the match, in the order of ids. Nothing is destroyed while it is above zero: actions ask
`refuse_held` under the lock of what they destroy, `memory/destruction.py` asks again in a second statement, and triggers on every
table that holds content have the last word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.json_text import Raw
from memory.canonical import canonical
from memory.errors import BadInput, HoldNotFound, LegalHoldActive, constraint_errors
from memory.ids import new_id
from memory.instants import instant_text
from memory.log_pseudonyms import with_pseudonyms
from memory.records.sealing import keep_undo_copies

MOST_NAMED = 1000
REVIEW_AFTER_DAYS = 180
SHOWN_IDS = 100


@dataclass(frozen=True, slots=True)
class HoldScope:
    """What a hold names: a selector (each list that is not empty narrows it), and facts and records one by one.

    Subject ids count wherever a person, project, client or org is named; `written_until` is excluded; types are of facts.
    """

    subject_ids: tuple[str, ...] = ()
    fact_types: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    written_from: datetime | None = None
    written_until: datetime | None = None
    fact_ids: tuple[str, ...] = ()
    record_ids: tuple[str, ...] = ()
    covers_future: bool = False

    @property
    def has_selector(self) -> bool:
        return bool(self.subject_ids or self.fact_types or self.run_ids) or (
            self.written_from is not None or self.written_until is not None
        )

    def check(self) -> None:
        """Raise BadInput when it names nothing, or can't be."""
        if not (self.has_selector or self.fact_ids or self.record_ids):
            raise BadInput.at("/scope", "must name subjects, types, runs, dates, facts or records")
        if self.covers_future and not self.has_selector:
            raise BadInput.at("/scope/futureItems", "needs subjects, types, runs or dates")
        if (
            self.written_from is not None
            and self.written_until is not None
            and self.written_until <= self.written_from
        ):
            raise BadInput.at("/scope/until", "must be after from")

    def text(self) -> str:
        said: dict[str, Any] = {
            "subjects": list(self.subject_ids),
            "types": list(self.fact_types),
            "runs": list(self.run_ids),
            "from": None if self.written_from is None else instant_text(self.written_from),
            "until": None if self.written_until is None else instant_text(self.written_until),
            "facts": list(self.fact_ids),
            "records": list(self.record_ids),
        }
        named = {name: value for name, value in said.items() if value}
        return canonical({**named, "futureItems": self.covers_future})

    def parameters(self) -> dict[str, Any]:
        return {
            "subject_ids": list(self.subject_ids),
            "fact_types": list(self.fact_types),
            "run_ids": list(self.run_ids),
            "written_from": self.written_from,
            "written_until": self.written_until,
            "has_selector": self.has_selector,
            "covers_future": self.covers_future,
            "fact_ids": list(self.fact_ids),
            "record_ids": list(self.record_ids),
        }


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold as it stands. Counts are of what it keeps now."""

    id: UUID
    matter: str
    reason: str
    scope_text: str
    covers_future: bool
    placed_by: str
    placed_at: datetime
    review_on: date
    released_at: datetime | None
    released_because: str | None
    fact_count: int
    record_count: int
    refusal_count: int
    release_id: UUID | None = None
    release_requested_by: str | None = None
    release_requested_at: datetime | None = None
    release_reason: str | None = None

    @property
    def status(self) -> Literal["active", "release-requested", "released"]:
        if self.released_at is not None:
            return "released"
        return "active" if self.release_id is None else "release-requested"

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": str(self.id),
            "matter": self.matter,
            "reason": self.reason,
            "scope": Raw(self.scope_text),
            "status": self.status,
            "placedBy": self.placed_by,
            "placedAt": instant_text(self.placed_at),
            "reviewOn": self.review_on.isoformat(),
            "facts": self.fact_count,
            "records": self.record_count,
            "refusals": self.refusal_count,
            "releasedAt": None if self.released_at is None else instant_text(self.released_at),
            "releasedBecause": self.released_because,
        }
        if self.release_id is not None and self.release_requested_at is not None:
            said["release"] = {
                "requestedBy": self.release_requested_by,
                "requestedAt": instant_text(self.release_requested_at),
                "reason": self.release_reason,
            }
        return {name: value for name, value in said.items() if value is not None}


# A refusal is a hold's when the hold was there and kept one of what was asked for. With h, the hold, and u, the refusal.
REFUSED_BY = """u.tenant_id = h.tenant_id AND u.asked_at >= h.placed_at AND u.asked_at <= coalesce(h.released_at, 'infinity')
AND EXISTS (SELECT FROM unnest(u.item_ids) a (id) JOIN hold_item i ON i.tenant_id = h.tenant_id AND i.hold_id = h.id
            AND i.kind IN ('fact', 'record') AND i.item_id = a.id)"""
_COLUMNS = f"""
h.id, h.matter, h.reason, h.scope_text, h.covers_future, h.placed_by, h.placed_at, h.review_on, h.released_at, h.released_because,
(SELECT count(*) FROM fact_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id),
(SELECT count(*) FROM record_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id),
(SELECT count(*) FROM hold_refusal u WHERE {REFUSED_BY}),
r.id, r.requested_by, r.requested_at, r.reason
"""
_TABLES = """
legal_hold h LEFT JOIN hold_release r ON r.tenant_id = h.tenant_id AND r.hold_id = h.id AND r.decision IS NULL
"""


def find_hold(tenant_id: UUID, hold_id: str) -> Hold:
    """One hold. Raises HoldNotFound."""
    try:
        wanted = UUID(hold_id)
    except ValueError:
        raise HoldNotFound from None
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM {_TABLES} WHERE h.tenant_id = %s::uuid AND h.id = %s::uuid",
            [tenant_id, wanted],
        )
        row = cursor.fetchone()
    if row is None:
        raise HoldNotFound
    return Hold(*row)


def list_holds(
    tenant_id: UUID,
    *,
    is_released: bool | None = None,
    is_requested: bool = False,
    review_by: date | None = None,
    after: tuple[str, str] | None,
    limit: int,
) -> list[Hold]:
    """Holds, newest first. after: (placedAt, id) of the last of the page before.

    is_requested: whose release somebody asked for; review_by: unreleased ones whose review is due by that day.
    """
    position = (
        ""
        if after is None
        else " AND (h.placed_at, h.id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM {_TABLES} WHERE h.tenant_id = %(tenant)s::uuid"
            " AND (%(released)s::bool IS NULL OR (h.released_at IS NOT NULL) = %(released)s::bool)"
            " AND (NOT %(requested)s::bool OR r.id IS NOT NULL)"
            " AND (%(review_by)s::date IS NULL OR (h.released_at IS NULL AND h.review_on <= %(review_by)s::date))"
            f"{position} ORDER BY h.placed_at DESC, h.id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "released": is_released,
                "requested": is_requested,
                "review_by": review_by,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [Hold(*row) for row in cursor.fetchall()]


# A hold that is not there yet, as a row: the same functions that catch later items say what it names.
_SELECTOR = """jsonb_populate_record(NULL::legal_hold, jsonb_build_object(
  'tenant_id', %(tenant)s::uuid, 'has_selector', %(has_selector)s::bool, 'covers_future', %(covers_future)s::bool,
  'subject_ids', to_jsonb(%(subject_ids)s::text[]), 'fact_types', to_jsonb(%(fact_types)s::text[]),
  'run_ids', to_jsonb(%(run_ids)s::text[]), 'written_from', %(written_from)s::timestamptz,
  'written_until', %(written_until)s::timestamptz)) h"""
# In the order of ids, in which everybody locks.
NAMED_FACTS = f"""
SELECT f.id FROM fact f, {_SELECTOR}
WHERE f.tenant_id = %(tenant)s::uuid AND (f.id = ANY(%(fact_ids)s::text[]) OR hold_names_fact(h, f))
"""
NAMED_RECORDS = f"""
SELECT m.id FROM memory_record m, {_SELECTOR}
WHERE m.tenant_id = %(tenant)s::uuid AND (m.id = ANY(%(record_ids)s::text[]) OR hold_names_record(h, m))
  AND (m.status <> 'deleted' OR EXISTS (
    SELECT 1 FROM sealed_copy s WHERE s.tenant_id = m.tenant_id AND s.record_id = m.id))
"""


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to place. matter: 1 to 200 characters; reason: 1 to 2000. `placed_by`, `placed_at`: of one that is placed again."""

    matter: str
    reason: str
    scope: HoldScope
    review_on: date
    id: UUID = field(default_factory=new_id)
    placed_by: str | None = None
    placed_at: datetime | None = None


_INSERT = """
INSERT INTO legal_hold
  (tenant_id, id, matter, reason, scope_text, placed_by, review_on, subject_ids, fact_types, run_ids, written_from,
   written_until, has_selector, covers_future, placed_at)
VALUES (%(tenant)s::uuid, %(hold)s::uuid, %(matter)s::text, %(reason)s::text, %(scope)s::text, %(writer)s::text,
        %(review_on)s::date, %(subject_ids)s::text[], %(fact_types)s::text[], %(run_ids)s::text[],
        %(written_from)s::timestamptz, %(written_until)s::timestamptz, %(has_selector)s::bool, %(covers_future)s::bool,
        coalesce(%(placed_at)s::timestamptz, now()))
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
_KEEP_FACTS = _KEEP.format(
    table="fact", match="fact_hold", column="fact_id", kind="fact", named=NAMED_FACTS
)
_KEEP_RECORDS = _KEEP.format(
    table="memory_record",
    match="record_hold",
    column="record_id",
    kind="record",
    named=NAMED_RECORDS,
)


def insert_hold(principal: Principal, new: NewHold) -> tuple[int, int]:
    """Place a hold on all it names; how many facts and records it keeps. In the caller's transaction, and not logged here.

    First what is there, then, once every writer that could not know of it has ended, what came meanwhile.
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
        **new.scope.parameters(),
        # In the log a person may have another name.
        "subject_ids": with_pseudonyms(principal.tenant_id, new.scope.subject_ids),
    }
    counts = [0, 0]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, parameters)
        for turn in range(2 if new.scope.has_selector else 1):
            if turn:
                cursor.execute(
                    "SELECT pg_advisory_xact_lock(new_items_lock(%s::uuid))", [principal.tenant_id]
                )
            for place, keep in enumerate((_KEEP_FACTS, _KEEP_RECORDS)):
                cursor.execute(keep, parameters)
                counts[place] += cursor.rowcount
    keep_undo_copies(principal.tenant_id, new.id)
    return counts[0], counts[1]


def keep_records(tenant_id: UUID, hold_id: UUID, record_ids: Sequence[str]) -> int:
    """Let an active hold keep these records too; how many it didn't keep before. In the caller's transaction."""
    scope = HoldScope(record_ids=tuple(record_ids))
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_RECORDS, {"tenant": tenant_id, "hold": hold_id, **scope.parameters()})
        kept = int(cursor.rowcount)
    keep_undo_copies(tenant_id, hold_id)
    return kept


_LET_GO = """
WITH matches AS (
  DELETE FROM {match} WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid RETURNING {column} AS id
), named AS MATERIALIZED (
  SELECT x.id FROM {table} x JOIN matches m ON m.id = x.id WHERE x.tenant_id = %(tenant)s::uuid ORDER BY x.id FOR UPDATE OF x
)
UPDATE {table} x SET hold_count = x.hold_count - 1 FROM named WHERE x.tenant_id = %(tenant)s::uuid AND x.id = named.id
RETURNING x.id, x.hold_count
"""
_DESTROY_SEALED = """
DELETE FROM sealed_copy s WHERE s.tenant_id = %(tenant)s::uuid AND s.purpose = 'hold' AND s.record_id = ANY(%(ids)s::text[])
"""


def let_go(tenant_id: UUID, hold_id: UUID) -> Mapping[str, int]:
    """Count down what a released hold kept, and destroy the sealed copies of records that no hold keeps any more."""
    freed: dict[str, int] = {}
    with constraint_errors(), connection.cursor() as cursor:
        for table, match, column in (
            ("fact", "fact_hold", "fact_id"),
            ("memory_record", "record_hold", "record_id"),
        ):
            cursor.execute(
                _LET_GO.format(table=table, match=match, column=column),
                {"tenant": tenant_id, "hold": hold_id},
            )
            rows = cursor.fetchall()
            freed[f"{table}.released"] = len(rows)
            if table == "memory_record":
                free = [row[0] for row in rows if row[1] == 0]
                cursor.execute(_DESTROY_SEALED, {"tenant": tenant_id, "ids": free})
                freed["sealed_copy.destroyed"] = cursor.rowcount
    return freed


def refuse_held(
    tenant_id: UUID, *, fact_ids: Sequence[str] = (), record_ids: Sequence[str] = ()
) -> None:
    """Raise LegalHoldActive, naming what is held of these. Ask it under the lock of what is to be destroyed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM fact WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(facts)s::text[]) AND hold_count > 0 "
            "UNION ALL SELECT id FROM memory_record "
            "WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(records)s::text[]) AND hold_count > 0 "
            "ORDER BY id LIMIT %(most)s::int",
            {
                "tenant": tenant_id,
                "facts": list(fact_ids),
                "records": list(record_ids),
                "most": SHOWN_IDS,
            },
        )
        held = [row[0] for row in cursor.fetchall()]
    if held:
        raise LegalHoldActive(ids=held)


def note_refusal(principal: Principal, act: str, ids: Sequence[str]) -> None:
    """Log and count an act that a hold refused. In a transaction of its own, after the refusing one has rolled back."""
    entry = append_governance(
        principal=principal,
        payload={"type": "hold.refused", "act": act, "ids": list(ids)[:SHOWN_IDS]},
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO hold_refusal (tenant_id, id, act, asked_by, item_ids, log_entry_id) "
            "VALUES (%s::uuid, %s::uuid, %s::text, %s::text, %s::text[], %s::text)",
            [principal.tenant_id, new_id(), act, principal.writer, list(ids), entry.id],
        )
