"""Decides what a command does about the database before Django looks at it.

With DATABASE_URL: nothing, the server is somebody else's. Without: the embedded cluster runs for as
long as somebody uses it, and a new one gets its roles and its database.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from kindmem.postgres.bootstrap import bootstrap
from kindmem.postgres.cluster import Cluster
from kindmem.postgres.urls import DATABASE_NAME


def is_embedded() -> bool:
    """True when no server of one's own is named in DATABASE_URL."""
    return not os.environ.get("DATABASE_URL")


@contextmanager
def embedded_database(data_dir: Path, say: Callable[[str], None]) -> Iterator[Cluster | None]:
    """Run the embedded database meanwhile, prepared; gives None when DATABASE_URL decides.

    Raises ClusterError, whose message says what to do.
    """
    if not is_embedded():
        yield None
        return
    cluster = Cluster(data_dir, say=say)
    with cluster.borrowed():
        if not is_bootstrapped(cluster):
            bootstrap(cluster.url(), DATABASE_NAME)
        yield cluster


def is_bootstrapped(cluster: Cluster) -> bool:
    """True when the application's role can enter its database."""
    try:
        psycopg.connect(cluster.url("kindmem_app", DATABASE_NAME)).close()
    except psycopg.OperationalError:
        return False
    return True


def has_tables(cluster: Cluster) -> bool:
    """True when migrations were ever run in the application's database."""
    with psycopg.connect(cluster.url("kindmem_app", DATABASE_NAME)) as connection:
        row = connection.execute("SELECT to_regclass('public.django_migrations')").fetchone()
    return row is not None and row[0] is not None
