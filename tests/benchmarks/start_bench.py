"""How soon `up` answers on an empty data folder and on a warm one, and what an idle web worker keeps in memory.

Run: python -m tests.benchmarks.start_bench. Seconds and megabytes of this machine against what is promised; ends with 1 when one
is above it. An install step comes before; it is not part of the time.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.harness import ROOT, usual_or_quick

PROMISED = {
    "empty folder, demo made: seconds to the first answer": 60.0,
    "warm folder: seconds to the first answer": 10.0,
    "idle web worker with the search model: MB resident": 450.0,
    "idle web worker without a search model: MB resident": 150.0,
}
_SETTLED_SECONDS = 5.0
_PATIENCE_SECONDS = 120.0


@contextmanager
def up(home: Path, **more: str) -> Iterator[tuple[int, float]]:
    """A running `up`: its pid, and the seconds from its start to the first answer of the API."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment = {
        **kept,
        "KINDMEM_DATA_DIR": str(home / "data"),
        "KINDMEM_STATE_DIR": str(home / "state"),
        **more,
    }
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", "0", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        with urllib.request.urlopen(said["url"] + "/v1/openapi.json", timeout=60) as answer:
            answer.read()
        yield process.pid, time.monotonic() - started
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _is_worker(pid: int, arbiters: list[int]) -> bool:
    try:
        return _parent(pid) in arbiters
    except OSError:
        return False


def web_workers(supervisor: int) -> list[int]:
    """The processes that the web server forked."""
    pids = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    arbiters = [
        pid
        for pid in pids
        if _is_worker(pid, [supervisor])
        and b"gunicorn" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return [pid for pid in pids if _is_worker(pid, arbiters)]


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("a process without memory")


def settled_mb(supervisor: int) -> float:
    """The largest worker's memory once it has not grown for a while: loading the model takes some seconds."""
    until, seen, since = time.monotonic() + _PATIENCE_SECONDS, 0.0, time.monotonic()
    while time.monotonic() < until and time.monotonic() - since < _SETTLED_SECONDS:
        largest = max((resident_mb(pid) for pid in web_workers(supervisor)), default=0.0)
        if largest > seen + 0.5:
            seen, since = largest, time.monotonic()
        time.sleep(0.2)
    return seen


def figures() -> dict[str, float]:
    home = Path(tempfile.mkdtemp(prefix="kindmem-bench-"))
    home.chmod(0o755)
    try:
        with up(home) as (_, empty):
            pass
        with up(home) as (pid, warm):
            with_model = settled_mb(pid)
        with up(home, KINDMEM_EMBEDDINGS="none") as (pid, _):
            without = settled_mb(pid)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return dict(zip(PROMISED, (empty, warm, with_model, without), strict=True))


def main() -> int:
    missed = []
    for name, figure in figures().items():
        print(f"{name:60} {figure:10.2f}   (at most {PROMISED[name]:.0f})")
        if not 0 < figure <= PROMISED[name]:
            missed.append(name)
    for name in missed:
        print(f"not reached: {name}", file=sys.stderr)
    return usual_or_quick(1, 0) if missed else 0


if __name__ == "__main__":
    sys.exit(main())
