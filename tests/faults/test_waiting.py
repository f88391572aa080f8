"""A lock held too long, a statement that takes too long, a deadlock, no connection left: 503 in time, and nothing half done.

Others are served meanwhile, and a repeat with the same key does once what was not done.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse

from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.races.test_append_races import assert_is_one_chain, chain_of

pytestmark = pytest.mark.faults

LOCK_SECONDS = 2.0
PATH = "/v1/memory/runs/hot/log"
ENTRY = {"kind": "tool-call", "scope": {"projectId": "p1"}}


@pytest.fixture
def app(live_acme: TenantKit) -> ApiClient:
    client = live_acme.client("app", projects=["p1"])
    assert client.post(PATH, ENTRY).status_code == 201
    return client


def send(client: ApiClient, key: str, path: str = PATH) -> HttpResponse:
    return client.post(path, ENTRY, Idempotency_Key=key)


def assert_is_unavailable(told: HttpResponse) -> None:
    assert told.status_code == 503, told.content
    assert told.json()["error"]["code"] == "unavailable"
    assert told["Retry-After"]


@contextmanager
def holding(superuser_url: str, tenant: TenantKit) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else holds the head of the run."""
    with psycopg.connect(superuser_url) as other:
        found = other.execute(
            "SELECT 1 FROM run_head WHERE tenant_id = %s AND run_id = 'hot' FOR UPDATE", [tenant.id]
        ).fetchone()
        assert found is not None
        yield other
        other.rollback()


def test_a_lock_that_is_held_too_long_is_given_up_and_others_are_served(
    live_acme: TenantKit, app: ApiClient, superuser_url: str
) -> None:
    with holding(superuser_url, live_acme):
        begun = time.monotonic()
        assert_is_unavailable(send(app, "k1"))
        waited = time.monotonic() - begun
        assert LOCK_SECONDS / 2 < waited < 2 * LOCK_SECONDS + 2
        assert send(app, "k2", "/v1/memory/runs/other/log").status_code == 201
        assert app.get("/v1/memory/runs/hot/log").status_code == 200
    told = send(app, "k1")
    assert told.status_code == 201
    assert "Idempotency-Replayed" not in told
    assert_is_one_chain(chain_of(live_acme, "hot"), 2)


@contextmanager
def before_statements(work: Callable[[int], None]) -> Iterator[None]:
    """`work(n)` before the n-th statement of this thread."""
    count = 0

    def run(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal count
        count += 1
        work(count)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        yield


def raw(statement: str, *given: Any) -> None:
    """In the transaction that this thread has open, past whatever watches its statements."""
    connection.connection.execute(statement, given)


def test_a_statement_that_takes_too_long_is_ended_and_nothing_of_the_change_is_there(
    live_acme: TenantKit, app: ApiClient
) -> None:
    def last(number: int) -> None:
        if number == 2:
            raw("SET LOCAL statement_timeout = '100ms'")
            try:
                raw("SELECT pg_sleep(5)")
            except psycopg.errors.QueryCanceled as error:
                raise OperationalError("canceled") from error

    begun = time.monotonic()
    with before_statements(last):
        assert_is_unavailable(send(app, "k1"))
    assert time.monotonic() - begun < 3
    assert send(app, "k1").status_code == 201
    assert_is_one_chain(chain_of(live_acme, "hot"), 2)


def test_of_a_deadlock_the_change_that_lost_is_done_again_by_itself(
    live_acme: TenantKit, app: ApiClient, superuser_url: str
) -> None:
    tries = []
    with psycopg.connect(superuser_url) as other:
        other.execute(
            "SET deadlock_timeout = '1min'"
        )  # the change is to notice it first, and to lose
        other.execute("SELECT pg_advisory_xact_lock(815, 2)")
        crossing = threading.Thread(
            target=lambda: other.execute("SELECT pg_advisory_xact_lock(815, 1)")
        )

        def cross(number: int) -> None:
            if number != 1:
                return
            tries.append(number)
            if len(tries) > 1:
                return
            raw("SELECT pg_advisory_xact_lock(815, 1)")
            crossing.start()
            try:
                raw("SELECT pg_advisory_xact_lock(815, 2)")
            except psycopg.errors.DeadlockDetected as error:
                raise OperationalError("deadlock") from error

        with before_each_transaction(cross):
            told = send(app, "k1")
        crossing.join()
        other.rollback()
    assert told.status_code == 201, told.content
    assert len(tries) == 2
    assert_is_one_chain(chain_of(live_acme, "hot"), 2)


@contextmanager
def before_each_transaction(work: Callable[[int], None]) -> Iterator[None]:
    """`work(1)` before the first statement of each transaction of this thread."""
    seen: list[Any] = []

    def run(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        now = connection.connection.execute("SELECT pg_current_xact_id()").fetchone()
        if now not in seen:
            seen.append(now)
            work(1)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        yield


def test_when_no_connection_is_left_who_asks_is_told_so_and_served_when_there_is_one(
    live_acme: TenantKit, app: ApiClient, superuser_url: str
) -> None:
    with psycopg.connect(superuser_url, autocommit=True) as superuser:
        superuser.execute("ALTER ROLE kindmem_app CONNECTION LIMIT 0")
        try:
            told = at_once(6, lambda number: send(ApiClient(app.token), f"k{number}"))
        finally:
            superuser.execute("ALTER ROLE kindmem_app CONNECTION LIMIT -1")
    for one in told:
        assert_is_unavailable(one)
    assert [send(app, f"k{number}").status_code for number in range(6)] == [201] * 6
    assert_is_one_chain(chain_of(live_acme, "hot"), 7)
