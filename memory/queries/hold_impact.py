"""What placing or releasing a hold does, counted before anybody presses a button: what would be kept, what would go.

What is due is asked with the sweep's own conditions, so the numbers are those of the next sweep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.hold_naming import named_facts, named_records
from memory.holds import HoldScope
from memory.retention import IS_DUE, IS_ERASING

SOON_DAYS = 30

_DUE = f"coalesce({' OR '.join(f'({condition})' for condition in IS_DUE.values())}, false)"
_SOON = f"""NOT ({_DUE}) AND coalesce(f.expires_at, f.deleted_at) <= statement_timestamp() + %(soon)s::int * interval '24 hours'
  AND (f.keep_ends_at IS NULL OR f.keep_ends_at <= statement_timestamp() + %(soon)s::int * interval '24 hours')"""
_IS_RECORD_ERASING = """EXISTS (SELECT FROM erasure e WHERE e.tenant_id = m.tenant_id AND e.status <> 'completed'
  AND e.selector_kind NOT IN ('fact', 'conversation') AND e.selector_id IN (m.subject_id, m.bindings ->> 'user_id'))"""
_SEALED = """EXISTS (SELECT FROM sealed_copy s
  WHERE s.tenant_id = m.tenant_id AND s.record_id = m.id AND s.purpose = 'hold')"""


@dataclass(frozen=True, slots=True)
class Named:
    """One fact or record that a scope names. `about`: the record's subject; `until`: when it would end by itself."""

    kind: str
    id: str
    name: str
    about: str | None
    since: datetime
    until: datetime | date | None


@dataclass(frozen=True, slots=True)
class PlacingImpact:
    """What a hold would keep now. `due`: facts that the next sweep would take without it; `soon`: what ends within
    SOON_DAYS; `erasing`: what open erasures are about, which the hold stops.
    """

    facts: int
    records: int
    due: int
    soon: int
    erasing: int


_PLACING_FACTS = f"""
SELECT count(*), count(*) FILTER (WHERE {_DUE}), count(*) FILTER (WHERE {_SOON}), count(*) FILTER (WHERE {IS_ERASING})
FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.id IN ({{facts}})
"""
_PLACING_RECORDS = f"""
SELECT count(*), count(*) FILTER (WHERE m.status = 'active' AND m.valid_until <= %(day)s::date),
       count(*) FILTER (WHERE {_IS_RECORD_ERASING})
FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND m.id IN ({{records}})
"""
_FIRST = """
(SELECT 'fact', f.id, f.type, NULL::text, f.created_at, f.expires_at
 FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.id IN ({facts}) ORDER BY f.id LIMIT %(limit)s::int)
UNION ALL
(SELECT 'record', m.id, m.key, m.subject_id, m.recorded_at, m.valid_until::timestamptz
 FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND m.id IN ({records}) ORDER BY m.id LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""


def placing_impact(tenant_id: UUID, scope: HoldScope, *, soon_day: date) -> PlacingImpact:
    """What a hold with this scope would keep. soon_day: the last day that counts as soon. Raises BadInput."""
    scope.check()
    parameters: dict[str, Any] = {
        "tenant": tenant_id,
        "soon": SOON_DAYS,
        "day": soon_day,
        **scope.parameters(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PLACING_FACTS.format(facts=named_facts(scope)), parameters)
        facts, due, facts_soon, facts_erasing = cursor.fetchone()
        cursor.execute(_PLACING_RECORDS.format(records=named_records(scope)), parameters)
        records, records_soon, records_erasing = cursor.fetchone()
    return PlacingImpact(
        facts, records, due, facts_soon + records_soon, facts_erasing + records_erasing
    )


def first_named(tenant_id: UUID, scope: HoldScope, *, limit: int) -> Sequence[Named]:
    """The first facts and records that a scope names."""
    with connection.cursor() as cursor:
        first = _FIRST.format(facts=named_facts(scope), records=named_records(scope))
        cursor.execute(first, {"tenant": tenant_id, "limit": limit, **scope.parameters()})
        return [Named(*row) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class ReleaseImpact:
    """What releasing a hold does. `facts`, `records`: what it keeps; `still_held`: of these, what another hold keeps too.

    Of the rest: `sealed` copies that are destroyed at once; `due` facts that the next sweep takes; `soon` those that end
    within SOON_DAYS; `erasing` what open erasures take then; `free` what nothing ends.
    """

    facts: int
    records: int
    still_held: int
    sealed: int
    due: int
    soon: int
    erasing: int

    @property
    def free(self) -> int:
        gone = self.still_held + self.sealed + self.due + self.soon + self.erasing
        return self.facts + self.records - gone

    def numbers(self) -> list[int]:
        return [
            self.facts,
            self.records,
            self.still_held,
            self.sealed,
            self.due,
            self.soon,
            self.erasing,
        ]


_RELEASE_FACTS = f"""
SELECT count(*), count(*) FILTER (WHERE f.hold_count > 1),
       count(*) FILTER (WHERE f.hold_count = 1 AND NOT {IS_ERASING} AND ({_DUE})),
       count(*) FILTER (WHERE f.hold_count = 1 AND NOT {IS_ERASING} AND {_SOON}),
       count(*) FILTER (WHERE f.hold_count = 1 AND {IS_ERASING})
FROM fact_hold k JOIN fact f ON f.tenant_id = k.tenant_id AND f.id = k.fact_id
WHERE k.tenant_id = %(tenant)s::uuid AND k.hold_id = %(hold)s::uuid
"""
_RELEASE_RECORDS = f"""
SELECT count(*), count(*) FILTER (WHERE m.hold_count > 1), count(*) FILTER (WHERE m.hold_count = 1 AND {_SEALED}),
       count(*) FILTER (WHERE m.hold_count = 1 AND NOT {_SEALED} AND NOT {_IS_RECORD_ERASING}
                          AND m.status = 'active' AND m.valid_until <= %(day)s::date),
       count(*) FILTER (WHERE m.hold_count = 1 AND NOT {_SEALED} AND {_IS_RECORD_ERASING})
FROM record_hold k JOIN memory_record m ON m.tenant_id = k.tenant_id AND m.id = k.record_id
WHERE k.tenant_id = %(tenant)s::uuid AND k.hold_id = %(hold)s::uuid
"""


def release_impact(tenant_id: UUID, hold_id: UUID, *, soon_day: date) -> ReleaseImpact:
    """What releasing this hold would do now."""
    parameters: dict[str, Any] = {
        "tenant": tenant_id,
        "hold": hold_id,
        "soon": SOON_DAYS,
        "day": soon_day,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE_FACTS, parameters)
        facts, facts_held, due, facts_soon, facts_erasing = cursor.fetchone()
        cursor.execute(_RELEASE_RECORDS, parameters)
        records, records_held, sealed, records_soon, records_erasing = cursor.fetchone()
    return ReleaseImpact(
        facts,
        records,
        facts_held + records_held,
        sealed,
        due,
        facts_soon + records_soon,
        facts_erasing + records_erasing,
    )


def count_named(tenant_id: UUID, scope: HoldScope) -> tuple[int, int]:
    """How many facts and records a hold with this scope would keep now. Raises BadInput."""
    scope.check()
    parameters: dict[str, Any] = {"tenant": tenant_id, **scope.parameters()}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT count(*) FROM ({named_facts(scope)}) f), (SELECT count(*) FROM ({named_records(scope)}) r)",
            parameters,
        )
        facts, records = cursor.fetchone()
    return int(facts), int(records)
