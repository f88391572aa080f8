"""The worker as a process: how soon it begins, how quiet it is, and that neither kill nor failure loses anything."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from kindmem.worker import GRACE_SECONDS, THREADS
from memory.actions.seal_tenant import LOCK as SEALING
from memory.tenancy import tenant_context
from memory.work import begin_soon
from tests.builders import TenantKit, make_tenant
from tests.worker.processes import LONG_PATIENCE_SECONDS, Worker, is_serving, one, until, worker

pytestmark = pytest.mark.faults

JOBS = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing' OR scheduled_at IS NULL OR scheduled_at <= now()"
"""Those that are due: what fails on and on waits for its next turn."""
SOON = 20
"""Seconds: far from the minute of a round, and long for the tenants that all other tests left behind."""


@pytest.fixture
def no_worker(live_db: None) -> None:
    """None is known, not even of those that other tests killed."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM worker_heartbeat")
        cursor.execute("DELETE FROM procrastinate_workers")


@pytest.fixture
def running(no_worker: None, app_conninfo: str, tmp_path: Path) -> Iterator[Worker]:
    with worker(app_conninfo, tmp_path) as started:
        until(is_serving)
        yield started


def in_tenant(kit: TenantKit, statement: str) -> Any:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(statement, [kit.id])
        return cursor.fetchone()[0]


def is_sealed(kit: TenantKit) -> bool:
    return bool(
        in_tenant(
            kit,
            "SELECT EXISTS (SELECT FROM seal_leaf WHERE tenant_id = %s::uuid AND run_id = 'r')",
        )
    )


def jobs_of(kit: TenantKit) -> int:
    return int(
        one("SELECT count(*) FROM procrastinate_jobs WHERE lock LIKE %s::text", [f"%:{kit.id}"])
    )


def append(kit: TenantKit) -> None:
    client = kit.client("agent", may=("read", "append", "tenant-wide"))
    answer = client.post("/v1/memory/runs/r/log", {"kind": "tool-call", "scope": {}})
    assert answer.status_code == 201, answer.content


def test_work_begins_as_soon_as_it_did(running: Worker) -> None:
    # What earlier tests left to do has its time first.
    until(lambda: one(JOBS) < 5, seconds=LONG_PATIENCE_SECONDS)
    kit = make_tenant()
    admin = kit.client("admin")
    append(kit)
    assert until(lambda: is_sealed(kit)) < SOON
    erasure = admin.post("/v1/memory/erasures", {"factId": "nothing"}).json()["id"]
    done = until(
        lambda: admin.get(f"/v1/memory/erasures/{erasure}").json()["status"] == "completed"
    )
    assert done < SOON
    job = admin.post("/v1/memory/verifications", {}).json()["id"]
    done = until(lambda: admin.get(f"/v1/memory/verifications/{job}").json()["status"] == "done")
    assert done < SOON
    until(lambda: jobs_of(kit) == 0)


@pytest.mark.full
def test_an_idle_worker_is_quiet_and_leaves_no_jobs_behind(running: Worker) -> None:
    counted = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"

    def per_second() -> float:
        before, began = one(counted), time.monotonic()
        time.sleep(4)
        return float((one(counted) - before) / (time.monotonic() - began))

    # What earlier tests left to do has its time first, which is long after many of them.
    until(
        lambda: one(JOBS) == 0 and per_second() < 10,
        seconds=LONG_PATIENCE_SECONDS,
    )
    assert one(JOBS) == 0
    assert one("SELECT count(*) FROM procrastinate_events") == 0


