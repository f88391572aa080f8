"""What a load balancer and an operator ask: whether the process lives, whether it can serve, and how late the worker is."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client

from kindmem import health
from kindmem.heartbeat import beat


def asked(path: str, method: str = "GET") -> HttpResponse:
    return Client().generic(method, path)


def test_who_lives_says_so_without_the_database() -> None:
    # No database fixture: a query here would be refused.
    told = asked("/livez")
    assert (told.status_code, told.json()) == (200, {"status": "ok"})


@pytest.fixture
def fresh(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_migrated_at", None)


def beaten(seconds_ago: int) -> None:
    beat()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE worker_heartbeat SET beat_at = clock_timestamp() - %s * interval '1 second'",
            [seconds_ago],
        )


def test_all_well_is_ready(fresh: None) -> None:
    beaten(1)
    told = asked("/readyz")
    assert told.status_code == 200
    body = told.json()
    assert (body["status"], body["checks"]) == (
        "ok",
        {"database": True, "migrations": True, "worker": True},
    )
    assert 1 <= body["workerLagSeconds"] < 60


@pytest.mark.parametrize("seconds", [61, 86_400, None])
def test_a_late_worker_is_said_and_the_api_goes_on_serving(
    fresh: None, seconds: int | None
) -> None:
    if seconds is not None:
        beaten(seconds)
    told = asked("/readyz")
    assert told.status_code == 200
    assert told.json()["status"] == "degraded"
    assert told.json()["checks"]["worker"] is False


def test_a_migration_that_is_not_applied_is_not_ready(fresh: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations WHERE app = 'memory')"
        )
    told = asked("/readyz")
    assert (told.status_code, told.json()["status"]) == (503, "unavailable")
    assert told.json()["checks"] == {"database": True, "migrations": False, "worker": False}


def test_a_database_that_is_away_is_not_ready_and_is_not_told_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Away:
        def cursor(self) -> Any:
            raise OperationalError("connection to server at 10.0.0.7 failed: password hunter2")

        def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(health, "connection", Away())
    monkeypatch.setattr("kindmem.heartbeat.connection", Away())
    told = asked("/readyz")
    assert told.status_code == 503
    assert told.json() == {
        "status": "unavailable",
        "checks": {"database": False, "migrations": False, "worker": False},
        "workerLagSeconds": None,
    }
    assert b"hunter2" not in told.content


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_they_are_for_reading(path: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        told = asked(path, method)
        assert (told.status_code, told.json()["error"]["code"]) == (405, "method-not-allowed")
        assert told["Allow"] == "GET, HEAD"


def test_the_worker_s_lag_is_a_metric(fresh: None) -> None:
    beaten(5)
    text = asked("/metrics").content.decode()
    (line,) = [one for one in text.splitlines() if one.startswith("kindmem_worker_lag_seconds ")]
    assert 5 <= float(line.split()[1]) < 60
