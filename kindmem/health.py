"""Whether the process lives and whether it can serve: /livez, /readyz, and /metrics for Prometheus.

/livez touches nothing. /readyz asks the database, that every migration is applied, and how late the worker is; it says which of
them fails and no more, since anybody may ask.
"""

import functools
import math
import os
import time
from collections.abc import Callable

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from kindmem.heartbeat import worker_lag_seconds
from kindmem.queue_state import queue_counts
from memory.api.errors import respond
from memory.errors import MethodNotAllowed
from memory.work import WORKS

WORKER_LAG_LIMIT_SECONDS = 60
_migrated_at: float | None = None
_View = Callable[[HttpRequest], HttpResponse]


def _read_only(view: _View) -> _View:
    @functools.wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return respond(MethodNotAllowed(allowed=["GET", "HEAD"]), request)
        return view(request)

    return answer


@_read_only
def livez(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


@_read_only
def readyz(request: HttpRequest) -> HttpResponse:
    checks = {"database": _database(), "migrations": False, "worker": False}
    if checks["database"]:
        checks["migrations"] = _migrations()
    lag = worker_lag_seconds()
    checks["worker"] = lag is not None and lag <= WORKER_LAG_LIMIT_SECONDS
    ready = checks["database"] and checks["migrations"]
    body = {
        # The API serves without the worker; what is late is said, so that an operator sees it.
        "status": "ok" if all(checks.values()) else "degraded" if ready else "unavailable",
        "checks": checks,
        "workerLagSeconds": None if lag is None else round(lag, 1),
    }
    return JsonResponse(body, status=200 if ready else 503)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        connection.close()
        return False
    return True


def _migrations() -> bool:
    """Looked up until true, then remembered: a process never runs older migrations than it started with."""
    global _migrated_at
    if _migrated_at is None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        _migrated_at = time.monotonic()
    return True


@_read_only
def metrics(request: HttpRequest) -> HttpResponse:
    """Of all web workers together, where they share a folder for it; and how the background worker and its queue are."""
    registry = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(registry)
        shown = generate_latest(registry)
    else:
        shown = generate_latest()
    lag_of = CollectorRegistry()
    lag = worker_lag_seconds()
    gauge = Gauge("kindmem_worker_lag_seconds", "How late the worker is.", registry=lag_of)
    gauge.set(math.inf if lag is None else lag)
    if lag is not None:
        _show_queue(lag_of)
    return HttpResponse(shown + generate_latest(lag_of), content_type=CONTENT_TYPE_LATEST)


def _show_queue(registry: CollectorRegistry) -> None:
    """Every kind of work that there is, so that a rate has a beginning; and of the rest what is in the queue."""
    counts = queue_counts()
    waiting = Gauge("kindmem_jobs_waiting", "Jobs in the queue.", ["work"], registry=registry)
    running = Gauge("kindmem_jobs_running", "Jobs at work.", ["work"], registry=registry)
    failing = Gauge(
        "kindmem_jobs_failing", "Tenants in which it fails now.", ["work"], registry=registry
    )
    failures = Counter("kindmem_job_failures", "Turns that failed.", ["work"], registry=registry)
    for work in sorted({*WORKS, *(name for name, _ in counts.jobs)}):
        waiting.labels(work).set(counts.jobs.get((work, "todo"), 0))
        running.labels(work).set(counts.jobs.get((work, "doing"), 0))
        failing.labels(work).set(counts.failing.get(work, 0))
        failures.labels(work).inc(counts.failures.get(work, 0))
