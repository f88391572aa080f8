"""What is waiting, running and failing in the worker's queue: for /metrics and `doctor`."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from memory.tenancy import all_tenants

_COUNTS = """
SELECT task_name, status::text, count(*) FROM procrastinate_jobs GROUP BY task_name, status
"""
_FAILURES = """
SELECT work, sum(failures)::bigint, count(*) FILTER (WHERE in_a_row > 0) FROM work_failure GROUP BY work
"""
_FAILING = """
SELECT f.work, f.tenant_id, f.in_a_row, f.error, f.failed_at,
       (SELECT min(j.scheduled_at) FROM procrastinate_jobs j
        WHERE j.lock = f.work || ':' || f.tenant_id AND j.status = 'todo')
FROM work_failure f WHERE f.in_a_row >= %s::int ORDER BY f.in_a_row DESC, f.work, f.tenant_id LIMIT %s::int
"""


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """By (work, status) how many jobs; by work how many failures ever, and in how many tenants it fails now."""

    jobs: dict[tuple[str, str], int]
    failures: dict[str, int]
    failing: dict[str, int]


@dataclass(frozen=True, slots=True)
class Failing:
    """Work that fails again and again. `tenant`: its slug, or 'every tenant'; `next_at` None: at once, or when it is due."""

    work: str
    tenant: str
    in_a_row: int
    error: str
    failed_at: datetime
    next_at: datetime | None


def queue_counts() -> QueueCounts:
    """The queue now. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS)
        jobs = {(name, status): int(count) for name, status, count in cursor.fetchall()}
        cursor.execute(_FAILURES)
        rows = cursor.fetchall()
    return QueueCounts(
        jobs, {row[0]: int(row[1]) for row in rows}, {row[0]: int(row[2]) for row in rows}
    )


def failing_work(*, at_least: int, limit: int = 20) -> list[Failing]:
    """Work that failed so often in a row, the worst first. Raises DatabaseError."""
    slugs: dict[UUID, str] = dict(all_tenants())
    with connection.cursor() as cursor:
        cursor.execute(_FAILING, [at_least, limit])
        return [
            Failing(work, slugs.get(tenant, "every tenant"), in_a_row, error, failed_at, next_at)
            for work, tenant, in_a_row, error, failed_at, next_at in cursor.fetchall()
        ]
