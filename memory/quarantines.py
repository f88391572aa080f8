"""Quarantines: what one key or one run wrote since a time, what that is now, and what became of each thing.

Named are active records that were written with the key, or whose evidence is of the run, with what was derived from them;
and facts whose current revision was. What somebody else superseded since is theirs, and left alone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from django.db import connection

from memory.errors import QuarantineNotFound
from memory.hold_naming import FACT_IS_HELD, record_is_held
from memory.instants import instant_text

SHOWN: Final = 20

# A record, or a revision of a fact, is the writer's. The run's as a hold by runs has it.
_RECORD_IS_THEIRS: Final = {
    "key": "r.written_by = 'service:' || %(selector_id)s::text",
    "run": (
        "(r.evidence_ref = %(selector_id)s::text"
        " OR EXISTS (SELECT 1 FROM record_observation o"
        " WHERE o.tenant_id = %(tenant)s::uuid AND o.record_id = r.id AND o.run_key = %(selector_id)s::text)"
        " OR EXISTS (SELECT 1 FROM log_entry e"
        " WHERE e.tenant_id = %(tenant)s::uuid AND e.id = r.evidence_ref AND e.run_id = %(selector_id)s::text))"
    ),
}
_REVISION_IS_THEIRS: Final = {
    "key": "v.written_by = 'service:' || %(selector_id)s::text",
    "run": (
        "(v.generated_run_id = %(selector_id)s::text"
        " OR EXISTS (SELECT 1 FROM fact_cause c JOIN log_entry e ON e.tenant_id = c.tenant_id AND e.id = c.log_entry_id"
        " WHERE c.tenant_id = %(tenant)s::uuid AND c.fact_id = v.fact_id AND c.version = v.version"
        " AND e.run_id = %(selector_id)s::text))"
    ),
}


_SINCE: Final = "(%(since)s::timestamptz IS NULL OR {}.recorded_at >= %(since)s::timestamptz)"


@dataclass(frozen=True, slots=True)
class Selector:
    """`id`: a key's prefix, or a run's id. `since`: from when on; None: ever."""

    kind: Literal["key", "run"]
    id: str
    since: datetime | None = None

    def parameters(self, tenant_id: UUID, **more: Any) -> dict[str, Any]:
        return {"tenant": tenant_id, "selector_id": self.id, "since": self.since, **more}

    @property
    def record_rule(self) -> str:
        """SQL over `r`: a record that the writer wrote."""
        return f"({_RECORD_IS_THEIRS[self.kind]} AND {_SINCE.format('r')})"

    @property
    def revision_rule(self) -> str:
        """SQL over `v`: a revision that the writer wrote."""
        return f"({_REVISION_IS_THEIRS[self.kind]} AND {_SINCE.format('v')})"


# UNION drops what was seen, so circles of lineage end.
_RECORDS = """
WITH RECURSIVE named (id) AS (
  SELECT r.id FROM memory_record r
  WHERE r.tenant_id = %(tenant)s::uuid AND r.status = 'active' AND r.review IS NULL AND {rule}
  UNION
  SELECT l.record_id FROM named n JOIN record_lineage l ON l.tenant_id = %(tenant)s::uuid AND l.parent_id = n.id
)
SELECT r.id, r.key, r.subject_id, {held} FROM memory_record r JOIN named n ON n.id = r.id
WHERE r.tenant_id = %(tenant)s::uuid AND r.status = 'active' AND r.review IS NULL
ORDER BY r.id
"""
_FACTS = """
SELECT f.id, f.type, coalesce(f.user_id, f.participant_id), {held}
FROM fact f JOIN fact_revision v ON v.tenant_id = f.tenant_id AND v.fact_id = f.id AND v.version = f.current_version
WHERE f.tenant_id = %(tenant)s::uuid AND f.deleted_at IS NULL AND f.review IS NULL AND {rule}
ORDER BY f.id
"""


@dataclass(frozen=True, slots=True)
class Suspect:
    """One thing that would be, or is, taken out of use. `name`: a record's key or a fact's type."""

    kind: str
    id: str
    name: str
    subject_id: str | None
    is_held: bool
    outcome: str | None = None
    restored_id: str | None = None

    def wire(self) -> dict[str, Any]:
        named = {
            "subjectId": self.subject_id,
            "outcome": self.outcome,
            "restoredId": self.restored_id,
        }
        body = {"kind": self.kind, "id": self.id, "name": self.name, "held": self.is_held}
        return body | {name: value for name, value in named.items() if value is not None}


def suspects(tenant_id: UUID, selector: Selector) -> list[Suspect]:
    """Everything named, records first, by id."""
    found: list[Suspect] = []
    with connection.cursor() as cursor:
        cursor.execute(
            _RECORDS.format(rule=selector.record_rule, held=record_is_held("r")),
            selector.parameters(tenant_id),
        )
        found += [Suspect("record", *row) for row in cursor.fetchall()]
        cursor.execute(
            _FACTS.format(rule=selector.revision_rule, held=FACT_IS_HELD),
            selector.parameters(tenant_id),
        )
        found += [Suspect("fact", *row) for row in cursor.fetchall()]
    return found


def theirs_among(tenant_id: UUID, selector: Selector, record_ids: Sequence[str]) -> set[str]:
    """Which of these records the writer wrote."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id FROM memory_record r WHERE r.tenant_id = %(tenant)s::uuid AND r.id = ANY(%(ids)s::text[]) "
            f"AND {selector.record_rule}",
            selector.parameters(tenant_id, ids=list(record_ids)),
        )
        return {row[0] for row in cursor.fetchall()}


