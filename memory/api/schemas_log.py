"""Shapes of the run log on the wire. Source: the kindgi memory schema 1.3.0 (LogEntry, Scope)."""

from typing import Any

from memory.access import SCOPE_KEYS
from memory.api.shapes import ANY, ID, INSTANT, TEXT, Shape, array_of, shape
from memory.models.log import LOG_KINDS

HASH = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
SCOPE = shape(dict.fromkeys(SCOPE_KEYS, ID))
"""On the way in; `tenantId` may be left out, and is the caller's."""

SCOPE_OUT: dict[str, Any] = {
    "type": "object",
    "required": ["tenantId"],
    "properties": dict.fromkeys(SCOPE_KEYS, TEXT),
}

NEW_ENTRY = shape(
    {
        "kind": {"enum": list(LOG_KINDS)},
        "scope": SCOPE,
        "id": ID,
        "actor": ID,
        "payload": ANY,
        "causedByLogId": ID,
    },
    required=("kind", "scope"),
)
APPEND = Shape(NEW_ENTRY)
APPEND_BATCH = Shape(
    shape({"entries": array_of(NEW_ENTRY, least=1, most=1000)}, required=("entries",))
)
VERIFY = Shape(
    shape({"from": {"type": "integer", "minimum": 0}, "to": {"type": "integer", "minimum": 0}})
)

LOG_ENTRY: dict[str, Any] = {
    "type": "object",
    "required": ["id", "kind", "scope", "runId", "timestamp", "sequence", "prevHash", "entryHash"],
    "properties": {
        "id": TEXT,
        "kind": {"enum": list(LOG_KINDS)},
        "scope": SCOPE_OUT,
        "runId": TEXT,
        "actor": TEXT,
        "timestamp": INSTANT,
        "sequence": {"type": "integer", "minimum": 0},
        "payload": ANY,
        "contentHash": HASH,
        "prevHash": HASH,
        "entryHash": HASH,
        "causedByLogId": TEXT,
        "hashVersion": {"type": "integer"},
        "payloadSalt": TEXT,
        "payloadErasedAt": INSTANT,
        "meta": {
            "type": "object",
            "properties": {"masked": {"type": "boolean"}, "damaged": {"type": "boolean"}},
        },
    },
}


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


RUN_HEAD: dict[str, Any] = {
    "type": "object",
    "required": ["runId", "entries", "firstAt", "lastAt", "headHash", "integrity"],
    "properties": {
        "runId": TEXT,
        "entries": {"type": "integer"},
        "firstAt": INSTANT,
        "lastAt": INSTANT,
        "headHash": HASH,
        "integrity": {
            "type": "object",
            "required": ["state"],
            "properties": {
                "state": TEXT,
                "verifiedTo": {"type": "integer"},
                "verifiedAt": INSTANT,
                "entriesSince": {
                    "type": "integer",
                    "description": "Entries appended after `verifiedTo`: the state is not about them.",
                },
            },
        },
    },
}

REPORT: dict[str, Any] = {
    "type": "object",
    "required": ["state", "runId", "from", "to", "entries", "unsealed", "erased"],
    "properties": {
        "state": TEXT,
        "runId": TEXT,
        "from": {"type": "integer"},
        "to": {"type": "integer"},
        "entries": {"type": "integer"},
        "headHash": HASH,
        "unsealed": {"type": "integer"},
        "erased": {"type": "integer"},
        "checkpoint": {
            "type": "object",
            "required": ["size", "origin", "rootHash", "signedAt"],
            "properties": {
                "size": {"type": "integer"},
                "origin": TEXT,
                "rootHash": HASH,
                "signedAt": INSTANT,
                "anchoredAt": INSTANT,
            },
        },
        "firstBad": {
            "type": "object",
            "required": ["runId", "sequence", "class"],
            "properties": {
                "runId": TEXT,
                "sequence": {"type": "integer"},
                "class": TEXT,
                "expected": ANY,
                "found": ANY,
            },
        },
        "unprotected": {
            "type": "object",
            "required": ["entries", "columns"],
            "properties": {
                "entries": {"type": "integer"},
                "columns": {"type": "array", "items": TEXT},
            },
        },
    },
}
