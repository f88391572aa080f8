"""Search by meaning: the cosine between the question's vector and each fact's, among what the caller may see.

Exact: every vector that the caller may see is compared, so nothing can be missing, however small the tenant beside others. Only
where a large tenant has an index of its own, and the caller sees clearly more than 20,000 facts, is that index walked instead,
and walked on until enough of what it yields may be seen; too few, and the search is exact after all. Facts of several models
are searched each with the question's vector of that model. Embedding the question may mean asking another server: it happens
before any transaction, in `question_vectors`.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db import connection
from psycopg import sql

from memory.access import Principal
from memory.embeddings.provider import EmbeddingError, get_provider
from memory.search.found import Found, Hit
from memory.search.index import NUMBER_BITS, vector_text
from memory.search.vector_index import has_vector_index
from memory.search.visible import Filters, visible

EMBED_QUESTION_WITHIN_SECONDS = 5.0
_SAMPLE = 500
# The estimate is off by 4.5 % (one standard deviation): above this there surely are more than 20,000.
_SURELY_LARGE = 27_000

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

# OFFSET 0 keeps the sort apart from the scan: an index on vectors must not be what chooses the candidates. Counting them takes
# a third longer, so that is done for few, and for many the count is the estimate that was made before.
_EXACT = """
SELECT c.id, 1 - c.distance, c.created_at, {count}
FROM (
  SELECT e.fact_id AS id, e.created_at, e.embedding <=> %(vector)s::halfvec AS distance
  FROM fact_embedding e WHERE {visible} AND e.model = %(model)s::text AND e.dims = %(dims)s::int
  OFFSET 0
) c
ORDER BY c.distance, c.created_at DESC, c.id DESC LIMIT %(limit)s::int
"""

_COUNT_IN_SAMPLE = """
SELECT count(*), max(number)
FROM (SELECT d.number FROM fact_document d WHERE {visible} ORDER BY d.number LIMIT %(sample)s::int) s
"""

# Sorting must not look cheaper than walking the index, whatever the statistics say.
_WALK = """
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true),
       set_config('hnsw.max_scan_tuples', '100000', true), set_config('enable_sort', 'off', true)
"""
_WALKED = "SELECT set_config('enable_sort', 'on', true)"
# The index's condition is proved from literals only. The walk comes in loose order, so it goes past the limit and is sorted.
_NEAR = """
WITH near AS MATERIALIZED (
  SELECT e.fact_id AS id, e.created_at, e.embedding::halfvec({dims}) <=> %(vector)s::halfvec AS distance
  FROM fact_embedding e
  WHERE e.tenant_id = {tenant}::uuid AND e.model = {model}::text AND {visible}
  ORDER BY e.embedding::halfvec({dims}) <=> %(vector)s::halfvec LIMIT %(deep)s::int
)
SELECT id, 1 - distance, created_at FROM near ORDER BY distance, created_at DESC, id DESC LIMIT %(limit)s::int
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
    found = [
        _nearest(principal, model, vector, filters, limit) for model, vector in vectors.items()
    ]
    hits = sorted(
        (hit for one in found for hit in one.hits), key=lambda hit: hit.order, reverse=True
    )
    is_exact = all(one.exhaustive for one in found)
    return Found(
        hits=hits[:limit],
        how="exact" if is_exact else "approximate",
        candidates=sum(one.candidates for one in found),
        exhaustive=is_exact,
    )


def _nearest(
    principal: Principal, model: str, vector: list[float], filters: Filters, limit: int
) -> Found:
    """Among the facts that have a vector of this model."""
    facts = _about_how_many(principal, filters)
    if facts > _SURELY_LARGE and has_vector_index(principal.tenant_id, model):
        hits = _walk(principal, model, vector, filters, limit)
        if len(hits) == limit:
            return Found(hits=hits, how="approximate", candidates=facts, exhaustive=False)
    condition, parameters = visible(principal, filters, "e")
    is_small = facts < _SAMPLE
    statement = _EXACT.format(
        visible=condition, count="count(*) OVER ()" if is_small else "NULL::bigint"
    )
    given = {
        **parameters,
        "model": model,
        "dims": len(vector),
        "vector": vector_text(vector),
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        rows = cursor.fetchall()
    candidates = (rows[0][3] if rows else 0) if is_small else facts
    return Found([Hit(*row[:3]) for row in rows], how="exact", candidates=candidates)


def _about_how_many(principal: Principal, filters: Filters) -> int:
    """How many facts the caller sees, from the place of the _SAMPLE-th smallest of their random numbers."""
    condition, parameters = visible(principal, filters, "d")
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT_IN_SAMPLE.format(visible=condition), {**parameters, "sample": _SAMPLE}
        )
        taken, last = cursor.fetchone()
    return int(taken) if taken < _SAMPLE else round((taken - 1) * 2**NUMBER_BITS / max(last, 1))


def _walk(
    principal: Principal, model: str, vector: list[float], filters: Filters, limit: int
) -> list[Hit]:
    condition, parameters = visible(principal, filters, "e")
    with connection.cursor() as cursor:
        cursor.execute(_WALK)
        statement = _NEAR.format(
            visible=condition,
            dims=len(vector),
            tenant=f"'{principal.tenant_id}'",
            model=sql.Literal(model).as_string(cursor.connection).replace("%", "%%"),
        )
        cursor.execute(
            statement,
            {
                **parameters,
                "vector": vector_text(vector),
                "limit": limit,
                "deep": 2 * limit + 20,
            },
        )
        hits = [Hit(*row) for row in cursor.fetchall()]
        cursor.execute(_WALKED)
    return hits
