"""Which memories a wider correction changes, so that a person can see the exact set first; and the seal that binds them to it.

The wider place is the record's own, or, for one that is about a single case, where agents take the thing from in other cases.
The set is the record, whatever stands in the wider place, what agents inferred of the same values, and what was derived from any
of them. The seal names route, place, person and the set with versions, and holds for ten minutes: a changed set needs a fresh
look.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.core import signing
from django.db import connection

from corrections.queries.falling import replaced_with
from memory.access import Principal
from memory.canonical import canonical
from memory.queries.records import today_of
from memory.records.ending import DESCENDANTS
from memory.records.overdue import is_over
from memory.records.record import Record

HOLDS_SECONDS = 600
SHOWN_MOST = 20
_SALT = "kindmem widening"

# What is in use of one thing about one subject.
_OF_THE_THING = f"""
r.tenant_id = %(tenant)s::uuid AND r.subject_type = %(subject_type)s::text AND r.subject_id = %(subject)s::text
  AND r.key = %(key)s::text AND r.status = 'active' AND r.review IS NULL AND NOT {is_over("r")}
"""
_AFFECTED = f"""
{DESCENDANTS}
SELECT r.id, r.key, r.row_version, v.value_text FROM gone h
JOIN memory_record r ON r.tenant_id = %(tenant)s::uuid AND r.id = h.id AND r.status = 'active' AND r.review IS NULL
  AND NOT {is_over("r")} AND (r.subject_type <> 'user' OR r.subject_id = %(subject)s::text)
LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
ORDER BY r.id LIMIT 1001
"""
_UNTOUCHED = f"""
SELECT count(*) FROM memory_record r
WHERE {_OF_THE_THING}
  AND NOT r.id = ANY(%(hit)s::text[])
"""
# Of those that also apply elsewhere, the one that recall prefers there.
_ELSEWHERE = f"""
SELECT r.level, r.bindings_text FROM memory_record r
WHERE {_OF_THE_THING}
  AND r.authority <> 'policy' AND NOT r.is_upcoming AND r.level <> 'instance' AND r.id <> %(id)s::text
  AND %(bindings)s::jsonb @> r.bindings
ORDER BY r.binding_count, r.level_rank, r.source_rank, r.id LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Affected:
    id: str
    key: str
    row_version: int
    value_text: str | None


@dataclass(frozen=True, slots=True)
class Widening:
    """`level`, `bindings`: where the correction is to apply. `untouched`: active memories of the same thing, bound to cases of
    their own, which stay.
    """

    level: str
    bindings: dict[str, Any]
    affected: Sequence[Affected]
    untouched: int
    seal: str


def _set_digest(affected: Sequence[Affected]) -> str:
    return sha256(canonical([[one.id, one.row_version] for one in affected]).encode()).hexdigest()


def widening_of(
    principal: Principal, record: Record, *, route: str, new_text: str | None = None
) -> Widening:
    """What a correction everywhere would change, read now. `new_text`: what it will say."""
    named: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "subject_type": record.subject_type,
        "subject": record.subject_id,
        "key": record.key,
        "id": record.id,
        "level": record.level,
        "bindings": record.bindings_text,
        "today": today_of(principal),
    }
    level, bindings_text = record.level, record.bindings_text
    with connection.cursor() as cursor:
        if level == "instance":
            cursor.execute(_ELSEWHERE, named)
            level, bindings_text = cursor.fetchone() or ("user", "{}")
            named |= {"level": level, "bindings": bindings_text}
        roots = replaced_with(principal, record, level, bindings_text, new_text=new_text)
        cursor.execute(_AFFECTED, {**named, "roots": roots})
        affected = [Affected(*row) for row in cursor.fetchall()]
        cursor.execute(_UNTOUCHED, {**named, "hit": [one.id for one in affected]})
        untouched = cursor.fetchone()[0]
    bound = [route, record.id, principal.writer, level, bindings_text, _set_digest(affected)]
    seal = signing.dumps(bound, salt=_SALT)
    return Widening(level, json.loads(bindings_text), affected, untouched, seal)


def is_still(widening: Widening, seal: str) -> bool:
    """Whether the seal was made for just this set, by this person, a short while ago."""
    try:
        seen = signing.loads(seal, salt=_SALT, max_age=HOLDS_SECONDS)
        now = signing.loads(widening.seal, salt=_SALT)
    except signing.BadSignature:
        return False
    return bool(seen == now)
