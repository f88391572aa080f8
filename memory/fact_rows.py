"""The rows of a fact, written in one statement each: a first write, a next revision, a closing.

The database gives the times: the first write's is the clock, a later revision's is later than the one it replaces, whatever the
clock does, so that `as of` always finds exactly one. How long a fact is kept is `fact_windows`, in SQL, and nowhere else.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.canonical import canonical
from memory.errors import IdTaken, constraint_errors
from memory.fact_shape import FactView, Retention, SealedContent, Source, Subject
from memory.ids import new_text_id
from memory.queries.run_log import log_guard
from memory.search.wording import wording
from memory.write_policy import WritePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRow:
    """What one revision says. `verified_by` goes with trust `verified`; `generated_run_id` None: the causes' run, for an agent.

    keeps_freshness: the source is as it was checked before; else its freshness starts with this revision. words: the digest
    of the content's words; keeps_wording: it says what the revision before says.
    verified_at: when it was checked, where that was not with this write.
    waits_because: why a new fact is not served until a person has decided; None when it is.
    etag, source_version: the validators that a refresh handler answered with this content, and nobody else.
    """

    content: SealedContent
    retention: Retention
    source: Source | None
    causes: tuple[str, ...]
    subjects: tuple[Subject, ...]
    valid_from: datetime | None
    valid_until: datetime | None
    observed_at: datetime | None
    trust: str
    attributed_kind: str
    attributed_id: str
    verified_by: str | None = None
    verified_at: datetime | None = None
    generated_run_id: str | None = None
    keeps_freshness: bool = False
    words: bytes | None = None
    keeps_wording: bool = False
    waits_because: str | None = None
    etag: str | None = None
    source_version: str | None = None


def trust_of(principal: Principal) -> str:
    """What a write of this caller is worth: an agent's is unverified, an app's or a person's asserted."""
    return "unverified" if principal.is_agent else "asserted"


def attribution_of(principal: Principal) -> tuple[str, str]:
    """(kind, id): an agent by its key's name, another key by its prefix, a person by the user id."""
    if principal.is_agent:
        return "agent", principal.name
    return ("service" if principal.kind in ("key", "system") else "user"), principal.id


# The run of the last cause, where the writer may read that entry: how an agent's fact says which run made it.
_GENERATED = (
    "coalesce(%(generated)s::text, (SELECT e.run_id FROM log_entry e"
    " WHERE e.tenant_id = %(tenant)s::uuid AND e.id = %(last_cause)s::text AND {guard}))"
)
_REVISION_COLUMNS = """tenant_id, fact_id, version, revision_id, supersedes, recorded_at, content_hash, size_bytes, content_ref,
    retention_text, source_text, subjects_text, cause_ids, valid_from, valid_until, observed_at, trust, verified_by, verified_at,
    attributed_kind, attributed_id, generated_run_id, written_by, written_by_role"""
_REVISION_VALUES = """%(tenant)s::uuid, %(id)s::text, %(version)s::int, %(revision)s::text, {supersedes}, {at},
    %(hash)s::bytea, %(size)s::bigint, %(ref)s::text, %(retention)s::text, %(source)s::text, %(subjects)s::text,
    %(causes)s::text[], %(valid_from)s::timestamptz, %(valid_until)s::timestamptz, %(observed_at)s::timestamptz,
    %(trust)s::text, %(verified_by)s::text, CASE WHEN %(verified_by)s::text IS NOT NULL THEN
    coalesce(%(verified_at)s::timestamptz, {at}) END,
    %(attributed_kind)s::text, %(attributed_id)s::text, {generated}, %(writer)s::text, %(writer_role)s::text"""
