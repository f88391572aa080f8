"""Choose how a tenant's log names people: by their ids, or by keyed hashes (`pseudonymiseLogIds`). What is there stays."""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance

_SET = """
UPDATE tenant SET log_ids = CASE WHEN %(on)s::bool THEN 'pseudonyms' ELSE 'were-pseudonyms' END
WHERE id = %(tenant)s::uuid AND (log_ids = 'pseudonyms') <> %(on)s::bool
"""


def pseudonymises_log_ids(principal: Principal) -> bool:
    """Whether new entries name people by keyed hashes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT log_ids = 'pseudonyms' FROM tenant WHERE id = %s::uuid", [principal.tenant_id]
        )
        return bool(cursor.fetchone()[0])


def set_log_ids(*, principal: Principal, pseudonymise: bool) -> bool:
    """Whether that changed anything. In the caller's transaction; for entries of requests that begin after it.

    Raises PermissionDenied.
    """
    principal.needs_role("admin", "owner")
    with connection.cursor() as cursor:
        cursor.execute(_SET, {"tenant": principal.tenant_id, "on": pseudonymise})
        is_changed = cursor.rowcount > 0
    if is_changed:
        append_governance(
            principal=principal,
            payload={"type": "log.ids-changed", "pseudonymiseLogIds": pseudonymise},
        )
    return is_changed
