"""A stored record, how it is read from its rows, and how it goes out: the shape of the memory record schema and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any

from memory.api.json_text import Raw
from memory.instants import instant_text


@dataclass(frozen=True, slots=True)
class Record:
    """Envelope and value. `value_text` is canonical JSON; None where there is no value."""

    id: str
    subject_type: str
    subject_id: str
    key: str
    authority: str
    source_type: str
    evidence_kind: str
    evidence_ref: str
    observations: int
    captured_at: datetime
    captured_by: str
    source_of_truth: str | None
    level: str
    level_rank: int
    bindings_text: str
    valid_from: date | None
    valid_until: date | None
    revalidate_on: list[str]
    route: str
    broadened: bool
    status: str
    sensitivity: str
    retain_value: bool
    deleted_at: datetime | None
    deleted_reason: str | None
    trust: str
    review: str | None
    confirmed_at: datetime | None
    disputed_at: datetime | None
    hold_count: int
    written_by: str
    written_by_role: str
    recorded_at: datetime
    ended_at: datetime | None
    is_upcoming: bool
    row_version: int
    request_digest: bytes | None
    value_text: str | None
    use_count: int
    last_used_at: datetime | None
    derived_from: list[str]
    supersedes: list[str]
    superseded_by: str | None

    @property
    def bindings(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.bindings_text)
        return parsed

    @property
    def value(self) -> Any:
        return None if self.value_text is None else json.loads(self.value_text)

    @property
    def is_a_persons_word(self) -> bool:
        return self.source_type in ("user_stated", "user_correction")

    @property
    def keeps_value(self) -> bool:
        """Whether the value stays past its end, for the history. What is sensitive goes in any case."""
        return self.retain_value and self.sensitivity != "sensitive"

    @property
    def ref(self) -> str:
        """How kept answers name it."""
        return f"record:{self.id}"

    def wire(self, *, masked: bool = False) -> dict[str, Any]:
        """The record of the memory record schema. `masked` leaves the value out and says so."""
        source: dict[str, Any] = {
            "type": self.source_type,
            "evidence": {"kind": self.evidence_kind, "ref": self.evidence_ref},
            "observations": self.observations,
            "captured_at": instant_text(self.captured_at),
            "captured_by": self.captured_by,
        }
        if self.source_of_truth is not None:
            source["source_of_truth"] = self.source_of_truth
        body: dict[str, Any] = {
            "id": self.id,
            "subject": {"type": self.subject_type, "id": self.subject_id},
            "key": self.key,
            "value": None if self.value_text is None else Raw(self.value_text),
            "authority": self.authority,
            "source": source,
            "scope": self.wire_scope(),
            "correction": {
                "route": self.route,
                "supersedes": self.supersedes,
                "superseded_by": self.superseded_by,
                "broadened": self.broadened,
            },
            "lineage": {"derived_from": self.derived_from},
            "lifecycle": self.wire_lifecycle(),
            "usage": {
                "last_used_at": _instant(self.last_used_at),
                "use_count": self.use_count,
                "last_confirmed_at": _instant(self.confirmed_at),
            },
        }
        if masked:
            del body["value"]
            body["meta"] = {"masked": True}
        return body

    def wire_scope(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "bindings": Raw(self.bindings_text),
            "valid_from": _day(self.valid_from),
            "valid_until": _day(self.valid_until),
            "revalidate_on": self.revalidate_on,
        }

    def wire_lifecycle(self) -> dict[str, Any]:
        lifecycle: dict[str, Any] = {
            "status": self.status,
            "sensitivity": self.sensitivity,
            "retain_value_after_expiry": self.retain_value,
        }
        if self.deleted_at is not None:
            lifecycle["deleted_at"] = instant_text(self.deleted_at)
            lifecycle["deleted_reason"] = self.deleted_reason
        return lifecycle


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


_APART = {
    "value_text": "v.value_text",
    "use_count": "coalesce(u.use_count, 0)",
    "last_used_at": "u.last_used_at",
    "derived_from": (
        "ARRAY(SELECT l.parent_id FROM record_lineage l WHERE l.tenant_id = r.tenant_id AND l.record_id = r.id "
        "ORDER BY l.position)"
    ),
    "supersedes": (
        "ARRAY(SELECT s.superseded_id FROM record_supersession s WHERE s.tenant_id = r.tenant_id AND s.successor_id = r.id "
        "ORDER BY s.superseded_at, s.superseded_id)"
    ),
    "superseded_by": (
        "(SELECT s.successor_id FROM record_supersession s WHERE s.tenant_id = r.tenant_id AND s.superseded_id = r.id)"
    ),
}

RECORD_COLUMNS = ", ".join(_APART.get(field.name, f"r.{field.name}") for field in fields(Record))
"""What `record_of` reads, over RECORD_TABLES."""

RECORD_TABLES = (
    "memory_record r "
    "LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id "
    "LEFT JOIN record_usage u ON u.tenant_id = r.tenant_id AND u.record_id = r.id"
)


def record_of(row: Sequence[Any]) -> Record:
    """A record from a row of RECORD_COLUMNS."""
    return Record(*row)
