"""Set how long a tenant keeps facts that say nothing of their own: its default windows, its grace, its sweep's switch.

Windows hold for the facts that are there too, and are set anew in the same transaction. What it would do is simulated first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.canonical import canonical
from memory.errors import BadInput
from memory.retention import MOST_DAYS, apply_policy


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """Windows are in days from a fact's first write; None: no such window. `grace_days`: from delete to sweep."""

    keep_days: int | None = None
    delete_after_days: int | None = None
    grace_days: int = 0
    sweep_is_off: bool = False

    def check(self) -> None:
        """Raise BadInput."""
        for name, days in (
            ("keepDays", self.keep_days),
            ("deleteAfterDays", self.delete_after_days),
        ):
            if days is not None and not 1 <= days <= MOST_DAYS:
                raise BadInput.at(f"/{name}", f"must be 1 to {MOST_DAYS}")
        if not 0 <= self.grace_days <= MOST_DAYS:
            raise BadInput.at("/graceDays", f"must be 0 to {MOST_DAYS}")
        keep, delete = self.keep_days, self.delete_after_days
        if keep is not None and delete is not None and delete < keep:
            raise BadInput.at("/deleteAfterDays", "must not be less than keepDays")

    def with_what_is_said(self, said: Mapping[str, Any]) -> "RetentionSettings":
        """These, but for what is said, as it is named on the wire; a window that is said to be None is none."""
        return RetentionSettings(
            keep_days=said.get("keepDays", self.keep_days),
            delete_after_days=said.get("deleteAfterDays", self.delete_after_days),
            grace_days=said.get("graceDays", self.grace_days),
            sweep_is_off=said.get("sweepIsOff", self.sweep_is_off),
        )

    def windows(self) -> dict[str, int]:
        """Its windows as they are named on the wire; one that is not set is left out."""
        said = {"keepDays": self.keep_days, "deleteAfterDays": self.delete_after_days}
        return {name: days for name, days in said.items() if days is not None}

    def wire(self) -> dict[str, Any]:
        return {
            **self.windows(),
            "graceDays": self.grace_days,
            "sweepIsOff": self.sweep_is_off,
        }


def retention_settings(tenant_id: UUID) -> RetentionSettings:
    """The tenant's settings as they stand."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (r ->> 'keepDays')::int, (r ->> 'deleteAfterDays')::int, coalesce((r ->> 'graceDays')::int, 0), "
            "coalesce((r ->> 'sweepIsOff')::bool, false) "
            "FROM (SELECT settings -> 'retention' AS r FROM tenant WHERE id = %s::uuid) t",
            [tenant_id],
        )
        return RetentionSettings(*cursor.fetchone())


def change_retention(*, principal: Principal, said: Mapping[str, Any]) -> RetentionSettings:
    """The settings, in force: what is left out stays as it is. Raises PermissionDenied, BadInput."""
    principal.needs_role("admin", "owner")
    with connection.cursor() as cursor:
        # Two changes at once: the second is of what the first made.
        cursor.execute(
            "SELECT FROM tenant WHERE id = %s::uuid FOR NO KEY UPDATE", [principal.tenant_id]
        )
    settings = retention_settings(principal.tenant_id).with_what_is_said(said)
    return set_retention(principal=principal, settings=settings)


def set_retention(*, principal: Principal, settings: RetentionSettings) -> RetentionSettings:
    """The settings, in force. Raises PermissionDenied, BadInput."""
    principal.needs_role("admin", "owner")
    settings.check()
    before = retention_settings(principal.tenant_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenant SET settings = jsonb_set(settings, '{retention}', %s::text::jsonb) WHERE id = %s::uuid",
            [canonical(settings.wire()), principal.tenant_id],
        )
    changed = 0
    windows = (settings.keep_days, settings.delete_after_days)
    if windows != (before.keep_days, before.delete_after_days):
        changed = apply_policy(
            principal.tenant_id, type=None, keep_days=windows[0], delete_after_days=windows[1]
        )
    append_governance(
        principal=principal,
        payload={
            "type": "retention.set",
            "before": before.wire(),
            "after": settings.wire(),
            "facts": changed,
        },
    )
    return settings
