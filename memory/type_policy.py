"""What a fact type says about its facts: which searches find them, by which model, what shape they have, how long they stay.

A type that nobody declared has both searches on, the default model, no schema and no window.
"""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

_READ = """
SELECT type, keyword, semantic, embedding_model, content_schema, keep_days, delete_after_days
FROM fact_type WHERE tenant_id = %(tenant)s::uuid AND type = %(type)s::text
"""


@dataclass(frozen=True, slots=True)
class TypePolicy:
    """`embedding_model` None: the default. Windows are in days from a fact's first write."""

    type: str
    keyword: bool = True
    semantic: bool = True
    embedding_model: str | None = None
    content_schema: dict[str, Any] | bool | None = None
    keep_days: int | None = None
    delete_after_days: int | None = None
    is_declared: bool = False


def type_policy(tenant_id: UUID, type: str) -> TypePolicy:
    """The policy of one type, declared or not."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, {"tenant": tenant_id, "type": type})
        row = cursor.fetchone()
    if row is None:
        return TypePolicy(type)
    name, keyword, semantic, model, schema_text, keep_days, delete_after_days = row
    return TypePolicy(
        type=name,
        keyword=keyword,
        semantic=semantic,
        embedding_model=model,
        content_schema=None if schema_text is None else json.loads(schema_text),
        keep_days=keep_days,
        delete_after_days=delete_after_days,
        is_declared=True,
    )
