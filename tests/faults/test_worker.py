"""The worker in the whole product: the database ends under it, it ends itself, it works through a pooler."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kindmem.postgres.binaries import copied_for_server, find_binaries
from kindmem.postgres.cluster import Cluster
from tests.faults.product import Lost, Product, product
from tests.faults.test_killed_under_load import kill_the_database
from tests.postgres.test_up import eventually, is_gone

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def running() -> Iterator[Product]:
    """In a folder that the database's unprivileged user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="kindmem-worker-"))
    folder.chmod(0o711)
    major = os.environ.get("KINDMEM_TEST_POSTGRES")
    programs = copied_for_server(find_binaries(int(major) if major else None), folder)
    home = folder / "data"
    with product(home, str(programs.bin_dir)) as made:
        yield made
    Cluster(home).stop()
    shutil.rmtree(folder)


def told(running: Product, method: str, path: str, body: Any = None) -> Any:
    """The answer, however often the connection is lost meanwhile."""
    answers: list[Any] = []

    def ask() -> bool:
        try:
            with running.wire() as wire:
                answer = wire.ask(method, path, body)
        except Lost:
            return False
        answers.append(answer)
        return answer.status < 500

    eventually(ask)
    return answers[-1].json()


def is_worked_on(running: Product, run: str) -> None:
    """Something new is sealed, which only the worker does."""
    told(running, "POST", f"/v1/memory/runs/{run}/log", {"kind": "tool-call", "scope": {}})
    eventually(
        lambda: told(running, "POST", f"/v1/memory/runs/{run}/verify", {})["state"] == "verified"
    )


def test_it_goes_on_when_the_database_was_killed_and_came_back(running: Product) -> None:
    is_worked_on(running, "before")
    worker = running.up.child("work")
    kill_the_database(running)
    is_worked_on(running, "after")
    assert running.up.child("work") == worker, "the worker ended with the database"
    eventually(running.up.is_well)


def test_it_goes_on_when_the_database_was_restarted_in_order(running: Product) -> None:
    home = running.up.home
    postmaster = int((home / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGINT)
    eventually(lambda: is_gone(postmaster))
    is_worked_on(running, "restarted")


@pytest.mark.full
def test_a_killed_worker_is_replaced_and_work_goes_on(running: Product) -> None:
    for turn in range(3):
        eventually(lambda: running.up.child("work") is not None)
        killed = running.up.child("work")
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        eventually(lambda killed=killed: is_gone(killed))
        is_worked_on(running, f"killed-{turn}")
