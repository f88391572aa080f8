"""Throw-away clusters in folders that an unprivileged system user can reach.

pytest's own temporary folder is private to its owner, and as root the server runs as somebody else.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kindmem.postgres.binaries import copied_for_server, find_binaries
from kindmem.postgres.bootstrap import bootstrap
from kindmem.postgres.cluster import Cluster

# What only root meets: another system user runs the server.
collect_ignore = [] if os.geteuid() == 0 else ["test_as_root.py"]


@pytest.fixture(autouse=True)
def no_database_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "KINDMEM_PG_BIN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def programs(worker_folder: Path) -> str:
    """A bin folder that the server's user can read, so that not every cluster has its own copy."""
    found = find_binaries()
    return str(copied_for_server(found, worker_folder).bin_dir)


@pytest.fixture
def shared_programs(programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDMEM_PG_BIN", programs)


def _reachable_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kindmem-cluster-"))
    folder.chmod(0o711)
    return folder


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that everybody may pass through."""
    folder = _reachable_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(reachable: Path) -> Iterator[Path]:
    """A data home that doesn't exist yet; whatever runs in it afterwards is stopped."""
    folder = reachable / "data"
    yield folder
    Cluster(folder).stop()


@pytest.fixture(scope="session")
def worker_folder() -> Iterator[Path]:
    """A reachable folder that lasts as long as the test process."""
    folder = _reachable_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made_once(worker_folder: Path, programs: str) -> Path:
    """A data home whose cluster is made and stopped: initdb is most of a first start's cost."""
    folder = worker_folder / "made"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KINDMEM_PG_BIN", programs)
        with Cluster(folder).borrowed():
            pass
    return folder


@pytest.fixture
def made(made_once: Path, shared_programs: None) -> Iterator[Path]:
    """A data home with a cluster that doesn't run; leave it whole, and nothing called `kept`."""
    yield made_once
    cluster = Cluster(made_once)
    cluster.start()
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
    cluster.stop()


@pytest.fixture(scope="session")
def cluster(worker_folder: Path) -> Iterator[Cluster]:
    """One running, bootstrapped cluster for the tests that don't break it."""
    running = Cluster(worker_folder / "data")
    running.start()
    bootstrap(running.url())
    yield running
    running.stop()
