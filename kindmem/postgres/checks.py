"""Decides whether a PostgreSQL server, seen through the application's role, may carry the product.

Every refusal says what to do. They are looked at before the web server starts: a role that
row-level security doesn't bind, or commits that a power cut undoes, show only when it is too late.
"""

from collections.abc import Iterator
from typing import Any

import psycopg

MINIMUM_SERVER = 150000
MINIMUM_PGVECTOR = (0, 8)

_ROLE = """
SELECT current_user::text, r.rolsuper, r.rolbypassrls,
       (SELECT min(p.rolname::text) FROM pg_roles p
         WHERE (p.rolsuper OR p.rolbypassrls) AND p.rolname <> current_user
           AND pg_has_role(current_user, p.oid, 'MEMBER')),
       (SELECT min(c.oid::regclass::text) FROM pg_class c
          JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%'
           AND n.nspname <> 'information_schema'
           AND pg_has_role(current_user, c.relowner, 'MEMBER')),
       (SELECT pg_has_role(current_user, d.datdba, 'MEMBER') FROM pg_database d
         WHERE d.datname = current_database())
FROM pg_roles r WHERE r.rolname = current_user
"""
_SETTINGS = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"


def refusals(conninfo: str, *, expects_citus: bool = False) -> list[str]:
    """Why the application must not run over this connection; empty when it may.

    `expects_citus`: it will tell Citus nodes the tenant. A server that can't be reached is a refusal too. No password is ever
    in a message.
    """
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
            info = connection.info
            if wrong := encoding_refusal(info.dbname, info.parameter_status("server_encoding")):
                # With SQL_ASCII the server's answers are bytes then: nothing else can be asked as text.
                return [wrong]
            return [
                *_server_refusals(connection),
                *_pgvector_refusals(connection),
                *_role_refusals(connection),
                *_durability_refusals(connection),
                *_citus_refusals(connection, expects_citus=expects_citus),
            ]
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        return [
            f"The database can't be reached: {str(error).strip()}. Check that the server runs and "
            "that DATABASE_URL names the right host, port, database, role and password. A new server is "
            "prepared once with `python -m kindmem.postgres.bootstrap SUPERUSER_URL`."
        ]


def encoding_refusal(dbname: str, encoding: str | None) -> str | None:
    """Why a database of this encoding can't hold any text; None when it can."""
    if encoding == "UTF8":
        return None
    return (
        f"The database's encoding is {encoding} ({dbname}) and must be UTF8, since memory is any text. "
        "Make it anew: CREATE DATABASE kindmem TEMPLATE template0 ENCODING 'UTF8'."
    )


def _server_refusals(connection: psycopg.Connection) -> Iterator[str]:
    if connection.info.server_version < MINIMUM_SERVER:
        yield (
            f"The server is PostgreSQL {connection.info.parameter_status('server_version')}; "
            "kindmem needs 15 or newer. Upgrade it, or use another server in DATABASE_URL."
        )


def _pgvector_refusals(connection: psycopg.Connection) -> Iterator[str]:
    row = _row(
        connection,
        "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'), "
        "to_regtype('halfvec') IS NOT NULL",
    )
    version, has_halfvec = row
    if version is None:
        yield (
            "The database has no pgvector. As superuser, in this database: CREATE EXTENSION vector "
            "(pgvector 0.8.0 or newer must be installed on the server)."
        )
        return
    number = tuple(int(part) for part in version.split(".")[:2])
    if number < MINIMUM_PGVECTOR or not has_halfvec or not _has_iterative_scan(connection):
        yield (
            f"pgvector is {version}; kindmem needs 0.8.0 or newer (halfvec, hnsw.iterative_scan). "
            "Install it on the server, then as superuser: ALTER EXTENSION vector UPDATE."
        )


def _has_iterative_scan(connection: psycopg.Connection) -> bool:
    # The library's settings are known once it is loaded, and any vector loads it.
    connection.execute("SELECT '[1]'::vector")
    return _row(connection, "SELECT current_setting('hnsw.iterative_scan', true)")[0] is not None


def _role_refusals(connection: psycopg.Connection) -> Iterator[str]:
    role, is_super, bypasses, mighty, table, owns_database = _row(connection, _ROLE)
    use_app = "Use the role kindmem_app in DATABASE_URL"
    if is_super:
        yield f"The role {role} is a superuser, whom no row-level security binds. {use_app}."
        return
    if bypasses:
        yield (
            f"The role {role} has BYPASSRLS, so tenants would not be walled off. {use_app}, or "
            f"as superuser: ALTER ROLE {role} NOBYPASSRLS."
        )
    if mighty is not None:
        yield (
            f"The role {role} is a member of {mighty}, which no row-level security binds. "
            f"{use_app}, or as superuser: REVOKE {mighty} FROM {role}."
        )
    if table is not None or owns_database:
        owned = "the database" if table is None else f"the table {table}"
        yield (
            f"The role {role} owns {owned} (or is a member of its owner), so it could lift "
            f"row-level security. {use_app}, and give the owner's role in DATABASE_OWNER_URL."
        )


def _durability_refusals(connection: psycopg.Connection) -> Iterator[str]:
    names = ["synchronous_commit", "fsync", "full_page_writes"]
    settings: dict[str, str] = dict(connection.execute(_SETTINGS, [names]).fetchall())
    if settings["synchronous_commit"] not in ("on", "remote_apply"):
        yield (
            f"synchronous_commit is {settings['synchronous_commit']} for this role, so an "
            "acknowledged write could be lost. As superuser: ALTER ROLE kindmem_app SET "
            "synchronous_commit = 'on' (and look at ALTER DATABASE and postgresql.conf)."
        )
    for name in ("fsync", "full_page_writes"):
        if settings[name] != "on":
            yield (
                f"{name} is {settings[name]}, so a crash could corrupt the database. As "
                f"superuser: ALTER SYSTEM SET {name} = 'on', then SELECT pg_reload_conf()."
            )


def _citus_refusals(connection: psycopg.Connection, *, expects_citus: bool) -> Iterator[str]:
    (has_citus,) = _row(connection, "SELECT to_regclass('pg_dist_partition') IS NOT NULL")
    if has_citus and not expects_citus:
        yield (
            "The database has Citus, and its nodes would not be told the tenant, so that reads would come back empty. "
            "Set KINDMEM_CITUS=1 (see docs/scale.md)."
        )
    if expects_citus and not has_citus:
        yield "KINDMEM_CITUS is set and the database has no Citus. Leave it out, or see docs/scale.md."


def _row(connection: psycopg.Connection, query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise psycopg.DataError("the catalog query answered nothing")
    return row
