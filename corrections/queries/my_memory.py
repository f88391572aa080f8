"""What is remembered about one person, for that person's own pages: the list with its filters, and how much of each state.

The person's own records only, whatever else the reader may see. Past their last day records count as out of date. What they said
is not about them is listed without what it says: it may be about somebody else.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from corrections.queries.my_uses import USES, Use, parameters_of, use_of
from corrections.remembered import LIVE_STATES
from memory.access import Principal
from memory.errors import RecordNotFound
from memory.queries.records import as_shown, today_of
from memory.records.record import RECORD_COLUMNS, RECORD_TABLES, Record, record_of

_OVERDUE = "(r.valid_until IS NOT NULL AND r.valid_until < %(today)s::date)"
_STATE = f"""
CASE WHEN r.status = 'deleted' THEN CASE WHEN r.hold_count > 0 THEN 'sealed' ELSE 'forgotten' END
     WHEN r.status = 'expired' OR (r.status = 'active' AND {_OVERDUE}) THEN 'out-of-date'
     WHEN r.status = 'superseded' THEN 'replaced'
     WHEN r.review = 'withdrawn' THEN 'set-aside'
     WHEN r.disputed_at IS NOT NULL THEN 'disputed'
     WHEN r.authority = 'policy' THEN 'policy'
     WHEN r.source_type = 'user_correction' THEN 'corrected'
     WHEN r.confirmed_at IS NOT NULL THEN 'confirmed'
     WHEN r.source_type = 'agent_inferred' THEN 'guessed'
     WHEN r.source_type = 'system_record' THEN 'system'
     ELSE 'stated' END
"""
_MINE = (
    "r.tenant_id = %(tenant)s::uuid AND r.subject_type = 'user' AND r.subject_id = %(subject)s::text "
    "AND (r.review IS NULL OR r.review = 'withdrawn')"
)


ANY_STATE = "any"


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """`state` None: those that agents still use; or ANY_STATE. `words` are looked for in keys and values."""

    state: str | None = None
    words: str | None = None
    source_type: str | None = None
    agent: str | None = None
    since: datetime | None = None


def _named(principal: Principal) -> dict[str, Any]:
    return {
        "tenant": principal.tenant_id,
        "subject": principal.subject,
        "today": today_of(principal),
    }


def my_memory(
    principal: Principal,
    filters: MemoryFilters,
    *,
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> list[Record]:
    """At most `limit`, newest first."""
    where = _MINE
    states = [filters.state] if filters.state else list(LIVE_STATES)
    if filters.state != ANY_STATE:
        where += f" AND ({_STATE}) = ANY(%(states)s::text[])"
    if filters.words:
        where += (
            " AND (position(lower(%(words)s::text) IN r.key) > 0"
            " OR position(lower(%(words)s::text) IN replace(replace(r.key, '_', ' '), '.', ' ')) > 0"
            " OR (r.review IS NULL AND position(lower(%(words)s::text) IN lower(v.value_text)) > 0))"
        )
    if filters.source_type:
        where += " AND r.source_type = %(source)s::text"
    if filters.agent:
        where += " AND r.captured_by = %(agent)s::text"
    if filters.since:
        where += " AND r.captured_at >= %(since)s::timestamptz"  # the day that a row shows
    if after is not None:
        where += " AND (r.recorded_at, r.id) < (%(after_at)s::timestamptz, %(after_id)s::text)"
    named = {
        **_named(principal),
        "states": states,
        "words": filters.words,
        "source": filters.source_type,
        "agent": filters.agent,
        "since": filters.since,
        "after_at": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE {where} "
            "ORDER BY r.recorded_at DESC, r.id DESC LIMIT %(limit)s::int",
            named,
        )
        records = [record_of(row) for row in cursor.fetchall()]
    return [_without_others(as_shown(record, named["today"])) for record in records]


def _without_others(record: Record) -> Record:
    """The record as its person may read it, who may have said that it is not about them."""
    return record if record.review is None else replace(record, value_text=None)


def set_aside(principal: Principal, record_id: str) -> tuple[Record, str]:
    """A record that its person said is not about them, and the receipt of that. Raises RecordNotFound for any other."""
    named = {**_named(principal), "id": record_id}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT p.number, {RECORD_COLUMNS} FROM {RECORD_TABLES} "
            "JOIN record_act a ON a.tenant_id = r.tenant_id AND a.record_id = r.id "
            "JOIN receipt p ON p.tenant_id = a.tenant_id AND p.act_id = a.act_id "
            f"WHERE {_MINE} AND r.id = %(id)s::text AND ({_STATE}) = 'set-aside' AND p.route = 'wrong-person' "
            "AND p.undone_at IS NULL ORDER BY p.made_at DESC LIMIT 1",
            named,
        )
        row = cursor.fetchone()
    if row is None:
        raise RecordNotFound
    return _without_others(record_of(row[1:])), row[0]


def my_states(principal: Principal) -> dict[str, int]:
    """How many memories there are of each state."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_STATE} AS state, count(*) FROM memory_record r WHERE {_MINE} GROUP BY 1",
            _named(principal),
        )
        return dict(cursor.fetchall())


def my_agents(principal: Principal) -> list[str]:
    """Which agents and apps wrote something about the person; at most 50."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT r.captured_by FROM memory_record r WHERE {_MINE} ORDER BY 1 LIMIT 50",
            _named(principal),
        )
        return [row[0] for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`derived`: id and key of what was derived from a memory; `statements`: what the person said where they disputed it,
    and when; `uses`: where it was used; `parents`: of what it was derived from, those that are the person's own, by id."""

    derived: list[tuple[str, str]]
    statements: list[tuple[str, datetime]]
    uses: list[Use]
    parents: dict[str, str]


def surroundings(principal: Principal, record_id: str) -> Surroundings:
    """What belongs to a memory besides its history; at most 50 of each."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            (SELECT 'derived', r.id, r.key, NULL::timestamptz, NULL::text FROM record_lineage l
             JOIN memory_record r ON r.tenant_id = l.tenant_id AND r.id = l.record_id
             WHERE l.tenant_id = %(tenant)s::uuid AND l.parent_id = %(id)s::text AND {_MINE}
             ORDER BY r.recorded_at, r.id LIMIT 50)
            UNION ALL
            (SELECT 'statement', p.number, p.statement, p.made_at, NULL::text FROM receipt p
             WHERE p.tenant_id = %(tenant)s::uuid AND p.record_id = %(id)s::text AND p.statement IS NOT NULL
               AND p.undone_at IS NULL ORDER BY p.made_at LIMIT 50)
            UNION ALL
            (SELECT 'parent', r.id, r.key, NULL::timestamptz, NULL::text FROM record_lineage l
             JOIN memory_record r ON r.tenant_id = l.tenant_id AND r.id = l.parent_id
             WHERE l.tenant_id = %(tenant)s::uuid AND l.record_id = %(id)s::text AND {_MINE} LIMIT 50)
            UNION ALL
            ({USES})
            """,
            {**_named(principal), "id": record_id, **parameters_of(principal, record_id)},
        )
        rows = cursor.fetchall()
    return Surroundings(
        derived=[(row[1], row[2]) for row in rows if row[0] == "derived"],
        statements=[(row[2], row[3]) for row in rows if row[0] == "statement"],
        parents={row[1]: row[2] for row in rows if row[0] == "parent"},
        uses=[use_of(record_id, *row[1:]) for row in rows if row[0] == "use"],
    )
