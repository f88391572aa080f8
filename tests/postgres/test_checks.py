"""What would lose writes or let tenants see each other is refused, with the way out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from kindmem.postgres.bootstrap import bootstrap
from kindmem.postgres.checks import refusals
from kindmem.postgres.cluster import Cluster
from kindmem.postgres.errors import ClusterError


@pytest.fixture
def superuser(cluster: Cluster) -> Iterator[psycopg.Connection]:
    with psycopg.connect(cluster.url(dbname="kindmem"), autocommit=True) as connection:
        yield connection


@contextmanager
def changed(superuser: psycopg.Connection, change: str, back: str) -> Iterator[None]:
    superuser.execute(change.encode())
    try:
        yield
    finally:
        superuser.execute(back.encode())


def app_refusals(cluster: Cluster) -> list[str]:
    return refusals(cluster.url("kindmem_app", "kindmem"))


def test_the_bootstrapped_database_is_accepted_for_the_app_role(cluster: Cluster) -> None:
    assert app_refusals(cluster) == []


@pytest.mark.parametrize(
    ("role", "reason"),
    [
        ("postgres", "superuser"),
        ("kindmem_owner", "owns the database"),
        ("kindmem_backup", "BYPASSRLS"),
    ],
)
def test_a_role_that_row_level_security_does_not_bind_is_refused(
    cluster: Cluster, role: str, reason: str
) -> None:
    (refusal,) = refusals(cluster.url(role, "kindmem"))
    assert reason in refusal
    assert "Use the role kindmem_app in DATABASE_URL" in refusal


@pytest.mark.parametrize(
    ("change", "back", "reason"),
    [
        (
            "ALTER ROLE kindmem_app BYPASSRLS",
            "ALTER ROLE kindmem_app NOBYPASSRLS",
            "ALTER ROLE kindmem_app NOBYPASSRLS",
        ),
        (
            "GRANT kindmem_backup TO kindmem_app",
            "REVOKE kindmem_backup FROM kindmem_app",
            "REVOKE kindmem_backup FROM kindmem_app",
        ),
        (
            "GRANT kindmem_owner TO kindmem_app",
            "REVOKE kindmem_owner FROM kindmem_app",
            "is a member of its owner",
        ),
        (
            "CREATE TABLE its (n int); ALTER TABLE its OWNER TO kindmem_app",
            "DROP TABLE its",
            "owns the table its",
        ),
        (
            "ALTER ROLE kindmem_app SET synchronous_commit = 'off'",
            "ALTER ROLE kindmem_app SET synchronous_commit = 'on'",
            "synchronous_commit is off",
        ),
        (
            "ALTER ROLE kindmem_app SET synchronous_commit = 'local'",
            "ALTER ROLE kindmem_app SET synchronous_commit = 'on'",
            "synchronous_commit is local",
        ),
        (
            "DROP EXTENSION vector",
            "CREATE EXTENSION vector",
            "CREATE EXTENSION vector",
        ),
        (
            "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
            "UPDATE pg_extension SET extversion = '0.8.6' WHERE extname = 'vector'",
            "pgvector is 0.7.4; kindmem needs 0.8.0",
        ),
    ],
)
def test_what_would_break_a_promise_is_refused_with_the_way_out(
    cluster: Cluster, superuser: psycopg.Connection, change: str, back: str, reason: str
) -> None:
    with changed(superuser, change, back):
        (refusal,) = app_refusals(cluster)
    assert reason in refusal
    assert app_refusals(cluster) == []


def test_citus_and_the_setting_for_it_go_together(
    cluster: Cluster, superuser: psycopg.Connection
) -> None:
    """Without the setting its nodes would not be told the tenant. A table of that name stands in for it."""
    app = cluster.url("kindmem_app", "kindmem")
    (refusal,) = refusals(app, expects_citus=True)
    assert "has no Citus" in refusal
    with changed(superuser, "CREATE TABLE pg_dist_partition ()", "DROP TABLE pg_dist_partition"):
        (refusal,) = refusals(app)
        assert "KINDMEM_CITUS=1" in refusal
        assert refusals(app, expects_citus=True) == []


def test_a_server_that_does_not_sync_is_refused(made: Path, cluster: Cluster) -> None:
    careless = Cluster(made, settings={"fsync": "off", "full_page_writes": "off"})
    careless.start()
    said = " ".join(refusals(careless.url()))
    assert "ALTER SYSTEM SET fsync = 'on'" in said
    assert "ALTER SYSTEM SET full_page_writes = 'on'" in said


def test_a_server_that_can_not_be_reached_is_a_refusal_without_the_password() -> None:
    (refusal,) = refusals("postgresql://kindmem_app:hunter2@127.0.0.1:1/kindmem")
    assert "can't be reached" in refusal
    assert "DATABASE_URL" in refusal
    assert "hunter2" not in refusal


def test_an_encoding_that_can_not_hold_all_text_is_refused(
    cluster: Cluster, superuser: psycopg.Connection
) -> None:
    superuser.execute("DROP DATABASE IF EXISTS latin")
    superuser.execute(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' "
        "LOCALE_PROVIDER libc"
    )
    (refusal,) = refusals(cluster.url(dbname="latin"))
    assert "encoding is LATIN1 (latin) and must be UTF8" in refusal


def test_a_database_without_an_encoding_is_refused_for_that(
    cluster: Cluster, superuser: psycopg.Connection
) -> None:
    superuser.execute("DROP DATABASE IF EXISTS any_bytes")
    superuser.execute(
        "CREATE DATABASE any_bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' "
        "LC_CTYPE 'C' LOCALE_PROVIDER libc"
    )
    (refusal,) = refusals(cluster.url(dbname="any_bytes"))
    assert "encoding is SQL_ASCII (any_bytes) and must be UTF8" in refusal
    with pytest.raises(ClusterError, match=r"SQL_ASCII \(any_bytes\) and must be UTF8"):
        bootstrap(cluster.url(), "any_bytes")
    # From such a database another one is made as it should be.
    bootstrap(cluster.url(dbname="any_bytes"), "kindmem")
