"""What the tests of seals share: runs appended through the product, sealing, verifying, and an attacker's hands."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_log_entries
from memory.actions.seal_tenant import Sealed, seal_tenant
from memory.actions.verify_run import verify_run
from memory.ids import new_text_id
from memory.integrity.states import ChainReport
from memory.log_entry import ABSENT, NewEntry, StoredEntry
from memory.tenancy import tenant_context
from tests.builders import TenantKit

RUN = "run-1"
NO_PAYLOAD_AT = 5
CAUSED_AT = 4


def writer(tenant: TenantKit, hash_version: int = 1) -> Principal:
    return replace(tenant.principal("agent", everything=True), hash_version=hash_version)


def fill(
    tenant: TenantKit,
    count: int = 8,
    run: str = RUN,
    *,
    by: Principal | None = None,
    text: str = "caf\u00e9",
) -> list[StoredEntry]:
    """Entries with and without payload, actor and cause, appended through the product."""
    principal = by or writer(tenant)
    ids = [new_text_id() for _ in range(count)]
    entries = [
        NewEntry(
            kind="tool-call" if n % 2 else "user-message",
            scope={"tenantId": tenant.slug, "projectId": "p1"},
            id=ids[n],
            actor="agent:booker" if n % 3 else None,
            payload=ABSENT if n == NO_PAYLOAD_AT else {"n": n, "text": text},
            caused_by=ids[0] if n == CAUSED_AT else None,
        )
        for n in range(count)
    ]
    with tenant_context(tenant.id):
        return append_log_entries(principal=principal, run_id=run, entries=entries)


def seal(tenant: TenantKit) -> Sealed:
    return seal_tenant(tenant_id=tenant.id, tenant_slug=tenant.slug)


def verified(
    tenant: TenantKit, run: str = RUN, *, in_sql: bool = False, **options: Any
) -> ChainReport:
    with tenant_context(tenant.id):
        return verify_run(
            principal=tenant.principal("auditor"), run_id=run, in_sql=in_sql, **options
        )


def verified_twice(tenant: TenantKit, run: str = RUN, **options: Any) -> ChainReport:
    """By both verifiers, which must agree."""
    by_python = verified(tenant, run, **options)
    by_sql = verified(tenant, run, in_sql=True, **options)
    assert by_python.first_bad == by_sql.first_bad
    assert by_python.state is by_sql.state
    if by_python.first_bad is None:
        assert by_python == by_sql
    return by_python


@contextmanager
def attacker(superuser_url: str) -> Iterator[psycopg.Connection]:
    """Full write access to the database: past triggers, policies and foreign keys."""
    with psycopg.connect(superuser_url) as session:
        session.execute("SET session_replication_role = replica")
        yield session


def leaves(tenant: TenantKit) -> list[dict[str, Any]]:
    """The leaves that the tenant's log of seals holds, parsed."""
    with tenant_context(tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT leaf_text FROM seal_leaf WHERE tenant_id = %s::uuid ORDER BY leaf_index",
            [tenant.id],
        )
        return [json.loads(text) for (text,) in cursor.fetchall()]
