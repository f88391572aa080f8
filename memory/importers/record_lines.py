"""One item of a file of memories as what it asks for: a record in any state.

A line is a record of the memory record schema, or a line of an export (`{"kind": "record", "record": …, "holds": …}`, whose other
kinds are left alone), or what mem0 or a LangGraph store exports. What the server owns may be left out, as when remembering. See
docs/import.md.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from memory.api.shapes import ID, INSTANT, Shape, array_of, shape
from memory.errors import BadInput, UnknownField
from memory.importers.foreign_memories import record_of_foreign
from memory.instants import CLOCKS_APART, instant
from memory.records import clock
from memory.records.lineage import TRUST
from memory.records.shape import REMEMBER, Draft, read_draft

ENDED = ("superseded", "expired", "deleted")
"""The states that only an import writes."""

_MOST_HOLDS = 1000
_TAKEN_HOME = frozenset({"about", "memory", "fact", "log-entry", "receipt", "end"})
"""What a line of the file holds that a person takes home from their pages: one member each."""


def _in_any_state() -> dict[str, Any]:
    schema = deepcopy(REMEMBER.schema)
    parts = schema["properties"]
    parts["correction"]["properties"]["superseded_by"] = {
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": ID["maxLength"],
    }
    lifecycle = parts["lifecycle"]["properties"]
    lifecycle["status"] = {"enum": ["active", *ENDED]}
    lifecycle["deleted_at"] = {"type": ["string", "null"], "format": "date-time"}
    lifecycle["deleted_reason"] = {"type": ["string", "null"], "minLength": 1, "maxLength": 256}
    return schema


RECORD = Shape(_in_any_state())
_HOLD = shape(
    {
        "id": {"type": "string", "format": "uuid"},
        "placedAt": INSTANT,
        "reviewOn": {"type": "string", "format": "date"},
    },
    required=("id",),
)
EXPORTED = Shape(
    shape(
        {
            "kind": {"const": "record"},
            "record": {"type": "object"},
            "holds": array_of(_HOLD, most=_MOST_HOLDS),
            "trust": {"enum": list(TRUST)},
            "recordedAt": INSTANT,
            "endedAt": INSTANT,
            "disputedAt": INSTANT,
            "forgotten": array_of(
                {"enum": ["forgotten-key", "forgotten-value", "retired-value"]}, most=3
            ),
        },
        required=("kind", "record"),
    )
)


@dataclass(frozen=True, slots=True)
class NamedHold:
    """A hold that kept the record where it was exported."""

    id: UUID
    review_on: date | None


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record to import. `draft` has no value where the record has none; `superseded_by` may name one that isn't there.

    `trust` None: whatever the source is worth. `forgotten` None: the line doesn't say which fingerprints there were.
    """

    draft: Draft
    status: str
    superseded_by: str | None = None
    deleted_at: datetime | None = None
    deleted_reason: str | None = None
    use_count: int = 0
    last_used_at: datetime | None = None
    trust: str | None = None
    ended_at: datetime | None = None
    disputed_at: datetime | None = None
    holds: Sequence[NamedHold] = ()
    forgotten: Sequence[str] | None = None


def record_line(value: Any, *, subject_at: int | None = None) -> RecordLine | None:
    """What an item asks for; None for a line of an export that is no record.

    subject_at: where in a LangGraph namespace the person's id stands, from 0; negative from the end.
    Raises BadInput, UnknownField, ValueTooLarge.
    """
    if not isinstance(value, dict):
        raise BadInput.at("", "must be an object")
    if "kind" in value:
        return _of_export(value)
    ((name, inside), *others) = [*value.items()] or [("", None)]
    if name in _TAKEN_HOME and isinstance(inside, dict) and not others:
        return _of_part(name, inside) if name == "memory" else None
    foreign = record_of_foreign(value, subject_at)
    return _of_record(value if foreign is None else foreign)


def _of_export(value: Mapping[str, Any]) -> RecordLine | None:
    if value["kind"] != "record":
        if not isinstance(value["kind"], str):
            raise BadInput.at("/kind", "must be a string")
        return None
    EXPORTED.check(value)
    return replace(
        _of_part("record", value["record"]),
        trust=value.get("trust"),
        ended_at=_instant(value, "endedAt"),
        disputed_at=_instant(value, "disputedAt"),
        holds=tuple(_hold(one) for one in value.get("holds", ())),
        forgotten=tuple(value["forgotten"]) if "forgotten" in value else None,
    )


def _of_part(name: str, body: Mapping[str, Any]) -> RecordLine:
    """The record in a line's member of this name."""
    try:
        return _of_record(body)
    except (BadInput, UnknownField) as error:
        issues = [{**one, "path": f"/{name}{one['path']}"} for one in error.issues]
        raise type(error)(issues=issues) from None


def _of_record(body: Mapping[str, Any]) -> RecordLine:
    RECORD.check(body)
    lifecycle, usage = body["lifecycle"], body.get("usage", {})
    status = lifecycle.get("status", "active")
    line = RecordLine(
        draft=_draft(body, status),
        status=status,
        superseded_by=body["correction"].get("superseded_by"),
        deleted_at=_instant(lifecycle, "deleted_at"),
        deleted_reason=lifecycle.get("deleted_reason"),
        use_count=int(usage.get("use_count", 0)),
        last_used_at=_instant(usage, "last_used_at"),
    )
    confirmed = line.draft.last_confirmed_at
    if confirmed is not None and confirmed > clock.now() + CLOCKS_APART:
        # It would stand against every word that the person has given since.
        raise BadInput.at("/usage/last_confirmed_at", "must not be in the future")
    if status in ENDED and line.draft.id is None:
        raise BadInput.at("/id", "must be there unless the record is active")
    is_gone = status == "deleted"
    if is_gone != (line.deleted_at is not None) or is_gone != (line.deleted_reason is not None):
        raise BadInput.at(
            "/lifecycle", "has deleted_at and deleted_reason when, and only when, it is deleted"
        )
    if is_gone and body.get("value") is not None:
        raise BadInput.at("/value", "must be null: a tombstone has no value")
    if status == "active" and line.superseded_by is not None:
        raise BadInput.at("/correction/superseded_by", "must be null while the record is active")
    return line


def _draft(body: Mapping[str, Any], status: str) -> Draft:
    """The draft. What ended may have lost its value, and loses it where it was not to be retained."""
    is_retained = body["lifecycle"]["retain_value_after_expiry"] and (
        body["lifecycle"]["sensitivity"] != "sensitive"
    )
    is_dropped = status == "deleted" or (status == "expired" and not is_retained)
    if status == "active" or (body.get("value") is not None and not is_dropped):
        return read_draft(body)
    return replace(read_draft({**body, "value": ""}), value=None, value_text=None)


def _hold(said: Mapping[str, Any]) -> NamedHold:
    review_on = said.get("reviewOn")
    return NamedHold(UUID(said["id"]), date.fromisoformat(review_on) if review_on else None)


def _instant(said: Mapping[str, Any], name: str) -> datetime | None:
    text = said.get(name)
    if text is None:
        return None
    try:
        return instant(text)
    except ValueError as error:
        raise BadInput.at(f"/{name}", str(error)) from None
