"""The worker as a process of its own, on the test's database."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection

from tests.postgres.test_up import manage

PATIENCE_SECONDS = 60.0
LONG_PATIENCE_SECONDS = 900.0


@dataclass
class Worker:
    """A running `work`. `said`: the file of its log."""

    process: subprocess.Popen[bytes]
    said: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> float:
        """Ask it to stop; the seconds that took. It must end well."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said.read_text()
        return time.monotonic() - began


@contextlib.contextmanager
def worker(conninfo: str, folder: Path, **more: str) -> Iterator[Worker]:
    """Start it, and kill it at the end where it still runs."""
    said = folder / f"worker-{time.monotonic_ns()}"
    environ = {**os.environ, "DATABASE_URL": conninfo, **more}
    with said.open("wb") as log:
        process = subprocess.Popen(manage("work"), env=environ, stdout=log, stderr=log)
    running = Worker(process, said)
    try:
        yield running
    finally:
        if process.poll() is None:
            running.kill()


def until(condition: Callable[[], Any], *, seconds: float = PATIENCE_SECONDS) -> float:
    """Wait for it; the seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not happen"
        time.sleep(0.05)
    return time.monotonic() - began


def one(statement: str, parameters: list[Any] | None = None) -> Any:
    """The first column of the first row, or None."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or [])
        row = cursor.fetchone()
    return None if row is None else row[0]


def is_serving() -> bool:
    """Whether a worker said within the last seconds that it lives."""
    return bool(
        one(
            "SELECT count(*) FROM worker_heartbeat WHERE beat_at > clock_timestamp() - interval '4 seconds'"
        )
    )
