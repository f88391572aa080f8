"""The product behind other programs' interfaces. `audit_kit_store` is the one line that a harness needs."""

import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.adapters.audit_kit import AuditKitStore


def audit_kit_store(
    policy_source: Callable[[str, dict[str, Any]], Any] | None = None,
    *,
    now: datetime | None = None,
) -> "AuditKitStore":
    """A store of the agent memory audit kit's six methods, in an empty tenant of its own; works outside Django, too.

    The database is the one that the settings name, and has to be running.
    """
    import django
    from django.apps import apps

    if not apps.ready:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")
        django.setup()
    from memory.adapters.audit_kit import AuditKitStore  # models need the apps, which are ready now

    return AuditKitStore(policy_source=policy_source, now=now)
