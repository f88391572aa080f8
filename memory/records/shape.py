"""A record on the way in: the schema of the memory record schema without what the server owns, and what is made of it.

The caller may leave out `id`, `usage`, `lifecycle.status`, `correction.superseded_by` and an empty `lineage`. The
schema's own conditions (policy, sensitive, tombstone, correction) are rules with names of their own, asked after the
shape.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from memory.admission import ID_MAX
from memory.api.shapes import Shape
from memory.canonical import canonical
from memory.errors import BadInput, ValueTooLarge
from memory.ids import is_addressable
from memory.instants import CLOCKS_APART, day, instant
from memory.records import clock
from memory.records.bindings import check_scalars

SCHEMA_FILE = Path(__file__).resolve().parent.parent / "schemas" / "memory-record.schema.json"
RECORD_SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
"""Seed 001 as it is."""

MOST_PARENTS = 1000
MOST_EVENTS = 100
_MOST_REF = 2048


def _on_the_way_in() -> dict[str, Any]:
    schema = deepcopy(RECORD_SCHEMA)
    for name in ("$schema", "$id", "title", "allOf"):
        del schema[name]
    parts = schema["properties"]
    schema["required"] = [
        name for name in schema["required"] if name not in ("id", "usage", "lineage")
    ]
    parts["id"]["maxLength"] = ID_MAX
    parts["subject"]["properties"]["id"]["maxLength"] = ID_MAX
    parts["key"]["maxLength"] = ID_MAX
    source = parts["source"]["properties"]
    source["evidence"]["properties"]["ref"]["maxLength"] = _MOST_REF
    source["observations"]["maximum"] = 1_000_000
    source["captured_by"]["maxLength"] = ID_MAX
    source["source_of_truth"]["maxLength"] = _MOST_REF
    events = parts["scope"]["properties"]["revalidate_on"]
    events["maxItems"] = MOST_EVENTS
    events["items"]["maxLength"] = ID_MAX
    correction = parts["correction"]
    correction["required"] = ["route", "supersedes", "broadened"]
    correction["properties"]["route"]["maxLength"] = ID_MAX
    correction["properties"]["superseded_by"] = {"type": "null"}
    named_id = {"type": "string", "minLength": 1, "maxLength": ID_MAX}
    correction["properties"]["supersedes"] |= {"items": named_id, "maxItems": MOST_EVENTS}
    parts["lineage"]["properties"]["derived_from"] |= {"items": named_id, "maxItems": MOST_PARENTS}
    lifecycle = parts["lifecycle"]
    lifecycle["required"] = ["sensitivity", "retain_value_after_expiry"]
    lifecycle["properties"]["status"] = {"const": "active"}
    lifecycle["properties"]["deleted_at"] = {"type": "null"}
    lifecycle["properties"]["deleted_reason"] = {"type": "null"}
    return schema


REMEMBER = Shape(_on_the_way_in())


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller asks to have remembered.

    `observations` and `last_confirmed_at` are claims; the server decides what they count.
    """

    id: str | None
    subject_type: str
    subject_id: str
    key: str
    value: Any
    value_text: str | None
    authority: str
    source_type: str
    evidence_kind: str
    evidence_ref: str
    observations: int
    captured_at: datetime
    captured_by: str
    source_of_truth: str | None
    level: str
    bindings: dict[str, Any]
    bindings_text: str
    valid_from: date | None
    valid_until: date | None
    revalidate_on: tuple[str, ...]
    route: str
    supersedes: tuple[str, ...]
    broadened: bool
    derived_from: tuple[str, ...]
    sensitivity: str
    retain_value: bool
    last_confirmed_at: datetime | None

    def normal_form(self) -> dict[str, Any]:
        """What makes two requests the same one: everything but what the server owns."""
        return {
            "subject": [self.subject_type, self.subject_id],
            "key": self.key,
            "value": self.value_text,
            "authority": self.authority,
            "source": [
                self.source_type,
                self.evidence_kind,
                self.evidence_ref,
                self.captured_at.isoformat(),
                self.captured_by,
                self.source_of_truth,
            ],
            "scope": [
                self.level,
                self.bindings_text,
                str(self.valid_from),
                str(self.valid_until),
                list(self.revalidate_on),
            ],
            "correction": [self.route, list(self.supersedes), self.broadened],
            "derived_from": list(self.derived_from),
            "lifecycle": [self.sensitivity, self.retain_value],
        }


def read_draft(body: Mapping[str, Any]) -> Draft:
    """The draft in an admitted body that fits REMEMBER. A policy's value is left out.

    Raises BadInput, ValueTooLarge.
    """
    source, scope = body["source"], body["scope"]
    correction, lifecycle = body["correction"], body["lifecycle"]
    is_policy = body["authority"] == "policy"
    value = None if is_policy else body["value"]
    if value is None and not is_policy:
        raise BadInput.at("/value", "must not be null: only a policy has no value")
    if "id" in body and not is_addressable("record", body["id"]):
        raise BadInput.at("/id", "must not end like a path of the API, such as /forget")
    bindings = dict(scope["bindings"])
    check_scalars(bindings, "/scope/bindings")
    confirmed = body.get("usage", {}).get("last_confirmed_at")
    return Draft(
        id=body.get("id"),
        subject_type=body["subject"]["type"],
        subject_id=body["subject"]["id"],
        key=body["key"],
        value=value,
        value_text=None if is_policy else value_text(value),
        authority=body["authority"],
        source_type=source["type"],
        evidence_kind=source["evidence"]["kind"],
        evidence_ref=source["evidence"]["ref"],
        observations=int(source["observations"]),
        captured_at=_captured_at(source["captured_at"]),
        captured_by=source["captured_by"],
        source_of_truth=source.get("source_of_truth"),
        level=scope["level"],
        bindings=bindings,
        bindings_text=canonical(bindings),
        valid_from=_day(scope["valid_from"]),
        valid_until=_day(scope["valid_until"]),
        revalidate_on=tuple(scope["revalidate_on"]),
        route=correction["route"],
        supersedes=tuple(correction["supersedes"]),
        broadened=correction["broadened"],
        derived_from=tuple(body.get("lineage", {}).get("derived_from", ())),
        sensitivity=lifecycle["sensitivity"],
        retain_value=lifecycle["retain_value_after_expiry"],
        last_confirmed_at=None if confirmed is None else instant(confirmed),
    )


def value_text(value: Any) -> str:
    """The canonical text of a value. Raises ValueTooLarge."""
    text = canonical(value)
    if len(text.encode()) > settings.KINDMEM_CONTENT_MAX_BYTES:
        raise ValueTooLarge(limit_bytes=settings.KINDMEM_CONTENT_MAX_BYTES)
    return text


def _captured_at(text: str) -> datetime:
    """A word from the future would stand against every newer one. Raises BadInput."""
    captured_at = instant(text)
    if captured_at > clock.now() + CLOCKS_APART:
        raise BadInput.at("/source/captured_at", "must not be in the future")
    return captured_at


def _day(text: str | None) -> date | None:
    return None if text is None else day(text)
