"""What a write of one type asks before it writes: the type's policy, the tenant's default retention and whether anybody is told.

One statement answers all of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.type_policy import TypePolicy

POLICY_COLUMNS = """p.type, p.keyword, p.semantic, p.embedding_model, p.content_schema, p.keep_days, p.delete_after_days,
(n.settings -> 'retention' ->> 'keepDays')::int, (n.settings -> 'retention' ->> 'deleteAfterDays')::int,
EXISTS (SELECT FROM webhook w WHERE w.tenant_id = n.id AND w.disabled_because IS NULL)"""
_READ = f"""
SELECT {POLICY_COLUMNS}
FROM tenant n LEFT JOIN fact_type p ON p.tenant_id = n.id AND p.type = %(type)s::text
WHERE n.id = %(tenant)s::uuid
"""


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """`schema_text`: the type's content schema, canonical. Windows are in days from a fact's first write.

    `has_webhooks`: someone may have asked to be told of changes.
    """

    type: TypePolicy
    schema_text: str | None
    tenant_keep_days: int | None
    tenant_delete_after_days: int | None
    has_webhooks: bool

    @property
    def keep_days(self) -> int | None:
        """For how long facts that say nothing of their own are kept: by the type where it says anything, else by the tenant."""
        type_says = self.type.keep_days is not None or self.type.delete_after_days is not None
        return self.type.keep_days if type_says else self.tenant_keep_days


def write_policy(tenant_id: UUID, type: str) -> WritePolicy:
    """The policy that a write of this type obeys, declared or not."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, {"tenant": tenant_id, "type": type})
        return policy_of(type, cursor.fetchone())


def policy_of(type: str, row: Sequence[Any]) -> WritePolicy:
    """The policy of a type from a row of POLICY_COLUMNS."""
    declared, keyword, semantic, model, schema, keep, delete, *of_tenant = row
    if declared is None:
        return WritePolicy(TypePolicy(type), None, *of_tenant)
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
    return WritePolicy(policy, schema, *of_tenant)
