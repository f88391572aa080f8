"""What is no longer used: each memory and fact version that was replaced, ran out, was forgotten, removed, erased or destroyed.

Newest first. A person reads what was about them; who governs reads all. A tombstone has no value here, whoever reads; an auditor
reads no values at all.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal, read_guard
from memory.erasure.reach import facts_condition
from memory.queries.facts import READABLE
from memory.queries.records import today_of
from memory.records.overdue import value_is_over

HOW = ("replaced", "expired", "forgotten", "removed", "erased", "destroyed")
SAID_MAX = 400


@dataclass(frozen=True, slots=True)
class RegisterFilters:
    """`name`: part of a memory's key or a fact's type. `act_id`: what ended in one act. `subject`: for who governs."""

    how: str | None = None
    what: str | None = None
    name: str | None = None
    subject: str | None = None
    act_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """One that ended. `place`: order within a moment; `fell`: how many derived ones fell with it; `fell_with`: or with which."""

    at: datetime
    place: str
    what: str
    id: str
    version: int | None
    name: str
    subject: str | None
    how: str
    actor: str | None
    role: str | None
    reason_code: str
    route: str | None
    receipt: str | None
    successor: str | None
    act_id: str | None
    fell: int
    fell_with: str | None
    said: str | None


_MEMORIES = """
SELECT a.acted_at AS at, 'memory/' || a.act_id::text || '/' || a.record_id AS place, 'memory' AS what, a.record_id AS id,
       NULL::int AS version, r.key AS name, r.subject_id AS subject,
       CASE WHEN a.to_status = 'deleted' THEN CASE WHEN a.act = 'erased' THEN 'erased' ELSE 'forgotten' END
            WHEN a.to_status = 'expired' THEN 'expired' ELSE 'replaced' END AS how,
       a.actor, a.actor_role AS role, a.reason_code, p.route, a.receipt_number AS receipt, s.successor_id AS successor,
       a.act_id::text AS act_id,
       CASE WHEN a.is_main OR a.to_status = 'superseded' THEN (
         SELECT count(*) FROM record_act o JOIN memory_record d ON d.tenant_id = o.tenant_id AND d.id = o.record_id
         WHERE o.tenant_id = a.tenant_id AND o.act_id = a.act_id AND o.record_id <> a.record_id AND NOT o.is_main
           AND o.to_status IN ('expired', 'deleted') AND {others}) ELSE 0 END AS fell,
       CASE WHEN NOT a.is_main AND a.to_status <> 'superseded' THEN (
         SELECT o.record_id FROM record_act o JOIN memory_record d ON d.tenant_id = o.tenant_id AND d.id = o.record_id
         WHERE o.tenant_id = a.tenant_id AND o.act_id = a.act_id AND o.record_id <> a.record_id AND o.to_status <> 'active'
           AND (o.is_main OR o.to_status = 'superseded') AND {others}
         ORDER BY o.is_main DESC, o.record_id LIMIT 1) END AS fell_with,
       left(v.value_text, %(said)s::int) AS said
FROM record_act a
JOIN memory_record r ON r.tenant_id = a.tenant_id AND r.id = a.record_id
LEFT JOIN record_supersession s ON s.tenant_id = a.tenant_id AND s.superseded_id = a.record_id
LEFT JOIN receipt p ON p.tenant_id = a.tenant_id AND p.number = a.receipt_number
LEFT JOIN record_value v ON v.tenant_id = a.tenant_id AND v.record_id = a.record_id AND a.to_status <> 'deleted'
  AND r.status <> 'deleted' AND NOT {over} AND %(sees)s::bool
WHERE a.tenant_id = %(tenant)s::uuid AND a.to_status <> 'active' AND a.act NOT IN ('revealed', 'imported')
  AND a.from_status IS DISTINCT FROM a.to_status AND r.review IS NULL
"""
_FACTS = """
SELECT r.invalidated_at AS at, 'fact/' || f.id || '/' || lpad(r.version::text, 9, '0') AS place, 'fact' AS what, f.id AS id,
       r.version, f.type AS name, coalesce(f.user_id, f.participant_id) AS subject,
       CASE r.invalidation_reason WHEN 'superseded' THEN 'replaced' WHEN 'deleted' THEN 'removed'
            ELSE r.invalidation_reason END AS how,
       r.invalidated_by AS actor, NULL::text AS role, r.invalidation_reason AS reason_code, NULL::text AS route,
       NULL::text AS receipt, NULL::text AS successor, NULL::text AS act_id, 0::bigint AS fell, NULL::text AS fell_with,
       CASE WHEN r.invalidation_reason = 'superseded' AND %(sees)s::bool THEN left(c.content_text, %(said)s::int) END AS said
