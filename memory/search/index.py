"""What a write puts into the search index: lexemes and vector of the current revision, in the transaction of the write.

`prepare` computes and touches no table, so it runs before any lock is taken; `write_index` replaces whatever the fact had. The
built-in model has 500 ms for its vector; without one in time, and always with a model that runs elsewhere, the vector is left
to the back-fill and keyword search finds the fact at once.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.embeddings.provider import EmbeddingError, default_model, get_provider
from memory.embeddings.text import text_of
from memory.search.analysis import LANGUAGES, SIMPLE, Analysis, analyse
from memory.search.wording import words_digest
from memory.type_policy import TypePolicy

EMBED_WITHIN_SECONDS = 0.5
NUMBER_BITS = 62
_MOST_FREQUENT = 32_767  # smallint; BM25 is flat long before


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """`analysis` None: the type is not searched by keyword. `embedding_model` None: not by meaning, or no model is there.

    words: the digest of the content's words.
    """

    language: str
    analysis: Analysis | None
    embedding_model: str | None
    vector: list[float] | None = None
    words: bytes | None = None

    @property
    def pending(self) -> bool:
        """Whether the vector is still to be made."""
        return self.embedding_model is not None and self.vector is None


def prepare(
    *,
    policy: TypePolicy,
    language: str,
    content: Any,
    within_seconds: float = EMBED_WITHIN_SECONDS,
) -> IndexPlan:
    """Analyse and, with a model that runs here, embed the content. Never fails for what the content holds."""
    text = text_of(content)
    language = index_language(language)
    analysis = analyse(text, language) if policy.keyword else None
    model = model_of(policy)
    vector = _vector_at_once(model, text, within_seconds) if model is not None else None
    return IndexPlan(
        language=language,
        analysis=analysis,
        embedding_model=model,
        vector=vector,
        words=words_digest(text, language),
    )


def index_language(language: str) -> str:
    """The language that texts are cut in: the tenant's where it is known, else `simple`."""
    return language if language in LANGUAGES else SIMPLE


def _vector_at_once(model: str, text: str, within_seconds: float) -> list[float] | None:
    if within_seconds <= 0:
        return None
    try:
        provider = get_provider(model)
        if not provider.is_local:
            return None
        return provider.embed([text], timeout_seconds=within_seconds)[0]
    except EmbeddingError:
        return None


def vector_text(vector: Sequence[float]) -> str:
    """A vector as pgvector reads it; a half keeps three to four digits."""
    return "[" + ",".join([f"{number:.6g}" for number in vector]) + "]"


# A document that says the same is left alone, and so are its postings.
_DOCUMENT = """
document AS (
  INSERT INTO fact_document AS d (tenant_id, fact_id, number, length, language, lexemes, frequencies)
  SELECT %(tenant)s::uuid, %(fact)s::text, %(number)s::bigint, %(length)s::int, %(language)s::text, %(lexemes)s::text[],
         %(frequencies)s::smallint[]
  WHERE %(has_keyword)s::bool
  ON CONFLICT ON CONSTRAINT fact_document_pkey DO UPDATE
  SET (length, language, lexemes, frequencies) = (excluded.length, excluded.language, excluded.lexemes, excluded.frequencies)
  WHERE (d.language, d.lexemes, d.frequencies) IS DISTINCT FROM (excluded.language, excluded.lexemes, excluded.frequencies)
), no_document AS (
  DELETE FROM fact_document
  WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(fact)s::text AND NOT %(has_keyword)s::bool
)
"""

_WRITE = f"""
WITH {_DOCUMENT}, embedding AS (
  INSERT INTO fact_embedding (tenant_id, fact_id, model, dims, embedding)
  SELECT %(tenant)s::uuid, %(fact)s::text, %(model)s::text, %(dims)s::int, %(vector)s::halfvec
  WHERE %(vector)s::text IS NOT NULL
  ON CONFLICT ON CONSTRAINT fact_embedding_pkey DO UPDATE
  SET (model, dims, embedding) = (excluded.model, excluded.dims, excluded.embedding)
), no_embedding AS (
  DELETE FROM fact_embedding
  WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(fact)s::text AND %(vector)s::text IS NULL
), task AS (
  INSERT INTO embedding_task (tenant_id, fact_id, model)
  SELECT %(tenant)s::uuid, %(fact)s::text, %(model)s::text
  WHERE %(pending)s::bool
  ON CONFLICT ON CONSTRAINT embedding_task_pkey DO UPDATE
  SET (model, attempts, next_at, last_failure) = (excluded.model, 0, now(), NULL)
)
DELETE FROM embedding_task
WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(fact)s::text AND NOT %(pending)s::bool
"""

