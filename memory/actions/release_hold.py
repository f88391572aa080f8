"""Release a legal hold: one signed-in admin asks with a reason, a second approves; each has just re-authenticated.

No API key takes part. A role granted within the tenant's cooling-off time doesn't count, so nobody appoints their own second.
The hold's row stays for ever; what it alone kept is free in the same transaction, and sealed copies go.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.replay_erasures import go_on_with_erasures
from memory.errors import BadInput, PermissionDenied, ReleaseRefused
from memory.hold_items import let_go
from memory.holds import Hold, find_hold
from memory.ids import new_id
from memory.ledgers import write_ledger_after_commit

REAUTHENTICATED_WITHIN = timedelta(minutes=10)
COOLING_OFF_HOURS = 24
# A shorter time counts only once the longer one before it is over: nobody shortens it and has their own second a moment later.
_COOLING_OFF = """greatest(
  coalesce((t.settings -> 'holds' ->> 'coolingOffHours')::int, %(hours)s::int),
  CASE WHEN (t.settings -> 'holds' ->> 'changedAt')::timestamptz
            + (t.settings -> 'holds' ->> 'earlierHours')::int * interval '1 hour' > clock_timestamp()
       THEN (t.settings -> 'holds' ->> 'earlierHours')::int ELSE 0 END)"""

_LOCK = """
SELECT h.released_at IS NOT NULL FROM legal_hold h WHERE h.tenant_id = %(tenant)s::uuid AND h.id = %(hold)s::uuid FOR UPDATE
"""
_OPEN = """
SELECT id, requested_by FROM hold_release
WHERE tenant_id = %(tenant)s::uuid AND hold_id = %(hold)s::uuid AND decision IS NULL FOR UPDATE
"""
_STANDING = f"""
SELECT m.role_granted_at <= clock_timestamp() - {_COOLING_OFF} * interval '1 hour',
       clock_timestamp()
FROM member m JOIN tenant t ON t.id = m.tenant_id
WHERE m.tenant_id = %(tenant)s::uuid AND m.user_id = %(user)s::int AND m.left_at IS NULL AND m.role IN ('admin', 'owner')
"""
_DECIDE = """
UPDATE hold_release SET decision = %(decision)s::text, decided_by = %(by)s::text, decided_at = clock_timestamp()
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""


