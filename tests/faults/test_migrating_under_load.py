"""Each of the newest migrations goes back and forth under writers, on tables with rows: no writer waits long, the log verifies.

The writers take, again and again, the lock that any write takes on each table that there is: whether it is had, and how soon, is
all that a migration changes for somebody who writes. Older migrations are of the time before the first release and never ran
beside anybody.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from tests.completeness.sources import ROOT
from tests.conftest import TEMPLATE, test_cluster

pytestmark = [pytest.mark.faults, pytest.mark.full]

NEWEST = 8
WRITERS = 3
LONGEST_SECONDS = 1.0
_TABLES = (
    "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
    "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
)
_LOAD = """
import django
django.setup()
from tests.builders import make_tenant
kit = make_tenant()
app = kit.client("app", projects=["p1"])
scope = {"projectId": "p1"}
entries = [{"kind": "tool-call", "scope": scope, "payload": n} for n in range(500)]
for run in range(10):
    assert app.post(f"/v1/memory/runs/r{run}/log/batch", {"entries": entries}).status_code == 201
for n in range(200):
    assert app.post("/v1/memory/facts", {"type": "note", "scope": scope, "content": n}).status_code == 201
print(kit.slug)
"""
_MIGRATE = """
import sys
import django
django.setup()
from django.core.management import call_command
for name in sys.argv[1:]:
    call_command("migrate", "memory", name, database="owner", verbosity=0)
"""


@dataclass
class Server:
    """A database of the test's own, and the product's commands on it."""

    name: str

    def url(self, role: str | None = None) -> str:
        return test_cluster().url(*([role] if role else []), dbname=self.name)

    def run(self, *words: str) -> str:
        folder = quote(str(test_cluster().socket_dir))
        urls = {
            "DATABASE_URL": f"postgresql://kindmem_app@/{self.name}?host={folder}&port=5432",
            "DATABASE_OWNER_URL": f"postgresql://kindmem_owner@/{self.name}?host={folder}&port=5432",
        }
        environ = {**os.environ, **urls, "KINDMEM_EMBEDDINGS": "none"}
        environ["KINDMEM_ALLOWED_HOSTS"] = "testserver"
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 14, 15), done.stderr[-2000:]
        return done.stdout

    def verified(self, slug: str) -> dict[str, tuple[str, int, str]]:
        """State, length and head of every run of the load; a verification is itself an entry of governance."""
        told = json.loads(self.run("manage.py", "verify_log", slug, "--json"))
        return {
            one["runId"]: (one["state"], one["entries"], one["headHash"])
            for one in told["runs"]
            if one["runId"].startswith("r")
        }

    def migrate(self, names: list[str]) -> None:
        """To each of these in turn, in one process."""
        self.run("-c", _MIGRATE, *names)


@pytest.fixture
def server(django_db_setup: None) -> Iterator[Server]:
    made = Server(f"{settings.DATABASES['default']['NAME']}_load")
    with psycopg.connect(test_cluster().url(), autocommit=True) as superuser:
        superuser.execute(f"CREATE DATABASE {made.name} TEMPLATE {TEMPLATE} OWNER kindmem_owner")
        yield made
        superuser.execute(f"DROP DATABASE {made.name} WITH (FORCE)")


@dataclass
class Writing:
    """Threads that lock one table after the other, as writes do. `waits`: table → the longest wait in seconds."""

    server: Server
    waits: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    turns: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Writing":
        self._threads = [threading.Thread(target=self._write) for _ in range(WRITERS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *of_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            connection.execute("SET lock_timeout = '10s'")
            while not self._stop.is_set():
                for (table,) in connection.execute(_TABLES).fetchall():
                    begun = time.monotonic()
                    try:
                        with connection.transaction():
                            connection.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
                    except psycopg.errors.UndefinedTable:
                        continue  # a migration took it away
                    except psycopg.Error as error:
                        self.errors.append(f"{table}: {error}")
                        return
                    waited = time.monotonic() - begun
                    self.waits[table] = max(self.waits.get(table, 0.0), waited)
                self.turns += 1


def newest() -> list[tuple[str, str]]:
    """(the one before, the migration) of the newest migrations of `memory`, newest last."""
    loader = MigrationLoader(connections["owner"])
    (leaf,) = loader.graph.leaf_nodes("memory")
    names = [name for app, name in loader.graph.forwards_plan(leaf) if app == "memory"]
    return list(itertools.pairwise(names))[-NEWEST:]


@pytest.mark.usefixtures("live_db")
def test_the_newest_migrations_go_back_and_forth_under_writers_and_keep_none_waiting(
    server: Server,
) -> None:
    slug = server.run("-c", _LOAD).split()[-1]
    before = server.verified(slug)
    steps = newest()
    with Writing(server) as writing:
        server.migrate([name for name, _ in reversed(steps)] + [name for _, name in steps])
    assert writing.errors == []
    assert writing.turns > WRITERS * NEWEST
    assert {name: wait for name, wait in writing.waits.items() if wait > LONGEST_SECONDS} == {}
    assert len(before) == 10
    assert server.verified(slug) == before
