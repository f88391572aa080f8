"""Set how long facts of one type stay, and nothing else of what is declared about the type.

The facts that are there are set anew in the same transaction, except those that say their own. Simulate it first.
"""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.set_retention import RetentionSettings
from memory.retention import apply_policy
from memory.type_policy import TypePolicy, type_policy

_SET = """
INSERT INTO fact_type AS p (tenant_id, type, keyword, semantic, keep_days, delete_after_days, updated_by)
VALUES (%(tenant)s::uuid, %(type)s::text, true, true, %(keep)s::int, %(delete)s::int, %(writer)s::text)
ON CONFLICT ON CONSTRAINT fact_type_pkey DO UPDATE
SET (keep_days, delete_after_days, updated_by, updated_at)
  = (excluded.keep_days, excluded.delete_after_days, excluded.updated_by, clock_timestamp())
"""


def set_type_retention(
    *, principal: Principal, type: str, keep_days: int | None, delete_after_days: int | None
) -> TypePolicy:
    """The type's policy, in force. Both None: the type says nothing, the tenant's default speaks.

    Raises PermissionDenied, BadInput.
    """
    principal.needs_role("admin", "owner")
    after = RetentionSettings(keep_days, delete_after_days)
    after.check()
    declared = type_policy(principal.tenant_id, type)
    before = RetentionSettings(declared.keep_days, declared.delete_after_days)
    with connection.cursor() as cursor:
        cursor.execute(
            _SET,
            {
                "tenant": principal.tenant_id,
                "type": type,
                "keep": keep_days,
                "delete": delete_after_days,
                "writer": principal.writer,
            },
        )
    changed = apply_policy(
        principal.tenant_id, type=type, keep_days=keep_days, delete_after_days=delete_after_days
    )
    append_governance(
        principal=principal,
        payload={
            "type": "retention.type-set",
            "factType": type,
            "before": before.windows(),
            "after": after.windows(),
            "facts": changed,
        },
    )
    return type_policy(principal.tenant_id, type)