def cooling_off_hours(tenant_id: UUID) -> int:
    """For how long a role must have been granted now, in hours."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COOLING_OFF} FROM tenant t WHERE t.id = %(tenant)s::uuid",
            {"tenant": tenant_id, "hours": COOLING_OFF_HOURS},
        )
        return int(cursor.fetchone()[0])


def _check_governs(principal: Principal) -> None:
    """Raise PermissionDenied for whoever is no signed-in admin."""
    if principal.kind != "member" or principal.role not in ("admin", "owner"):
        raise PermissionDenied(needs="a signed-in admin")


def _check_may_release(principal: Principal, reauthenticated_at: datetime | None) -> None:
    """Raise ReleaseRefused for an admin who may not yet."""
    with connection.cursor() as cursor:
        cursor.execute(
            _STANDING,
            {"tenant": principal.tenant_id, "user": principal.id, "hours": COOLING_OFF_HOURS},
        )
        row = cursor.fetchone()
    if row is None:
        raise PermissionDenied(needs="a signed-in admin")
    is_long_enough, now = row
    if (
        reauthenticated_at is None
        or not now - REAUTHENTICATED_WITHIN <= reauthenticated_at <= now + timedelta(minutes=1)
    ):
        raise ReleaseRefused(reason="reauthenticate")
    if not is_long_enough:
        raise ReleaseRefused(reason="cooling-off")


def _lock(principal: Principal, hold_id: str) -> tuple[Hold, tuple[UUID, str] | None]:
    """The hold, locked, and its open request. Raises HoldNotFound, ReleaseRefused."""
    hold = find_hold(principal.tenant_id, hold_id)
    parameters = {"tenant": principal.tenant_id, "hold": hold.id}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, parameters)
        (is_released,) = cursor.fetchone()
        if is_released:
            raise ReleaseRefused(reason="released")
        cursor.execute(_OPEN, parameters)
        return hold, cursor.fetchone()


def request_release(
    *, principal: Principal, hold_id: str, reason: str, reauthenticated_at: datetime | None
) -> Hold:
    """The hold, with a request that another admin decides. Nothing is free yet.

    Raises HoldNotFound, PermissionDenied, ReleaseRefused, BadInput.
    """
    _check_governs(principal)
    find_hold(principal.tenant_id, hold_id)
    _check_may_release(principal, reauthenticated_at)
    if not 1 <= len(reason.strip()) <= 2000:
        raise BadInput.at("/reason", "must have 1 to 2000 characters")
    hold, request = _lock(principal, hold_id)
    if request is not None:
        raise ReleaseRefused(reason="already-requested")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO hold_release (tenant_id, id, hold_id, reason, requested_by) "
            "VALUES (%s::uuid, %s::uuid, %s::uuid, %s::text, %s::text)",
            [principal.tenant_id, new_id(), hold.id, reason, principal.writer],
        )
    append_governance(
        principal=principal, payload={"type": "hold.release-requested", "holdId": str(hold.id)}
    )
    return find_hold(principal.tenant_id, hold_id)


def approve_release(
    *, principal: Principal, hold_id: str, reauthenticated_at: datetime | None
) -> Hold:
    """The hold, released. Raises HoldNotFound, PermissionDenied, ReleaseRefused."""
    _check_governs(principal)
    find_hold(principal.tenant_id, hold_id)
    _check_may_release(principal, reauthenticated_at)
    hold, request = _lock(principal, hold_id)
    if request is None:
        raise ReleaseRefused(reason="not-requested")
    release_id, requested_by = request
    if requested_by == principal.writer:
        # courtesy; hold_release_takes_two decides
        raise ReleaseRefused(reason="same-person")
    _check_still_counts(principal, requested_by)
    with connection.cursor() as cursor:
        cursor.execute(
            _DECIDE,
            {
                "tenant": principal.tenant_id,
                "id": release_id,
                "decision": "approved",
                "by": principal.writer,
            },
        )
        cursor.execute(
            "UPDATE legal_hold SET released_at = clock_timestamp(), released_because = %s::text "
            "WHERE tenant_id = %s::uuid AND id = %s::uuid",
            [hold.release_reason, principal.tenant_id, hold.id],
        )
    freed = let_go(principal.tenant_id, hold.id)
    go_on_with_erasures(principal.tenant_id)
    write_ledger_after_commit(principal.tenant_id)
    append_governance(
        principal=principal,
        payload={
            "type": "hold.released",
            "holdId": str(hold.id),
            "requestedBy": requested_by,
            "approvedBy": principal.writer,
            "counts": dict(freed),
        },
    )
    return find_hold(principal.tenant_id, hold_id)


def withdraw_release(*, principal: Principal, hold_id: str) -> Hold:
    """The hold, kept: any signed-in admin may end a request. Raises HoldNotFound, PermissionDenied, ReleaseRefused."""
    _check_governs(principal)
    hold, request = _lock(principal, hold_id)
    if request is None:
        raise ReleaseRefused(reason="not-requested")
    with connection.cursor() as cursor:
        cursor.execute(
            _DECIDE,
            {
                "tenant": principal.tenant_id,
                "id": request[0],
                "decision": "withdrawn",
                "by": principal.writer,
            },
        )
    append_governance(
        principal=principal, payload={"type": "hold.release-withdrawn", "holdId": str(hold.id)}
    )
    return find_hold(principal.tenant_id, hold_id)


def _check_still_counts(principal: Principal, requested_by: str) -> None:
    """Who asked is still an admin, and for long enough. Raises ReleaseRefused."""
    with connection.cursor() as cursor:
        cursor.execute(
            _STANDING,
            {
                "tenant": principal.tenant_id,
                "user": requested_by.removeprefix("user:"),
                "hours": COOLING_OFF_HOURS,
            },
        )
        row = cursor.fetchone()
    if row is None:
        raise ReleaseRefused(reason="not-requested")
    if not row[0]:
        raise ReleaseRefused(reason="cooling-off")
