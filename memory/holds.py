"""Legal holds: what one names, how its items are counted, and the one question that every destructive path asks.

`hold_count` on a fact's or record's head is how many holds keep it; it moves only in `memory/hold_items.py` and in the trigger
that catches later items, always in the transaction of the match. Nothing is destroyed while it is above zero, or while a hold
that still takes in its items names it (`memory/hold_naming.py`): actions ask under the lock of what they destroy,
`memory/destruction.py` asks again in a second statement, and triggers on every table that holds content have the last word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.json_text import Raw
from memory.canonical import canonical
from memory.errors import BadInput, HoldNotFound
from memory.ids import new_id
from memory.instants import instant_text
from memory.queries.one_row import as_uuid, one_row

MOST_NAMED = 1000
REVIEW_AFTER_DAYS = 180
SHOWN_IDS = 100


@dataclass(frozen=True, slots=True)
class HoldScope:
    """What a hold names: a selector (each list that is not empty narrows it), and facts and records one by one.

    Subject ids count wherever a person, project, client or org is named; `written_until` is excluded; types are of facts.
    """

    subject_ids: tuple[str, ...] = ()
    fact_types: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    written_from: datetime | None = None
    written_until: datetime | None = None
    fact_ids: tuple[str, ...] = ()
    record_ids: tuple[str, ...] = ()
    covers_future: bool = False

    @property
    def has_selector(self) -> bool:
        return bool(self.subject_ids or self.fact_types or self.run_ids) or (
            self.written_from is not None or self.written_until is not None
        )

    def check(self) -> None:
        """Raise BadInput when it names nothing, or can't be."""
        if not (self.has_selector or self.fact_ids or self.record_ids):
            raise BadInput.at("/scope", "must name subjects, types, runs, dates, facts or records")
        if self.covers_future and not self.has_selector:
            raise BadInput.at("/scope/futureItems", "needs subjects, types, runs or dates")
        if (
            self.written_from is not None
            and self.written_until is not None
            and self.written_until <= self.written_from
        ):
            raise BadInput.at("/scope/until", "must be after from")

    def text(self) -> str:
        said: dict[str, Any] = {
            "subjects": list(self.subject_ids),
            "types": list(self.fact_types),
            "runs": list(self.run_ids),
            "from": None if self.written_from is None else instant_text(self.written_from),
            "until": None if self.written_until is None else instant_text(self.written_until),
            "facts": list(self.fact_ids),
            "records": list(self.record_ids),
        }
        named = {name: value for name, value in said.items() if value}
        return canonical({**named, "futureItems": self.covers_future})

    def parameters(self) -> dict[str, Any]:
        return {
            "subject_ids": list(self.subject_ids),
            "fact_types": list(self.fact_types),
            "run_ids": list(self.run_ids),
            "written_from": self.written_from,
            "written_until": self.written_until,
            "has_selector": self.has_selector,
            "covers_future": self.covers_future,
            "fact_ids": list(self.fact_ids),
            "record_ids": list(self.record_ids),
        }


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold as it stands. Counts are of what it keeps now.

    `is_taken_in`: all that it named is counted; it protects before, too.
    """

    id: UUID
    matter: str
    reason: str
    scope_text: str
    covers_future: bool
    placed_by: str
    placed_at: datetime
    review_on: date
    released_at: datetime | None
    released_because: str | None
    fact_count: int
    record_count: int
    refusal_count: int
    release_id: UUID | None = None
    release_requested_by: str | None = None
    release_requested_at: datetime | None = None
    release_reason: str | None = None
    is_taken_in: bool = True

    @property
    def status(self) -> Literal["active", "release-requested", "released"]:
        if self.released_at is not None:
            return "released"
        return "active" if self.release_id is None else "release-requested"

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": str(self.id),
            "matter": self.matter,
            "reason": self.reason,
            "scope": Raw(self.scope_text),
            "status": self.status,
            "placedBy": self.placed_by,
            "placedAt": instant_text(self.placed_at),
            "reviewOn": self.review_on.isoformat(),
            "facts": self.fact_count,
            "records": self.record_count,
            "refusals": self.refusal_count,
            "releasedAt": None if self.released_at is None else instant_text(self.released_at),
            "releasedBecause": self.released_because,
            "takingIn": True if self.status != "released" and not self.is_taken_in else None,
        }
        if self.release_id is not None and self.release_requested_at is not None:
            said["release"] = {
                "requestedBy": self.release_requested_by,
                "requestedAt": instant_text(self.release_requested_at),
                "reason": self.release_reason,
            }
        return {name: value for name, value in said.items() if value is not None}


# A refusal is a hold's when the hold was there and kept one of what was asked for. With h, the hold, and u, the refusal.
REFUSED_BY = """u.tenant_id = h.tenant_id AND u.asked_at >= h.placed_at AND u.asked_at <= coalesce(h.released_at, 'infinity')
AND EXISTS (SELECT FROM unnest(u.item_ids) a (id) JOIN hold_item i ON i.tenant_id = h.tenant_id AND i.hold_id = h.id
            AND i.kind IN ('fact', 'record') AND i.item_id = a.id)"""
_COLUMNS = f"""
h.id, h.matter, h.reason, h.scope_text, h.covers_future, h.placed_by, h.placed_at, h.review_on, h.released_at, h.released_because,
(SELECT count(*) FROM fact_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id),
(SELECT count(*) FROM record_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id),
(SELECT count(*) FROM hold_refusal u WHERE {REFUSED_BY}),
r.id, r.requested_by, r.requested_at, r.reason, h.taken_in_at IS NOT NULL
"""
_TABLES = """
legal_hold h LEFT JOIN hold_release r ON r.tenant_id = h.tenant_id AND r.hold_id = h.id AND r.decision IS NULL
"""


def find_hold(tenant_id: UUID, hold_id: str) -> Hold:
    """One hold. Raises HoldNotFound."""
    statement = f"SELECT {_COLUMNS} FROM {_TABLES} WHERE h.tenant_id = %s::uuid AND h.id = %s::uuid"
    return one_row(statement, [tenant_id, as_uuid(hold_id, HoldNotFound)], Hold, HoldNotFound)


def list_holds(
    tenant_id: UUID,
    *,
    is_released: bool | None = None,
    is_requested: bool = False,
    review_by: date | None = None,
    after: tuple[str, str] | None,
    limit: int,
) -> list[Hold]:
    """Holds, newest first. after: (placedAt, id) of the last of the page before.

    is_requested: whose release somebody asked for; review_by: unreleased ones whose review is due by that day.
    """
    position = (
        ""
        if after is None
        else " AND (h.placed_at, h.id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM {_TABLES} WHERE h.tenant_id = %(tenant)s::uuid"
            " AND (%(released)s::bool IS NULL OR (h.released_at IS NOT NULL) = %(released)s::bool)"
            " AND (NOT %(requested)s::bool OR r.id IS NOT NULL)"
            " AND (%(review_by)s::date IS NULL OR (h.released_at IS NULL AND h.review_on <= %(review_by)s::date))"
            f"{position} ORDER BY h.placed_at DESC, h.id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "released": is_released,
                "requested": is_requested,
                "review_by": review_by,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [Hold(*row) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to place. matter: 1 to 200 characters; reason: 1 to 2000. `placed_by`, `placed_at`: of one that is placed again."""

    matter: str
    reason: str
    scope: HoldScope
    review_on: date
    id: UUID = field(default_factory=new_id)
    placed_by: str | None = None
    placed_at: datetime | None = None


def note_refusal(principal: Principal, act: str, ids: Sequence[str]) -> None:
    """Log and count an act that a hold refused. In a transaction of its own, after the refusing one has rolled back."""
    entry = append_governance(
        principal=principal,
        payload={"type": "hold.refused", "act": act, "ids": list(ids)[:SHOWN_IDS]},
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO hold_refusal (tenant_id, id, act, asked_by, item_ids, log_entry_id) "
            "VALUES (%s::uuid, %s::uuid, %s::text, %s::text, %s::text[], %s::text)",
            [principal.tenant_id, new_id(), act, principal.writer, list(ids), entry.id],
        )
