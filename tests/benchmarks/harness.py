"""A throw-away product to measure: embedded PostgreSQL, one web server, and a load generator on the same machine.

Figures are ratios of what ran interleaved in one go; absolute ones depend on the machine.
"""

import contextlib
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
ROOT = Path(__file__).resolve().parent.parent.parent
SIZES_VARIABLE = "BENCH_SIZES"
"""How `--sizes` of the whole run reaches each benchmark."""


QUICK_VARIABLE = "BENCH_QUICK"
"""How `--quick` of the whole run reaches each benchmark: as little of everything as shows that it works."""


def usual_or_quick(usual: T, quick: T) -> T:
    """A count, or counts, of the benchmark's own, or that of a quick run, whose figures mean nothing."""
    return quick if os.environ.get(QUICK_VARIABLE) else usual


def chosen_sizes(usual: tuple[int, ...]) -> tuple[int, ...]:
    """How many facts to measure with, smallest first: this program's words, else the run's, else the usual ones."""
    said = sys.argv[1:] or os.environ.get(SIZES_VARIABLE, "").split()
    return tuple(sorted(map(int, said))) or usual


@contextlib.contextmanager
def database() -> Iterator[None]:
    """A migrated database in a temporary folder; Django is set up on it in this process."""
    home = Path(tempfile.mkdtemp(prefix="kindmem-bench-"))
    home.chmod(0o755)
    os.environ["KINDMEM_DATA_DIR"] = str(home / "data")
    os.environ["KINDMEM_STATE_DIR"] = str(home / "state")
    os.environ["KINDMEM_LOG_LEVEL"] = "WARNING"
    os.environ["DJANGO_SETTINGS_MODULE"] = "kindmem.settings"
    os.environ.pop("DATABASE_URL", None)
    import django

    from kindmem.postgres.bootstrap import bootstrap
    from kindmem.postgres.cluster import Cluster

    cluster = Cluster(home / "data")
    cluster.start()
    try:
        bootstrap(cluster.url(), "kindmem")
        django.setup()
        from django.core.management import call_command

        call_command("migrate", database="owner", verbosity=0)
        import psycopg

        with psycopg.connect(cluster.url("kindmem_owner", "kindmem"), autocommit=True) as owner:
            owner.execute("CREATE TABLE bench_row (tenant_id uuid NOT NULL, body text)")
            owner.execute("SELECT kindmem_protect('bench_row', 'SELECT, INSERT')")
        yield
    finally:
        cluster.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def web_server(workers: int = 2, threads: int = 4) -> Iterator[int]:
    """gunicorn serving the product and the yardsticks; its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    code = (
        "import django; from django.conf import settings; settings.ROOT_URLCONF='tests.benchmarks.yardsticks';"
        "from django.core.wsgi import get_wsgi_application as g; from gunicorn.app.base import BaseApplication;\n"
        "class A(BaseApplication):\n"
        " def load_config(s):\n"
        f"  [s.cfg.set(k, v) for k, v in dict(bind='127.0.0.1:{port}', workers={workers}, threads={threads},"
        " worker_class='gthread', keepalive=30, loglevel='warning').items()]\n"
        " def load(s):\n"
        "  from tests.benchmarks.floors import with_floors; return with_floors(g())\n"
        "A().run()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)


class Load:
    """`clients` threads, each with a connection of its own, sending as fast as answers come."""

    def __init__(self, port: int, token: str, clients: int) -> None:
        self.port, self.token, self.clients = port, token, clients

    def rate(
        self, method: str, path: Callable[[int, int], str], body: object, seconds: float
    ) -> float:
        """Answers a second; each client waits for one at least. `path(client, n)` makes each request's path."""
        until = time.perf_counter() + seconds
        counts = [0] * self.clients
        text = None if body is None else json.dumps(body)

        def one(client: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            while counts[client] == 0 or time.perf_counter() < until:
                connection.request(method, path(client, counts[client]), text, headers)
                answer = connection.getresponse()
                content = answer.read()
                if answer.status >= 300:
                    raise RuntimeError(content)
                counts[client] += 1
            connection.close()

        started = time.perf_counter()
        threads = [threading.Thread(target=one, args=(client,)) for client in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.perf_counter() - started)


def server_cpu_seconds() -> float:
    """The processor time that the product has used so far: this process's children, and what runs in its data folder.

    Unlike a rate it is nearly the same on a machine that has other work.
    """
    data, ticks = os.environ["KINDMEM_DATA_DIR"], 0
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    ours = {os.getpid()}
    while more := {pid for pid, stat in stats.items() if int(stat[1]) in ours} - ours:
        ours |= more
    for pid, stat in stats.items():
        with contextlib.suppress(OSError):
            if pid in ours - {os.getpid()} or os.readlink(f"/proc/{pid}/cwd").startswith(data):
                ticks += sum(int(part) for part in stat[11:15])
    return ticks * TICK_SECONDS


def interleaved(
    measures: dict[str, Callable[[], float]], rounds: int = 5
) -> dict[str, list[float]]:
    """Each measure once a round, so that a slow moment of the machine hits all alike."""
    figures: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            figures[name].append(measure())
    return figures


def ratio(figures: dict[str, list[float]], of: str, to: str) -> float:
    """The median over rounds of `of` / `to`."""
    return statistics.median(a / b for a, b in zip(figures[of], figures[to], strict=True))
