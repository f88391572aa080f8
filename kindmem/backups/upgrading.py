"""The embedded database brought to a newer PostgreSQL: dumped by the programs that wrote it, loaded by those that are here.

The new cluster is made beside the old one and takes its place when it is whole; the old one stays, under a name of its own, until
somebody removes it.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from kindmem.backups.catalog import catalog_digests
from kindmem.backups.programs import dump, give_rights, load
from kindmem.postgres import locks
from kindmem.postgres.binaries import find_binaries
from kindmem.postgres.bootstrap import bootstrap
from kindmem.postgres.cluster import Cluster
from kindmem.postgres.errors import ClusterError
from kindmem.postgres.urls import DATABASE_NAME

_BESIDE = "upgrading"
Show = Callable[..., None]


def upgrade(data_dir: Path, show: Show) -> tuple[int, int, Path | None]:
    """Versions before and after, and where the old cluster is; None when there was nothing to do. Raises ClusterError."""
    home = Cluster(data_dir)
    stored = int((home.pgdata / "PG_VERSION").read_text())
    newest = find_binaries().major
    if stored == newest:
        return stored, newest, None
    if stored > newest:
        raise ClusterError(
            f"The data in {data_dir} is PostgreSQL {stored}'s, and the programs here are older ({newest})."
        )
    old = Cluster(data_dir, major=stored)
    if old.is_running() or not locks.is_free(home.home / "users.lock"):
        raise ClusterError(f"The database in {data_dir} is in use. Stop `up` and the worker first.")
    beside = Cluster(home.home / _BESIDE)
    if beside.home.exists():  # of an upgrade that was cut off
        beside.stop()
        shutil.rmtree(beside.home)
    try:
        _bring_over(old, beside, show)
        aside = home.home / f"postgres-{stored}-{time.strftime('%Y%m%d%H%M%S')}"
        old.pgdata.rename(aside)
        beside.pgdata.rename(home.pgdata)
    finally:
        beside.stop()
        shutil.rmtree(beside.home, ignore_errors=True)
    return stored, newest, aside


def _bring_over(old: Cluster, new: Cluster, show: Show) -> None:
    path = old.home / f"upgrade-{os.getpid()}.dump"

    def told(what: str) -> Callable[[str], None]:
        return lambda table: show(f"{what} {table}", table=table)

    try:
        with old.borrowed():
            before = _catalog(old)
            counts = _counts(old)
            dump(old.url("kindmem_backup", DATABASE_NAME), path, told("Reading"))
        with new.borrowed():
            bootstrap(new.url(), DATABASE_NAME)
            target = new.url("kindmem_owner", DATABASE_NAME)
            load(path, target, told("Writing"))
            give_rights(path, target)
            after = _catalog(new)
            differs = [part for part in before if after[part] != before[part]]
            if differs or _counts(new) != counts:
                raise ClusterError(
                    f"What was brought over is not what was there ({', '.join(differs) or 'rows'}); "
                    "the old data stays in its place."
                )
            _analyze(new)
    finally:
        path.unlink(missing_ok=True)


def _catalog(cluster: Cluster) -> dict[str, str]:
    with psycopg.connect(cluster.url(dbname=DATABASE_NAME)) as connection:
        return catalog_digests(connection.cursor())


def _counts(cluster: Cluster) -> dict[str, int]:
    """Rows of each table."""
    with psycopg.connect(cluster.url(dbname=DATABASE_NAME)) as connection:
        tables = connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()
        counted = {}
        for (table,) in tables:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            counted[table] = int(row[0]) if row else 0
        return counted


def _analyze(cluster: Cluster) -> None:
    """Statistics are not brought over: without them plans of the first hour are bad ones."""
    with psycopg.connect(cluster.url(dbname=DATABASE_NAME), autocommit=True) as connection:
        connection.execute("ANALYZE")
