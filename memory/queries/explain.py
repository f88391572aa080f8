"""Why a record is there, where it applies, what it rests on, and what recall would make of it.

Reading it counts as no use.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.instants import instant_text
from memory.queries.record_history import PastAct, record_history
from memory.queries.records import record_as_of, record_by_id
from memory.records.decision import ENOUGH_OBSERVATIONS
from memory.records.guard import record_guard
from memory.records.record import Record
from memory.records.routes import correction_url

_ENDED = {"superseded": "superseded", "expired": "expired"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`dead_ancestors`: forgotten records that it was derived from, directly or not."""

    record: Record
    reason: str
    correction_url: str
    history: list[PastAct]
    evidence_entry: str | None
    dead_ancestors: list[str]
    statements: list[str]

    def wire(self, *, masked: bool) -> dict[str, Any]:
        record = self.record
        whole = record.wire(masked=masked)
        body = {
            "record_id": record.id,
            "subject": whole["subject"],
            "key": record.key,
            "value": whole.get("value"),
            "authority": record.authority,
            "source": whole["source"],
            "evidence": whole["source"]["evidence"],
            "scope": whole["scope"],
            "correction_route": record.route,
            "correction_url": self.correction_url,
            "correction": whole["correction"],
            "lifecycle": whole["lifecycle"],
            "usage": whole["usage"],
            "derived_from": record.derived_from,
            "dead_ancestors": self.dead_ancestors,
            "trust": record.trust,
            "captured_at": instant_text(record.captured_at),
            "recorded_at": instant_text(record.recorded_at),
            "recorded_by": record.written_by,
            "disputed": record.disputed_at is not None,
            "held": record.hold_count > 0,
            "reason": self.reason,
            "history": [one.wire(masked=masked) for one in self.history],
            "log_refs": self._log_refs(),
        }
        if self.statements and not masked:
            body["statements"] = self.statements
        if masked:
            del body["value"]
            body["meta"] = {"masked": True}
        return body

    def _log_refs(self) -> list[str]:
        refs = [self.evidence_entry] if self.evidence_entry is not None else []
        return list(dict.fromkeys([*refs, *(one.log_entry_id for one in self.history)]))


def explain(principal: Principal, record_id: str, *, as_of: datetime | None = None) -> Explanation:
    """The explanation of a record the caller may read, as it is or as it was. Raises RecordNotFound."""
    record = (
        record_by_id(principal, record_id)
        if as_of is None
        else record_as_of(principal, record_id, as_of)
    )
    dead = _dead_ancestors(principal, record)
    return Explanation(
        record=record,
        reason=_reason(record, dead),
        correction_url=correction_url(principal, record.id, record.route),
        history=list(record_history(principal, record_id, as_of=as_of)),
        evidence_entry=_entry(principal, record.evidence_ref),
        dead_ancestors=dead,
        statements=_statements(principal, record),
    )


def _reason(record: Record, dead: list[str]) -> str:
    """What recall makes of it in its own context, or why it no longer does."""
    if record.status == "deleted":
        return "derived-from-forgotten" if dead else "forgotten"
    if record.status in _ENDED:
        return _ENDED[record.status]
    if record.authority == "policy":
        return "policy"
    if record.disputed_at is not None:
        return "disputed"
    if record.source_type == "system_record":
        return "system-record"
    if record.source_type == "agent_inferred":
        is_enough = record.observations >= ENOUGH_OBSERVATIONS and record.confirmed_at is not None
        return "confirmed-inference" if is_enough else "unconfirmed-inference"
    return "user-correction" if record.source_type == "user_correction" else "user-stated"


# What the caller may not read is as if it were not there, and nothing is looked for above it.
_DEAD = """
WITH RECURSIVE above (id, status) AS (
  SELECT r.id, r.status FROM record_lineage l JOIN memory_record r ON r.tenant_id = l.tenant_id AND r.id = l.parent_id
  WHERE l.tenant_id = %(tenant)s::uuid AND l.record_id = %(id)s::text AND {guard}
  UNION
  SELECT r.id, r.status FROM above a JOIN record_lineage l ON l.tenant_id = %(tenant)s::uuid AND l.record_id = a.id
  JOIN memory_record r ON r.tenant_id = %(tenant)s::uuid AND r.id = l.parent_id WHERE {guard}
)
SELECT id FROM above WHERE status = 'deleted' AND id <> %(id)s::text ORDER BY id LIMIT 1000
"""


def _dead_ancestors(principal: Principal, record: Record) -> list[str]:
    rule, parameters = record_guard(principal)
    with connection.cursor() as cursor:
        cursor.execute(
            _DEAD.format(guard=rule),
            {"tenant": principal.tenant_id, "id": record.id, **parameters},
        )
        return [row[0] for row in cursor.fetchall()]


def _entry(principal: Principal, ref: str) -> str | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM log_entry WHERE tenant_id = %s::uuid AND id = %s::text",
            [principal.tenant_id, ref],
        )
        row = cursor.fetchone()
    return row[0] if row else None


def _statements(principal: Principal, record: Record) -> list[str]:
    """What the person said where they disputed it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT statement FROM receipt WHERE tenant_id = %s::uuid AND record_id = %s::text "
            "AND statement IS NOT NULL AND undone_at IS NULL ORDER BY made_at LIMIT 100",
            [principal.tenant_id, record.id],
        )
        return [row[0] for row in cursor.fetchall()]
