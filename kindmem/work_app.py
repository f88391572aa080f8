"""The jobs of the worker as tasks of procrastinate: what each does, when it is tried again, what is kept of a failure.

A job names a tenant alone. It does one turn of `memory.housekeeping`; a turn that stopped before its end goes back to the queue
behind the others, one that failed comes back later and later. Of a failure the kind is kept and logged, never the text, which
could quote what is remembered.
"""

import functools
import threading
import traceback
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, connections
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.jobs import Job
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool

from memory.errors import DomainError, SweepOff, SweepRunning, TenantClosed
from memory.housekeeping import JOBS, TenantJob
from memory.tenancy import tenant_context
from memory.work import NOBODY, OF_THE_INSTALLATION, WORKS

KEPT_DAYS: Final = 7
LONGEST_PAUSE_SECONDS: Final = 60
# What an operator chose, or another runner does, is no failure.
_NO_FAILURE = (SweepOff, SweepRunning, TenantClosed)
_CRONS = {60.0: "* * * * *", 300.0: "*/5 * * * *", 600.0: "*/10 * * * *", 3600.0: "0 * * * *"}
SLOW = {name: work for name, work in WORKS.items() if work.every_seconds in _CRONS}
"""Looked for by the clock, once for all workers; the rest by each worker, every few seconds."""
_OUR_OPTIONS = ("server_side_binding", "prepare_threshold", "pool", "assume_role")

_FAILED = """
INSERT INTO work_failure AS f (work, tenant_id, error) VALUES (%s::text, %s::uuid, %s::text)
ON CONFLICT ON CONSTRAINT work_failure_pkey DO UPDATE
SET failures = f.failures + 1, in_a_row = f.in_a_row + 1, error = excluded.error, failed_at = clock_timestamp()
RETURNING in_a_row
"""
_WENT_WELL = """
UPDATE work_failure SET in_a_row = 0 WHERE work = %s::text AND tenant_id = %s::uuid AND in_a_row > 0
"""
_PRUNE = f"""
DELETE FROM procrastinate_jobs j
WHERE j.status NOT IN ('todo', 'doing') AND coalesce(
  (SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = j.id), '-infinity') < now() - interval '{KEPT_DAYS} days'
"""

log = structlog.get_logger("kindmem.worker")


class MoreToDo(Exception):
    """A turn ended before its work did."""


class JobFailed(Exception):
    """A turn failed; `in_a_row`: how often by now."""

    def __init__(self, error: str, in_a_row: int) -> None:
        super().__init__(error)
        self.in_a_row = in_a_row


