"""What a fact is before it is written, and as a reader gets it.

A draft holds what a caller may say; everything else (version, times, hashes, trust, attribution) is the server's. What is stored
is canonical text, and that text goes out as it is.
Source: the kindgi memory schema 1.3.0 (Fact, Source, Retention) and docs/facts.md.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from django.conf import settings

from memory.access import Scope
from memory.api.json_text import Raw
from memory.canonical import canonical
from memory.errors import BadInput, ContentHashMismatch, ContentTooLarge
from memory.hashing import digest_of_tag, tag
from memory.instants import instant_text
from memory.log_entry import ABSENT

SOURCE_KINDS = ("http-api", "blob", "mcp-tool", "external-db", "user-input")
REFRESH_STRATEGIES = ("on-read", "background", "manual")
SUBJECT_KINDS = ("participant", "user", "external")
MOST_SUBJECTS = 20
MOST_CAUSES = 100

CONTENT_REF: Final = re.compile(
    r"blob://(?P<provider>[A-Za-z0-9][A-Za-z0-9+._-]{0,62})/(?P<bucket>[^/\s\x00-\x1f\x7f]{1,255})/(?P<key>[^\s\x00-\x1f\x7f]{1,1024})"
)


@dataclass(frozen=True, slots=True)
class Retention:
    """A fact's own word on how long it stays. `legal_hold` True opens a hold; False says nothing."""

    keep_until: datetime | None = None
    keep_days: int | None = None
    legal_hold: bool | None = None

    def text(self) -> str | None:
        """What is stored; the hold itself is kept elsewhere."""
        said: dict[str, Any] = {}
        if self.keep_until is not None:
            said["keepUntil"] = instant_text(self.keep_until)
        if self.keep_days is not None:
            said["keepDays"] = self.keep_days
        return canonical(said) if said else None

    @classmethod
    def of_text(cls, text: str | None) -> "Retention":
        said = json.loads(text) if text else {}
        until = said.get("keepUntil")
        return cls(datetime.fromisoformat(until) if until else None, said.get("keepDays"))

    def after(self, before: "Retention") -> "Retention":
        """What holds once this is said: a window said anew replaces the one before, a hold alone leaves it."""
        says_window = self.keep_until is not None or self.keep_days is not None
        return self if says_window else dataclasses.replace(before, legal_hold=self.legal_hold)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the ground truth of a cached view lives, and how it is checked. `ttl_seconds` None: it never grows stale.

    `etag`, `source_version`: what its writer says of the content. No handler is told them: by them a source would be asked
    whether what it never sent still holds.
    """

    kind: str
    strategy: str
    uri: str | None = None
    ttl_seconds: int | None = None
    last_verified_at: datetime | None = None
    etag: str | None = None
    source_version: str | None = None
    handler: str | None = None
    priority: int | None = None

    def text(self) -> str:
        """What never changes of it; what a refresh moves is stored beside the fact."""
        writers = {
            "ttlSeconds": self.ttl_seconds,
            "etag": self.etag,
            "sourceVersion": self.source_version,
        }
        freshness = {name: value for name, value in writers.items() if value is not None}
        refresh: dict[str, Any] = {"strategy": self.strategy}
        if self.handler is not None:
            refresh["handler"] = self.handler
        if self.priority is not None:
            refresh["priority"] = self.priority
        said: dict[str, Any] = {"kind": self.kind, "freshness": freshness, "refresh": refresh}
        if self.uri is not None:
            said["uri"] = self.uri
        return canonical(said)

    @classmethod
    def of_text(cls, text: str) -> "Source":
        said = json.loads(text)
        return cls(
            kind=said["kind"],
            uri=said.get("uri"),
            ttl_seconds=said["freshness"].get("ttlSeconds"),
            etag=said["freshness"].get("etag"),
            source_version=said["freshness"].get("sourceVersion"),
            strategy=said["refresh"]["strategy"],
            handler=said["refresh"].get("handler"),
            priority=said["refresh"].get("priority"),
        )

    def of_other_content(self) -> "Source":
        """The same source of content that nobody has said a validator of."""
        return dataclasses.replace(self, etag=None, source_version=None)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a fact is about; `kind` is one of SUBJECT_KINDS."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact to write. `content` is any admitted JSON value; ABSENT goes with `content_ref` only."""

    type: str
    scope: Scope
    content: Any = ABSENT
    id: str | None = None
    content_ref: str | None = None
    content_hash: str | None = None
    size: int | None = None
    retention: Retention = field(default_factory=Retention)
    source: Source | None = None
    causes: tuple[str, ...] = ()
    subjects: tuple[Subject, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact's next content. What is None keeps its current value; causes are those of this change.

    `said`: the change as its caller put it, for one that waits for review.
    """

    content: Any
    retention: Retention | None = None
    source: Source | None = None
    causes: tuple[str, ...] = ()
    subjects: tuple[Subject, ...] | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    observed_at: datetime | None = None
    said: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SealedContent:
    """Content as it is stored. text: canonical JSON, None when only a blob holds it; hash: 32 bytes.

    With a `ref` hash and size are the blob's, as its writer says: the bytes are not here to be counted.
    """

    text: str | None
    hash: bytes | None
    size: int | None
    ref: str | None = None


def seal(
    content: Any, *, said_hash: str | None = None, said_size: int | None = None
) -> SealedContent:
    """Inline content, counted and hashed. Raises ContentTooLarge, ContentHashMismatch."""
    text = canonical(content)
    data = text.encode()
    limit = settings.KINDMEM_CONTENT_MAX_BYTES
    if len(data) > limit:
        raise ContentTooLarge(limit_bytes=limit)
    digest = sha256(data).digest()
    if said_hash is not None and said_hash != tag(digest):
        raise ContentHashMismatch(field="contentHash")
    if said_size is not None and said_size != len(data):
        raise ContentHashMismatch(field="size")
    return SealedContent(text, digest, len(data))


def seal_draft(draft: FactDraft) -> SealedContent:
    """The draft's content, inline or by reference. Raises BadInput, ContentTooLarge, ContentHashMismatch."""
    if draft.content_ref is None:
        if draft.content is ABSENT:
            raise BadInput.at("/content", "is required, unless contentRef names a blob")
        return seal(draft.content, said_hash=draft.content_hash, said_size=draft.size)
    match = CONTENT_REF.fullmatch(draft.content_ref)
    if (
        match is None
        or {".", ".."} & set(match["key"].split("/"))
        or match["bucket"] in (".", "..")
    ):
        raise BadInput.at("/contentRef", "must look like blob://<provider>/<bucket>/<key>")
    summary = None if draft.content is ABSENT else seal(draft.content).text
    try:
        digest = None if draft.content_hash is None else digest_of_tag(draft.content_hash)
    except ValueError:
        raise BadInput.at("/contentHash", "must be sha256: and 64 lower-case hex digits") from None
    return SealedContent(summary, digest, draft.size, draft.content_ref)


@dataclass(frozen=True, slots=True)
class FactView:
    """One revision of a fact, as stored. Texts are canonical JSON; `content_hash` is 32 bytes.

    From `expires_at` on the fields are of the fact, not of the revision; freshness and index fields are there for the current
    revision only. etag, source_version: what a handler answered. is_kept: its keep window has not ended. is_stale: past its
    source's time to live.
    """

    id: str
    revision_id: str
    type: str
    scope_text: str
    version: int
    created_at: datetime
    recorded_at: datetime
    content_text: str | None
    content_ref: str | None
    content_hash: bytes | None
    size_bytes: int | None
    retention_text: str | None
    source_text: str | None
    cause_ids: tuple[str, ...]
    supersedes: str | None
    trust: str
    verified_by: str | None
    verified_at: datetime | None
    attributed_kind: str
    attributed_id: str
    generated_run_id: str | None
    subjects_text: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    observed_at: datetime | None
    invalidated_at: datetime | None
    invalidated_by: str | None
    invalidation_reason: str | None
    expires_at: datetime | None
    keep_ends_at: datetime | None
    keep_reason: str | None
    unverified_until: datetime | None
    is_kept: bool
    is_held: bool
    last_verified_at: datetime | None = None
    etag: str | None = None
    source_version: str | None = None
    is_stale: bool = False
    last_attempt_at: datetime | None = None
    last_failure: str | None = None
    embedding_model: str | None = None
    embedding_is_pending: bool = False

    @property
    def scope(self) -> dict[str, str]:
        scope: dict[str, str] = json.loads(self.scope_text)
        return scope

    @property
    def content(self) -> Any:
        """The content as Python has it; ABSENT when only a blob holds it."""
        return ABSENT if self.content_text is None else json.loads(self.content_text)

    @property
    def subjects(self) -> tuple[Subject, ...]:
        said = json.loads(self.subjects_text) if self.subjects_text else ()
        return tuple(Subject(one["kind"], one["id"]) for one in said)

    @property
    def retention(self) -> Retention:
        return Retention.of_text(self.retention_text)

    @property
    def source(self) -> Source | None:
        """Where the truth lives; without what a refresh moves."""
        return Source.of_text(self.source_text) if self.source_text else None

    def beside(self, before: "FactView") -> "FactView":
        """This revision with what is kept beside the fact, as it was: freshness and index."""
        return dataclasses.replace(
            self,
            last_verified_at=before.last_verified_at,
            etag=before.etag,
            source_version=before.source_version,
            is_stale=before.is_stale,
            last_attempt_at=before.last_attempt_at,
            last_failure=before.last_failure,
            embedding_model=before.embedding_model,
            embedding_is_pending=before.embedding_is_pending,
        )

    def wire(self) -> dict[str, Any]:
        """The Fact of the kindgi memory schema 1.3.0 with its extension fields; absent keys left out."""
        said: dict[str, Any] = {
            "id": self.id,
            "revisionId": self.revision_id if self.revision_id != self.id else None,
            "type": self.type,
            "scope": Raw(self.scope_text),
            "version": self.version,
            "createdAt": _time(self.created_at),
            "updatedAt": _time(self.recorded_at),
            "content": Raw(self.content_text) if self.content_text is not None else None,
            "contentRef": self.content_ref,
            "contentHash": tag(self.content_hash) if self.content_hash is not None else None,
            "size": self.size_bytes,
            "embeddingModel": self.embedding_model,
            "retention": self._retention(),
            "source": self._source(),
            "causedByLogId": list(self.cause_ids) or None,
            "supersedes": self.supersedes,
            "trust": self.trust,
            "verifiedBy": self.verified_by,
            "verifiedAt": _time(self.verified_at),
            "attributedTo": {"kind": self.attributed_kind, "id": self.attributed_id},
            "generatedBy": {"runId": self.generated_run_id} if self.generated_run_id else None,
            "subjects": Raw(self.subjects_text) if self.subjects_text else None,
            "validFrom": _time(self.valid_from),
            "validUntil": _time(self.valid_until),
            "observedAt": _time(self.observed_at),
            "invalidatedAt": _time(self.invalidated_at),
            "invalidatedBy": self.invalidated_by,
            "invalidationReason": self.invalidation_reason,
            "expiresAt": _time(self.expires_at),
            "meta": self._meta(),
        }
        return {name: value for name, value in said.items() if value is not None}

    def _retention(self) -> Any:
        if not self.is_held:
            return Raw(self.retention_text) if self.retention_text else None
        said = json.loads(self.retention_text) if self.retention_text else {}
        return {**said, "legalHold": True}

    def _source(self) -> Any:
        if self.source_text is None:
            return None
        said = json.loads(self.source_text)
        moving = {
            "lastVerifiedAt": _time(self.last_verified_at),
            "etag": self.etag,
            "sourceVersion": self.source_version,
        }
        said["freshness"].update(
            {name: value for name, value in moving.items() if value is not None}
        )
        return said

    def _meta(self) -> dict[str, Any] | None:
        said: dict[str, Any] = {}
        if self.is_stale:
            said["stale"] = True
            if self.last_failure is not None:
                said["refreshFailure"] = self.last_failure
        if self.embedding_is_pending:
            said["embedding"] = "pending"
        return said or None


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)
