"""What is on record about one hold: what it ever kept, what it refused, who asked for its release and who decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.holds import REFUSED_BY
from memory.queries.records import today_of
from memory.records.overdue import is_over

Kind = Literal["fact", "record"]


@dataclass(frozen=True, slots=True)
class Kept:
    """One fact or record that a hold keeps, or kept.

    `name`: type or key, None once it is gone; `about`: a record's subject; `others`: how many other holds keep it now.
    `standing`: served; waiting for review, or set aside by a complaint or a quarantine; ended, sealed or gone.
    """

    id: str
    is_later: bool
    added_at: datetime
    name: str | None
    about: str | None
    standing: Literal["served", "waiting", "aside", "ended", "sealed", "gone"]
    others: int


_FACTS = """
SELECT i.item_id, i.is_later, i.added_at, f.type, NULL,
       CASE WHEN f.id IS NULL THEN 'gone' WHEN f.deleted_at IS NOT NULL OR f.expires_at <= now() THEN 'ended'
            WHEN f.review = 'pending' THEN 'waiting' WHEN f.review IS NOT NULL THEN 'aside' ELSE 'served' END,
       greatest(0, coalesce(f.hold_count, 0) - %(own)s::int)
FROM hold_item i LEFT JOIN fact f ON f.tenant_id = i.tenant_id AND f.id = i.item_id
"""
_RECORDS = f"""
SELECT i.item_id, i.is_later, i.added_at, m.key, m.subject_id,
       CASE WHEN m.id IS NULL THEN 'gone'
            WHEN EXISTS (SELECT FROM sealed_copy s WHERE s.tenant_id = m.tenant_id AND s.record_id = m.id AND s.purpose = 'hold')
            THEN 'sealed' WHEN m.status = 'deleted' THEN 'gone' WHEN m.status <> 'active' OR {is_over("m")} THEN 'ended'
            WHEN m.review = 'pending' THEN 'waiting' WHEN m.review IS NOT NULL THEN 'aside' ELSE 'served' END,
       greatest(0, coalesce(m.hold_count, 0) - %(own)s::int)
FROM hold_item i LEFT JOIN memory_record m ON m.tenant_id = i.tenant_id AND m.id = i.item_id
"""
_PAGE = """
WHERE i.tenant_id = %(tenant)s::uuid AND i.hold_id = %(hold)s::uuid AND i.kind = %(kind)s::text
  AND (%(after)s::text IS NULL OR i.item_id > %(after)s::text)
ORDER BY i.item_id LIMIT %(limit)s::int
"""


def kept_by(
    principal: Principal,
    hold_id: UUID,
    kind: Kind,
    *,
    is_released: bool,
    after: str | None,
    limit: int,
) -> Sequence[Kept]:
    """What the hold keeps of one kind, or kept until its release, by id; those after one."""
    query = (_FACTS if kind == "fact" else _RECORDS) + _PAGE
    with connection.cursor() as cursor:
        cursor.execute(
            query,
            {
                "tenant": principal.tenant_id,
                "today": today_of(principal),
                "hold": hold_id,
                "kind": kind,
                "own": 0 if is_released else 1,
                "after": after,
                "limit": limit,
            },
        )
        return [Kept(*row) for row in cursor.fetchall()]


def ever_kept(tenant_id: UUID, hold_id: UUID) -> dict[str, int]:
    """How many facts and records the hold ever kept, later ones among them: by kind, and `later`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE kind = 'fact'), count(*) FILTER (WHERE kind = 'record'), "
            "count(*) FILTER (WHERE is_later) FROM hold_item WHERE tenant_id = %s::uuid AND hold_id = %s::uuid",
            [tenant_id, hold_id],
        )
        facts, records, later = cursor.fetchone()
    return {"fact": facts, "record": records, "later": later}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An act that the hold refused. `sequence`: its entry in the log of governance."""

    act: str
    asked_by: str
    asked_at: datetime
    items: int
    sequence: int | None


def refusals_of(tenant_id: UUID, hold_id: UUID, *, limit: int) -> Sequence[Refusal]:
    """What the hold refused, newest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.act, u.asked_by, u.asked_at, cardinality(u.item_ids), e.sequence "
            "FROM legal_hold h JOIN hold_refusal u ON " + REFUSED_BY + " "
            "LEFT JOIN log_entry e ON e.tenant_id = u.tenant_id AND e.id = u.log_entry_id "
            "WHERE h.tenant_id = %s::uuid AND h.id = %s::uuid ORDER BY u.asked_at DESC, u.id DESC LIMIT %s::int",
            [tenant_id, hold_id, limit],
        )
        return [Refusal(*row) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """A request for a hold's release and what became of it. `decision` None: it waits."""

    id: UUID
    reason: str
    requested_by: str
    requested_at: datetime
    decision: Literal["approved", "withdrawn"] | None
    decided_by: str | None
    decided_at: datetime | None


def requests_of(tenant_id: UUID, hold_id: UUID) -> Sequence[ReleaseRequest]:
    """Every request for the hold's release, oldest first; the newest hundred."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM (SELECT id, reason, requested_by, requested_at, decision, decided_by, decided_at FROM hold_release "
            "WHERE tenant_id = %s::uuid AND hold_id = %s::uuid ORDER BY requested_at DESC LIMIT 100) r ORDER BY requested_at",
            [tenant_id, hold_id],
        )
        return [ReleaseRequest(*row) for row in cursor.fetchall()]
