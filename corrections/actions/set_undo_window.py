"""How long people of a workspace can undo what they did on their pages; receipts that are there keep their deadline."""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput

HOURS_MAX = 720


def undo_hours_of(principal: Principal) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT undo_hours FROM tenant WHERE id = %s::uuid", [principal.tenant_id])
        return int(cursor.fetchone()[0])


def set_undo_window(*, principal: Principal, hours: int) -> None:
    """0 hours: what is done can't be undone. Logged when it changes. Raises PermissionDenied, BadInput."""
    principal.needs_role("owner", "admin")
    if not 0 <= hours <= HOURS_MAX:
        raise BadInput.at("/undoHours", f"must be 0 to {HOURS_MAX}")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT undo_hours FROM tenant WHERE id = %s::uuid FOR UPDATE", [principal.tenant_id]
        )
        before = int(cursor.fetchone()[0])
        if before == hours:
            return
        cursor.execute(
            "UPDATE tenant SET undo_hours = %s::int WHERE id = %s::uuid",
            [hours, principal.tenant_id],
        )
    append_governance(
        principal=principal,
        payload={"type": "undo-window.set", "beforeHours": before, "afterHours": hours},
    )
