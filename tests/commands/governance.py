"""Reads the tenant's governance log as its payloads, oldest first."""

import json
from typing import Any

from memory.access import system_principal
from memory.errors import LogNotFound
from memory.models.log import GOVERNANCE_RUN
from memory.queries.run_log import run_log
from memory.tenancy import tenant_context
from tests.builders import TenantKit


def governance(kit: TenantKit) -> list[dict[str, Any]]:
    with tenant_context(kit.id):
        try:
            entries = run_log(system_principal(kit.id, kit.slug), GOVERNANCE_RUN, limit=200)
        except LogNotFound:
            return []
    return [json.loads(entry.payload_text or "null") for entry in entries]
