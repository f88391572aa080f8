"""Who a writer is: `user:<id>` as a member's address, `service:<prefix>` as a key's name; anything else stays as it is."""

from collections.abc import Iterable

from django.db import connection

from memory.access import Principal

_NAMES = """
SELECT 'user:' || m.user_id, u.email
FROM member m JOIN auth_user u ON u.id = m.user_id
WHERE m.tenant_id = %(tenant)s::uuid AND 'user:' || m.user_id = ANY(%(writers)s::text[])
UNION ALL
SELECT 'service:' || k.prefix, k.name FROM api_key k
WHERE k.tenant_id = %(tenant)s::uuid AND 'service:' || k.prefix = ANY(%(writers)s::text[])
"""


def names_of(principal: Principal, writers: Iterable[str | None]) -> dict[str, str]:
    """A name for each known writer, one statement for all."""
    wanted = sorted({writer for writer in writers if writer})
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, {"tenant": principal.tenant_id, "writers": wanted})
        return dict(cursor.fetchall())


def key_names(principal: Principal) -> list[tuple[str, str]]:
    """Prefix and name of the tenant's newest keys, revoked ones too."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT prefix, name || ' (' || prefix || ', ' || role || ')' FROM api_key "
            "WHERE tenant_id = %(tenant)s::uuid ORDER BY created_at DESC, prefix LIMIT 500",
            {"tenant": principal.tenant_id},
        )
        return cursor.fetchall()