_PARTS = """
content AS (
  INSERT INTO fact_content (tenant_id, fact_id, version, content_text)
  SELECT %(tenant)s::uuid, %(id)s::text, %(version)s::int, %(content)s::text FROM revision WHERE %(content)s::text IS NOT NULL
), subject AS (
  INSERT INTO fact_subject (tenant_id, fact_id, version, position, kind, subject_id)
  SELECT %(tenant)s::uuid, %(id)s::text, %(version)s::int, u.place, u.kind, u.id
  FROM revision, unnest(%(subject_kinds)s::text[], %(subject_ids)s::text[]) WITH ORDINALITY AS u (kind, id, place)
), cause AS (
  INSERT INTO fact_cause (tenant_id, fact_id, version, position, log_entry_id)
  SELECT %(tenant)s::uuid, %(id)s::text, %(version)s::int, u.place, u.id
  FROM revision, unnest(%(causes)s::text[]) WITH ORDINALITY AS u (id, place)
), freshness AS (
  INSERT INTO fact_freshness
    (tenant_id, fact_id, strategy, handler, priority, ttl_seconds, last_verified_at, etag, source_version)
  SELECT %(tenant)s::uuid, %(id)s::text, %(strategy)s::text, %(handler)s::text, %(priority)s::int, %(ttl)s::bigint,
         coalesce(least(%(last_verified_at)s::timestamptz, revision.recorded_at), revision.recorded_at),
         %(etag)s::text, %(source_version)s::text
  FROM revision WHERE %(strategy)s::text IS NOT NULL
  ON CONFLICT ON CONSTRAINT fact_freshness_pkey DO UPDATE
  SET (strategy, handler, priority, ttl_seconds, last_verified_at, etag, source_version, last_attempt_at, last_failure)
    = (excluded.strategy, excluded.handler, excluded.priority, excluded.ttl_seconds, excluded.last_verified_at, excluded.etag,
       excluded.source_version, NULL, NULL)
  RETURNING last_verified_at
)
"""
_WINDOWS = """fact_windows({first_write}, %(keep_until)s::timestamptz, %(keep_days)s::int,
    %(type_keep)s::int, %(type_delete)s::int, %(tenant_keep)s::int, %(tenant_delete)s::int, {unverified_until})"""
_UNVERIFIED_UNTIL = """CASE WHEN %(trust)s::text = 'unverified' THEN
    coalesce(%(unverified_until)s::timestamptz, {at} + %(unverified_days)s::int * interval '24 hours') END"""

# The revision waits for the head: a taken id is refused by the head's key, whatever else it would break.
_FIRST = f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS at),
opening AS MATERIALIZED (
  SELECT at, u.until, w.* FROM clock, LATERAL (SELECT {_UNVERIFIED_UNTIL.format(at="at")} AS until) u,
    LATERAL {_WINDOWS.format(first_write="at", unverified_until="u.until")} w
), head AS (
  INSERT INTO fact
    (tenant_id, id, type, scope_text, current_version, created_at, expires_at, keep_ends_at, keep_reason, unverified_until,
     wording, review, review_reason)
  SELECT %(tenant)s::uuid, %(id)s::text, %(type)s::text, %(scope)s::text, 1, at, expires_at, keep_ends_at, keep_reason, until,
         %(wording)s::bytea, CASE WHEN %(waits_because)s::text IS NOT NULL THEN 'pending' END, %(waits_because)s::text
  FROM opening
  RETURNING id
), revision AS (
  INSERT INTO fact_revision ({_REVISION_COLUMNS})
  SELECT {_REVISION_VALUES.format(supersedes="NULL", at="at", generated="{generated}")} FROM opening, head
  RETURNING recorded_at, supersedes, generated_run_id
), {_PARTS}
SELECT at, recorded_at, supersedes, generated_run_id, expires_at, keep_ends_at, keep_reason, until,
       coalesce(keep_ends_at > at, false), (SELECT last_verified_at FROM freshness)
