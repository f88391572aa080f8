"""Keep how one member wants to see one tenant's pages."""

import json

from django.db import connection

from memory.access import Principal
from memory.errors import PermissionDenied


def keep_settings(
    *, principal: Principal, time_zone: str, shortcuts: bool, language: str = ""
) -> None:
    """time_zone: an IANA name, or empty for the tenant's. language: a code, or empty for the installation's.

    Raises PermissionDenied for anybody but a member.
    """
    if principal.kind != "member":
        raise PermissionDenied(needs="an account")
    kept = {
        "timeZone": time_zone or None,
        "shortcuts": shortcuts,
        "language": language or None,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE member SET settings = settings || %(settings)s::jsonb "
            "WHERE tenant_id = %(tenant)s::uuid AND user_id = %(user)s::int",
            {
                "settings": json.dumps(kept),
                "tenant": principal.tenant_id,
                "user": int(principal.id),
            },
        )
