"""The wall is what keeps tenants apart, table by table: with one policy gone, the checks of this file are red.

Each try takes the wall of one table down in a transaction that is rolled back, as somebody above it, then looks as the product's
own role does.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.api.makers import Place
from tests.api.rows import ROWS
from tests.builders import TenantKit, make_tenant
from tests.db import test_catalog

_FILLED = (
    "api_key",
    "correction_route",
    "fact",
    "fact_content",
    "fact_revision",
    "fact_type",
    "idempotency_key",
    "log_entry",
    "memory_record",
    "policy_source",
    "posting",
    "receipt",
    "record_value",
    "run_head",
)
"""Tables that both tenants have rows in. The catalog test holds the others to the same policy."""


@pytest.fixture(scope="module")
def tenants(django_db_setup: None, django_db_blocker: Any) -> tuple[TenantKit, TenantKit]:
    """Two tenants that each have one of everything."""
    with django_db_blocker.unblock():
        made = make_tenant(), make_tenant()
        for kit in made:
            client = kit.client("admin", may=("read", "write", "append", "emit", "tenant-wide"))
            place = Place(client)
            for make in dict.fromkeys(make for row in ROWS.values() for make in row.ids.values()):
                make(place)
            client.put("/v1/memory/types/note", {"keyword": True})
            client.post(
                "/v1/memory/facts",
                {"type": "note", "scope": place.scope(), "content": "some words"},
                **{"Idempotency-Key": "wall"},
            )
        return made


@pytest.fixture
def above(superuser_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's transaction, rolled back at the end."""
    with psycopg.connect(superuser_url) as connection:
        yield connection
        connection.rollback()


def rows_seen(connection: psycopg.Connection[Any], tenant: UUID, table: str) -> tuple[int, int]:
    """How many rows of the tenant's own and of others the product's role sees in this tenant's transaction."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL ROLE kindmem_app")
        connection.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(tenant)])
        found = connection.execute(
            f"SELECT count(*) FILTER (WHERE tenant_id = %(tenant)s), "
            f"count(*) FILTER (WHERE tenant_id <> %(tenant)s) FROM {table}",
            {"tenant": tenant},
        ).fetchone()
        assert found is not None
        return found[0], found[1]


def assert_walled(connection: psycopg.Connection[Any], tenant: UUID, table: str) -> None:
    own, others = rows_seen(connection, tenant, table)
    assert own > 0
    assert others == 0


def test_the_product_sees_its_own_rows_and_no_others_in_every_table(
    tenants: tuple[TenantKit, TenantKit], above: psycopg.Connection[Any], db: None
) -> None:
    for kit in tenants:
        for table in _FILLED:
            assert_walled(above, kit.id, table)
        for table in test_catalog.tenant_tables():
            assert rows_seen(above, kit.id, table)[1] == 0, table


_TAKEN_DOWN = {
    "the policy lets all through": "ALTER POLICY tenant_isolation ON {table} USING (true)",
    "the policy is dropped and row security is off": (
        "DROP POLICY tenant_isolation ON {table}; ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"
    ),
    "the policy is dropped": "DROP POLICY tenant_isolation ON {table}",
}


@pytest.mark.parametrize("how", _TAKEN_DOWN)
@pytest.mark.parametrize("table", _FILLED)
def test_without_the_policy_of_one_table_the_check_is_red(
    tenants: tuple[TenantKit, TenantKit], above: psycopg.Connection[Any], table: str, how: str
) -> None:
    above.execute(_TAKEN_DOWN[how].format(table=table))
    with pytest.raises(AssertionError):
        assert_walled(above, tenants[0].id, table)


def test_without_one_policy_the_catalog_check_is_red(
    above: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_catalog, "rows", lambda query: above.execute(query).fetchall())
    check = test_catalog.test_every_tenant_table_has_a_tenant_and_forced_row_level_security_with_its_one_policy
    check()
    for table in sorted(test_catalog.tenant_tables()):
        for broken in (
            f"DROP POLICY tenant_isolation ON {table}",
            f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY another ON {table} TO kindmem_app USING (true)",
        ):
            with above.transaction(force_rollback=True):
                above.execute(broken)
                with pytest.raises(AssertionError):
                    check()


def test_without_a_tenant_the_product_sees_an_error_and_not_nothing(
    above: psycopg.Connection[Any], db: None
) -> None:
    for table in sorted(test_catalog.tenant_tables()):
        for value in (None, ""):
            with above.transaction(force_rollback=True):
                above.execute("SET LOCAL ROLE kindmem_app")
                if value is not None:
                    above.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [value])
                with pytest.raises((psycopg.errors.UndefinedObject, psycopg.errors.DataError)):
                    above.execute(f"SELECT count(*) FROM {table}")
