"""Whether an act can still be undone, from its receipt: asked by the undo itself, and by every page that offers one.

It can until its deadline, while what it left is as it left it, nothing else took the place of what would come back, and what that
was derived from is still in use. What would come back from a sealed copy needs the copy.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.hold_naming import record_is_held

_IN_PLACE = ("confirm", "dispute")
_ENDINGS = ("out-of-date", "forget", "never-infer")
_NO_CORRECTIONS = (*_IN_PLACE, *_ENDINGS, "wrong-person", "undo")

_REFUSALS = f"""
WITH asked AS (
  SELECT p.number, p.act_id, p.route, p.record_id, p.made_at, p.undone_at, p.undo_until, p.before_scope_text::jsonb AS was,
         CASE WHEN p.route <> ALL(%(no_corrections)s::text[]) THEN p.after_ids[1] END AS correction_id
  FROM receipt p WHERE p.tenant_id = %(tenant)s::uuid AND p.number = ANY(%(numbers)s::text[])
), touched AS (
  SELECT k.number, k.route, k.correction_id, a.to_status AS became, r.id, r.status, r.subject_type, r.subject_id, r.key,
         r.level, r.bindings_hash, r.is_upcoming,
         CASE WHEN k.route = 'wrong-person' THEN r.status = 'active' AND r.review = 'withdrawn'
              WHEN k.route = ANY(%(in_place)s::text[]) THEN false
              WHEN a.to_status = 'superseded' THEN r.status = 'superseded'
              ELSE r.review IS NULL AND a.from_status = 'active' AND r.status IN ('expired', 'deleted') AND (
                r.authority = 'policy'
                OR EXISTS (SELECT FROM record_value v WHERE v.tenant_id = r.tenant_id AND v.record_id = r.id)
                OR EXISTS (SELECT FROM sealed_copy s WHERE s.tenant_id = r.tenant_id AND s.record_id = r.id
                           AND s.purpose = 'undo' AND s.receipt_number = k.number)) END AS comes_back
  FROM asked k
  JOIN record_act a ON a.tenant_id = %(tenant)s::uuid AND a.act_id = k.act_id
  JOIN memory_record r ON r.tenant_id = a.tenant_id AND r.id = a.record_id
), blocked AS (
  SELECT t.number FROM touched t
  WHERE t.correction_id IS NOT NULL AND t.became = 'superseded' AND t.status <> 'superseded'
  UNION ALL
  SELECT t.number FROM touched t
  JOIN memory_record o ON o.tenant_id = %(tenant)s::uuid AND o.subject_type = t.subject_type AND o.subject_id = t.subject_id
    AND o.key = t.key AND o.level = t.level AND o.bindings_hash = t.bindings_hash AND o.is_upcoming = t.is_upcoming
    AND o.status = 'active' AND o.review IS NULL AND o.id <> t.id AND o.id IS DISTINCT FROM t.correction_id
  WHERE t.comes_back
  UNION ALL
  SELECT k.number FROM asked k
  JOIN memory_record m ON m.tenant_id = %(tenant)s::uuid AND m.id = k.record_id
  JOIN memory_record o ON o.tenant_id = %(tenant)s::uuid AND o.subject_type = m.subject_type AND o.subject_id = m.subject_id
    AND o.key = m.key AND o.level = k.was ->> 'level' AND o.bindings = k.was -> 'bindings' AND o.is_upcoming = m.is_upcoming
    AND o.status = 'active' AND o.review IS NULL AND o.id <> m.id
  WHERE k.route = 'confirm'
  UNION ALL
  SELECT t.number FROM touched t
  JOIN record_lineage l ON l.tenant_id = %(tenant)s::uuid AND l.record_id = t.id
  JOIN memory_record q ON q.tenant_id = %(tenant)s::uuid AND q.id = l.parent_id
    AND (q.status <> 'active' OR q.review IS NOT NULL)
  WHERE t.comes_back AND t.route <> 'wrong-person'
    AND NOT EXISTS (SELECT FROM touched b WHERE b.number = t.number AND b.id = q.id AND b.comes_back)
)
SELECT k.number, CASE
  WHEN k.undone_at IS NOT NULL THEN 'undone'
  WHEN k.undo_until IS NULL THEN 'no-undo'
  WHEN k.undo_until <= %(at)s::timestamptz THEN 'deadline'
  WHEN EXISTS (SELECT FROM blocked b WHERE b.number = k.number) THEN 'changed'
  WHEN k.route = 'confirm' AND NOT (m.status = 'active' AND m.review IS NULL AND m.confirmed_at IS NOT DISTINCT FROM k.made_at)
    THEN 'changed'
  WHEN k.route = 'dispute' AND NOT (m.status = 'active' AND m.review IS NULL AND m.disputed_at IS NOT DISTINCT FROM k.made_at)
    THEN 'changed'
  WHEN k.route = 'wrong-person' AND NOT (m.status = 'active' AND m.review IS NOT DISTINCT FROM 'withdrawn') THEN 'changed'
  WHEN k.route = ANY(%(endings)s::text[]) AND m.status <> 'active'
    AND NOT EXISTS (SELECT FROM touched b WHERE b.number = k.number AND b.id = k.record_id AND b.comes_back) THEN 'changed'
  WHEN k.correction_id IS NOT NULL AND NOT (c.status = 'active' AND c.review IS NULL) THEN 'changed'
  WHEN k.correction_id IS NOT NULL AND {record_is_held("c")} THEN 'legal-hold'
END
FROM asked k
JOIN memory_record m ON m.tenant_id = %(tenant)s::uuid AND m.id = k.record_id
LEFT JOIN memory_record c ON c.tenant_id = %(tenant)s::uuid AND c.id = k.correction_id
"""


def undo_refusals(tenant_id: UUID, numbers: Sequence[str], at: datetime) -> dict[str, str]:
    """Why each of these receipts can't be undone now: `undone`, `no-undo`, `deadline`, `changed` or `legal-hold`.

    One that can be is not among them.
    """
    if not numbers:
        return {}
    named: dict[str, Any] = {
        "tenant": tenant_id,
        "numbers": list(numbers),
        "at": at,
        "in_place": list(_IN_PLACE),
        "endings": list(_ENDINGS),
        "no_corrections": list(_NO_CORRECTIONS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_REFUSALS, named)
        return {number: reason for number, reason in cursor.fetchall() if reason is not None}
