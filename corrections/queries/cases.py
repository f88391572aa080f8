"""Which kinds of case there are for a thing: by what memories of it are bound, so that a person chooses and need not know names.

The reader's own kinds first. Of other people's memories of the same thing only what at least COMMON people's are bound by: then
it is how the workspace tells cases apart, and says nothing about anybody.
"""

from dataclasses import dataclass

from django.db import connection

from memory.access import Principal
from memory.records.bindings import CONTROL_KEYS
from memory.records.record import Record

COMMON = 3
KINDS_MOST = 12
NAME_RULE = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
_LOOKED_THROUGH = 2000

_KINDS = """
WITH seen AS (
  (SELECT r.id, r.key, r.subject_id, r.bindings, true AS is_own FROM memory_record r
   WHERE r.tenant_id = %(tenant)s::uuid AND r.subject_id = %(subject)s::text AND r.subject_type = %(type)s::text
     AND r.review IS NULL AND r.status <> 'deleted' ORDER BY r.recorded_at DESC, r.id DESC LIMIT %(most)s::int)
  UNION ALL
  (SELECT r.id, r.key, r.subject_id, r.bindings, false FROM memory_record r
   WHERE r.tenant_id = %(tenant)s::uuid AND r.key = %(key)s::text AND r.review IS NULL AND r.status <> 'deleted'
     AND (r.subject_type, r.subject_id) <> (%(type)s::text, %(subject)s::text)
   ORDER BY r.recorded_at DESC, r.id DESC LIMIT %(most)s::int)
)
SELECT b.name, bool_and(jsonb_typeof(b.value) = 'number')
FROM seen s CROSS JOIN LATERAL jsonb_each(s.bindings) AS b (name, value)
WHERE b.name ~ %(rule)s::text AND b.name <> ALL(%(control)s::text[])
GROUP BY b.name HAVING bool_or(s.is_own) OR count(DISTINCT s.subject_id) >= %(common)s::int
ORDER BY bool_or(s.is_own AND s.key = %(key)s::text) DESC, bool_or(s.key = %(key)s::text) DESC, count(*) DESC, b.name
LIMIT %(kinds)s::int
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """`name`: the binding's; `is_number`: cases of this kind are told apart by numbers."""

    name: str
    is_number: bool


def kinds_of_case(principal: Principal, record: Record) -> list[Kind]:
    """At most KINDS_MOST, the likeliest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            _KINDS,
            {
                "tenant": principal.tenant_id,
                "subject": record.subject_id,
                "type": record.subject_type,
                "key": record.key,
                "most": _LOOKED_THROUGH,
                "rule": f"^{NAME_RULE}$",
                "control": sorted(CONTROL_KEYS),
                "common": COMMON,
                "kinds": KINDS_MOST,
            },
        )
        return [Kind(*row) for row in cursor.fetchall()]
