"""Every statement of every route names its tenant, so that on Citus it goes to one shard: read from its plan.

The plan is a superuser's, whom row-level security adds no condition to: what it shows is what the statement itself says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from memory.scale.citus_plan import placement
from memory.tenancy import SETTING, current_tenant, tenant_context
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import EVERY_ABILITY, member_client
from tests.api.makers import PROJECT, USER, Place
from tests.api.rows import ROWS, Row
from tests.builders import ApiClient, make_tenant

pytestmark = pytest.mark.usefixtures("live_db")

ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]
_CONDITIONS = ("Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Merge Cond", "Join Filter")
_PLANNED = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True)
class Tenant:
    """Callers of three kinds: most routes let an admin's key through, the others an app's, or people alone."""

    id: UUID
    place: Place
    callers: Mapping[str, ApiClient]

    def caller(self, row: Row) -> ApiClient:
        return next(self.callers[role] for role in self.callers if role in row.statuses)


@pytest.fixture(scope="module")
def tenant(django_db_setup: None, django_db_blocker: Any) -> Tenant:
    with django_db_blocker.unblock():
        kit = make_tenant()
        admin = kit.client("admin", may=EVERY_ABILITY)
        callers = {
            "admin": admin,
            "app": kit.client("app", projects=[PROJECT], users=[USER]),
            "member:admin": member_client(kit, "admin"),
            "member:owner": member_client(kit, "owner"),
        }
        return Tenant(kit.id, Place(admin), callers)


@pytest.fixture(scope="module")
def distributed(django_db_setup: None, django_db_blocker: Any) -> frozenset[str]:
    with django_db_blocker.unblock():
        return frozenset(placement().distributed)


@pytest.fixture
def superuser(superuser_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(superuser_url, cursor_factory=psycopg.ClientCursor) as session:
        yield session
        session.rollback()


@contextmanager
def asked() -> Iterator[list[tuple[str, Any]]]:
    """What is asked of the database meanwhile, with its parameters."""
    found: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def statements_of(endpoint: Endpoint, tenant: Tenant) -> list[tuple[str, Any]]:
    """What one request that succeeds asks of the database."""
    row = ROWS[endpoint.id]
    ids = {**row.fixed, **row.ids_in(tenant.place)}
    body = row.smallest(tenant.place) if endpoint.takes_json else None
    with asked() as found:
        answer = tenant.caller(row).request(endpoint.method, row.url(endpoint, ids), body)
    assert answer.status_code < 300 or answer.status_code in row.statuses.values(), answer.content
    return [one for one in found if one[0].lstrip("( \n-").upper().startswith(_PLANNED)]


def nodes_of(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


def without_tenant(
    plan: Mapping[str, Any], distributed: frozenset[str], statement: str = ""
) -> list[str]:
    """The scans of distributed tables that no condition ties to a tenant.

    A subquery that is hashed shows no condition of its link to the outer query: there the statement's own words count.
    """
    nodes = list(nodes_of(plan))
    hashed = {
        below["Alias"]
        for node in nodes
        if node.get("Parent Relationship") == "SubPlan"
        for below in nodes_of(node)
        if "Alias" in below and f"{below['Alias']}.tenant_id =" in statement
    }
    said = " ".join(str(node[name]) for node in nodes for name in _CONDITIONS if name in node)
    found = []
    for node in nodes:
        if "Scan" not in node["Node Type"] or node.get("Relation Name") not in distributed:
            continue
        if node["Alias"] in hashed:
            continue
        own = " ".join(str(node[name]) for name in _CONDITIONS if name in node)
        below = " ".join(str(one.get("Index Cond", "")) for one in node.get("Plans", ()))
        if "tenant_id" not in own + below and f"{node['Alias']}.tenant_id" not in said:
            found.append(f"{node['Node Type']} of {node['Relation Name']} as {node['Alias']}")
    return found


def test_a_scan_without_a_tenant_is_seen(
    superuser: psycopg.Connection[Any], distributed: frozenset[str]
) -> None:
    def seen(statement: bytes) -> list[str]:
        (((plan,),),) = superuser.execute(b"EXPLAIN (FORMAT JSON) " + statement).fetchall()
        return without_tenant(plan["Plan"], distributed)

    assert seen(b"SELECT count(*) FROM log_entry WHERE kind = 'x'")
    assert seen(b"SELECT 1 FROM log_entry e JOIN run_head h ON h.run_id = e.run_id")
    assert not seen(b"SELECT 1 FROM log_entry WHERE tenant_id = gen_random_uuid()")


@pytest.mark.parametrize("endpoint", ALL, ids=lambda endpoint: endpoint.id)
def test_every_statement_of_a_route_names_its_tenant(
    endpoint: Endpoint,
    tenant: Tenant,
    superuser: psycopg.Connection[Any],
    distributed: frozenset[str],
) -> None:
    statements = statements_of(endpoint, tenant)
    assert statements
    # Small tables are read whole otherwise, with the condition in a place that says nothing.
    superuser.execute("SELECT set_config(%s, %s, true)", [SETTING, str(tenant.id)])
    for sql, params in statements:
        cursor = psycopg.ClientCursor(superuser)
        statement = cursor.mogrify(sql, params) if params else sql
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode())
        ((plans,),) = cursor.fetchall()
        for plan in plans:
            assert without_tenant(plan["Plan"], distributed, statement) == [], statement[:1500]


def test_nodes_are_told_the_tenant_by_a_literal_where_citus_is(
    tenant: Tenant, settings: Any
) -> None:
    """A set_config does not reach them. Nothing of it is left when the transaction ends."""
    settings.KINDMEM_CITUS = True
    told = [
        "SET LOCAL citus.propagate_set_commands TO 'local'",
        f"SET LOCAL {SETTING} TO '{tenant.id}'",
    ]
    for caller in tenant.callers.values():
        with asked() as found:
            assert caller.request("GET", "/v1/memory/facts").status_code == 200
        statements = [sql for sql, _ in found]
        assert [sql for sql in statements if sql in told] == told
        asked_of_tables = [n for n, sql in enumerate(statements) if "FROM fact" in sql]
        assert statements.index(told[1]) < asked_of_tables[0]
    with asked() as found, tenant_context(tenant.id):
        pass
    assert told == [sql for sql, _ in found if sql.startswith("SET LOCAL")]
    assert current_tenant() is None


def test_elsewhere_no_statement_is_spent_on_it(tenant: Tenant) -> None:
    with asked() as found:
        assert tenant.place.client.get("/v1/memory/facts").status_code == 200
    assert not [sql for sql, _ in found if "citus" in sql]
