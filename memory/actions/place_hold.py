"""Place a legal hold: at once, by one admin. All it names is counted in the same transaction, and logged.

A hold on a single fact (`retention.legalHold`) is `place_fact_hold`, which an app key may ask for too. Nothing here releases.
"""

from datetime import date

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput
from memory.hold_items import insert_hold
from memory.holds import Hold, HoldScope, NewHold, find_hold
from memory.records import clock


def place_hold(
    *, principal: Principal, matter: str, reason: str, scope: HoldScope, review_on: date
) -> Hold:
    """The hold as placed. Raises PermissionDenied, BadInput."""
    principal.needs_role("admin", "owner")
    if review_on < clock.now().date():
        raise BadInput.at("/reviewOn", "must not be in the past")
    new = NewHold(matter=matter, reason=reason, scope=scope, review_on=review_on)
    facts, records = insert_hold(principal, new)
    append_governance(
        principal=principal,
        payload={
            "type": "hold.placed",
            "holdId": str(new.id),
            "facts": facts,
            "records": records,
            "futureItems": scope.covers_future,
        },
    )
    return find_hold(principal.tenant_id, str(new.id))
