"""Reading records: one, or a page of them, under the record guard, before any limit. What waits for review is never
read here.

A record past its last day is shown as expired, with its value only where it is to be retained, also before anything
marked it so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.errors import RecordNotFound
from memory.records import clock
from memory.records.guard import record_guard
from memory.records.overdue import as_shown, is_over, value_is_over
from memory.records.record import RECORD_COLUMNS, RECORD_TABLES, Record, record_of
from memory.records.store import readable_record
from memory.records.words_searched import words_of_question

# What an active record said at a moment: its present wording if it goes back that far, else the past one of that time.
_THEN = """
JOIN LATERAL (
  SELECT r.level, r.bindings_text, r.valid_from, r.valid_until, r.observations, r.confirmed_at, r.disputed_at, r.trust
  WHERE r.status = 'active' AND r.version_from <= %(as_of)s::timestamptz
  UNION ALL
  SELECT p.level, p.bindings_text, p.valid_from, p.valid_until, p.observations, p.confirmed_at, p.disputed_at, p.trust
  FROM record_past p
  WHERE p.tenant_id = r.tenant_id AND p.record_id = r.id
    AND p.from_at <= %(as_of)s::timestamptz AND %(as_of)s::timestamptz < p.until_at
  LIMIT 1
) x ON true
"""
_OF_THEN = frozenset(
    {"level", "bindings_text", "valid_from", "valid_until", "observations", "confirmed_at"}
    | {"disputed_at", "trust"}
)
_COLUMNS_THEN = RECORD_COLUMNS
for _field in fields(Record):
    if _field.name in _OF_THEN:
        _COLUMNS_THEN = f", {_COLUMNS_THEN},".replace(f", r.{_field.name},", f", x.{_field.name},")[
            2:-1
        ]
# What is still kept of it, as every other read has it.
_COLUMNS_THEN = _COLUMNS_THEN.replace(
    ", v.value_text,", f", CASE WHEN NOT {value_is_over('r')} THEN v.value_text END,"
)


@dataclass(frozen=True, slots=True)
class RecordFilters:
    """`status` None: active ones. `q`: that hold every word of it. `as_of`: what was active then."""

    subject_type: str | None = None
    subject_id: str | None = None
    key: str | None = None
    status: str | None = None
    level: str | None = None
    authority: str | None = None
    source_type: str | None = None
    q: str | None = None
    as_of: datetime | None = None

    def wire(self) -> dict[str, Any]:
        """The filters as a cursor is bound to them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def today_of(principal: Principal) -> date:
    """Today in the tenant's time zone."""
    return clock.day_of(clock.now(), principal.time_zone)


def begins_later(principal: Principal, valid_from: date | None) -> bool:
    """Whether a first day is still to come in the tenant's time zone."""
    return valid_from is not None and valid_from > today_of(principal)


def record_by_id(principal: Principal, record_id: str) -> Record:
    """The record, tombstones included. Raises RecordNotFound."""
    return as_shown(readable_record(principal, record_id), today_of(principal))


def record_as_of(principal: Principal, record_id: str, as_of: datetime) -> Record:
    """The record as it was while active at a moment. Raises RecordNotFound when it wasn't, or is forgotten."""
    rule, parameters = record_guard(principal)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS_THEN} FROM {RECORD_TABLES} {_THEN} "
            "WHERE r.tenant_id = %(tenant)s::uuid AND r.id = %(id)s::text AND r.review IS NULL "
            f"AND r.status <> 'deleted' AND {rule}",
            {
                "tenant": principal.tenant_id,
                "id": record_id,
                "as_of": as_of,
                "today": today_of(principal),
                **parameters,
            },
        )
        row = cursor.fetchone()
    if row is None:
        raise RecordNotFound
    return _as_it_was(record_of(row))


def _as_it_was(record: Record) -> Record:
    return replace(record, status="active", superseded_by=None, ended_at=None)


def values_shown(principal: Principal, record_ids: Sequence[str]) -> dict[str, str]:
    """By record id: canonical texts of the values that are still there, for who may read them; none of what was said to be
    about somebody else."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.record_id, v.value_text FROM record_value v "
            "JOIN memory_record r ON r.tenant_id = v.tenant_id AND r.id = v.record_id "
            "WHERE v.tenant_id = %(tenant)s::uuid AND v.record_id = ANY(%(ids)s::text[]) "
            f"AND r.review IS NULL AND NOT {value_is_over('r')}",
            {
                "tenant": principal.tenant_id,
                "ids": list(record_ids),
                "today": today_of(principal),
            },
        )
        return dict(cursor.fetchall())


def list_records(
    principal: Principal,
    filters: RecordFilters,
    *,
    after: Sequence[Any] | None,
    limit: int,
) -> list[Record]:
    """Readable records that fit, newest first, at most `limit`. `after`: recorded_at and id of the last one seen."""
    rule, parameters = record_guard(principal)
    today = today_of(principal)
    conditions = [
        "r.tenant_id = %(tenant)s::uuid",
        "r.review IS NULL",
        rule,
    ]
    given: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "today": today,
        "limit": limit,
        **parameters,
    }
    for name in ("subject_type", "subject_id", "key", "level", "authority", "source_type"):
        value = getattr(filters, name)
        if value is not None:
            table = "x" if name == "level" and filters.as_of is not None else "r"
            conditions.append(f"{table}.{name} = %({name})s::text")
            given[name] = value
    if filters.as_of is not None:
        conditions.append("r.status <> 'deleted'")
        conditions.append(
            "(x.valid_from IS NULL OR x.valid_from <= %(then)s::date) "
            "AND (x.valid_until IS NULL OR x.valid_until >= %(then)s::date)"
        )
        given |= {
            "as_of": filters.as_of,
            "then": clock.day_of(filters.as_of, principal.time_zone),
        }
    else:
        conditions.append(_status_condition(filters.status or "active"))
        given["status"] = filters.status or "active"
    if filters.q is not None:
        words = words_of_question(filters.q, principal.search_language)
        conditions.append(
            "r.id IN (SELECT p.record_id FROM record_posting p WHERE p.tenant_id = %(tenant)s::uuid "
            "AND p.lexeme = ANY(%(words)s::text[]) GROUP BY p.record_id HAVING count(*) = %(word_count)s::int)"
        )
        # Without a word there is nothing to find: no record has a count of -1.
        given |= {"words": words, "word_count": len(words) or -1}
    if after is not None:
        conditions.append("(r.recorded_at, r.id) < (%(after_at)s::timestamptz, %(after_id)s::text)")
        given |= {"after_at": after[0], "after_id": after[1]}
    columns, then = (_COLUMNS_THEN, _THEN) if filters.as_of is not None else (RECORD_COLUMNS, "")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM {RECORD_TABLES} {then} WHERE {' AND '.join(conditions)} "
            "ORDER BY r.recorded_at DESC, r.id DESC LIMIT %(limit)s::int",
            given,
        )
        records = [record_of(row) for row in cursor.fetchall()]
    if filters.as_of is not None:
        return [_as_it_was(record) for record in records]
    return [as_shown(record, today) for record in records]


def _status_condition(status: str) -> str:
    if status == "active":
        return f"r.status = %(status)s::text AND NOT {is_over('r')}"
    if status == "expired":
        return f"(r.status = %(status)s::text OR {is_over('r')})"
    return "r.status = %(status)s::text"
