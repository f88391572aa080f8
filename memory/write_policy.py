"""What a write of one type asks before it writes: the type's policy and the tenant's default retention, in one statement."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.type_policy import TypePolicy

POLICY_COLUMNS = """p.type, p.keyword, p.semantic, p.embedding_model, p.content_schema, p.keep_days, p.delete_after_days,
(n.settings -> 'retention' ->> 'keepDays')::int, (n.settings -> 'retention' ->> 'deleteAfterDays')::int"""
_READ = f"""
SELECT {POLICY_COLUMNS}
FROM tenant n LEFT JOIN fact_type p ON p.tenant_id = n.id AND p.type = %(type)s::text
WHERE n.id = %(tenant)s::uuid
"""


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """`schema_text`: the type's content schema, canonical. Windows are in days from a fact's first write."""

    type: TypePolicy
    schema_text: str | None
    tenant_keep_days: int | None
    tenant_delete_after_days: int | None


def write_policy(tenant_id: UUID, type: str) -> WritePolicy:
    """The policy that a write of this type obeys, declared or not."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, {"tenant": tenant_id, "type": type})
        return policy_of(type, cursor.fetchone())


def policy_of(type: str, row: Sequence[Any]) -> WritePolicy:
    """The policy of a type from a row of POLICY_COLUMNS."""
    declared, keyword, semantic, model, schema, keep, delete, tenant_keep, tenant_delete = row
    if declared is None:
        return WritePolicy(TypePolicy(type), None, tenant_keep, tenant_delete)
    policy = TypePolicy(
        type=declared,
        keyword=keyword,
        semantic=semantic,
        embedding_model=model,
        content_schema=None if schema is None else json.loads(schema),
        keep_days=keep,
        delete_after_days=delete,
        is_declared=True,
    )
    return WritePolicy(policy, schema, tenant_keep, tenant_delete)
