"""Review a legal hold: an admin looked at it and says that it stays, until the next review. Nothing else of it changes."""

from datetime import date

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput, ReleaseRefused
from memory.holds import Hold, find_hold
from memory.records import clock


def review_hold(*, principal: Principal, hold_id: str, review_on: date) -> Hold:
    """The hold, to be looked at again on that day. Raises PermissionDenied, HoldNotFound, BadInput, ReleaseRefused."""
    principal.needs_role("admin", "owner")
    hold = find_hold(principal.tenant_id, hold_id)
    if hold.released_at is not None:
        raise ReleaseRefused(reason="released")
    if review_on <= clock.day_of(clock.now(), principal.time_zone):
        raise BadInput.at("/reviewOn", "must be in the future")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE legal_hold SET review_on = %s::date WHERE tenant_id = %s::uuid AND id = %s::uuid AND released_at IS NULL",
            [review_on, principal.tenant_id, hold.id],
        )
        if cursor.rowcount == 0:
            raise ReleaseRefused(reason="released")
    append_governance(
        principal=principal,
        payload={
            "type": "hold.reviewed",
            "holdId": str(hold.id),
            "before": hold.review_on.isoformat(),
            "after": review_on.isoformat(),
        },
    )
    return find_hold(principal.tenant_id, hold_id)
