"""`doctor`: looks at everything an installation rests on, and says what is wrong and what to do.

It starts the embedded database when it isn't running, makes and repairs nothing, and goes on after
each finding, so that one visit tells all. Exit code 1 when anything must be done.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from kindmem.arrival import absence
from kindmem.heartbeat import worker_lag_seconds
from kindmem.management.commands.up import UP_LOCK
from kindmem.postgres import locks
from kindmem.postgres.checks import refusals
from kindmem.postgres.cluster import Cluster
from kindmem.postgres.embedded import embedded_database, has_tables, is_embedded
from kindmem.postgres.errors import ClusterError
from kindmem.postgres.urls import app_url
from kindmem.queue_state import failing_work
from memory.installation_keys import OtherKeys, check_keys
from memory.management.command import ToldCommand

GIBIBYTE = 1024**3
_LEAST_FREE_BYTES = 1 * GIBIBYTE
_LATE_WORKER_SECONDS = 60.0
_FAILURES_TO_TELL = 3
# Half of the two thousand million transactions after which PostgreSQL stops accepting writes.
_OLDEST_TRANSACTION = 1_000_000_000


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `message` says what is, and when not `is_ok`, what to do."""

    check: str
    is_ok: bool
    message: str


class Command(ToldCommand):
    """Say what is wrong with this installation and what to do."""

    help = "Say what is wrong with this installation and what to do."

    def handle(self, *args: Any, **options: Any) -> None:
        findings: list[Finding] = []
        for finding in examine():
            findings.append(finding)
            if not options["json"]:
                self._tell(finding)
        wrong = sum(not finding.is_ok for finding in findings)
        if options["json"]:
            seen = [
                {"check": found["check"], "ok": found["is_ok"], "message": found["message"]}
                for found in map(asdict, findings)
            ]
            self.stdout.write(json.dumps({"ok": wrong == 0, "findings": seen}))
            sys.exit(1 if wrong else 0)
        if wrong:
            raise CommandError(f"{wrong} of {len(findings)} need something done.")
        self.stdout.write(f"All {len(findings)} are well.")

    def _tell(self, finding: Finding) -> None:
        mark = "ok " if finding.is_ok else "BAD"
        self.stdout.write(f"{mark} {finding.check:<12} {finding.message}")


def examine() -> Iterator[Finding]:
    """Everything worth looking at, in the order in which one thing rests on another."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("python", True, f"Python {version}")
    yield from _keys(settings.KINDMEM_STATE_DIR)
    if is_embedded() and (absent := absence(settings.KINDMEM_DATA_DIR)):
        yield Finding("database", False, absent)
        return
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(embedded_database(settings.KINDMEM_DATA_DIR, _silent))
        except (ClusterError, psycopg.Error) as error:
            yield Finding("database", False, str(error).strip())
            return
        where = settings.KINDMEM_DATA_DIR if is_embedded() else "the server in DATABASE_URL"
        yield Finding("database", True, f"running, in {where}")
        if cluster is not None:
            yield _room(cluster.home)
        refused = refusals(
            os.environ.get("DATABASE_URL") or app_url(settings.KINDMEM_DATA_DIR),
            expects_citus=settings.KINDMEM_CITUS,
        )
        yield from (Finding("promises", False, reason) for reason in refused)
        if not refused:
            yield Finding("promises", True, "durable, and the role is walled in")
            yield from _other_keys()
            yield from _inside()
            if cluster is not None and not has_tables(cluster):
                yield Finding("tables", True, "none yet: the first `up` or `migrate` makes them")
            else:
                yield from _tables(cluster)
        connections.close_all()


def _other_keys() -> Iterator[Finding]:
    try:
        check_keys()
    except OtherKeys as error:
        yield Finding("keys", False, f"these keys are not this database's: {error}")


def _keys(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield Finding("keys", True, f"none yet in {folder}: the first `up` makes them")
        return
    open_files = [path for path in [folder, *folder.iterdir()] if path.stat().st_mode & 0o077]
    if open_files:
        names = " ".join(str(path) for path in open_files)
        yield Finding("keys", False, f"Others on this machine may read them: chmod go-rwx {names}")
    elif settings.KINDMEM_DATA_DIR in folder.parents:
        yield Finding(
            "keys",
            False,
            f"{folder} lies inside the data folder, so whoever copies the data has the keys too. "
            "Move it and name the new place in KINDMEM_STATE_DIR.",
        )
    else:
        yield Finding("keys", True, f"private, in {folder} (keep a copy apart from the data)")


def _room(home: Path) -> Finding:
    free_bytes = shutil.disk_usage(home).free
    room = f"{free_bytes / GIBIBYTE:.1f} GiB free on the disk of {home}"
    if free_bytes < _LEAST_FREE_BYTES:
        return Finding("disk", False, f"{room}: make room, or writes will be refused soon.")
    return Finding("disk", True, room)


def _inside() -> Iterator[Finding]:
    """What a look into the application's database shows."""
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), current_setting('data_checksums'), "
            "(SELECT extversion FROM pg_extension WHERE extname = 'vector'), "
            "current_setting('autovacuum'), (SELECT age(datfrozenxid) FROM pg_database "
            "WHERE datname = current_database())"
        )
        server, checksums, pgvector, autovacuum, age = cursor.fetchone()
    yield Finding("server", True, f"PostgreSQL {server}, pgvector {pgvector}")
    yield Finding(
        "checksums",
        checksums == "on",
        "on: a damaged page is noticed"
        if checksums == "on"
        else "off: a damaged page goes unnoticed. Stop the server and run pg_checksums --enable.",
    )
    is_tidy = autovacuum == "on" and age < _OLDEST_TRANSACTION
    yield Finding(
        "vacuum",
        is_tidy,
        f"autovacuum {autovacuum}, oldest transaction {age} back"
        + ("" if is_tidy else ": set autovacuum = 'on', and run VACUUM as superuser."),
    )


def _tables(cluster: Cluster | None) -> Iterator[Finding]:
    executor = MigrationExecutor(connections["default"])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        yield Finding(
            "tables",
            False,
            f"{len(plan)} migrations are not applied (the first is {plan[0][0]}): run "
            "`python manage.py migrate`, with DATABASE_OWNER_URL set if DATABASE_URL is.",
        )
        return
    yield Finding("tables", True, "every migration is applied")
    lag = worker_lag_seconds()
    seen = "never seen" if lag is None else f"{lag:.0f} s late"
    if lag is not None and lag <= _LATE_WORKER_SECONDS:
        yield Finding("worker", True, seen)
    elif cluster is not None and locks.is_free(cluster.home / UP_LOCK):
        yield Finding("worker", True, f"{seen}; nothing runs now, `python manage.py up` starts it")
    else:
        yield Finding(
            "worker", False, f"{seen}: run `python manage.py work` beside the web server."
        )
    yield from _work()


def _work() -> Iterator[Finding]:
    """Jobs that fail again and again; one that failed once or twice is tried again by itself."""
    failing = failing_work(at_least=_FAILURES_TO_TELL)
    for one in failing:
        when = "soon" if one.next_at is None else f"at {one.next_at:%H:%M:%S} UTC"
        yield Finding(
            "work",
            False,
            f"{one.work} in {one.tenant} failed {one.in_a_row} times in a row, last with {one.error} at "
            f"{one.failed_at:%Y-%m-%d %H:%M:%S} UTC; it is tried again {when}. "
            "The worker's log says where (job_failed).",
        )
    if not failing:
        yield Finding("work", True, "no job fails again and again")


def _silent(message: str) -> None:
    """Findings are what it says, not progress."""
