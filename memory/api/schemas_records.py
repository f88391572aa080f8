"""Shapes of memory records on the wire: snake_case, the memory record schema exactly."""

from typing import Any, get_args

from memory.api.shapes import ID, TEXT, Shape, array_of, shape
from memory.records.decision import Reason
from memory.records.receipts import CHANGES
from memory.records.shape import RECORD_SCHEMA

RECORD: dict[str, Any] = {
    name: part for name, part in RECORD_SCHEMA.items() if name not in ("$schema", "$id")
}
"""The record in an answer."""

PENDING = shape(
    {"review": {"const": "pending"}, "id": TEXT},
    required=("review", "id"),
    description="Accepted, and waiting for a person's decision; nothing that is served has changed.",
)


def page_of(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["data", "hasMore"],
        "properties": {
            "data": {"type": "array", "items": part},
            "hasMore": {"type": "boolean"},
            "nextCursor": TEXT,
        },
    }


SUBJECT = shape(
    {"type": {"enum": ["user", "project", "client", "org"]}, "id": ID}, required=("type", "id")
)
CONTEXT: dict[str, Any] = {"type": "object"}
KEY = {
    "type": "string",
    "minLength": 1,
    "maxLength": 256,
    "pattern": "^[a-z0-9_]+(\\.[a-z0-9_]+)*$",
}
EVIDENCE = shape(
    {
        "kind": {"enum": ["message", "record", "trace"]},
        "ref": {**TEXT, "minLength": 1, "maxLength": 2048},
    },
    required=("kind", "ref"),
)
RECALL = Shape(
    shape(
        {
            "key": KEY,
            "keys": array_of(KEY, least=1, most=50),
            "key_prefix": {**KEY, "pattern": "^[a-z0-9_]+(\\.[a-z0-9_]+)*\\.?$"},
            "context": CONTEXT,
            "subject": SUBJECT,
            "run_id": ID,
            "as_of": {"type": "string", "format": "date-time"},
        },
        required=("context",),
    )
)
_NULL_OR_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_CANDIDATE = {
    "type": "object",
    "required": ["record_id", "source_type", "evidence_ref", "correction_route", "correction_url"],
    "properties": {
        "record_id": TEXT,
        "value": {},
        "source_type": TEXT,
        "evidence_ref": TEXT,
        "correction_route": TEXT,
        "correction_url": TEXT,
        "trust": TEXT,
        "captured_at": TEXT,
    },
}
RECALL_RESULT: dict[str, Any] = {
    "type": "object",
    "required": [
        "decision",
        "record_id",
        "source_type",
        "evidence_ref",
        "reason",
        "correction_route",
        "correction_url",
        "checked_at",
    ],
    "properties": {
        "value": {},
        "decision": {"enum": ["apply", "ask", "revalidate", "none"]},
        "record_id": _NULL_OR_TEXT,
        "source_type": _NULL_OR_TEXT,
        "evidence_ref": _NULL_OR_TEXT,
        "reason": {"enum": list(get_args(Reason))},
        "correction_route": _NULL_OR_TEXT,
        "correction_url": _NULL_OR_TEXT,
        "candidates": {"type": "array", "items": _CANDIDATE},
        "trust": TEXT,
        "captured_at": TEXT,
        "checked_at": TEXT,
        "meta": {"type": "object"},
    },
}
RECALL_RESULTS: dict[str, Any] = {
    "type": "object",
    "required": ["results"],
    "properties": {"results": {"type": "object", "additionalProperties": RECALL_RESULT}},
}
_REASON = {"type": "string", "minLength": 1, "maxLength": 256}
_SCOPE = {
    "type": "object",
    "required": ["level", "bindings"],
    "properties": {"level": TEXT, "bindings": {"type": "object"}},
}
_CORRECTION: dict[str, Any] = {
    "new_value": {},
    "context": CONTEXT,
    "broaden": {"type": "boolean"},
    "subject": SUBJECT,
    "expect": ID,
    "evidence": EVIDENCE,
    "reason": _REASON,
}
CORRECT = Shape(shape({"key": KEY, **_CORRECTION}, required=("key", "new_value", "context")))
CORRECT_RECORD = Shape(shape({"key": KEY, **_CORRECTION}, required=("new_value",)))
CONFIRM = Shape(shape({"evidence": EVIDENCE, "broaden_to": {"type": "object"}}))
FORGET = Shape(shape({"reason": _REASON, "evidence": EVIDENCE}))
EVENT = Shape(
    {
        "type": "object",
        "required": ["type"],
        "properties": {"type": ID},
        "description": "The event's type, and its bindings beside it.",
    }
)
EMITTED = {
    "type": "object",
    "required": ["expired"],
    "properties": {"expired": {"type": "array", "items": TEXT}},
}
_SIDE = {
    "type": ["object", "null"],
    "required": ["record_id", "value", "scope"],
    "properties": {"record_id": TEXT, "value": {}, "scope": _SCOPE, "others": {"type": "array"}},
}
RECEIPT: dict[str, Any] = {
    "type": "object",
    "required": [
        "number",
        "route",
        "record_id",
        "scope",
        "changed",
        "took_along",
        "before",
        "after",
        "at",
        "by",
        "log_entry_id",
        "log_entry_hash",
        "undo_until",
    ],
    "properties": {
        "number": TEXT,
        "route": TEXT,
        "record_id": TEXT,
        "scope": _SCOPE,
        "changed": {"type": "array", "items": {"enum": list(CHANGES)}},
        "took_along": {
            "type": "integer",
            "description": "Other records that ended, or were withdrawn or disputed, along with this one.",
        },
        "before": _SIDE,
        "after": _SIDE,
        "at": TEXT,
        "by": TEXT,
        "evidence_ref": TEXT,
        "log_entry_id": TEXT,
        "log_entry_hash": TEXT,
        "undo_until": _NULL_OR_TEXT,
        "reason": TEXT,
        "statement": TEXT,
        "undone_at": TEXT,
        "undone_by": TEXT,
    },
}
CORRECTED = {
    "type": "object",
    "required": ["record", "receipt"],
    "properties": {"record": RECORD, "receipt": RECEIPT},
}
FORGOTTEN: dict[str, Any] = {
    **RECEIPT,
    "required": [*RECEIPT["required"], "tombstoned", "tombstone_count", "held"],
    "properties": {
        **RECEIPT["properties"],
        "tombstoned": {"type": "array", "items": TEXT},
        "tombstone_count": {"type": "integer"},
        "held": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["record_id", "reason"],
                "properties": {"record_id": TEXT, "reason": TEXT},
            },
        },
    },
}
_PAST_ACT = {
    "type": "object",
    "required": ["record_id", "act", "who", "when", "why", "scope", "from", "to", "log_ref"],
    "properties": {
        "record_id": TEXT,
        "act": TEXT,
        "who": TEXT,
        "role": TEXT,
        "when": TEXT,
        "why": TEXT,
        "scope": _SCOPE,
        "from": {"type": "object"},
        "to": {"type": "object"},
        "log_ref": TEXT,
        "reason": TEXT,
        "receipt": TEXT,
    },
}
HISTORY = {
    "type": "object",
    "required": ["data"],
    "properties": {"data": {"type": "array", "items": _PAST_ACT}},
}
EXPLANATION: dict[str, Any] = {
    "type": "object",
    "required": [
        "record_id",
        "key",
        "authority",
        "source",
        "evidence",
        "scope",
        "correction_route",
        "correction_url",
        "lifecycle",
        "derived_from",
        "history",
        "log_refs",
        "held",
        "reason",
    ],
    "properties": {
        "record_id": TEXT,
        "key": TEXT,
        "value": {},
        "authority": TEXT,
        "source": {"type": "object"},
        "evidence": {"type": "object"},
        "scope": {"type": "object"},
        "correction_route": TEXT,
        "correction_url": TEXT,
        "lifecycle": {"type": "object"},
        "derived_from": {"type": "array", "items": TEXT},
        "dead_ancestors": {"type": "array", "items": TEXT},
        "history": {"type": "array", "items": _PAST_ACT},
        "log_refs": {"type": "array", "items": TEXT},
        "held": {"type": "boolean"},
        "reason": TEXT,
    },
}
_DATE = {"type": "string", "format": "date"}
ROUTE_FORM = Shape(
    shape(
        {
            "new_value": {},
            "context": CONTEXT,
            "broaden": {"type": "boolean"},
            "broaden_to": {"type": "object"},
            "expect": ID,
            "since": _DATE,
            "statement": {"type": "string", "minLength": 1, "maxLength": 4000},
            "prefix": KEY,
            "reason": _REASON,
            "evidence": EVIDENCE,
        },
        description="The fields of the route's own form; any other is refused.",
    )
)
ACTED = {
    "type": "object",
    "required": ["receipt"],
    "properties": {"record": RECORD, "receipt": {"anyOf": [RECEIPT, FORGOTTEN]}},
}
UNDONE = {
    "type": "object",
    "required": ["records", "receipt"],
    "properties": {"records": {"type": "array", "items": RECORD}, "receipt": RECEIPT},
}
_ROUTE_FIELDS: dict[str, Any] = {
    "label": {"type": "string", "minLength": 1, "maxLength": 256},
    "description": {"type": "string", "maxLength": 2000},
    "audience": {"enum": ["person", "admin"]},
    "url_template": {"type": ["string", "null"], "minLength": 1, "maxLength": 2048},
    "may_broaden": {"type": "boolean"},
    "needs_evidence": {"type": "boolean"},
}
REGISTER_ROUTE = Shape(shape({"name": ID, **_ROUTE_FIELDS}, required=("name", "label")))
CHANGE_ROUTE = Shape(shape(_ROUTE_FIELDS))
ROUTE: dict[str, Any] = {
    "type": "object",
    "required": [
        "name",
        "label",
        "description",
        "audience",
        "page",
        "may_broaden",
        "needs_evidence",
        "configured",
        "built_in",
    ],
    "properties": {
        **_ROUTE_FIELDS,
        "name": TEXT,
        "page": {"enum": ["built-in", "external"]},
        "configured": {"type": "boolean"},
        "built_in": {"type": "boolean"},
    },
}
_URI = {"type": "string", "minLength": 1, "maxLength": 2048}
_SOURCE_FIELDS: dict[str, Any] = {
    "match": _URI,
    "fetch_url": _URI,
    "pointer": {"type": "string", "maxLength": 1024},
}
REGISTER_SOURCE = Shape(shape(_SOURCE_FIELDS, required=("match", "fetch_url")))
CHANGE_SOURCE = Shape(shape({**_SOURCE_FIELDS, "enabled": {"type": "boolean"}}))
SOURCE: dict[str, Any] = {
    "type": "object",
    "required": ["id", "match", "fetch_url", "pointer", "enabled"],
    "properties": {**_SOURCE_FIELDS, "id": TEXT, "enabled": {"type": "boolean"}},
}
EXAMPLE: dict[str, Any] = {
    "subject": {"type": "user", "id": "ann"},
    "key": "travel.seat",
    "value": "aisle",
    "authority": "preference",
    "source": {
        "type": "user_stated",
        "evidence": {"kind": "message", "ref": "le-117"},
        "observations": 1,
        "captured_at": "2026-03-01T09:30:00Z",
        "captured_by": "booker@2.1.0",
    },
    "scope": {
        "level": "user",
        "bindings": {},
        "valid_from": None,
        "valid_until": None,
        "revalidate_on": [],
    },
    "correction": {"route": "fix-value", "supersedes": [], "broadened": False},
    "lifecycle": {"sensitivity": "none", "retain_value_after_expiry": False},
}
