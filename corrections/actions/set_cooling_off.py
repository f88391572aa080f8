"""For how long somebody must have been an admin before they count for releasing a hold; a shorter time waits for the earlier."""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.release_hold import COOLING_OFF_HOURS, cooling_off_hours
from memory.errors import BadInput

HOURS_MAX = 720

_SET = """
UPDATE tenant SET settings = jsonb_set(settings, '{holds}', coalesce(settings -> 'holds', '{}') || jsonb_build_object(
  'coolingOffHours', %(hours)s::int, 'earlierHours', %(earlier)s::int, 'changedAt', clock_timestamp()))
WHERE id = %(tenant)s::uuid
"""


def set_hours_of(principal: Principal) -> int:
    """The time as it was set; while a longer one before it runs out, that one counts."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce((settings -> 'holds' ->> 'coolingOffHours')::int, %s::int) FROM tenant WHERE id = %s::uuid",
            [COOLING_OFF_HOURS, principal.tenant_id],
        )
        return int(cursor.fetchone()[0])


def set_cooling_off(*, principal: Principal, hours: int) -> None:
    """Logged when it changes. Raises PermissionDenied, BadInput."""
    principal.needs_role("owner", "admin")
    if not 0 <= hours <= HOURS_MAX:
        raise BadInput.at("/coolingOffHours", f"must be 0 to {HOURS_MAX}")
    before = set_hours_of(principal)
    if before == hours:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _SET,
            {
                "tenant": principal.tenant_id,
                "hours": hours,
                "earlier": cooling_off_hours(principal.tenant_id),
            },
        )
    append_governance(
        principal=principal,
        payload={"type": "cooling-off.set", "beforeHours": before, "afterHours": hours},
    )
