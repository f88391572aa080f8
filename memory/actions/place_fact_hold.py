"""Place a legal hold on one fact: the hold, the fact it keeps, the count that every destructive path asks, and its log entry.

Placing takes one admin or app key or one signed-in admin, and is at once. Nothing here releases.
"""

import dataclasses
from datetime import UTC, datetime, timedelta

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.canonical import canonical
from memory.errors import PermissionDenied
from memory.fact_shape import FactView
from memory.ids import new_id

REVIEW_AFTER_DAYS = 180
_PLACERS = {"key": ("app", "admin"), "member": ("admin", "owner")}

# The count is raised before the match is inserted: whoever destroys locks the head and asks the count.
_PLACE = """
WITH hold AS (
  INSERT INTO legal_hold (tenant_id, id, matter, reason, scope_text, placed_by, review_on)
  VALUES (%(tenant)s::uuid, %(hold)s::uuid, %(matter)s::text, %(reason)s::text, %(scope)s::text, %(writer)s::text,
          %(review_on)s::date)
), kept AS (
  UPDATE fact SET hold_count = hold_count + 1 WHERE tenant_id = %(tenant)s::uuid AND id = %(fact)s::text
  RETURNING id
)
INSERT INTO fact_hold (tenant_id, hold_id, fact_id) SELECT %(tenant)s::uuid, %(hold)s::uuid, id FROM kept
"""


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
    hold_id = new_id()
    with connection.cursor() as cursor:
        cursor.execute(
            _PLACE,
            {
                "tenant": principal.tenant_id,
                "hold": hold_id,
                "fact": fact.id,
                "matter": matter or "Held with the fact",
                "reason": reason or "retention.legalHold was set on the fact",
                "scope": canonical({"facts": [fact.id]}),
                "writer": principal.writer,
                "review_on": (datetime.now(UTC) + timedelta(days=REVIEW_AFTER_DAYS)).date(),
            },
        )
    append_governance(
        principal=principal,
        payload={"type": "hold.placed", "holdId": str(hold_id), "factIds": [fact.id]},
    )
    return dataclasses.replace(fact, is_held=True)
