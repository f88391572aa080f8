"""Reads back what an import left."""

from django.db import connection

from memory.access import Principal, system_principal
from memory.log_entry import StoredEntry
from memory.queries.run_log import run_heads, run_log
from memory.tenancy import tenant_context
from tests.builders import TenantKit


def operator_of(kit: TenantKit) -> Principal:
    return system_principal(kit.id, kit.slug)


def entries_of(kit: TenantKit, run_id: str) -> list[StoredEntry]:
    with tenant_context(kit.id):
        return run_log(operator_of(kit), run_id, limit=10_000)


def runs_of(kit: TenantKit) -> dict[str, int]:
    """Entries by run, the server's own runs left out."""
    with tenant_context(kit.id):
        heads = run_heads(operator_of(kit), limit=1_000)
    return {
        head["runId"]: head["entries"] for head in heads if not head["runId"].startswith("kindmem.")
    }


def counts_in(kit: TenantKit) -> dict[str, int]:
    with tenant_context(kit.id), connection.cursor() as cursor:
        found = {}
        for table in ("run_head", "log_entry", "fact", "fact_revision", "fact_cause"):
            cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s::uuid", [kit.id])
            found[table] = cursor.fetchone()[0]
    return found