FROM opening, revision
"""
_NEXT = f"""
WITH closed AS (
  UPDATE fact_revision r
  SET invalidated_at = greatest(clock_timestamp(), r.recorded_at + interval '1 microsecond'),
      invalidated_by = %(writer)s::text, invalidation_reason = 'superseded'
  WHERE r.tenant_id = %(tenant)s::uuid AND r.fact_id = %(id)s::text AND r.version = %(version)s::int - 1
    AND r.invalidated_at IS NULL
  RETURNING r.revision_id, r.invalidated_at AS at
), opening AS MATERIALIZED (
  SELECT closed.at, closed.revision_id, u.until, w.*
  FROM closed, LATERAL (SELECT {_UNVERIFIED_UNTIL.format(at="closed.at")} AS until) u,
    LATERAL {_WINDOWS.format(first_write="%(created_at)s::timestamptz", unverified_until="u.until")} w
), revision AS (
  INSERT INTO fact_revision ({_REVISION_COLUMNS})
  SELECT {_REVISION_VALUES.format(supersedes="opening.revision_id", at="opening.at", generated="{generated}")} FROM opening
  RETURNING recorded_at, supersedes, generated_run_id
), head AS (
  UPDATE fact f
  SET current_version = %(version)s::int, expires_at = opening.expires_at, keep_ends_at = opening.keep_ends_at,
      keep_reason = opening.keep_reason, unverified_until = opening.until,
      wording = CASE WHEN %(keeps_wording)s::bool THEN f.wording ELSE %(wording)s::bytea END
  FROM opening, revision WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text
), {_PARTS}
SELECT %(created_at)s::timestamptz, recorded_at, supersedes, generated_run_id, expires_at, keep_ends_at, keep_reason, until,
       coalesce(keep_ends_at > at, false), (SELECT last_verified_at FROM freshness)
