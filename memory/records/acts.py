"""What is written down of every act on records: a governance entry, and a row of history for each record it touched.

The entry comes after everything that may be refused and locks the head of the tenant's governance run; what needs its
id or hash comes after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.ids import new_id
from memory.log_entry import StoredEntry
from memory.records import clock, fingerprints
from memory.records.ending import Ending
from memory.records.record import Record

_MOST_IDS = 1000
"""Named in one governance entry; the count says how many there were."""


@dataclass(frozen=True, slots=True)
class Touched:
    """One record that an act touched. `from_record_id`: the record whose place it took."""

    record_id: str
    to_status: str
    scope_text: str
    from_status: str | None = None
    from_record_id: str | None = None
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """An act under way. `at`: its one time."""

    principal: Principal
    name: str
    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=clock.now)

    @property
    def tenant_id(self) -> UUID:
        return self.principal.tenant_id

    def log(self, **payload: Any) -> StoredEntry:
        """Append the governance entry `record.<name>`: ids, codes and keyed digests only."""
        named = {name: value for name, value in payload.items() if value not in (None, [], ())}
        for name, value in named.items():
            if isinstance(value, list) and len(value) > _MOST_IDS:
                named[name] = value[:_MOST_IDS]
                named |= {f"{name}Count": len(value)}
        return append_governance(
            principal=self.principal, payload={"type": f"record.{self.name}", **named}
        )

    def digest(self, value_text: str | None) -> str | None:
        """What a log entry may say of a value."""
        return (
            None if value_text is None else fingerprints.of_text(self.tenant_id, value_text).hex()
        )

    def keep(
        self,
        touched: Sequence[Touched],
        entry: StoredEntry,
        *,
        reason_code: str,
        reason: str | None = None,
        receipt: str | None = None,
    ) -> None:
        """Write the history rows of this act."""
        with connection.cursor() as cursor:
            cursor.execute(
                _KEEP,
                {
                    "tenant": self.tenant_id,
                    "act_id": self.id,
                    "act": self.name,
                    "actor": self.principal.writer,
                    "role": self.principal.role,
                    "at": self.at,
                    "reason_code": reason_code,
                    "reason": reason,
                    "receipt": receipt,
                    "entry": entry.id,
                    "ids": [one.record_id for one in touched],
                    "from_ids": [one.from_record_id for one in touched],
                    "from_statuses": [one.from_status for one in touched],
                    "to_statuses": [one.to_status for one in touched],
                    "scopes": [one.scope_text for one in touched],
                    "mains": [one.is_main for one in touched],
                },
            )


_KEEP = """
INSERT INTO record_act
  (tenant_id, act_id, record_id, act, is_main, from_record_id, from_status, to_status, actor, actor_role, acted_at, reason_code,
   reason, scope_text, receipt_number, log_entry_id)
SELECT %(tenant)s::uuid, %(act_id)s::uuid, t.id, %(act)s::text, t.is_main, t.from_id, t.from_status, t.to_status,
       %(actor)s::text, %(role)s::text, %(at)s::timestamptz, %(reason_code)s::text, %(reason)s::text, t.scope,
       %(receipt)s::text, %(entry)s::text
FROM unnest(%(ids)s::text[], %(from_ids)s::text[], %(from_statuses)s::text[], %(to_statuses)s::text[], %(scopes)s::text[],
            %(mains)s::bool[]) AS t (id, from_id, from_status, to_status, scope, is_main)
"""


def scope_text(level: str, bindings_text: str) -> str:
    """The canonical text of `{bindings, level}`."""
    return f'{{"bindings":{bindings_text},"level":"{level}"}}'


def scope_of(record: Record | Ending) -> str:
    return scope_text(record.level, record.bindings_text)


def with_main(rows: Sequence[Touched], record_id: str) -> list[Touched]:
    """The same rows, this record's as the main one of the act."""
    return [replace(one, is_main=one.record_id == record_id) for one in rows]


def ended(endings: Sequence[Ending], to_status: str) -> list[Touched]:
    """History rows of records that ended along with the main one."""
    return [
        Touched(
            record_id=one.id,
            from_status=one.status,
            to_status=to_status,
            scope_text=scope_of(one),
        )
        for one in endings
    ]
