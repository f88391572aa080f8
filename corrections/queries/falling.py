"""What an act on a memory takes along, read before somebody does it: by the closures and the copies that the act goes by.

Counted and shown is what the reader may read and agents still use. Nothing is locked: what joins meanwhile is taken along, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.queries.records import today_of
from memory.records import fingerprints
from memory.records.copies import copies_of
from memory.records.ending import DESCENDANTS, FORGOTTEN_WITH
from memory.records.overdue import is_over
from memory.records.record import Record
from memory.records.store import bindings_hash, find_records

SHOWN_MOST = 20
_ROUNDS = 3
"""Copies lead to what was derived from them, and that to more copies; the act goes on until there is nothing more."""

Place = tuple[str, str]
"""Key and id of the last one shown."""


@dataclass(frozen=True, slots=True)
class Falling:
    """One memory that the act takes along."""

    id: str
    key: str
    value_text: str | None


@dataclass(frozen=True, slots=True)
class Falls:
    """`count`: how many in use are taken along; `versions`: how many earlier ones go, too; `shown`: the first of those in use."""

    count: int = 0
    versions: int = 0
    shown: Sequence[Falling] = ()


# Of a person's memory it is their own that they read, of anything else what is about no person.
_READABLE = """r.review IS NULL AND CASE WHEN %(subject_type)s::text = 'user'
  THEN r.subject_type = 'user' AND r.subject_id = %(subject)s::text ELSE r.subject_type <> 'user' END"""
_IN_USE = f"(r.status = 'active' AND NOT {is_over('r')})"
_HIT = f"""
{{closure}}, hit AS (
  SELECT r.id, r.key, {_IN_USE} AS is_in_use, v.value_text FROM memory_record r
  LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
  WHERE r.tenant_id = %(tenant)s::uuid AND r.id IN (SELECT id FROM gone) AND r.id <> %(id)s::text
    AND {_READABLE} AND {{condition}}
)
SELECT c.in_use, c.versions, h.id, h.key, h.value_text
FROM (SELECT count(*) FILTER (WHERE is_in_use) AS in_use, count(*) FILTER (WHERE NOT is_in_use) AS versions FROM hit) c
LEFT JOIN LATERAL (
  SELECT * FROM hit WHERE is_in_use AND (%(after_id)s::text IS NULL
    OR (key COLLATE "C", id COLLATE "C") > (%(after_key)s::text COLLATE "C", %(after_id)s::text COLLATE "C"))
  ORDER BY key COLLATE "C", id COLLATE "C" LIMIT %(limit)s::int
) h ON true
"""
_SAID = f"""
{FORGOTTEN_WITH}
SELECT r.id, v.value_text FROM memory_record r
LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id AND r.review IS NULL
  AND r.subject_type = %(subject_type)s::text AND r.subject_id = %(subject)s::text AND r.key = %(key)s::text