_REINDEX = f"""
WITH {_DOCUMENT}, has_vector AS MATERIALIZED (
  SELECT EXISTS (
    SELECT FROM fact_embedding
    WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(fact)s::text AND model = %(model)s::text
  ) AS already
), no_embedding AS (
  DELETE FROM fact_embedding
  WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(fact)s::text AND %(model)s::text IS NULL
), task AS (
  INSERT INTO embedding_task AS t (tenant_id, fact_id, model)
  SELECT %(tenant)s::uuid, %(fact)s::text, %(model)s::text
  FROM has_vector WHERE %(model)s::text IS NOT NULL AND NOT already
  ON CONFLICT ON CONSTRAINT embedding_task_pkey DO UPDATE
  SET (model, attempts, next_at, last_failure) = (excluded.model, 0, now(), NULL) WHERE t.model <> excluded.model
), no_task AS (
  DELETE FROM embedding_task t USING has_vector
  WHERE t.tenant_id = %(tenant)s::uuid AND t.fact_id = %(fact)s::text AND (already OR %(model)s::text IS NULL)
)
SELECT %(model)s::text IS NOT NULL AND NOT already FROM has_vector
"""

_REMOVE = """
WITH document AS (
  DELETE FROM fact_document WHERE tenant_id = %(tenant)s::uuid AND fact_id = ANY (%(facts)s::text[])
), embedding AS (
  DELETE FROM fact_embedding WHERE tenant_id = %(tenant)s::uuid AND fact_id = ANY (%(facts)s::text[])
)
DELETE FROM embedding_task WHERE tenant_id = %(tenant)s::uuid AND fact_id = ANY (%(facts)s::text[])
"""


def write_index(*, tenant_id: UUID, fact_id: str, plan: IndexPlan) -> None:
    """Make the plan what search knows of the fact, in the running transaction. One statement; the fact's row exists."""
    parameters: dict[str, Any] = {
        **_document_parameters(tenant_id, fact_id, plan.language, plan.analysis),
        "model": plan.embedding_model,
        "dims": len(plan.vector) if plan.vector is not None else None,
        "vector": vector_text(plan.vector) if plan.vector is not None else None,
        "pending": plan.pending,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, parameters)


def reindex(
    *, tenant_id: UUID, fact_id: str, policy: TypePolicy, language: str, content: Any
) -> bool:
    """Cut the unchanged content again, and leave a vector that the policy's model has not made to the back-fill.

    The vector of another model stays until then. Returns whether one is to be made.
    """
    language = index_language(language)
    analysis = analyse(text_of(content), language) if policy.keyword else None
    parameters: dict[str, Any] = {
        **_document_parameters(tenant_id, fact_id, language, analysis),
        "model": model_of(policy),
    }
    with connection.cursor() as cursor:
        cursor.execute(_REINDEX, parameters)
        return bool(cursor.fetchone()[0])


def _document_parameters(
    tenant_id: UUID, fact_id: str, language: str, analysis: Analysis | None
) -> dict[str, Any]:
    frequencies = analysis.frequencies if analysis is not None else {}
    return {
        "tenant": tenant_id,
        "fact": fact_id,
        "number": secrets.randbits(NUMBER_BITS),
        "language": language,
        "has_keyword": analysis is not None,
        "length": analysis.length if analysis is not None else 0,
        "lexemes": list(frequencies),
        "frequencies": [min(count, _MOST_FREQUENT) for count in frequencies.values()],
    }


def model_of(policy: TypePolicy) -> str | None:
    """The model that facts of the type are embedded by; None where meaning is not searched."""
    return (policy.embedding_model or default_model()) if policy.semantic else None


def remove_index(*, tenant_id: UUID, fact_ids: Sequence[str]) -> None:
    """Take all that search knows of these facts out, in the running transaction. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_REMOVE, {"tenant": tenant_id, "facts": list(fact_ids)})
