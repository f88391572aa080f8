"""Lays what only a superuser can: roles, the database, extensions, default privileges.

Migrations run as kindmem_owner and can do none of this (`vector` is not a trusted extension, roles
belong to the whole cluster). It may run any number of times, also at once: one run at a time works,
under an advisory lock in the maintenance database that `superuser_conninfo` names.
"""

import sys
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kindmem.postgres.checks import encoding_refusal
from kindmem.postgres.errors import ClusterError

REQUIRED_EXTENSION = "vector"
# Used where the server has them; nothing may depend on them.
OPTIONAL_EXTENSIONS = ("pg_trgm", "unaccent", "btree_gin")
ROLES = ("kindmem_owner", "kindmem_app", "kindmem_search", "kindmem_backup")
_LOCK_KEY = 0x6B696E646D656D  # "kindmem"
_HERE = Path(__file__).parent


def bootstrap(superuser_conninfo: str, dbname: str = "kindmem") -> None:
    """Make roles and the database `dbname`, or bring them to what they should be.

    Raises ClusterError when the server has no pgvector or the database would not hold any text;
    psycopg.Error when the server can't be reached or the role is no superuser.
    """
    # Said here, because answers from a SQL_ASCII database would be bytes otherwise.
    superuser_conninfo = make_conninfo(superuser_conninfo, client_encoding="UTF8")
    with psycopg.connect(superuser_conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK_KEY])
        _check_encoding(connection, dbname)
        available = _available_extensions(connection)
        with connection.transaction():
            _run_file(connection, "roles.sql")
        _extend(make_conninfo(superuser_conninfo, dbname="template1"), available)
        _make_database(connection, dbname)
        application = make_conninfo(superuser_conninfo, dbname=dbname)
        _extend(application, available)
        with psycopg.connect(application) as database:
            _run_file(database, "database.sql")


def _check_encoding(connection: psycopg.Connection, dbname: str) -> None:
    """Look at the database, or at the template of a new one. Raises ClusterError."""
    rows = connection.execute(
        "SELECT datname::text, pg_encoding_to_char(encoding)::text FROM pg_database "
        "WHERE datname IN (%s, 'template1')",
        [dbname],
    ).fetchall()
    encodings: dict[str, str] = dict(rows)
    name = dbname if dbname in encodings else "template1"
    if wrong := encoding_refusal(name, encodings.get(name)):
        raise ClusterError(wrong)


def _available_extensions(connection: psycopg.Connection) -> list[str]:
    wanted = [REQUIRED_EXTENSION, *OPTIONAL_EXTENSIONS]
    rows = connection.execute(
        "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)", [wanted]
    ).fetchall()
    found = {row[0] for row in rows}
    if REQUIRED_EXTENSION not in found:
        raise ClusterError(
            "This PostgreSQL server has no pgvector. Install pgvector 0.8.0 or newer on it "
            "(Debian: postgresql-NN-pgvector), then try again."
        )
    return [name for name in wanted if name in found]


def _extend(conninfo: str, extensions: list[str]) -> None:
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute("SELECT extname FROM pg_extension").fetchall()
        present = {row[0] for row in rows}
        for name in extensions:
            verb = "ALTER EXTENSION {} UPDATE" if name in present else "CREATE EXTENSION {}"
            connection.execute(sql.SQL(verb).format(sql.Identifier(name)))


def _make_database(connection: psycopg.Connection, dbname: str) -> None:
    name = sql.Identifier(dbname)
    exists = connection.execute("SELECT FROM pg_database WHERE datname = %s", [dbname]).fetchone()
    if exists is None:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER kindmem_owner").format(name))
    with connection.transaction():
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO kindmem_owner").format(name))
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
        grant = "GRANT CONNECT ON DATABASE {} TO kindmem_app, kindmem_backup"
        connection.execute(sql.SQL(grant).format(name))


def _run_file(connection: psycopg.Connection, name: str) -> None:
    connection.execute((_HERE / name).read_bytes())


def main(arguments: list[str]) -> int:
    """Prepare a server of one's own: `python -m kindmem.postgres.bootstrap SUPERUSER_URL [DB]`."""
    if not 1 <= len(arguments) <= 2:
        sys.stderr.write(f"{main.__doc__}\n")
        return 2
    try:
        bootstrap(*arguments)
    except (psycopg.Error, ClusterError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(
        "Done. Give kindmem_app, kindmem_owner and kindmem_backup passwords (ALTER ROLE … PASSWORD) "
        "or another way in, and name the first two in DATABASE_URL and DATABASE_OWNER_URL.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