WHERE r.tenant_id = %(tenant)s::uuid AND r.id IN (SELECT id FROM gone) AND r.status <> 'deleted'
"""
_GUESSES = """
r.subject_type = %(subject_type)s::text AND r.subject_id = %(subject)s::text AND r.status = 'active'
AND r.source_type = 'agent_inferred' AND (r.key = p.prefix OR starts_with(r.key, p.prefix || '.'))
"""
_PER_PREFIX = f"""
WITH RECURSIVE gone (prefix, id) AS (
  SELECT p.prefix, r.id FROM unnest(%(prefixes)s::text[]) AS p (prefix)
  JOIN memory_record r ON r.tenant_id = %(tenant)s::uuid AND {_GUESSES}
  UNION
  SELECT g.prefix, l.record_id FROM gone g
  JOIN record_lineage l ON l.tenant_id = %(tenant)s::uuid AND l.parent_id = g.id
)
SELECT g.prefix, count(*) FROM gone g JOIN memory_record r ON r.tenant_id = %(tenant)s::uuid AND r.id = g.id
WHERE {_READABLE} AND {_IN_USE} GROUP BY g.prefix
"""


def _named(principal: Principal, record: Record) -> dict[str, Any]:
    return {
        "tenant": principal.tenant_id,
        "subject_type": record.subject_type,
        "subject": record.subject_id,
        "key": record.key,
        "id": record.id,
        "today": today_of(principal),
    }


def falls_with(
    principal: Principal,
    record: Record,
    route: str,
    *,
    prefix: str | None = None,
    after: Place | None = None,
    limit: int = SHOWN_MOST,
) -> Falls:
    """What a route's act on the record takes along, besides the record. `prefix`: what is guessed no more, else the widest."""
    roots = _roots(principal, record, route, prefix)
    if not roots:
        return Falls()
    closure, condition = DESCENDANTS, _IN_USE
    if route == "forget":
        closure, condition = FORGOTTEN_WITH, "r.status <> 'deleted'"
    elif route == "dispute":
        condition += " AND r.disputed_at IS NULL"
    named = {
        **_named(principal, record),
        "roots": roots,
        "after_key": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(_HIT.format(closure=closure, condition=condition), named)
        rows = cursor.fetchall()
    count, versions = rows[0][:2]
    return Falls(count, versions, [Falling(*row[2:]) for row in rows if row[2] is not None])


def ends_by_prefix(principal: Principal, record: Record) -> dict[str, int]:
    """How many memories in use end when agents may guess no more under each prefix of the record's key."""
    named = {**_named(principal, record), "prefixes": fingerprints.prefixes(record.key)}
    with connection.cursor() as cursor:
        cursor.execute(_PER_PREFIX, named)
        return dict(cursor.fetchall())


def replaced_with(
    principal: Principal,
    record: Record,
    level: str,
    bindings_text: str,
    *,
    new_text: str | None = None,
) -> list[str]:
    """Ids of what a correction of the record in this place ends directly: the record, what fills the place, and what agents
    inferred of the same values. `new_text`: what it will say; left out, something else."""
    thing = (record.subject_type, record.subject_id, record.key)
    filling = find_records(
        principal.tenant_id,
        "r.subject_type = %(type)s::text AND r.subject_id = %(subject)s::text AND r.key = %(key)s::text "
        "AND r.level = %(level)s::text AND r.bindings_hash = %(hash)s::bytea AND r.status = 'active' AND r.review IS NULL",
        {
            "type": thing[0],
            "subject": thing[1],
            "key": thing[2],
            "level": level,
            "hash": bindings_hash(bindings_text),
        },
    )
    # What is said of a later time takes the place of what was said of that time alone.
    ended = [record, *(one for one in filling if one.is_upcoming or not record.is_upcoming)]
    ids = list(dict.fromkeys(one.id for one in ended))
    values = [one.value_text for one in ended if one.value_text != new_text]
    return [*ids, *copies_of(principal.tenant_id, thing, values, known=ids)]


def _roots(principal: Principal, record: Record, route: str, prefix: str | None) -> list[str]:
    """From where the act goes on to what was derived."""
    if route == "confirm":
        return []
    if route in ("out-of-date", "dispute"):
        return [record.id]
    if route == "wrong-person":
        thing = (record.subject_type, record.subject_id, record.key)
        same = copies_of(principal.tenant_id, thing, [record.value_text], known=[record.id])
        return [record.id, *same]
    if route == "forget":
        return _forgotten(principal, record)
    if route == "never-infer":
        return _guesses(principal, record, prefix or fingerprints.prefixes(record.key)[0])
    # A correction of a case that the record is not bound to leaves the record, and all that rests on it.
    return replaced_with(principal, record, "instance", record.bindings_text) if record.bindings else []  # fmt: skip


def _forgotten(principal: Principal, record: Record) -> list[str]:
    roots, thing = [record.id], (record.subject_type, record.subject_id, record.key)
    for _round in range(_ROUNDS):
        with connection.cursor() as cursor:
            cursor.execute(_SAID, {**_named(principal, record), "roots": roots})
            said = dict(cursor.fetchall())
        more = copies_of(principal.tenant_id, thing, said.values(), known=list(said))
        if not more:
            break
        roots += more
    return roots


def _guesses(principal: Principal, record: Record, prefix: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id FROM unnest(ARRAY[%(prefix)s::text]) AS p (prefix) "
            f"JOIN memory_record r ON r.tenant_id = %(tenant)s::uuid AND {_GUESSES}",
            {**_named(principal, record), "prefix": prefix},
        )
        return [row[0] for row in cursor.fetchall()]