class Again(BaseRetryStrategy):
    """When a job has its next turn: at once behind the others, or after a failure later and later."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, MoreToDo):
            return RetryDecision(priority=WORKS[job.task_name].urgency - 1 - job.attempts)
        failed = exception.in_a_row if isinstance(exception, JobFailed) else 1
        seconds = min(2 ** min(failed, 10), LONGEST_PAUSE_SECONDS)
        return RetryDecision(retry_in={"seconds": seconds}, priority=WORKS[job.task_name].urgency)


class Running:
    """Which jobs the threads of this process are at, and whether their database connections are still those of before."""

    def __init__(self) -> None:
        self.jobs: set[int] = set()
        self.connected = 0
        self._of_thread = threading.local()

    def refresh_connections(self) -> None:
        """Let the thread connect anew when the database was lost meanwhile."""
        if getattr(self._of_thread, "connected", 0) != self.connected:
            connections.close_all()
            self._of_thread.connected = self.connected


def make_app(running: Running) -> App:
    """The app with all its tasks, not open yet."""
    app = App(
        connector=PsycopgConnector(
            conninfo=_conninfo(),
            kwargs={"autocommit": True, "prepare_threshold": settings.KINDMEM_PREPARE_THRESHOLD},
            pool_factory=_pool,
            min_size=1,
            max_size=4,
            num_workers=1,
        ),
        # A tick that nobody kept because no worker ran is made up for.
        periodic_defaults={"max_delay": max(_CRONS) + 60},
    )
    for name, _, call in JOBS:
        task = functools.partial(_do, name, call, running)
        app.task(name=name, pass_context=True, retry=Again(), queue=WORKS[name].queue)(task)
    for name, work in SLOW.items():
        _look_by_the_clock(app, f"look-for-{name}", _CRONS[work.every_seconds], name)
    _look_by_the_clock(app, "seal-everything", "*/10 * * * *", "seal", everywhere=True)
    _by_the_clock(app, "prune-finished", "30 * * * *", lambda: [(_PRUNE, [])])
    return app


def _look_by_the_clock(
    app: App, task: str, cron: str, work: str, *, everywhere: bool = False
) -> None:
    look = everything if everywhere else of_the_installation if work in OF_THE_INSTALLATION else due
    _by_the_clock(app, task, cron, lambda: [look([work])])


def _by_the_clock(
    app: App, name: str, cron: str, statements: Callable[[], list[tuple[str, Any]]]
) -> None:
    def run(timestamp: int) -> None:
        with connection.cursor() as cursor:
            for statement, parameters in statements():
                cursor.execute(statement, parameters)

    app.periodic(cron=cron)(app.task(name=name, queue="near", lock=name)(run))


def due(works: list[str]) -> tuple[str, dict[str, Any]]:
    """The statement that asks for what is due of these works, and its parameters."""
    return (
        "SELECT defer_due_work(%(works)s::text[], %(queues)s::text[], %(urgencies)s::int[])",
        {
            "works": works,
            "queues": [WORKS[name].queue for name in works],
            "urgencies": [WORKS[name].urgency for name in works],
        },
    )


def everything(works: list[str]) -> tuple[str, dict[str, Any]]:
    """The statement that asks for these works in every tenant."""
    return (
        "SELECT count(defer_work(w.work, w.queue, w.urgency, t.id)) FROM tenant_ids() t,"
        " unnest(%(works)s::text[], %(queues)s::text[], %(urgencies)s::int[]) AS w (work, queue, urgency)",
        due(works)[1],
    )


def of_the_installation(works: list[str]) -> tuple[str, dict[str, Any]]:
    """The statement that asks for these works of no tenant."""
    return (
        "SELECT count(defer_work(w.work, w.queue, w.urgency, %(nobody)s::uuid))"
        " FROM unnest(%(works)s::text[], %(queues)s::text[], %(urgencies)s::int[]) AS w (work, queue, urgency)",
        {**due(works)[1], "nobody": NOBODY},
    )


def _conninfo() -> str:
    database = settings.DATABASES["default"]
    options = {
        name: value
        for name, value in database.get("OPTIONS", {}).items()
        if name not in _OUR_OPTIONS
    }
    given = {
        "dbname": database["NAME"],
        "user": database["USER"],
        "password": database["PASSWORD"],
        "host": database["HOST"],
        "port": database["PORT"],
        "application_name": "kindmem worker",
        **options,
    }
    return make_conninfo("", **{name: value for name, value in given.items() if value})


def _pool(**given: Any) -> AsyncConnectionPool:
    # Asking before each statement whether the connection lives would double what an idle worker asks.
    return AsyncConnectionPool(**{**given, "check": None})


def _do(
    work: str,
    call: Callable[[], None],
    running: Running,
    context: JobContext,
    tenant_id: str | None = None,
) -> None:
    """One turn. Raises MoreToDo, JobFailed."""
    job_id = context.job.id or 0
    running.jobs.add(job_id)
    running.refresh_connections()
    tenant = NOBODY if tenant_id is None or work in OF_THE_INSTALLATION else UUID(tenant_id)
    try:
        wants_more = _turn(call, tenant)
        if context.job.attempts:
            _execute(_WENT_WELL, [work, tenant])
    except _NO_FAILURE as error:
        log.info("job_left", job=work, tenant=str(tenant), code=error.code)
        return
    except Exception as error:
        kind = error.code if isinstance(error, DomainError) else type(error).__name__
        raise JobFailed(kind, _note(work, tenant, kind, error)) from None
    finally:
        running.jobs.discard(job_id)
    if wants_more:
        raise MoreToDo


def _turn(call: Callable[[], None], tenant_id: UUID) -> bool:
    if not isinstance(call, TenantJob):
        call()
        return False
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT slug FROM tenant WHERE id = %s::uuid AND closed_at IS NULL", [tenant_id]
        )
        row = cursor.fetchone()
    return row is not None and call.turn(tenant_id, row[0]) is True


def _note(work: str, tenant_id: UUID, kind: str, error: Exception) -> int:
    """Keep and log that it failed; how often in a row. 1 where the database can't be told."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    log.warning(
        "job_failed",
        job=work,
        tenant=str(tenant_id),
        error=kind,
        at=f"{frame.filename}:{frame.lineno}",
    )
    connections.close_all()
    try:
        return int(_execute(_FAILED, [work, tenant_id, kind])[0])
    except DatabaseError:
        connections.close_all()
        return 1


def _execute(statement: str, parameters: list[Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone() if cursor.description else None
