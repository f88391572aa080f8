"""Bring the index of a tenant's facts to what their types and the tenant's language say now.

Lexemes are cut again at once. A vector of another model than the type wants stays, and answers, until the back-fill has made the
new one. Batches in transactions of their own; it may be stopped anywhere and run again. `reindex_facts` takes every fact;
`reindex_changed_types`, the worker's, those of types whose declaration changed their searches, and of them only those whose index
is not what it says.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.embeddings.text import text_of
from memory.search.index import index_language, model_of, reindex
from memory.search.wording import wording, words_digest
from memory.tenancy import tenant_context
from memory.type_policy import TypePolicy, type_policy

BATCH = 200
# No write lasts so long: one that began later follows the declaration that is there now.
LONGEST_WRITE_SECONDS = 60

_BATCH = """
SELECT f.id, f.type, c.content_text, f.scope_text, r.subjects_text, r.valid_from, r.valid_until, r.source_text, r.content_ref
FROM fact f
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
JOIN fact_content c ON c.tenant_id = f.tenant_id AND c.fact_id = f.id AND c.version = f.current_version
WHERE f.tenant_id = %(tenant)s::uuid AND f.id > %(after)s::text AND f.deleted_at IS NULL AND c.content_text IS NOT NULL
  AND (%(type)s::text IS NULL OR f.type = %(type)s::text)
ORDER BY f.id LIMIT %(limit)s::int FOR NO KEY UPDATE OF f
"""
_WORDINGS = """
UPDATE fact f SET wording = u.wording FROM unnest(%(ids)s::text[], %(wordings)s::bytea[]) AS u (id, wording)
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = u.id AND f.wording IS DISTINCT FROM u.wording
"""

_NEXT_TYPE = """
SELECT r.type, r.after_fact_id FROM reindexing r
WHERE r.tenant_id = %(tenant)s::uuid
  AND (r.looked_through_at IS NULL OR r.requested_at < clock_timestamp() - %(longest)s::int * interval '1 second')
ORDER BY r.requested_at, r.type LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_DIFFERING = """
SELECT f.id, c.content_text
FROM fact f
JOIN fact_content c ON c.tenant_id = f.tenant_id AND c.fact_id = f.id AND c.version = f.current_version
LEFT JOIN fact_document d ON d.tenant_id = f.tenant_id AND d.fact_id = f.id
LEFT JOIN fact_embedding e ON e.tenant_id = f.tenant_id AND e.fact_id = f.id
LEFT JOIN embedding_task t ON t.tenant_id = f.tenant_id AND t.fact_id = f.id
WHERE f.tenant_id = %(tenant)s::uuid AND f.type = %(type)s::text AND f.id > %(after)s::text AND f.deleted_at IS NULL
  AND c.content_text IS NOT NULL
  AND ((d.fact_id IS NOT NULL) <> %(keyword)s::bool OR d.language <> %(language)s::text
       OR CASE WHEN %(model)s::text IS NULL THEN e.fact_id IS NOT NULL OR t.fact_id IS NOT NULL
          WHEN e.model = %(model)s::text THEN t.fact_id IS NOT NULL
          ELSE t.model IS DISTINCT FROM %(model)s::text END)
ORDER BY f.id LIMIT %(limit)s::int FOR SHARE OF f
"""
_GO_ON = """
UPDATE reindexing SET after_fact_id = %(after)s::text WHERE tenant_id = %(tenant)s::uuid AND type = %(type)s::text
"""
# Looked through from end to end: over when nothing differed and no write can still follow another declaration.
_LOOKED_THROUGH = """
UPDATE reindexing SET after_fact_id = '', looked_through_at = clock_timestamp()
WHERE tenant_id = %(tenant)s::uuid AND type = %(type)s::text
"""
_OVER = """
DELETE FROM reindexing
WHERE tenant_id = %(tenant)s::uuid AND type = %(type)s::text
  AND requested_at < clock_timestamp() - %(longest)s::int * interval '1 second'
"""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """`facts`: looked at. `pending`: how many of them the back-fill will make a vector for."""

    facts: int
    pending: int


def reindex_facts(
    *,
    tenant_id: UUID,
    language: str,
    type: str | None = None,
    progress: Callable[[int], Any] | None = None,
) -> Reindexed:
    """Re-index every live fact, or those of one type. `progress` is told the count after each batch."""
    policies: dict[str, TypePolicy] = {}
    after, facts, pending = "", 0, 0
    while True:
        with tenant_context(tenant_id, durable=True):
            with connection.cursor() as cursor:
                cursor.execute(
                    _BATCH, {"tenant": tenant_id, "after": after, "type": type, "limit": BATCH}
                )
                rows = cursor.fetchall()
            for fact_id, fact_type, content_text, *_ in rows:
                if fact_type not in policies:
                    policies[fact_type] = type_policy(tenant_id, fact_type)
                pending += reindex(
                    tenant_id=tenant_id,
                    fact_id=fact_id,
                    policy=policies[fact_type],
                    language=language,
                    content=json.loads(content_text),
                )
            _write_wordings(tenant_id, language, rows)
        if not rows:
            return Reindexed(facts, pending)
        after, facts = rows[-1][0], facts + len(rows)
        if progress is not None:
            progress(facts)


def _write_wordings(tenant_id: UUID, language: str, rows: Sequence[Sequence[Any]]) -> None:
    """What these facts say, as a write would have stored it."""
    wordings = []
    for _, type, content, scope, subjects, valid_from, valid_until, source, ref in rows:
        text = text_of(json.loads(content))
        wordings.append(
            wording(
                words_digest(text, index_language(language)),
                type=type,
                scope=json.loads(scope),
                subjects=[(one["kind"], one["id"]) for one in json.loads(subjects or "[]")],
                times=(valid_from, valid_until),
                sources=(json.loads(source).get("uri") if source else None, ref),
            )
        )
    with connection.cursor() as cursor:
        cursor.execute(
            _WORDINGS,
            {"tenant": tenant_id, "ids": [row[0] for row in rows], "wordings": wordings},
        )


def reindex_changed_types(*, tenant_id: UUID, language: str, most_seconds: float) -> int:
    """Re-index the facts of types that changed their searches, until none is due or the time is over; how many it took."""
    deadline = time.monotonic() + most_seconds
    facts = 0
    while time.monotonic() < deadline:
        with tenant_context(tenant_id, durable=True):
            taken = _one_batch(tenant_id, language)
        if taken is None:
            break
        facts += taken
    return facts


def _one_batch(tenant_id: UUID, language: str) -> int | None:
    """The next facts of the type that waits longest; how many there were. None when no type is due."""
    given: dict[str, Any] = {"tenant": tenant_id, "longest": LONGEST_WRITE_SECONDS}
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_TYPE, given)
        row = cursor.fetchone()
        if row is None:
            return None
        type, after = row
        policy = type_policy(tenant_id, type)
        wanted: dict[str, Any] = {
            **given,
            "type": type,
            "after": after,
            "keyword": policy.keyword,
            "model": model_of(policy),
            "language": index_language(language),
            "limit": BATCH,
        }
        cursor.execute(_DIFFERING, wanted)
        rows = cursor.fetchall()
        for fact_id, content_text in rows:
            reindex(
                tenant_id=tenant_id,
                fact_id=fact_id,
                policy=policy,
                language=language,
                content=json.loads(content_text),
            )
        if rows:
            cursor.execute(_GO_ON, {**wanted, "after": rows[-1][0]})
        else:
            if not after:
                cursor.execute(_OVER, wanted)
            cursor.execute(_LOOKED_THROUGH, wanted)
    return len(rows)
