"""What changes rows is what should: not asking for ids that nobody has, and nothing that a key does which may only read."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from memory.tenancy import tenant_id_of
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World, checksums, like
from tests.api.makers import PROJECT, USER
from tests.api.rows import ROWS
from tests.builders import ApiClient, TenantKit

pytestmark = pytest.mark.usefixtures("live_db")

_ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]
_WITH_ID = [one for one in _ALL if ROWS[one.id].ids and not ROWS[one.id].makes]
# When a key was last used is noted for every request.
_ALWAYS = frozenset({"api_key"})
LOGGED_READS = {
    "memory.recall": "counts what was used",
    "memory.verifyRun": "is logged itself, and says what the run's list of heads shows",
    "memory.exportRun": "is logged itself",
}
ASKED_OF_THE_WORKER = {"memory.askVerification", "memory.cancelVerification"}
_OF_LOGGED_READS = frozenset({"log_entry", "run_head", "record_usage", "run_verification"})


def my_id(world: World) -> UUID:
    return tenant_id_of(world.mine.client.get("/v1/memory/me").json()["tenant"]["id"])


@contextmanager
def unchanged(world: World, but: frozenset[str] = frozenset()) -> Iterator[None]:
    """Whatever happens meanwhile, no row of the calling tenant changes, outside these tables."""
    before = checksums(world.superuser_url, my_id(world))
    yield
    after = checksums(world.superuser_url, my_id(world))
    changed = {table for table in before if before[table] != after[table]}
    assert changed <= _ALWAYS | but


@pytest.mark.parametrize("endpoint", _WITH_ID, ids=lambda endpoint: endpoint.id)
def test_an_id_that_nobody_has_changes_no_row(endpoint: Endpoint, world: World) -> None:
    row = ROWS[endpoint.id]
    nobodys = {name: like(one) for name, one in row.ids_in(world.mine).items()}
    body = row.smallest(world.mine) if endpoint.takes_json else None
    with unchanged(world):
        for role in sorted(row.statuses):
            told = world.callers[role].request(endpoint.method, row.url(endpoint, nobodys), body)
            assert told.status_code == 404, (role, told.content)


@pytest.fixture(scope="module")
def readers(world: World, django_db_blocker: pytest.FixtureRequest) -> dict[str, ApiClient]:
    with django_db_blocker.unblock():  # type: ignore[attr-defined]  # pytest-django's
        slug = world.mine.client.get("/v1/memory/me").json()["tenant"]["id"]
        kit = TenantKit(my_id(world), slug)
        held = {"projects": [PROJECT], "users": [USER]}
        return {
            "agent": kit.client("agent", may=["read"], **held),
            "app": kit.client("app", may=["read"], **held),
            "admin": kit.client("admin", may=["read"]),
            "auditor": kit.client("auditor"),
        }


def test_what_changes_something_and_needs_no_more_than_read_is_named() -> None:
    found = {
        one.id for one in _ALL if one.operation.changes and one.operation.ability in (None, "read")
    }
    # A bundle changes nothing but the answer that is kept for its key.
    assert found == ASKED_OF_THE_WORKER | {"memory.exportRun"}


_READ_ONLY = [one for one in _ALL if one.id not in ASKED_OF_THE_WORKER]


@pytest.mark.parametrize("endpoint", _READ_ONLY, ids=lambda endpoint: endpoint.id)
def test_a_key_that_may_only_read_changes_no_row(
    endpoint: Endpoint, world: World, readers: dict[str, ApiClient]
) -> None:
    """S17."""
    row = ROWS[endpoint.id]
    ids = row.ids_in(world.mine)
    body = row.smallest(world.mine) if endpoint.takes_json else None
    logged = _OF_LOGGED_READS if endpoint.id in LOGGED_READS else frozenset()
    with unchanged(world, but=logged):
        answers = {
            role: client.request(endpoint.method, row.url(endpoint, ids), body)
            for role, client in readers.items()
        }
    for role, told in answers.items():
        if endpoint.operation.ability not in (None, "read"):
            assert told.status_code == 403, (role, told.content)
            assert told.json()["error"]["code"] == "permission-denied"
