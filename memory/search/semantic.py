"""Search by meaning: the cosine between the question's vector and each fact's, among what the caller may see.

Exact: every vector that the caller may see is compared, so nothing can be missing, however small the tenant beside others. Facts
of several models are searched each with the question's vector of that model. Embedding the question may mean asking another
server: it happens before any transaction, in `question_vectors`.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.embeddings.provider import EmbeddingError, get_provider
from memory.search.found import Found, Hit
from memory.search.index import vector_text
from memory.search.visible import Filters, visible

EMBED_QUESTION_WITHIN_SECONDS = 5.0

_MODELS_IN_USE = """
WITH RECURSIVE used AS (
  (SELECT model FROM fact_embedding WHERE tenant_id = %(tenant)s::uuid ORDER BY model LIMIT 1)
  UNION ALL
  SELECT (SELECT e.model FROM fact_embedding e WHERE e.tenant_id = %(tenant)s::uuid AND e.model > u.model
          ORDER BY e.model LIMIT 1)
  FROM used u WHERE u.model IS NOT NULL
)
SELECT model FROM used WHERE model IS NOT NULL
"""

# OFFSET 0 keeps the sort apart from the scan: an index on vectors must not be what chooses the candidates.
_EXACT = """
WITH compared AS MATERIALIZED (
  SELECT * FROM (
    SELECT e.fact_id AS id, e.created_at, e.embedding <=> %(vector)s::halfvec AS distance
    FROM fact_embedding e WHERE {visible} AND e.model = %(model)s::text AND e.dims = %(dims)s::int
    OFFSET 0
  ) c
)
SELECT id, 1 - distance, created_at, (SELECT count(*) FROM compared)
FROM compared ORDER BY distance, created_at DESC, id DESC LIMIT %(limit)s::int
"""


def models_in_use(tenant_id: UUID) -> list[str]:
    """The models that the tenant's facts have vectors of."""
    with connection.cursor() as cursor:
        cursor.execute(_MODELS_IN_USE, {"tenant": tenant_id})
        return [row[0] for row in cursor.fetchall()]


def question_vectors(question: str, models: Iterable[str]) -> dict[str, list[float]]:
    """The question's vector of each model that answers in time. May ask other servers: not for within a transaction.

    Raises EmbeddingError when none of the models answers.
    """
    vectors: dict[str, list[float]] = {}
    failure: EmbeddingError | None = None
    for model in models:
        try:
            vectors[model] = get_provider(model).embed(
                [question], timeout_seconds=EMBED_QUESTION_WITHIN_SECONDS
            )[0]
        except EmbeddingError as error:
            failure = error
    if failure is not None and not vectors:
        raise failure
    return vectors


def search_by_meaning(
    principal: Principal,
    *,
    vectors: Mapping[str, list[float]],
    filters: Filters,
    limit: int,
) -> Found:
    """The `limit` facts nearest to the question; equal distances newest first. `vectors`: the question's, by model."""
    condition, parameters = visible(principal, filters, "e")
    hits: list[Hit] = []
    candidates = 0
    for model, vector in vectors.items():
        given = {
            **parameters,
            "model": model,
            "dims": len(vector),
            "vector": vector_text(vector),
            "limit": limit,
        }
        with connection.cursor() as cursor:
            cursor.execute(_EXACT.format(visible=condition), given)
            rows = cursor.fetchall()
        hits += [Hit(row[0], row[1], row[2]) for row in rows]
        candidates += rows[0][3] if rows else 0
    hits.sort(key=lambda hit: hit.order, reverse=True)
    return Found(hits=hits[:limit], how="exact", candidates=candidates)
