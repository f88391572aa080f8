"""Stop all sweeping of a workspace at once, or let it go on. A running sweep ends its batch and takes no other."""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance

_SWITCH = """
UPDATE tenant SET settings = jsonb_set(
  jsonb_set(settings, '{retention}', coalesce(settings -> 'retention', '{"graceDays": 0}')),
  '{retention,sweepIsOff}', to_jsonb(%(off)s::bool))
WHERE id = %(tenant)s::uuid AND coalesce((settings -> 'retention' ->> 'sweepIsOff')::bool, false) <> %(off)s::bool
"""


def switch_sweeping(*, principal: Principal, is_off: bool) -> bool:
    """Whether that changed anything; logged when it did. Raises PermissionDenied."""
    principal.needs_role("owner", "admin")
    with connection.cursor() as cursor:
        cursor.execute(_SWITCH, {"tenant": principal.tenant_id, "off": is_off})
        if cursor.rowcount == 0:
            return False
    append_governance(
        principal=principal,
        payload={"type": "sweeping.stopped" if is_off else "sweeping.resumed"},
    )
    return True