FROM fact_revision r JOIN fact f ON f.tenant_id = r.tenant_id AND f.id = r.fact_id
LEFT JOIN fact_content c ON c.tenant_id = r.tenant_id AND c.fact_id = r.fact_id AND c.version = r.version
WHERE r.tenant_id = %(tenant)s::uuid AND r.invalidated_at IS NOT NULL
"""
_DESTROYED = """
SELECT t.destroyed_at AS at, 'gone/' || t.cause_id::text || '/' || t.fact_id AS place, 'fact' AS what, t.fact_id AS id,
       NULL::int AS version, t.type AS name, NULL::text AS subject,
       CASE t.cause WHEN 'erasure' THEN 'erased' ELSE 'destroyed' END AS how, NULL::text AS actor, NULL::text AS role,
       t.rule AS reason_code, NULL::text AS route, NULL::text AS receipt, NULL::text AS successor, t.cause_id::text AS act_id,
       0::bigint AS fell, NULL::text AS fell_with, NULL::text AS said
FROM destroyed_fact t WHERE t.tenant_id = %(tenant)s::uuid
"""
_AT = {"memory": "a.acted_at", "fact": "r.invalidated_at", "destroyed": "t.destroyed_at"}
_ORDER = 'ORDER BY at DESC, place COLLATE "C" DESC LIMIT %(limit)s::int'


def sees_all(principal: Principal) -> bool:
    return principal.role in ("owner", "admin", "auditor")


def register(
    principal: Principal,
    filters: RegisterFilters,
    *,
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> list[Ended]:
    """At most `limit`, newest first. after: moment and place of the last one seen."""
    governs = sees_all(principal)
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "selector": principal.subject,
        "sees": principal.role != "auditor",
        "today": today_of(principal),
        "said": SAID_MAX,
        "how": filters.how,
        "name": filters.name,
        "subject": filters.subject,
        "act": filters.act_id,
        "since": filters.since,
        "until": filters.until,
        "after_at": after[0] if after else None,
        "after_place": after[1] if after else None,
        "limit": limit,
    }
    guard, named = read_guard(principal, "f")
    parameters |= named
    own = "{a}.subject_type = 'user' AND {a}.subject_id = %(selector)s::text"
    sources = {
        "memory": _MEMORIES.format(
            others="true" if governs else own.format(a="d"), over=value_is_over("r")
        )
        + ("" if governs else f" AND {own.format(a='r')}"),
        "fact": _FACTS
        + ("" if governs else f" AND {facts_condition('user')} AND {READABLE} AND {guard}"),
        "destroyed": _DESTROYED if governs else "",
    }
    branches = [
        f"(SELECT * FROM ({statement} {_bounds(_AT[name], filters, after)}) b WHERE {_wanted(filters, after)} {_ORDER})"
        for name, statement in sources.items()
        if statement
        and (filters.what is None or filters.what == ("memory" if name == "memory" else "fact"))
    ]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM ({' UNION ALL '.join(branches)}) u {_ORDER}", parameters)
        return [Ended(*row) for row in cursor.fetchall()]


def _bounds(at: str, filters: RegisterFilters, after: tuple[datetime, str] | None) -> str:
    """What the index of a source bounds."""
    where = ""
    if filters.since is not None:
        where += f" AND {at} >= %(since)s::timestamptz"
    if filters.until is not None:
        where += f" AND {at} < %(until)s::timestamptz"
    if after is not None:
        where += f" AND {at} <= %(after_at)s::timestamptz"
    return where


def _wanted(filters: RegisterFilters, after: tuple[datetime, str] | None) -> str:
    where = "true"
    if filters.how is not None:
        where += " AND how = %(how)s::text"
    if filters.name is not None:
        where += " AND position(lower(%(name)s::text) IN lower(name)) > 0"
    if filters.subject is not None:
        where += " AND subject = %(subject)s::text"
    if filters.act_id is not None:
        where += " AND act_id = %(act)s::text"
    if after is not None:
        where += ' AND (at < %(after_at)s::timestamptz OR place COLLATE "C" < %(after_place)s::text COLLATE "C")'
    return where
