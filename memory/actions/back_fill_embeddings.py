"""Make the vectors that writes left open, a batch at a time; the worker calls it until nothing is due.

A batch is leased in one transaction, embedded outside any, and stored in another, each vector only while its fact still is the
revision that was read: the fact's row is share-locked, so a change either comes first and wins or waits. Failures come back
later and later, at the most hourly; what the provider says to wait is obeyed. Nothing here logs what facts say.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from memory.embeddings.provider import (
    EmbeddingBadAnswer,
    EmbeddingError,
    EmbeddingUnavailable,
    get_provider,
)
from memory.embeddings.text import text_of
from memory.search.index import vector_text
from memory.tenancy import tenant_context

BATCH = 32
_LEASE_SECONDS = 60
_MOST_SECONDS = 3600

_LEASE = """
WITH due AS MATERIALIZED (
  SELECT t.fact_id FROM embedding_task t
  WHERE t.tenant_id = %(tenant)s::uuid AND t.next_at <= now()
  ORDER BY t.next_at, t.fact_id LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), leased AS (
  UPDATE embedding_task t SET attempts = t.attempts + 1, next_at = now() + %(lease)s::int * interval '1 second'
  FROM due WHERE t.tenant_id = %(tenant)s::uuid AND t.fact_id = due.fact_id
  RETURNING t.fact_id, t.model, t.attempts
)
SELECT l.fact_id, l.model, l.attempts, f.current_version, c.content_text
FROM leased l
JOIN fact f ON f.tenant_id = %(tenant)s::uuid AND f.id = l.fact_id
LEFT JOIN fact_content c ON c.tenant_id = f.tenant_id AND c.fact_id = f.id AND c.version = f.current_version
"""

_STORE = """
WITH made AS (
  SELECT * FROM unnest(%(facts)s::text[], %(versions)s::int[], %(vectors)s::text[]) AS u (fact_id, version, vector)
), current AS MATERIALIZED (
  SELECT m.fact_id, m.vector FROM made m
  JOIN fact f ON f.tenant_id = %(tenant)s::uuid AND f.id = m.fact_id
  WHERE f.current_version = m.version AND f.deleted_at IS NULL
  ORDER BY f.id FOR SHARE OF f
), wanted AS MATERIALIZED (
  DELETE FROM embedding_task t USING current c
  WHERE t.tenant_id = %(tenant)s::uuid AND t.fact_id = c.fact_id AND t.model = %(model)s::text
  RETURNING c.fact_id, c.vector
)
INSERT INTO fact_embedding (tenant_id, fact_id, model, dims, embedding)
SELECT %(tenant)s::uuid, fact_id, %(model)s::text, %(dims)s::int, vector::halfvec FROM wanted
ON CONFLICT ON CONSTRAINT fact_embedding_pkey DO UPDATE
SET (model, dims, embedding) = (excluded.model, excluded.dims, excluded.embedding)
"""

_POSTPONE = """
UPDATE embedding_task t
SET last_failure = %(failure)s::text,
    next_at = now() + greatest(least(10 * 2 ^ least(t.attempts, 12), %(most)s::float8), %(wait)s::float8) * interval '1 second'
WHERE t.tenant_id = %(tenant)s::uuid AND t.fact_id = ANY (%(facts)s::text[]) AND t.model = %(model)s::text
"""


@dataclass(frozen=True, slots=True)
class BackFilled:
    """`stored`: vectors made. `postponed`: tried in vain, and to be tried again. `was_full`: more may be due."""

    stored: int
    postponed: int
    was_full: bool


@dataclass(frozen=True, slots=True)
class _Task:
    fact_id: str
    model: str
    attempts: int
    version: int
    content_text: str | None

    @property
    def text(self) -> str:
        return "" if self.content_text is None else text_of(json.loads(self.content_text))


def back_fill_embeddings(*, tenant_id: UUID, limit: int = BATCH) -> BackFilled:
    """Make up to `limit` vectors of one tenant that are due. Runs its own transactions; not for within another."""
    with tenant_context(tenant_id, durable=True), connection.cursor() as cursor:
        cursor.execute(_LEASE, {"tenant": tenant_id, "limit": limit, "lease": _LEASE_SECONDS})
        tasks = [_Task(*row) for row in cursor.fetchall()]
    by_model: dict[str, list[_Task]] = defaultdict(list)
    for task in tasks:
        by_model[task.model].append(task)
    stored = postponed = 0
    for model, of_model in by_model.items():
        made, failed = _embed(tenant_id, model, of_model)
        stored += made
        postponed += failed
    return BackFilled(stored, postponed, was_full=len(tasks) == limit)


def _embed(tenant_id: UUID, model: str, tasks: Sequence[_Task]) -> tuple[int, int]:
    """How many vectors were stored, how many tasks postponed."""
    try:
        vectors = get_provider(model).embed([task.text for task in tasks])
    except EmbeddingBadAnswer as error:
        if len(tasks) == 1:
            return 0, _postpone(tenant_id, model, tasks, error)
        # One text may be what the provider chokes on: it must not keep the others waiting.
        pairs = [_embed(tenant_id, model, [task]) for task in tasks]
        return sum(made for made, _ in pairs), sum(failed for _, failed in pairs)
    except EmbeddingError as error:
        return 0, _postpone(tenant_id, model, tasks, error)
    return _store(tenant_id, model, tasks, vectors), 0


def _store(
    tenant_id: UUID, model: str, tasks: Sequence[_Task], vectors: Sequence[Sequence[float]]
) -> int:
    with tenant_context(tenant_id, durable=True), connection.cursor() as cursor:
        cursor.execute(
            _STORE,
            {
                "tenant": tenant_id,
                "model": model,
                "dims": len(vectors[0]),
                "facts": [task.fact_id for task in tasks],
                "versions": [task.version for task in tasks],
                "vectors": [vector_text(vector) for vector in vectors],
            },
        )
        return int(cursor.rowcount)


def _postpone(tenant_id: UUID, model: str, tasks: Sequence[_Task], error: EmbeddingError) -> int:
    asked = error.retry_after_seconds if isinstance(error, EmbeddingUnavailable) else None
    with tenant_context(tenant_id, durable=True), connection.cursor() as cursor:
        cursor.execute(
            _POSTPONE,
            {
                "tenant": tenant_id,
                "model": model,
                "failure": error.code,
                "wait": min(asked or 0.0, _MOST_SECONDS),
                "most": _MOST_SECONDS,
                "facts": [task.fact_id for task in tasks],
            },
        )
        return int(cursor.rowcount)
