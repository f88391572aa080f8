"""Everything kept about one person, kind by kind, in batches: what the person may take home.

Memories with their tombstones, each version of each fact, receipts, and entries of the log that are about them: what the person's
own pages and keys of theirs would show, and nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from corrections.queries.my_facts import my_fact_versions
from corrections.queries.my_memory import ANY_STATE, MemoryFilters, my_memory
from corrections.queries.my_receipts import MY_RECEIPTS
from memory.access import Principal, read_guard
from memory.erasure.reach import entries_condition, facts_condition, selected
from memory.fact_shape import FactView
from memory.log_entry import StoredEntry
from memory.queries.batches import in_batches
from memory.queries.facts import READABLE
from memory.queries.run_log import ENTRY_COLUMNS, log_guard, stored_entry
from memory.records.record import Record

BATCH = 500
KINDS = ("memory", "fact", "receipt", "log-entry")


def counts_about_me(principal: Principal) -> dict[str, int]:
    """How many of each of KINDS there are; facts by their versions."""
    entry_guard, parameters = log_guard(principal, "e")
    fact_guard, _same = read_guard(principal, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT
              (SELECT count(*) FROM memory_record r WHERE r.tenant_id = %(tenant)s::uuid AND r.subject_type = 'user'
               AND r.subject_id = %(subject)s::text AND (r.review IS NULL OR r.review = 'withdrawn')),
              (SELECT count(*) FROM fact f JOIN fact_revision v ON v.tenant_id = f.tenant_id AND v.fact_id = f.id
               WHERE f.tenant_id = %(tenant)s::uuid AND {facts_condition("user")} AND {READABLE} AND {fact_guard}),
              (SELECT count(*) {MY_RECEIPTS}),
              (SELECT count(*) FROM log_entry e
               WHERE e.tenant_id = %(tenant)s::uuid AND {entries_condition("user")} AND {entry_guard})
            """,
            {
                **selected(principal.tenant_id, principal.subject or ""),
                "subject": principal.subject,
                **parameters,
            },
        )
        return dict(zip(KINDS, cursor.fetchone(), strict=True))


@dataclass(frozen=True, slots=True)
class ReceiptInFull:
    """A receipt with what the person wrote in it."""

    number: str
    route: str
    record_id: str
    key: str
    scope_text: str
    actor: str
    reason: str | None
    statement: str | None
    log_entry_id: str
    made_at: datetime
    undo_until: datetime | None
    undone_at: datetime | None


def memories(principal: Principal) -> Iterator[Record]:
    """Newest first."""

    def batch(last: Record | None) -> list[Record]:
        after = None if last is None else (last.recorded_at, last.id)
        return my_memory(principal, MemoryFilters(state=ANY_STATE), after=after, limit=BATCH)

    return in_batches(batch, BATCH)


def fact_versions(principal: Principal) -> Iterator[FactView]:
    """By fact, oldest first."""

    def batch(last: FactView | None) -> list[FactView]:
        after = None if last is None else (last.id, last.version)
        return my_fact_versions(principal, after=after, limit=BATCH)

    return in_batches(batch, BATCH)


def receipts(principal: Principal) -> Iterator[ReceiptInFull]:
    """Newest first."""

    def batch(last: ReceiptInFull | None) -> list[ReceiptInFull]:
        where = (
            ""
            if last is None
            else " AND (p.made_at, p.number) < (%(at)s::timestamptz, %(number)s::text)"
        )
        return [
            ReceiptInFull(*row)
            for row in _rows(
                "SELECT p.number, p.route, p.record_id, r.key, p.scope_text, p.actor, p.reason, p.statement, p.log_entry_id, "
                f"p.made_at, p.undo_until, p.undone_at {MY_RECEIPTS}{where} "
                "ORDER BY p.made_at DESC, p.number DESC LIMIT %(limit)s::int",
                tenant=principal.tenant_id,
                subject=principal.subject,
                at=last.made_at if last else None,
                number=last.number if last else None,
            )
        ]

    return in_batches(batch, BATCH)


def entries(principal: Principal) -> Iterator[StoredEntry]:
    """Entries that name the person, run by run, in order."""
    guard, parameters = log_guard(principal, "e")

    def batch(last: StoredEntry | None) -> list[StoredEntry]:
        return [
            stored_entry(row)
            for row in _rows(
                f"SELECT {ENTRY_COLUMNS} FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid "
                f"AND {entries_condition('user')} AND {guard} "
                "AND (e.run_id, e.sequence) > (%(run)s::text, %(sequence)s::bigint) "
                "ORDER BY e.run_id, e.sequence LIMIT %(limit)s::int",
                **selected(principal.tenant_id, principal.subject or ""),
                run=last.run_id if last else "",
                sequence=last.sequence if last else -1,
                **parameters,
            )
        ]

    return in_batches(batch, BATCH)


def _rows(statement: str, **named: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {**named, "limit": BATCH})
        return cursor.fetchall()
