"""What became of a memory that is no longer used: what agents use instead, the act that can still be undone, and until when a
sealed copy of what it said is kept for that.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.queries.records import today_of
from memory.queries.undoable import undo_refusals
from memory.records import clock
from memory.records.overdue import is_over

# What took its place, and what an undo brought back, as far as that goes.
_LIVE = f"""
WITH RECURSIVE onward (id) AS (
  SELECT unnest(%(ids)s::text[])
  UNION
  SELECT n.id FROM onward o, LATERAL (
    SELECT s.successor_id AS id FROM record_supersession s WHERE s.tenant_id = %(tenant)s::uuid AND s.superseded_id = o.id
    UNION ALL
    SELECT a.record_id FROM record_act a
    WHERE a.tenant_id = %(tenant)s::uuid AND a.from_record_id = o.id AND a.act = 'undone'
  ) n
)
SELECT r.id FROM onward o JOIN memory_record r ON r.tenant_id = %(tenant)s::uuid AND r.id = o.id
WHERE r.status = 'active' AND r.review IS NULL AND NOT {is_over("r")}
  AND (r.subject_type <> 'user' OR r.subject_id = %(subject)s::text)
ORDER BY array_position(%(ids)s::text[], r.id), r.recorded_at DESC, r.id LIMIT 1
"""
_SEALED = """
SELECT max(s.destroy_after) FROM sealed_copy s
WHERE s.tenant_id = %(tenant)s::uuid AND s.record_id = %(id)s::text AND s.purpose = 'undo'
  AND s.destroy_after > %(now)s::timestamptz
"""
_STANDING = f"""
SELECT 'live', l.id, NULL::timestamptz FROM ({_LIVE}) l
UNION ALL
SELECT 'sealed', NULL, s.until FROM ({_SEALED}) s (until)
UNION ALL
(SELECT 'ended-by', p.number, p.undo_until FROM record_act a
 JOIN receipt p ON p.tenant_id = a.tenant_id AND p.act_id = a.act_id
 JOIN memory_record m ON m.tenant_id = p.tenant_id AND m.id = p.record_id
 WHERE a.tenant_id = %(tenant)s::uuid AND a.record_id = %(id)s::text AND a.to_status <> 'active'
   AND m.subject_type = 'user' AND m.subject_id = %(subject)s::text
   AND p.undone_at IS NULL AND p.undo_until > %(now)s::timestamptz
 ORDER BY p.made_at DESC LIMIT 3)
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """`live`: what agents use instead. `receipt`, `undo_until`: of the act that ended it, while it can be undone. `sealed_until`:
    until then what it said is kept sealed, for an undo.
    """

    live: str | None = None
    receipt: str | None = None
    undo_until: datetime | None = None
    sealed_until: datetime | None = None


def _named(principal: Principal, *record_ids: str) -> dict[str, Any]:
    return {
        "tenant": principal.tenant_id,
        "subject": principal.subject,
        "ids": list(record_ids),
        "id": record_ids[0],
        "today": today_of(principal),
        "now": clock.now(),
    }


def live_now(principal: Principal, *record_ids: str) -> str | None:
    """What agents use of these, or instead of them: the first that is in use, else the newest of what came after."""
    with connection.cursor() as cursor:
        cursor.execute(_LIVE, _named(principal, *record_ids))
        row = cursor.fetchone()
    return row[0] if row else None


def sealed_until(principal: Principal, record_id: str) -> datetime | None:
    """Until when a copy of what it said is kept sealed for an undo."""
    with connection.cursor() as cursor:
        cursor.execute(_SEALED, _named(principal, record_id))
        until: datetime | None = cursor.fetchone()[0]
    return until


def standing_of(principal: Principal, record_id: str) -> Standing:
    """Of a memory that is no longer in use."""
    named = _named(principal, record_id)
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, named)
        rows = cursor.fetchall()
    ended_by = {name: at for what, name, at in rows if what == "ended-by"}
    refused = undo_refusals(principal.tenant_id, list(ended_by), named["now"])
    number = next((one for one in ended_by if one not in refused), None)
    return Standing(
        live=next((name for what, name, _at in rows if what == "live"), None),
        receipt=number,
        undo_until=ended_by[number] if number is not None else None,
        sealed_until=next((at for what, _name, at in rows if what == "sealed"), None),
    )
