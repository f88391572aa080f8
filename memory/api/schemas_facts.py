"""Shapes of facts on the wire, and how a checked body becomes a draft.

Source: the kindgi memory schema 1.3.0 (Fact, Scope, Source, Retention).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memory.access import SCOPE_KEYS
from memory.api.schemas_log import HASH, SCOPE, SCOPE_OUT
from memory.api.shapes import ANY, ID, INSTANT, TEXT, Shape, array_of, shape
from memory.fact_shape import (
    MOST_CAUSES,
    MOST_SUBJECTS,
    REFRESH_STRATEGIES,
    SOURCE_KINDS,
    SUBJECT_KINDS,
    FactChange,
    FactDraft,
    Retention,
    Source,
    Subject,
)
from memory.instants import instant
from memory.log_entry import ABSENT

MOST_DAYS = 36_500
MOST_TTL_SECONDS = MOST_DAYS * 86_400
DAYS = {"type": "integer", "minimum": 1, "maximum": MOST_DAYS}
VERSION = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}

RETENTION = shape(
    {"keepUntil": INSTANT, "keepDays": DAYS, "legalHold": {"type": "boolean"}},
    description=(
        "keepUntil wins over keepDays, which count from the first write. "
        "legalHold true opens a hold; false releases none."
    ),
)
SOURCE = shape(
    {
        "kind": {"enum": list(SOURCE_KINDS)},
        "uri": {"type": "string", "minLength": 1, "maxLength": 2048},
        "freshness": shape(
            {
                "ttlSeconds": {"type": "integer", "minimum": 0, "maximum": MOST_TTL_SECONDS},
                "lastVerifiedAt": INSTANT,
                "etag": ID,
                "sourceVersion": ID,
            }
        ),
        "refresh": shape(
            {
                "strategy": {"enum": list(REFRESH_STRATEGIES)},
                "handler": ID,
                "priority": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
            },
            required=("strategy",),
        ),
    },
    required=("kind", "freshness", "refresh"),
)
CAUSES = {
    "type": ["string", "array"],
    "minLength": 1,
    "maxLength": 256,
    "items": ID,
    "maxItems": MOST_CAUSES,
    "description": "Log entries that caused this, in temporal order; one may be given as a string.",
}
SUBJECTS = array_of(
    shape({"kind": {"enum": list(SUBJECT_KINDS)}, "id": ID}, required=("kind", "id")),
    most=MOST_SUBJECTS,
)
_SHARED = {
    "retention": RETENTION,
    "source": SOURCE,
    "causedByLogId": CAUSES,
    "subjects": SUBJECTS,
    "validFrom": INSTANT,
    "validUntil": INSTANT,
    "observedAt": INSTANT,
}

WRITE_FACT = Shape(
    shape(
        {
            "type": ID,
            "scope": SCOPE,
            "content": ANY,
            "id": ID,
            "contentRef": {"type": "string", "maxLength": 2048},
            "contentHash": {"type": "string", "maxLength": 256},
            "size": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1},
            **_SHARED,
        },
        required=("type", "scope"),
    )
)
SUPERSEDE_FACT = Shape(
    shape({"content": ANY, "expectVersion": VERSION, **_SHARED}, required=("content",))
)
VERIFY_FACT = Shape(shape({"expectVersion": VERSION}))
PARTIAL_SCOPE = Shape(shape(dict.fromkeys(SCOPE_KEYS, ID)))

FACT: dict[str, Any] = {
    "type": "object",
    "required": ["id", "type", "scope", "version", "createdAt"],
    "properties": {
        "id": TEXT,
        "revisionId": TEXT,
        "type": TEXT,
        "scope": SCOPE_OUT,
        "version": {"type": "integer", "minimum": 1},
        "createdAt": INSTANT,
        "updatedAt": INSTANT,
        "content": ANY,
        "contentRef": TEXT,
        "contentHash": HASH,
        "size": {"type": "integer", "minimum": 0},
        "embeddingModel": TEXT,
        "retention": {"type": "object"},
        "source": {"type": "object"},
        "causedByLogId": {"type": "array", "items": TEXT},
        "supersedes": TEXT,
        "trust": {"enum": ["unverified", "asserted", "verified"]},
        "verifiedBy": TEXT,
        "verifiedAt": INSTANT,
        "attributedTo": {
            "type": "object",
            "required": ["kind", "id"],
            "properties": {"kind": {"enum": ["user", "service", "agent"]}, "id": TEXT},
        },
        "generatedBy": {"type": "object", "required": ["runId"], "properties": {"runId": TEXT}},
        "subjects": {"type": "array", "items": {"type": "object"}},
        "validFrom": INSTANT,
        "validUntil": INSTANT,
        "observedAt": INSTANT,
        "invalidatedAt": INSTANT,
        "invalidatedBy": TEXT,
        "invalidationReason": {"enum": ["superseded", "deleted", "erased", "expired"]},
        "expiresAt": INSTANT,
        "meta": {
            "type": "object",
            "properties": {
                "stale": {"type": "boolean"},
                "refreshFailure": TEXT,
                "embedding": {"enum": ["pending"]},
            },
        },
    },
}
FACT_REVISIONS: dict[str, Any] = {
    "type": "object",
    "required": ["data"],
    "properties": {"data": {"type": "array", "items": FACT}},
}


def draft_of(body: Mapping[str, Any]) -> FactDraft:
    """The draft in a body that WRITE_FACT took."""
    return FactDraft(
        type=body["type"],
        scope=body["scope"],
        content=body.get("content", ABSENT),
        id=body.get("id"),
        content_ref=body.get("contentRef"),
        content_hash=body.get("contentHash"),
        size=body.get("size"),
        retention=_retention(body) or Retention(),
        source=_source(body),
        causes=_causes(body),
        subjects=_subjects(body) or (),
        valid_from=_instant(body, "validFrom"),
        valid_until=_instant(body, "validUntil"),
        observed_at=_instant(body, "observedAt"),
    )


def change_of(body: Mapping[str, Any]) -> FactChange:
    """The change in a body that SUPERSEDE_FACT took."""
    return FactChange(
        content=body["content"],
        retention=_retention(body),
        source=_source(body),
        causes=_causes(body),
        subjects=_subjects(body),
        valid_from=_instant(body, "validFrom"),
        valid_until=_instant(body, "validUntil"),
        observed_at=_instant(body, "observedAt"),
        said=body,
    )


def _instant(body: Mapping[str, Any], name: str) -> datetime | None:
    return instant(body[name]) if name in body else None


def _retention(body: Mapping[str, Any]) -> Retention | None:
    said = body.get("retention")
    if said is None:
        return None
    return Retention(_instant(said, "keepUntil"), said.get("keepDays"), said.get("legalHold"))


def _source(body: Mapping[str, Any]) -> Source | None:
    said = body.get("source")
    if said is None:
        return None
    freshness, refresh = said["freshness"], said["refresh"]
    return Source(
        kind=said["kind"],
        uri=said.get("uri"),
        ttl_seconds=freshness.get("ttlSeconds"),
        last_verified_at=_instant(freshness, "lastVerifiedAt"),
        etag=freshness.get("etag"),
        source_version=freshness.get("sourceVersion"),
        strategy=refresh["strategy"],
        handler=refresh.get("handler"),
        priority=refresh.get("priority"),
    )


def _causes(body: Mapping[str, Any]) -> tuple[str, ...]:
    said = body.get("causedByLogId", ())
    return (said,) if isinstance(said, str) else tuple(said)


def _subjects(body: Mapping[str, Any]) -> tuple[Subject, ...] | None:
    said = body.get("subjects")
    return None if said is None else tuple(Subject(one["kind"], one["id"]) for one in said)
