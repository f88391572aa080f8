"""Shapes of memory records on the wire: snake_case, seed 001 exactly."""

from typing import Any, get_args

from memory.api.shapes import ID, TEXT, Shape, array_of, shape
from memory.records.decision import Reason
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
