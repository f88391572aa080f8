"""Declare what a fact type says about its facts: their searches, embedding model, shape, and how long they stay.

A declaration replaces the one before as a whole, but for windows that it says nothing of: what is left out destroys nothing.
Windows hold for the facts that are there too, except those that say their own: their heads are set anew in the same transaction.
When searches or model change, the worker brings the facts that are there to it. Only an admin declares.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.content_schema import checked_schema
from memory.embeddings.provider import available_models
from memory.errors import BadInput, EmbeddingModelUnknown
from memory.queries.fact_types import COLUMNS, DeclaredType, declared_type_of
from memory.retention import Windows
from memory.search.index import model_of
from memory.type_policy import type_policy
from memory.work import begin_soon

MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Declaration:
    """`embedding_model` None: the default. `content_schema` None: any content.

    `windows`: keepDays and deleteAfterDays, in days from the first write. None: they stay as they are.
    """

    keyword: bool = True
    semantic: bool = True
    embedding_model: str | None = None
    content_schema: dict[str, Any] | bool | None = None
    windows: Windows | None = None


_DECLARE = f"""
INSERT INTO fact_type AS p
  (tenant_id, type, keyword, semantic, embedding_model, content_schema, keep_days, delete_after_days, updated_by)
VALUES (%(tenant)s::uuid, %(type)s::text, %(keyword)s::bool, %(semantic)s::bool, %(model)s::text, %(schema)s::text,
        %(keep)s::int, %(delete)s::int, %(writer)s::text)
ON CONFLICT ON CONSTRAINT fact_type_pkey DO UPDATE
SET (keyword, semantic, embedding_model, content_schema, keep_days, delete_after_days, updated_by, updated_at)
  = (excluded.keyword, excluded.semantic, excluded.embedding_model, excluded.content_schema,
     CASE WHEN %(says_windows)s::bool THEN excluded.keep_days ELSE p.keep_days END,
     CASE WHEN %(says_windows)s::bool THEN excluded.delete_after_days ELSE p.delete_after_days END,
     excluded.updated_by, clock_timestamp())
RETURNING {COLUMNS}
"""
# A type without facts has nothing to look at, but for a write that still follows the declaration before.
_REINDEX = """
INSERT INTO reindexing AS r (tenant_id, type, looked_through_at)
SELECT %(tenant)s::uuid, %(type)s::text, CASE WHEN EXISTS (
  SELECT FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.type = %(type)s::text AND f.deleted_at IS NULL
) THEN NULL ELSE clock_timestamp() END
ON CONFLICT ON CONSTRAINT reindexing_pkey DO UPDATE
SET (requested_at, after_fact_id, looked_through_at) = (excluded.requested_at, '', excluded.looked_through_at)
"""
# Facts that say their own window are left alone. In order of ids, which is the order in which everybody locks.
_WINDOWS = """
WITH due AS MATERIALIZED (
  SELECT f.id, w.keep_ends_at, w.keep_reason, w.expires_at
  FROM fact f
  JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
  JOIN tenant t ON t.id = f.tenant_id,
  LATERAL fact_windows(f.created_at, NULL, NULL, %(keep)s::int, %(delete)s::int,
    (t.settings -> 'retention' ->> 'keepDays')::int, (t.settings -> 'retention' ->> 'deleteAfterDays')::int,
    f.unverified_until) w
  WHERE f.tenant_id = %(tenant)s::uuid AND f.type = %(type)s::text AND f.deleted_at IS NULL AND r.retention_text IS NULL
    AND (f.keep_ends_at, f.keep_reason, f.expires_at) IS DISTINCT FROM (w.keep_ends_at, w.keep_reason, w.expires_at)
  ORDER BY f.id FOR UPDATE OF f
)
UPDATE fact f SET keep_ends_at = due.keep_ends_at, keep_reason = due.keep_reason, expires_at = due.expires_at
FROM due WHERE f.tenant_id = %(tenant)s::uuid AND f.id = due.id
"""


def declare_type(*, principal: Principal, type: str, declaration: Declaration) -> DeclaredType:
    """The declared type. Raises PermissionDenied, BadInput, EmbeddingModelUnknown."""
    principal.needs_role("admin", "owner")
    keep, delete = declaration.windows or (None, None)
    for name, days in (("keepDays", keep), ("deleteAfterDays", delete)):
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise BadInput.at(f"/retention/{name}", f"must be 1 to {MOST_DAYS}")
    if keep is not None and delete is not None and delete < keep:
        raise BadInput.at("/retention/deleteAfterDays", "must not be less than keepDays")
    model = declaration.embedding_model
    if model is not None and model not in available_models():
        raise EmbeddingModelUnknown(model=model)
    schema = declaration.content_schema
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "type": type,
        "keyword": declaration.keyword,
        "semantic": declaration.semantic,
        "model": model,
        "schema": None if schema is None else checked_schema(schema),
        "keep": keep,
        "delete": delete,
        "says_windows": declaration.windows is not None,
        "writer": principal.writer,
    }
    before = type_policy(principal.tenant_id, type)
    with connection.cursor() as cursor:
        cursor.execute(_DECLARE, parameters)
        declared = declared_type_of(cursor.fetchone())
        if declaration.windows is not None:
            cursor.execute(_WINDOWS, parameters)
        now = type_policy(principal.tenant_id, type)
        if (before.keyword, model_of(before)) != (now.keyword, model_of(now)):
            cursor.execute(_REINDEX, parameters)
            begin_soon("reindex", principal.tenant_id)
    if before != now:
        append_governance(
            principal=principal, payload={"type": "fact-type.declared", "factType": type}
        )
    return declared
