"""Turn erasable payloads on or off for a tenant: entries from now on are hashed by version 2 or 1; what is there stays."""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput

_SET = """
UPDATE tenant SET hash_version = %(version)s::smallint
WHERE id = %(tenant)s::uuid AND hash_version <> %(version)s::smallint
"""


def set_hash_version(*, principal: Principal, hash_version: int) -> bool:
    """Whether that changed anything. In the caller's transaction; the next seal adds a leaf that says so.

    Raises PermissionDenied, BadInput.
    """
    principal.needs_role("admin", "owner")
    if hash_version not in (1, 2):
        raise BadInput.at("/hashVersion", "must be 1 or 2")
    with connection.cursor() as cursor:
        cursor.execute(_SET, {"tenant": principal.tenant_id, "version": hash_version})
        is_changed = cursor.rowcount > 0
    if is_changed:
        append_governance(
            principal=principal,
            payload={"type": "log.hash-version-changed", "hashVersion": hash_version},
        )
    return is_changed