def last_good_version(tenant_id: UUID, selector: Selector, fact_id: str) -> int | None:
    """The newest revision of a fact that the writer did not write and whose content is there; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(v.version) FROM fact_revision v WHERE v.tenant_id = %(tenant)s::uuid AND v.fact_id = %(id)s::text "
            f"AND NOT {selector.revision_rule} AND (v.content_ref IS NOT NULL OR EXISTS ("
            "SELECT 1 FROM fact_content c WHERE c.tenant_id = %(tenant)s::uuid AND c.fact_id = v.fact_id "
            "AND c.version = v.version))",
            selector.parameters(tenant_id, id=fact_id),
        )
        version: int | None = cursor.fetchone()[0]
    return version


# Held when they were to be rolled back: out of use, and in no other quarantine.
_KEPT_BACK = """
FROM quarantine_item i JOIN fact f ON f.tenant_id = i.tenant_id AND f.id = i.item_id
WHERE i.tenant_id = %(tenant)s::uuid AND i.kind = 'fact' AND i.outcome = 'held'
  AND f.review = 'quarantined' AND f.deleted_at IS NULL
"""


def is_anything_kept_back(tenant_id: UUID) -> bool:
    """Whether a hold keeps, or kept, anything from being rolled back."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT {_KEPT_BACK})", {"tenant": tenant_id})
        return bool(cursor.fetchone()[0])


def free_to_roll_back(tenant_id: UUID, *, limit: int) -> list[tuple[UUID, Suspect]]:
    """Facts that a hold kept from being rolled back and that no hold keeps now, with their quarantine."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.quarantine_id, f.id, f.type, coalesce(f.user_id, f.participant_id) "
            f"{_KEPT_BACK} AND NOT {FACT_IS_HELD} ORDER BY f.id LIMIT %(limit)s::int",
            {"tenant": tenant_id, "limit": limit},
        )
        return [
            (quarantine_id, Suspect("fact", fact_id, type, subject_id, is_held=False))
            for quarantine_id, fact_id, type, subject_id in cursor.fetchall()
        ]


@dataclass(frozen=True, slots=True)
class QuarantineView:
    """A quarantine with its counts. `left`: what no outcome was written for yet."""

    id: UUID
    selector: Literal["key", "run"]
    selector_id: str
    since: datetime
    reason: str
    status: str
    placed_by: str
    placed_at: datetime
    ended_by: str | None
    ended_at: datetime | None
    records: int
    facts: int
    left: int
    outcomes: dict[str, int] | None

    @property
    def names(self) -> Selector:
        return Selector(self.selector, self.selector_id, self.since)

    def wire(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "id": str(self.id),
            self.selector: self.selector_id,
            "since": instant_text(self.since),
            "reason": self.reason,
            "status": self.status,
            "placedBy": self.placed_by,
            "placedAt": instant_text(self.placed_at),
            "records": self.records,
            "facts": self.facts,
            "left": self.left,
            "outcomes": self.outcomes or {},
        }
        if self.ended_at is not None:
            body |= {"endedBy": self.ended_by, "endedAt": instant_text(self.ended_at)}
        return body


_SELECT = """
SELECT q.id, q.selector, q.selector_id, q.since, q.reason, q.status, q.placed_by, q.placed_at, q.ended_by, q.ended_at,
       i.records, i.facts, i.waiting,
       (SELECT json_object_agg(o.outcome, o.n) FROM (
          SELECT outcome, count(*) AS n FROM quarantine_item
          WHERE tenant_id = q.tenant_id AND quarantine_id = q.id AND outcome IS NOT NULL GROUP BY outcome) o)