def test_it_stops_in_time_whatever_it_is_at_and_gives_that_back(
    no_worker: None, app_conninfo: str, tmp_path: Path
) -> None:
    kit = make_tenant()
    append(kit)
    seals = "SELECT status FROM procrastinate_jobs WHERE lock = %s::text"
    patient = f"{app_conninfo}&options={quote('-c lock_timeout=60s -c statement_timeout=60s')}"
    with psycopg.connect(app_conninfo) as other, worker(patient, tmp_path) as busy:
        other.execute(SEALING, {"tenant": kit.id})
        begin_soon("seal", kit.id)
        until(lambda: one(seals, [f"seal:{kit.id}"]) == "doing", seconds=LONG_PATIENCE_SECONDS)
        assert GRACE_SECONDS <= busy.stop() < GRACE_SECONDS + 3
        assert "jobs_cut_off" in busy.said.read_text()
    assert one("SELECT count(*) FROM procrastinate_workers") == 0
    with worker(app_conninfo, tmp_path):
        until(lambda: is_sealed(kit), seconds=LONG_PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "is_silent_already",
    [
        pytest.param(True, id="once it was silent"),
        pytest.param(False, marks=pytest.mark.full, id="at once"),
    ],
)
def test_what_a_killed_worker_was_at_is_taken_up_by_the_next(
    running: Worker, app_conninfo: str, tmp_path: Path, is_silent_already: bool
) -> None:
    kit = make_tenant()
    until(lambda: one("SELECT count(*) FROM procrastinate_workers") == len(THREADS))
    # Of this tenant alone: what earlier tests left to do is no matter here.
    until(lambda: jobs_of(kit) == 0, seconds=LONG_PATIENCE_SECONDS)
    mine = one("SELECT min(id) FROM procrastinate_workers")
    running.kill()
    # As far as the dead one came: it had taken the job, and nothing tells of its end.
    append(kit)
    begin_soon("seal", kit.id)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s::bigint WHERE lock = %s::text",
            [mine, f"seal:{kit.id}"],
        )
        assert cursor.rowcount == 1
        if is_silent_already:
            # As if its silence had lasted long enough by now.
            cursor.execute(
                "UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - interval '1 minute'"
            )
    with worker(app_conninfo, tmp_path):
        assert until(lambda: is_sealed(kit)) < 25


@pytest.mark.full
def test_killed_again_and_again_it_comes_to_the_end_of_everything(
    live_db: None, app_conninfo: str, tmp_path: Path
) -> None:
    kits = [make_tenant() for _ in range(4)]
    erasures = {}
    for kit in kits:
        append(kit)
        admin = kit.client("admin")
        facts = kit.client("app", users=["ann"])
        for number in range(5):
            body = {"type": "note", "scope": {"userId": "ann"}, "content": f"likes {number}"}
            assert facts.post("/v1/memory/facts", body).status_code == 201
        asked = {"subject": {"kind": "user", "id": "ann"}}
        erasures[kit.id] = admin.post("/v1/memory/erasures", asked).json()["id"]
    for pause in (1.2, 1.5, 1.8, 2.2, 2.6):
        with worker(app_conninfo, tmp_path) as killed:
            time.sleep(pause)
            killed.kill()
    with worker(app_conninfo, tmp_path):
        for kit in kits:
            until(lambda kit=kit: is_sealed(kit))
            until(lambda kit=kit: _is_completed(kit, erasures[kit.id]))
        until(lambda: one("SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing'") == 0)
    for kit in kits:
        assert in_tenant(kit, "SELECT count(*) FROM fact_content WHERE tenant_id = %s::uuid") == 0
        completed = (
            "SELECT count(*) FROM log_entry WHERE tenant_id = %s::uuid AND run_id = 'kindmem.governance'"
            " AND payload_text LIKE '%%erasure.completed%%'"
        )
        assert in_tenant(kit, completed) == 1


def _is_completed(kit: TenantKit, erasure: UUID) -> bool:
    return bool(
        in_tenant(
            kit,
            f"SELECT status = 'completed' FROM erasure WHERE tenant_id = %s::uuid AND id = '{erasure}'",
        )
    )


def test_what_fails_is_tried_later_and_later_and_told_by_its_kind(
    running: Worker, client: Any
) -> None:
    kit, well = make_tenant(), make_tenant()
    with tenant_context(kit.id), connection.cursor() as cursor:
        # A zone that is none: every turn that asks what day it is fails.
        cursor.execute(
            "UPDATE tenant SET settings = '[]', time_zone = 'Nowhere/Maria' WHERE id = %s::uuid",
            [kit.id],
        )
    for each in (kit, well):
        begin_soon("expire-records", each.id)
    failures = "SELECT max(in_a_row) FROM work_failure WHERE tenant_id = %s::uuid"
    until(lambda: (one(failures, [kit.id]) or 0) >= 2)
    assert one(failures, [well.id]) is None
    error = one("SELECT error FROM work_failure WHERE tenant_id = %s::uuid", [kit.id])
    assert error
    assert "Maria" not in error
    waiting = one(
        "SELECT scheduled_at > now() FROM procrastinate_jobs WHERE lock = %s::text",
        [f"expire-records:{kit.id}"],
    )
    assert waiting
    assert "Maria" not in running.said.read_text()
    told = client.get("/metrics").content.decode()
    assert 'kindmem_jobs_failing{work="expire-records"} 1.0' in told
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE tenant SET time_zone = 'UTC' WHERE id = %s::uuid", [kit.id])
    until(lambda: one(failures, [kit.id]) == 0)
