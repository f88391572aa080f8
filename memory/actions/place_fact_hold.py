"""Place a legal hold on one fact, as `retention.legalHold` asks: one admin or app key, or one signed-in admin, and at once."""

import dataclasses
from datetime import UTC, datetime, timedelta

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import PermissionDenied
from memory.fact_shape import FactView
from memory.hold_items import insert_hold
from memory.holds import REVIEW_AFTER_DAYS, HoldScope, NewHold

_PLACERS = {"key": ("app", "admin"), "member": ("admin", "owner")}


def check_may_place_hold(principal: Principal) -> None:
    """Raise PermissionDenied unless the caller may place a hold on a fact that it may write."""
    if principal.role not in _PLACERS.get(principal.kind, ()):
        raise PermissionDenied(needs="an app key, an admin key or a signed-in admin")


def place_fact_hold(
    *, principal: Principal, fact: FactView, matter: str | None = None, reason: str | None = None
) -> FactView:
    """The fact, held. `fact` was read under the caller's guard; whether it may be written is checked by the caller.

    matter: 1 to 200 characters; reason: 1 to 2000. Raises PermissionDenied.
    """
    check_may_place_hold(principal)
    new = NewHold(
        matter=matter or "Held with the fact",
        reason=reason or "retention.legalHold was set on the fact",
        scope=HoldScope(fact_ids=(fact.id,)),
        review_on=(datetime.now(UTC) + timedelta(days=REVIEW_AFTER_DAYS)).date(),
    )
    insert_hold(principal, new)
    append_governance(
        principal=principal,
        payload={"type": "hold.placed", "holdId": str(new.id), "factIds": [fact.id]},
    )
    return dataclasses.replace(fact, is_held=True)
