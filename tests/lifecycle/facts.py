"""Facts in the states that a sweep meets, made through the product and then aged by their tenant's own connection."""

from typing import Any

from django.db import connection

from memory.actions.delete_fact import delete_fact
from memory.actions.write_fact import write_fact
from memory.fact_shape import FactDraft, FactView
from memory.tenancy import tenant_context
from tests.builders import TenantKit

SCOPE = {"projectId": "p1"}


def write(kit: TenantKit, *, content: Any = "x", type: str = "note", **more: Any) -> FactView:
    """A fact that an app wrote into project p1."""
    with tenant_context(kit.id):
        return write_fact(
            principal=kit.principal("app", projects=["p1"]),
            draft=FactDraft(**{"type": type, "scope": SCOPE, "content": content, **more}),
        )


def delete(kit: TenantKit, fact_id: str) -> None:
    with tenant_context(kit.id):
        delete_fact(principal=kit.principal("app", projects=["p1"]), fact_id=fact_id)


def age(kit: TenantKit, *fact_ids: str) -> None:
    """Let these facts have expired an hour ago, as if their window had ended."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE fact SET expires_at = now() - interval '1 hour' WHERE tenant_id = %s::uuid AND id = ANY(%s::text[])",
            [kit.id, list(fact_ids)],
        )


def value(kit: TenantKit, query: str, *parameters: Any) -> Any:
    """The one value of a query in the tenant."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(query, list(parameters))
        row = cursor.fetchone()
        return row[0] if row else None


def count(kit: TenantKit, table: str, condition: str = "true") -> int:
    return int(value(kit, f"SELECT count(*) FROM {table} WHERE {condition}"))


def written_before(kit: TenantKit, *ids: str, type: str = "note", hours: int = 2) -> None:
    """Facts as the product wrote them some hours ago, without their index: what is raced for is the head and its content."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "WITH head AS (INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)"
            " SELECT %(tenant)s::uuid, i, %(type)s::text, '{\"projectId\":\"p1\"}', 1, now() - %(hours)s::int * interval '1 hour'"
            " FROM unnest(%(ids)s::text[]) i RETURNING id),"
            " revision AS (INSERT INTO fact_revision (tenant_id, fact_id, version, revision_id, recorded_at, content_hash,"
            " size_bytes, trust, attributed_kind, attributed_id, written_by, written_by_role)"
            " SELECT %(tenant)s::uuid, id, 1, id, now() - %(hours)s::int * interval '1 hour', sha256('1'), 1, 'asserted',"
            " 'service', 'k', 'service:k', 'app' FROM head RETURNING fact_id)"
            " INSERT INTO fact_content (tenant_id, fact_id, version, content_text)"
            " SELECT %(tenant)s::uuid, fact_id, 1, '1' FROM revision",
            {"tenant": kit.id, "ids": list(ids), "type": type, "hours": hours},
        )
