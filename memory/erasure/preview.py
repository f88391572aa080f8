"""What an erasure would reach now, before anybody asks for it: how many of each, and what a hold keeps."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.erasure.reach import (
    entries_condition,
    facts_condition,
    held_in_reach,
    is_named_plainly,
    records_closure,
    selected,
)

_COUNT_FACTS = "SELECT count(*) FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND {condition}"
_COUNT_RECORDS = (
    "{closure} SELECT count(*) FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid"
    " AND m.id IN (SELECT id FROM gone) AND m.status <> 'deleted'"
)
_COUNT_ENTRIES = (
    "SELECT count(*) FILTER (WHERE e.payload_text IS NOT NULL), count(*), count(*) FILTER (WHERE {plainly}) FROM log_entry e"
    " WHERE e.tenant_id = %(tenant)s::uuid AND {condition}"
)
HELD_NAMED = 100


@dataclass(frozen=True, slots=True)
class Reach:
    """Counts of now. `payloads` of the `entries` go; `named` of them keep the id itself whatever happens, the others a keyed
    hash of it. `held`: ids, at most HELD_NAMED.
    """

    facts: int
    records: int
    payloads: int
    entries: int
    named: int
    held: list[str]

    @property
    def is_empty(self) -> bool:
        return not (self.facts or self.records or self.entries)

    def wire(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "records": self.records,
            "logPayloads": self.payloads,
            "logIdentifiersRetained": self.named,
            "held": self.held,
        }


def preview_erasure(principal: Principal, kind: str, selector_id: str) -> Reach:
    """The reach of an erasure of this kind and id. Raises PermissionDenied."""
    principal.needs_role("admin", "owner")
    return reach_of(principal.tenant_id, kind, selector_id)


def reach_of(tenant_id: UUID, kind: str, selector_id: str) -> Reach:
    parameters = selected(tenant_id, selector_id)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_FACTS.format(condition=facts_condition(kind)), parameters)
        [facts] = cursor.fetchone()
        cursor.execute(_COUNT_RECORDS.format(closure=records_closure(kind)), parameters)
        [records] = cursor.fetchone()
        counting = _COUNT_ENTRIES.format(
            condition=entries_condition(kind), plainly=is_named_plainly(kind)
        )
        cursor.execute(counting, parameters)
        payloads, entries, named = cursor.fetchone()
    held = held_in_reach(tenant_id, kind, selector_id, limit=HELD_NAMED)
    return Reach(facts, records, payloads, entries, named, held)
