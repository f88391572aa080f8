"""The history of a record: every act on it, on what it superseded and on what superseded it, oldest first. An undo brings things
back under new ids: what came back goes on with the history of what was gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.api.json_text import Raw
from memory.instants import instant_text
from memory.records import clock
from memory.records.guard import record_guard
from memory.records.overdue import value_is_over
from memory.records.store import readable_record

MOST_ACTS = 1000

# The chain may join (one record superseded several); UNION ends it whatever shape it has.
_HISTORY = """
WITH RECURSIVE chain (id) AS (
  SELECT %(id)s::text
  UNION
  SELECT n.id FROM chain c, LATERAL (
    SELECT s.superseded_id AS id FROM record_supersession s
    WHERE s.tenant_id = %(tenant)s::uuid AND s.successor_id = c.id
    UNION ALL
    SELECT s.successor_id FROM record_supersession s WHERE s.tenant_id = %(tenant)s::uuid AND s.superseded_id = c.id
    UNION ALL
    SELECT a.from_record_id FROM record_act a
    WHERE a.tenant_id = %(tenant)s::uuid AND a.record_id = c.id AND a.act = 'undone' AND a.from_record_id IS NOT NULL
    UNION ALL
    SELECT a.record_id FROM record_act a
    WHERE a.tenant_id = %(tenant)s::uuid AND a.from_record_id = c.id AND a.act = 'undone'
  ) n
), acted AS (
  SELECT DISTINCT ON (a.act_id) a.*
  FROM record_act a JOIN chain c ON c.id = a.record_id
  JOIN memory_record r ON r.tenant_id = a.tenant_id AND r.id = a.record_id
  WHERE a.tenant_id = %(tenant)s::uuid AND a.act <> 'revealed' AND r.review IS NULL AND {guard}
    AND a.acted_at <= coalesce(%(as_of)s::timestamptz, 'infinity')
  ORDER BY a.act_id, a.is_main DESC, (a.record_id = %(id)s::text) DESC, a.record_id
)
SELECT a.record_id, a.act, a.actor, a.actor_role, a.acted_at, a.reason_code, a.reason, a.scope_text, a.from_status, a.to_status,
       a.from_record_id, a.receipt_number, a.log_entry_id, f.value_text, t.value_text
FROM acted a
LEFT JOIN record_value f ON f.tenant_id = a.tenant_id AND f.record_id = a.from_record_id AND {f_kept}
LEFT JOIN record_value t ON t.tenant_id = a.tenant_id AND t.record_id = a.record_id AND {t_kept}
ORDER BY a.acted_at, a.act_id LIMIT {limit}
"""
# What is past its last day shows what it will once it is expired.
_KEPT = """NOT EXISTS (
  SELECT 1 FROM memory_record o WHERE o.tenant_id = {row}.tenant_id AND o.id = {row}.record_id AND {over})"""


@dataclass(frozen=True, slots=True)
class PastAct:
    """One act. `from_text`, `to_text`: the values before and after, as far as they are still there."""

    record_id: str
    act: str
    actor: str
    actor_role: str
    acted_at: datetime
    reason_code: str
    reason: str | None
    scope_text: str
    from_status: str | None
    to_status: str
    from_record_id: str | None
    receipt_number: str | None
    log_entry_id: str
    from_text: str | None
    to_text: str | None

    def wire(self, *, masked: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "record_id": self.record_id,
            "act": self.act,
            "who": self.actor,
            "role": self.actor_role,
            "when": instant_text(self.acted_at),
            "why": self.reason_code,
            "scope": Raw(self.scope_text),
            "from": {"record_id": self.from_record_id, "status": self.from_status},
            "to": {"record_id": self.record_id, "status": self.to_status},
            "log_ref": self.log_entry_id,
        }
        if not masked:
            body["from"]["value"] = _raw(self.from_text)
            body["to"]["value"] = _raw(self.to_text)
        if self.reason is not None:
            body["reason"] = self.reason
        if self.receipt_number is not None:
            body["receipt"] = self.receipt_number
        return body


def _raw(text: str | None) -> Any:
    return None if text is None else Raw(text)


def record_history(
    principal: Principal, record_id: str, *, as_of: datetime | None = None
) -> Sequence[PastAct]:
    """Acts on the record's supersession chain, oldest first, at most 1000. Raises RecordNotFound."""
    readable_record(principal, record_id)
    rule, parameters = record_guard(principal)
    with connection.cursor() as cursor:
        cursor.execute(
            _HISTORY.format(
                guard=rule,
                limit=MOST_ACTS,
                f_kept=_KEPT.format(row="f", over=value_is_over("o")),
                t_kept=_KEPT.format(row="t", over=value_is_over("o")),
            ),
            {
                "tenant": principal.tenant_id,
                "id": record_id,
                "as_of": as_of,
                "today": clock.day_of(clock.now(), principal.time_zone),
                **parameters,
            },
        )
        return [PastAct(*row) for row in cursor.fetchall()]