FROM opening, revision
"""


def insert_fact(
    *,
    principal: Principal,
    fact_id: str,
    type: str,
    scope_text: str,
    row: RevisionRow,
    policy: WritePolicy,
) -> FactView:
    """A new fact with its first revision. Raises IdTaken, whoever has the id."""
    identity = {"id": fact_id, "type": type, "scope": scope_text, "version": 1, "revision": fact_id}
    taken = IdTaken(id=fact_id)
    with constraint_errors(fact_pkey=taken, fact_revision_id_is_unique=taken):
        written = _execute(_FIRST, principal, row, policy, {**identity, "unverified_until": None})
    return _view(
        row,
        written,
        fact_id=fact_id,
        revision_id=fact_id,
        version=1,
        type=type,
        scope_text=scope_text,
    )


def insert_revision(
    *, principal: Principal, replaced: FactView, row: RevisionRow, policy: WritePolicy
) -> FactView:
    """The next revision of a fact whose head the caller has locked; `replaced`, the current one, is closed."""
    revision_id = new_text_id()
    identity = {
        "id": replaced.id,
        "type": replaced.type,
        "scope": replaced.scope_text,
        "version": replaced.version + 1,
        "revision": revision_id,
        "created_at": replaced.created_at,
        # An agent that goes on changing its fact doesn't prolong its window.
        "unverified_until": replaced.unverified_until,
    }
    with constraint_errors():
        written = _execute(_NEXT, principal, row, policy, identity)
    return _view(
        row,
        written,
        fact_id=replaced.id,
        revision_id=revision_id,
        version=replaced.version + 1,
        type=replaced.type,
        scope_text=replaced.scope_text,
        is_held=replaced.is_held,
    )


def _execute(
    statement: str,
    principal: Principal,
    row: RevisionRow,
    policy: WritePolicy,
    identity: dict[str, Any],
) -> tuple[Any, ...]:
    guard, guard_parameters = log_guard(principal, "e")
    source = row.source
    parameters: dict[str, Any] = {
        **identity,
        **guard_parameters,
        "tenant": principal.tenant_id,
        "content": row.content.text,
        "hash": row.content.hash,
        "size": row.content.size,
        "ref": row.content.ref,
        "retention": row.retention.text(),
        "keep_until": row.retention.keep_until,
        "keep_days": row.retention.keep_days,
        "type_keep": policy.type.keep_days,
        "type_delete": policy.type.delete_after_days,
        "tenant_keep": policy.tenant_keep_days,
        "tenant_delete": policy.tenant_delete_after_days,
        "unverified_days": settings.KINDMEM_UNVERIFIED_DAYS or None,
        "source": source.text() if source else None,
        "strategy": source.strategy if source and not row.keeps_freshness else None,
        "handler": source.handler if source else None,
        "priority": (source.priority or 0) if source else 0,
        "ttl": source.ttl_seconds if source else None,
        "last_verified_at": source.last_verified_at if source else None,
        "etag": row.etag,
        "source_version": row.source_version,
        "subjects": _subjects_text(row.subjects),
        "subject_kinds": [subject.kind for subject in row.subjects],
        "subject_ids": [subject.id for subject in row.subjects],
        "causes": list(row.causes),
        "last_cause": row.causes[-1] if row.causes and row.attributed_kind == "agent" else None,
        "generated": row.generated_run_id,
        "valid_from": row.valid_from,
        "valid_until": row.valid_until,
        "observed_at": row.observed_at,
        "trust": row.trust,
        "verified_by": row.verified_by,
        "verified_at": row.verified_at,
        "attributed_kind": row.attributed_kind,
        "attributed_id": row.attributed_id,
        "wording": _wording(row, identity),
        "keeps_wording": row.keeps_wording,
        "writer": principal.writer,
        "writer_role": principal.role,
        "waits_because": row.waits_because,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement.format(generated=_GENERATED.format(guard=guard)), parameters)
        written: tuple[Any, ...] | None = cursor.fetchone()
    if written is None:
        raise RuntimeError("a revision was written without the lock of its fact")
    return written


def _wording(row: RevisionRow, identity: dict[str, Any]) -> bytes | None:
    return wording(
        row.words,
        type=identity["type"],
        scope=json.loads(identity["scope"]),
        subjects=[(subject.kind, subject.id) for subject in row.subjects],
        times=(row.valid_from, row.valid_until),
        sources=(row.source.uri if row.source else None, row.content.ref),
    )


def _subjects_text(subjects: tuple[Subject, ...]) -> str | None:
    return canonical([{"kind": one.kind, "id": one.id} for one in subjects]) if subjects else None


def _view(
    row: RevisionRow,
    written: tuple[Any, ...],
    *,
    fact_id: str,
    revision_id: str,
    version: int,
    type: str,
    scope_text: str,
    is_held: bool = False,
) -> FactView:
    created_at, recorded_at, supersedes, generated, expires_at, *rest = written
    keep_ends_at, keep_reason, until, is_kept, checked_at = rest
    return FactView(
        id=fact_id,
        revision_id=revision_id,
        type=type,
        scope_text=scope_text,
        version=version,
        created_at=created_at,
        recorded_at=recorded_at,
        content_text=row.content.text,
        content_ref=row.content.ref,
        content_hash=row.content.hash,
        size_bytes=row.content.size,
        retention_text=row.retention.text(),
        source_text=row.source.text() if row.source else None,
        cause_ids=row.causes,
        supersedes=supersedes,
        trust=row.trust,
        verified_by=row.verified_by,
        verified_at=(row.verified_at or recorded_at) if row.verified_by else None,
        attributed_kind=row.attributed_kind,
        attributed_id=row.attributed_id,
        generated_run_id=generated,
        subjects_text=_subjects_text(row.subjects),
        valid_from=row.valid_from,
        valid_until=row.valid_until,
        observed_at=row.observed_at,
        invalidated_at=None,
        invalidated_by=None,
        invalidation_reason=None,
        expires_at=expires_at,
        keep_ends_at=keep_ends_at,
        keep_reason=keep_reason,
        unverified_until=until,
        is_kept=is_kept,
        is_held=is_held,
        last_verified_at=checked_at,
        etag=row.etag,
        source_version=row.source_version,
    )
