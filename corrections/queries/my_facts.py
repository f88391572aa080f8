"""Facts about one person: those whose scope or subjects name them, under the same read guard as everywhere.

The list shows the current revision of each; a fact that was deleted is there until the sweep, apart. What waits for review or is
past its end is not read.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal, read_guard
from memory.erasure.reach import facts_condition
from memory.errors import FactNotFound
from memory.fact_shape import FactView
from memory.queries.facts import COLUMNS, JOINS, READABLE, view_of

STATES = ("in-use", "unchecked", "checked", "stale", "removed")
TYPES_MOST = 50

_STATES = {
    "in-use": "f.deleted_at IS NULL",
    "unchecked": "f.deleted_at IS NULL AND r.trust = 'unverified'",
    "checked": "f.deleted_at IS NULL AND r.trust = 'verified'",
    "stale": "f.deleted_at IS NULL AND coalesce(s.last_verified_at IS NULL OR s.last_verified_at"
    " + s.ttl_seconds * interval '1 second' < statement_timestamp(), false) AND s.ttl_seconds IS NOT NULL",
    "removed": "f.deleted_at IS NOT NULL",
}


@dataclass(frozen=True, slots=True)
class FactsWanted:
    """`state` None: those in use. `words` are looked for in types and contents."""

    state: str | None = None
    words: str | None = None
    type: str | None = None
    since: datetime | None = None


def _mine(principal: Principal) -> tuple[str, dict[str, Any]]:
    guard, parameters = read_guard(principal, "f")
    rule = (
        f"f.tenant_id = %(tenant)s::uuid AND {facts_condition('user')} AND {READABLE} AND {guard}"
    )
    return rule, {"tenant": principal.tenant_id, "selector": principal.subject, **parameters}


def my_facts(
    principal: Principal,
    wanted: FactsWanted,
    *,
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> list[FactView]:
    """At most `limit`, by first write, newest first."""
    where, parameters = _mine(principal)
    where += f" AND {_STATES[wanted.state or 'in-use']}"
    if wanted.words:
        where += (
            " AND (position(lower(%(words)s::text) IN lower(f.type)) > 0"
            " OR position(lower(%(words)s::text) IN lower(c.content_text)) > 0)"
        )
    if wanted.type:
        where += " AND f.type = %(type)s::text"
    if wanted.since:
        where += " AND f.created_at >= %(since)s::timestamptz"
    if after is not None:
        where += " AND (f.created_at, f.id) < (%(after_at)s::timestamptz, %(after_id)s::text)"
    parameters |= {
        "words": wanted.words,
        "type": wanted.type,
        "since": wanted.since,
        "after_at": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact f {JOINS} WHERE r.version = f.current_version AND {where} "
            "ORDER BY f.created_at DESC, f.id DESC LIMIT %(limit)s::int",
            parameters,
        )
        return [view_of(row) for row in cursor.fetchall()]


def my_fact_types(principal: Principal) -> dict[str, int]:
    """How many facts of each type there are, removed ones included; at most TYPES_MOST types."""
    where, parameters = _mine(principal)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.type, count(*) FROM fact f WHERE {where} GROUP BY f.type ORDER BY 2 DESC, 1 LIMIT %(most)s::int",
            {**parameters, "most": TYPES_MOST},
        )
        return dict(cursor.fetchall())


def my_fact_revisions(
    principal: Principal, fact_id: str, *, before: int | None = None, limit: int
) -> list[FactView]:
    """The fact's revisions, newest first, at most `limit`. Raises FactNotFound, also for what is not about the person."""
    where, parameters = _mine(principal)
    if before is not None:
        where += " AND r.version < %(before)s::int"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact f {JOINS} WHERE f.id = %(id)s::text AND {where} "
            "ORDER BY r.version DESC LIMIT %(limit)s::int",
            {**parameters, "id": fact_id, "before": before, "limit": limit},
        )
        found = [view_of(row) for row in cursor.fetchall()]
    if not found:
        raise FactNotFound
    return found


def my_fact_versions(
    principal: Principal, *, after: tuple[str, int] | None = None, limit: int
) -> list[FactView]:
    """Every version of every fact, by fact and version, at most `limit`. after: id and version of the last one seen."""
    where, parameters = _mine(principal)
    if after is not None:
        where += " AND (f.id, r.version) > (%(after_id)s::text, %(after_version)s::int)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact f {JOINS} WHERE {where} ORDER BY f.id, r.version LIMIT %(limit)s::int",
            {
                **parameters,
                "after_id": after[0] if after else None,
                "after_version": after[1] if after else None,
                "limit": limit,
            },
        )
        return [view_of(row) for row in cursor.fetchall()]
