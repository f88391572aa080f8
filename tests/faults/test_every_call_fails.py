"""The n-th statement of a change fails, for every n: nothing of it is there, the answer says so, a repeat does it once.

As if the server had no memory left just then (SQLSTATE 53200): the connection lives, and the transaction is over.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse

from memory.tenancy import tenant_id_of
from tests.api.conftest import world
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World, checksums
from tests.api.makers import Place, new_name
from tests.api.rows import ROWS, SHOWN_ONCE

__all__ = ["world"]
pytestmark = pytest.mark.faults

MOST_STATEMENTS = 300
_CHANGES = [
    endpoint
    for endpoint in endpoints()
    if endpoint.id in ROWS
    and endpoint.operation.changes
    and not endpoint.operation.outside
    and "admin" in ROWS[endpoint.id].allowed
]
"""Those in one transaction. What takes several says that it began in a row of its own, which frees its key after a while."""


@pytest.fixture
def place(live_db: None, world: World) -> Place:
    return world.mine


@pytest.fixture(autouse=True)
def _nothing_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails there changes no answer; tests/commands/test_restore_endings.py tries it."""
    monkeypatch.setattr("memory.after_commit._AfterCommit.__call__", lambda after: None)


@contextmanager
def failing_at(number: int) -> Iterator[list[int]]:
    """What it gives holds how many statements were asked for."""
    asked = [0]

    def run(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        asked[0] += 1
        if asked[0] == number:
            raise OperationalError("no memory") from psycopg.errors.OutOfMemory("no memory")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        yield asked


@pytest.mark.parametrize("endpoint", _CHANGES, ids=lambda endpoint: endpoint.id)
def test_a_change_is_whole_or_not_there_whichever_of_its_statements_fails(
    endpoint: Endpoint, place: Place, superuser_url: str
) -> None:
    row, key = ROWS[endpoint.id], new_name("key")
    url, body = row.url(endpoint, row.ids_in(place)), row.smallest(place)
    tenant = tenant_id_of(place.client.get("/v1/memory/me").json()["tenant"]["id"])

    def send() -> HttpResponse:
        return place.client.request(
            endpoint.method,
            url,
            body if endpoint.takes_json else None,
            **{"Idempotency-Key": key},
        )

    before = checksums(superuser_url, tenant)
    for number in itertools.count(1):
        assert number < MOST_STATEMENTS
        with failing_at(number) as asked:
            told = send()
        if asked[0] < number:
            break
        assert told.status_code == 503, (number, told.content)
        assert told.json()["error"]["code"] == "unavailable"
        if number % 8 == 1:
            assert checksums(superuser_url, tenant) == before, number
    assert number > 3, "nothing was asked of the database"
    # The last one had no statement to fail at, so it is the change itself, and the only one.
    assert told.status_code == row.status, told.content
    assert "Idempotency-Replayed" not in told
    after = checksums(superuser_url, tenant)
    again = send()
    first = told.json()
    first.pop(SHOWN_ONCE.get(endpoint.id), None)
    assert (again.json(), again["Idempotency-Replayed"]) == (first, "true")
    assert checksums(superuser_url, tenant) == after


def test_there_are_changes_to_try() -> None:
    assert len(_CHANGES) > 30
