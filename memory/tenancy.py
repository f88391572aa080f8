"""The only place that sets the tenant of a transaction.

The setting is transaction-local, so a pooled connection never carries it on. Inside an outer transaction it is put back on
leaving; another tenant inside is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from memory.errors import NotFound

SETTING = "kindmem.tenant_id"
SET_TENANT = f"SELECT set_config('{SETTING}', %s::text, true)"


def set_tenant_on_nodes(tenant_id: UUID | str) -> None:
    """Where the tables are spread by Citus, tell its nodes the tenant of the transaction; a literal alone reaches them.

    An empty text is no tenant. Elsewhere this does nothing.
    """
    if not settings.KINDMEM_CITUS:
        return
    literal = str(UUID(str(tenant_id))) if tenant_id else ""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL citus.propagate_set_commands TO 'local'")
        cursor.execute(f"SET LOCAL {SETTING} TO '{literal}'")


def current_tenant() -> UUID | None:
    """The tenant of the running transaction, or None."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT nullif(current_setting('{SETTING}', true), '')")
        row = cursor.fetchone()
    return UUID(row[0]) if row and row[0] else None


@contextmanager
def tenant_context(tenant_id: UUID, *, durable: bool = False) -> Iterator[None]:
    """A transaction of one tenant. `durable` refuses to run inside another transaction.

    Raises RuntimeError when another tenant's transaction is running.
    """
    outer = connection.in_atomic_block
    with transaction.atomic(durable=durable):
        before = current_tenant() if outer else None
        if before is not None and before != tenant_id:
            raise RuntimeError("a transaction belongs to one tenant")
        with connection.cursor() as cursor:
            cursor.execute(SET_TENANT, [str(tenant_id)])
        set_tenant_on_nodes(tenant_id)
        yield
        if outer and before is None:
            with connection.cursor() as cursor:
                cursor.execute(SET_TENANT, [""])
            set_tenant_on_nodes("")


def tenant_id_of(slug: str) -> UUID:
    """The id of the tenant with this slug. Raises NotFound."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id_of(%s)", [slug])
        row = cursor.fetchone()
    if row is None or row[0] is None:
        raise NotFound
    return UUID(str(row[0]))


def all_tenants() -> list[tuple[UUID, str]]:
    """Every open tenant as (id, slug), by slug; for the worker and operator commands."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, slug FROM tenant_ids()")
        return [(UUID(str(row[0])), row[1]) for row in cursor.fetchall()]
