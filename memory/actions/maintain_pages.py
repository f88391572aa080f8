"""Clear the disk pages of what erasures deleted, as the role that owns the tables; the worker's, once a day at most.

It begins a minute after it was asked for, when every transaction that could still see the deleted rows is over. A table of up to
REWRITE_MAX_BYTES is written anew with its indexes, under a lock that is asked for two seconds and held for about one; of another,
or one that is in use, the indexes are made anew beside the running work and the rows are freed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, connections
from psycopg import errors as postgres

log = structlog.get_logger("kindmem.maintenance")

REWRITE_MAX_BYTES = 64 << 20
SETTLED_AFTER = timedelta(seconds=60)
_ABANDONED_AFTER = timedelta(hours=12)

_TAKE = """
UPDATE page_maintenance p SET status = 'running', started_at = clock_timestamp()
WHERE p.status = 'due' AND p.asked_at <= clock_timestamp() - %(settled)s::interval
  AND NOT EXISTS (SELECT FROM page_maintenance r WHERE r.status = 'running')
  AND NOT EXISTS (SELECT FROM page_maintenance d WHERE d.status IN ('done', 'failed')
                    AND d.started_at > clock_timestamp() - %(every)s::interval)
RETURNING p.id
"""
_GIVE_UP = """
UPDATE page_maintenance SET status = 'failed', finished_at = clock_timestamp(), failure = 'interrupted'
WHERE status = 'running' AND started_at < clock_timestamp() - %(abandoned)s::interval
"""
_END = """
UPDATE page_maintenance SET status = %(status)s::text, finished_at = clock_timestamp(), rewritten_count = %(rewritten)s::int,
       vacuumed_count = %(vacuumed)s::int, failure = %(failure)s::text
WHERE id = %(id)s::uuid
"""
_TABLES = """
SELECT c.oid::regclass::text, pg_table_size(c.oid) FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relowner = current_user::regrole
  AND (c.relforcerowsecurity OR c.relname LIKE 'procrastinate%%')
ORDER BY 1
"""
# What a rebuilding that was cut off leaves behind.
_HALF_MADE = """
SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND c.relowner = current_user::regrole AND c.relname ~ '_ccnew[0-9]*$'
"""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """How many tables were written anew, and how many only freed."""

    rewritten: int
    vacuumed: int


class NotOwner(RuntimeError):
    """DATABASE_OWNER_URL does not name the role that owns the tables, so nobody here may rewrite them."""


def _nobody(table: str, done: int, all: int) -> None:
    """Nobody watches."""


def maintain_pages(
    *,
    rewrite_max_bytes: int = REWRITE_MAX_BYTES,
    on_table: Callable[[str, int, int], None] = _nobody,
) -> Maintenance:
    """Clear every tenant table's pages now. Opens no transaction; call it outside any. Raises DatabaseError, NotOwner."""
    rewritten = vacuumed = 0
    with connections["owner"].cursor() as cursor:
        cursor.execute(_HALF_MADE)
        for (index,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
        cursor.execute(_TABLES)
        tables = cursor.fetchall()
        if not tables:
            raise NotOwner
        for number, (table, size) in enumerate(tables):
            on_table(table, number, len(tables))
            if size <= rewrite_max_bytes and _is_rewritten(cursor, table):
                rewritten += 1
                continue
            cursor.execute(f"VACUUM {table}")
            cursor.execute(f"REINDEX TABLE CONCURRENTLY {table}")
            vacuumed += 1
    return Maintenance(rewritten, vacuumed)


def _is_rewritten(cursor: Any, table: str) -> bool:
    """Write the table anew, unless somebody uses it for longer than two seconds."""
    cursor.execute("SET lock_timeout = '2s'")
    try:
        cursor.execute(f"VACUUM (FULL) {table}")
    except DatabaseError as error:
        if isinstance(error.__cause__, postgres.LockNotAvailable):
            return False
        raise
    finally:
        cursor.execute("RESET lock_timeout")
    return True


def maintain_when_due(*, settled_after: timedelta = SETTLED_AFTER) -> Maintenance | None:
    """Run the maintenance that is due, unless one ran within KINDMEM_MAINTENANCE_HOURS; None when there was none to run."""
    every = timedelta(hours=settings.KINDMEM_MAINTENANCE_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_UP, _named(abandoned=_ABANDONED_AFTER))
        cursor.execute(_TAKE, _named(settled=settled_after, every=every))
        row = cursor.fetchone()
    if row is None:
        return None
    ended: dict[str, Any] = {"id": row[0], "status": "failed", "rewritten": 0, "vacuumed": 0}
    try:
        done = maintain_pages()
    except (DatabaseError, NotOwner) as error:
        log.warning("maintenance failed", error=type(error.__cause__ or error).__name__)
        _end(ended | {"failure": "no-owner" if isinstance(error, NotOwner) else "database"})
        return None
    _end(
        ended
        | {
            "status": "done",
            "rewritten": done.rewritten,
            "vacuumed": done.vacuumed,
            "failure": None,
        }
    )
    return done


def _named(**parameters: Any) -> dict[str, Any]:
    return parameters


def _end(ended: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_END, ended)