FROM quarantine q, LATERAL (
  SELECT count(*) FILTER (WHERE kind = 'record') AS records, count(*) FILTER (WHERE kind = 'fact') AS facts,
         count(*) FILTER (WHERE outcome IS NULL) AS waiting
  FROM quarantine_item WHERE tenant_id = q.tenant_id AND quarantine_id = q.id) i
WHERE q.tenant_id = %(tenant)s::uuid
"""


def find_quarantine(tenant_id: UUID, quarantine_id: str, *, lock: bool = False) -> QuarantineView:
    """One quarantine. Raises QuarantineNotFound."""
    try:
        wanted = UUID(quarantine_id)
    except ValueError:
        raise QuarantineNotFound from None
    more = " AND q.id = %(id)s::uuid" + (" FOR UPDATE OF q" if lock else "")
    with connection.cursor() as cursor:
        cursor.execute(_SELECT + more, {"tenant": tenant_id, "id": wanted})
        row = cursor.fetchone()
    if row is None:
        raise QuarantineNotFound
    return _view(row)


def list_quarantines(
    tenant_id: UUID, *, after: tuple[str, str] | None, limit: int
) -> list[QuarantineView]:
    """Newest first. after: (placedAt, id) of the last of the page before."""
    position = (
        ""
        if after is None
        else " AND (q.placed_at, q.id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_SELECT}{position} ORDER BY q.placed_at DESC, q.id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "limit": limit,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
            },
        )
        return [_view(row) for row in cursor.fetchall()]


def _view(row: Sequence[Any]) -> QuarantineView:
    *columns, outcomes = row
    columns.append(json.loads(outcomes) if isinstance(outcomes, str) else outcomes)
    return QuarantineView(*columns)


def quarantined(
    tenant_id: UUID, quarantine_id: UUID, *, only_left: bool = False, limit: int = SHOWN
) -> list[Suspect]:
    """What a quarantine took out of use, with what became of it; what is left to decide first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.kind, i.item_id, coalesce(r.key, f.type, ''), "
            "coalesce(r.subject_id, f.user_id, f.participant_id), coalesce(r.hold_count, f.hold_count, 0) > 0, "
            "i.outcome, i.restored_id FROM quarantine_item i "
            "LEFT JOIN memory_record r ON r.tenant_id = i.tenant_id AND i.kind = 'record' AND r.id = i.item_id "
            "LEFT JOIN fact f ON f.tenant_id = i.tenant_id AND i.kind = 'fact' AND f.id = i.item_id "
            "WHERE i.tenant_id = %(tenant)s::uuid AND i.quarantine_id = %(id)s::uuid "
            "AND (i.outcome IS NULL OR NOT %(only_left)s::bool) "
            "ORDER BY i.outcome IS NOT NULL, i.kind DESC, i.item_id LIMIT %(limit)s::int",
            {"tenant": tenant_id, "id": quarantine_id, "only_left": only_left, "limit": limit},
        )
        return [Suspect(*row) for row in cursor.fetchall()]


def mark_items(
    tenant_id: UUID,
    quarantine_id: UUID,
    kind: str,
    item_ids: Sequence[str],
    outcome: str,
    *,
    restored_id: str | None = None,
) -> None:
    """Write down what became of things."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE quarantine_item SET outcome = %(outcome)s::text, restored_id = %(restored)s::text "
            "WHERE tenant_id = %(tenant)s::uuid AND quarantine_id = %(id)s::uuid AND kind = %(kind)s::text "
            "AND item_id = ANY(%(ids)s::text[])",
            {
                "tenant": tenant_id,
                "id": quarantine_id,
                "kind": kind,
                "ids": list(item_ids),
                "outcome": outcome,
                "restored": restored_id,
            },
        )


def mark_quarantine(
    tenant_id: UUID, quarantine_id: UUID, status: str, *, by: str | None = None
) -> None:
    """Move a quarantine on; `by` when it ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE quarantine SET status = %(status)s::text, ended_by = %(by)s::text, "
            "ended_at = CASE WHEN %(by)s::text IS NOT NULL THEN clock_timestamp() END "
            "WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid",
            {"tenant": tenant_id, "id": quarantine_id, "status": status, "by": by},
        )
