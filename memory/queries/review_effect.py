"""What approving would change: the records that would end, or the record and fact that an act is about, as they are now."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.api.json_text import Raw
from memory.errors import FactNotFound
from memory.fact_shape import FactView
from memory.queries.facts import current_fact
from memory.queries.records import begins_later, today_of
from memory.queries.reviews import ReviewItem
from memory.records.overdue import as_shown, is_over
from memory.records.record import Record
from memory.records.slot import Slot
from memory.records.store import find_record, find_records
from memory.records.upcoming import slot_of


@dataclass(frozen=True, slots=True)
class Effect:
    """`ends`: records that would be superseded. `now`: the record, or `fact`, that it is about, as it is served now."""

    ends: tuple[Record, ...] = ()
    now: Record | None = None
    fact: FactView | None = None

    @property
    def before_text(self) -> str | None:
        """What is served now where it would say something."""
        if self.ends:
            return self.ends[0].value_text
        if self.fact is not None:
            return self.fact.content_text
        return self.now.value_text if self.now is not None else None

    @property
    def expect(self) -> str:
        """What a decision may say that it saw: the id of what would end, or the fact's version; empty for nothing."""
        if self.fact is not None:
            return str(self.fact.version)
        return self.ends[0].id if self.ends else ""

    def wire(self) -> dict[str, Any]:
        body: dict[str, Any] = {"ends": [_short(one) for one in self.ends], "expect": self.expect}
        if self.now is not None:
            body["record"] = _short(self.now)
        if self.fact is not None:
            body["fact"] = self.fact.wire()
        return body


def _short(record: Record) -> dict[str, Any]:
    return {
        "recordId": record.id,
        "key": record.key,
        "value": None if record.value_text is None else Raw(record.value_text),
        "status": record.status,
        "source": record.source_type,
        "appliesTo": {"level": record.level, "bindings": Raw(record.bindings_text)},
    }


def effect_of(principal: Principal, item: ReviewItem) -> Effect:
    """What would change, read now."""
    if item.kind == "record":
        record = find_record(principal.tenant_id, item.id)
        later = record is not None and begins_later_than_today(principal, record)
        return Effect(ends=tuple(would_end(principal, item, is_later=later)))
    if item.fact_id is not None and item.kind == "act":
        try:
            return Effect(fact=current_fact(principal, item.fact_id))
        except FactNotFound:
            return Effect()
    if item.record_id is not None:
        now = find_record(principal.tenant_id, item.record_id)
        return Effect(now=None if now is None else as_shown(now, today_of(principal)))
    return Effect()


def begins_later_than_today(principal: Principal, record: Record) -> bool:
    return record.is_upcoming and begins_later(principal, record.valid_from)


def would_end(principal: Principal, item: ReviewItem, *, is_later: bool = False) -> list[Record]:
    """The active records that a proposed one would supersede: what fills its slot first, then what it named.

    One that begins on a later day leaves what holds until then, also where it named that.
    """
    tenant_id, today = principal.tenant_id, today_of(principal)
    slot = Slot()
    if None not in (item.subject_type, item.subject_id, item.name, item.level):
        thing = (str(item.subject_type), str(item.subject_id), str(item.name))
        slot = slot_of(tenant_id, thing, str(item.level), item.bindings_text or "{}")
        slot = slot.on(today)
    occupant = slot.upcoming if is_later else slot.present
    found = {} if occupant is None else {occupant.id: occupant}
    until_then = slot.present.id if is_later and slot.present is not None else None
    named = find_records(
        tenant_id,
        "r.status = 'active' AND r.review IS NULL AND r.id IN (SELECT unnest(p.would_supersede) FROM memory_record p "
        f"WHERE p.tenant_id = %(tenant)s::uuid AND p.id = %(id)s::text) AND NOT {is_over('r')}",
        {"id": item.id, "today": today},
    )
    for one in named:
        if one.id != until_then:
            found.setdefault(one.id, one)
    return list(found.values())


def said_words(item: ReviewItem) -> Any:
    """What it says: the proposed value of a correction or change, else the whole of what is asked."""
    said = None if item.said is None else json.loads(item.said)
    if item.kind == "act" and isinstance(said, dict):
        return said.get("new_value", said.get("content", said))
    return said


def occupants(
    principal: Principal, proposal_ids: Sequence[str]
) -> dict[str, tuple[str, str | None]]:
    """By proposed record: the id and value of the active one whose place it would take. One statement."""
    if not proposal_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            # Of two, the one that has begun and not taken its place yet.
            "SELECT DISTINCT ON (p.id) p.id, o.id, v.value_text FROM memory_record p "
            "JOIN memory_record o ON o.tenant_id = p.tenant_id AND o.subject_type = p.subject_type "
            "AND o.subject_id = p.subject_id AND o.key = p.key AND o.level = p.level AND o.bindings_hash = p.bindings_hash "
            f"AND o.status = 'active' AND o.review IS NULL AND NOT {is_over('o')} "
            "AND (o.is_upcoming AND o.valid_from > %(today)s::date) = (p.is_upcoming AND p.valid_from > %(today)s::date) "
            "LEFT JOIN record_value v ON v.tenant_id = o.tenant_id AND v.record_id = o.id "
            "WHERE p.tenant_id = %(tenant)s::uuid AND p.id = ANY(%(ids)s::text[]) ORDER BY p.id, o.is_upcoming DESC",
            {
                "tenant": principal.tenant_id,
                "ids": list(proposal_ids),
                "today": today_of(principal),
            },
        )
        return {proposal: (active, text) for proposal, active, text in cursor.fetchall()}
