"""Do the verifications that were asked for, in short steps, so that the worker's other jobs have their turn between them.

What a step has read stays in this process until the next one; how far it came is in the database, for those who watch. A
verification whose worker died is begun anew by the next.
"""

import heapq
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.raise_alarm import settle_seals
from memory.actions.verify_run import keep_verification, log_verification, sealed_log_of
from memory.actions.verify_tenant import RUNS
from memory.ids import new_id
from memory.integrity.examination import RunExamination
from memory.integrity.rows import Progress
from memory.integrity.sealed_log import SealedLog
from memory.integrity.states import ChainReport, FirstBad, State, overall
from memory.queries.verification_jobs import COLUMNS, VerificationJob
from memory.tenancy import tenant_context

STEP_SECONDS: Final = 2.0
REPORTS_KEPT: Final = 100
ATTEMPTS_AT_MOST: Final = 5
_LEASE_SECONDS: Final = 60
_PRECEDENCE: Final = list(State)
_GOOD: Final = (
    "verified",
    "verified-unsealed-tail",
    "unanchored",
    "erased-attested",
    "linkage-only",
)

_TAKE = f"""
UPDATE verification_job v
SET status = 'running', runner = %(runner)s::uuid, attempts = attempts + 1, runs_done = 0, entries_done = 0,
    started_at = coalesce(started_at, clock_timestamp()), lease_until = clock_timestamp() + make_interval(secs => %(lease)s::int)
WHERE v.tenant_id = %(tenant)s::uuid AND v.id = (
  SELECT w.id FROM verification_job w
  WHERE w.tenant_id = %(tenant)s::uuid
    AND (w.status = 'queued' OR (w.status = 'running' AND w.lease_until < clock_timestamp()))
  ORDER BY w.created_at, w.id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING v.attempts, {COLUMNS}
"""
_SINCE = """
SELECT max(checkpoint_size) FROM verification_job
WHERE tenant_id = %(tenant)s::uuid AND status = 'done' AND state = ANY (%(good)s::text[]) AND from_sequence IS NULL
  AND to_sequence IS NULL AND (run_id IS NULL OR run_id = %(run)s::text)
"""
# A run is read from its first entry on unless what was found of it last was good.
_STANDING = """
SELECT EXISTS (SELECT FROM run_verification
               WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND state = ANY (%(good)s::text[]))
"""
_BEGIN = """
UPDATE verification_job SET runs_total = %(runs)s::int, entries_total = %(entries)s::bigint, since_size = %(since)s::bigint
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid
"""
_ENTRIES = """
SELECT coalesce(sum(greatest(least(next_sequence, %(to)s::bigint + 1) - coalesce(%(from)s::bigint, 0), 0)), 0)
FROM run_head WHERE tenant_id = %(tenant)s::uuid AND run_id = ANY (%(runs)s::text[])
"""
# Nothing comes back when it was called off, or when another worker took it up because this one was slow.
_SHOW = """
UPDATE verification_job SET runs_done = %(runs)s::int, entries_done = %(entries)s::bigint,
       lease_until = clock_timestamp() + make_interval(secs => %(lease)s::int)
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid AND status = 'running'
  AND cancel_asked_at IS NULL
RETURNING 1
"""
_END = """
UPDATE verification_job SET status = %(status)s::text, state = %(state)s::text, found_text = %(found)s::text,
       checkpoint_size = %(checkpoint)s::bigint, finished_at = clock_timestamp(), runner = NULL, lease_until = NULL
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid AND status = 'running'
"""


@dataclass(slots=True)
class _Work:
    """One verification as far as this process has come. `worst`: a heap of the reports that are kept, the mildest on top."""

    job: VerificationJob
    runner: UUID
    sealed_log: SealedLog
    runs: Iterator[str]
    since: int
    since_of_run: int = 0
    examination: RunExamination | None = None
    run_id: str = ""
    runs_done: int = 0
    entries_done: int = 0
    entries_of_run: int = 0
    states: Counter[str] = field(default_factory=Counter)
    worst: list[tuple[int, int, ChainReport]] = field(default_factory=list)
    number: Iterator[int] = field(default_factory=count)

    def note(self, progress: Progress) -> None:
        self.entries_of_run = progress.entries

    def take(self, report: ChainReport) -> None:
        self.runs_done += 1
        self.entries_done += report.entries
        self.entries_of_run = 0
        self.states[report.state.value] += 1
        one = (-_PRECEDENCE.index(report.state), -next(self.number), report)
        if len(self.worst) < REPORTS_KEPT:
            heapq.heappush(self.worst, one)
        else:
            heapq.heappushpop(self.worst, one)

    def found(self) -> dict[str, Any]:
        ordered = [report for *_, report in sorted(self.worst, key=lambda one: (-one[0], -one[1]))]
        body: dict[str, Any] = {
            "states": dict(self.states),
            "reports": [report.as_wire() for report in ordered],
        }
        if self.log_bad is not None:
            body["firstBad"] = self.log_bad.as_wire()
        return body

    @property
    def log_bad(self) -> FirstBad | None:
        """What is wrong with the log of seals; a leaf that is not signed yet only counts where the whole tenant is looked at."""
        log = self.sealed_log
        return log.bad_anywhere if self.job.run_id is None else log.first_bad


_AT_WORK: dict[UUID, _Work] = {}
"""By tenant: what this process reads at present."""


def run_verifications(principal: Principal, *, seconds: float = STEP_SECONDS) -> bool:
    """Work for about so long; whether something is left to do. Opens its own transactions; call it outside any."""
    until = time.monotonic() + seconds
    tenant_id = principal.tenant_id
    work = _AT_WORK.pop(tenant_id, None) or _take(principal)
    if work is None:
        return False
    while True:
        with tenant_context(tenant_id), connection.cursor() as cursor:
            is_through = _step(principal, work, cursor, until)
            if not _is_ours(principal, work, cursor):
                _end(principal, work, cursor, "cancelled")
                return True
            if is_through:
                _finish(principal, work, cursor)
                return True
        if time.monotonic() > until:
            _AT_WORK[tenant_id] = work
            return True


def _take(principal: Principal) -> _Work | None:
    runner = new_id()
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        key: dict[str, Any] = {"tenant": principal.tenant_id, "runner": runner}
        cursor.execute(_TAKE, {**key, "lease": _LEASE_SECONDS})
        row = cursor.fetchone()
        if row is None:
            return None
        attempts, job = row[0], VerificationJob(*row[1:])
        key["id"] = job.id
        if attempts > ATTEMPTS_AT_MOST:
            cursor.execute(_END, {**key, **_NOTHING_FOUND, "status": "failed"})
            return None
        sealed_log = sealed_log_of(cursor, principal)
        since = _since(cursor, key, job, sealed_log)
        if job.run_id is None:
            cursor.execute(RUNS, key)
            runs = sorted(row[0] for row in cursor.fetchall())
        else:
            runs = [job.run_id]
        cursor.execute(_ENTRIES, {**key, "from": job.first, "to": job.last, "runs": runs})
        [entries] = cursor.fetchone()
        cursor.execute(
            _BEGIN, {**key, "runs": len(runs), "entries": entries, "since": since or None}
        )
    return _Work(job, runner, sealed_log, iter(runs), since)


_NOTHING_FOUND: Final = {"state": None, "found": None, "checkpoint": None}


def _since(cursor: Any, key: dict[str, Any], job: VerificationJob, sealed_log: SealedLog) -> int:
    """How much of the log of seals is taken on its signature: what the last good verification had all of before it."""
    if not job.is_incremental:
        return 0
    if job.run_id is not None and not _stands_good(cursor, job.run_id, key["tenant"]):
        return 0
    cursor.execute(_SINCE, {**key, "run": job.run_id, "good": list(_GOOD)})
    return min(cursor.fetchone()[0] or 0, sealed_log.size)


def _stands_good(cursor: Any, run_id: str, tenant_id: UUID) -> bool:
    cursor.execute(_STANDING, {"tenant": tenant_id, "run": run_id, "good": list(_GOOD)})
    return bool(cursor.fetchone()[0])


def _step(principal: Principal, work: _Work, cursor: Any, until: float) -> bool:
    """Read on within one transaction; True when there is no run left."""
    while True:
        if work.examination is None:
            run_id = next(work.runs, None)
            if run_id is None:
                return True
            work.run_id = run_id
            is_joined = work.since > 0 and _stands_good(cursor, run_id, principal.tenant_id)
            work.since_of_run = work.since if is_joined else 0
            work.examination = RunExamination(
                cursor,
                tenant_id=principal.tenant_id,
                tenant_slug=principal.tenant_slug,
                run_id=run_id,
                sealed_log=work.sealed_log,
                first=work.job.first or 0,
                last=work.job.last,
                since=work.since_of_run,
                on_batch=work.note,
            )
        if not work.examination.read(cursor, until=until):
            return False
        report = work.examination.report()
        work.examination = None
        work.take(report)
        is_whole = work.job.first is None and work.job.last is None
        if is_whole or report.state is State.TAMPERED:
            keep_verification(
                cursor,
                principal,
                report,
                asked_by=work.job.asked_by,
                is_full=is_whole and work.since_of_run == 0,
            )
        if time.monotonic() > until:
            return False


def _is_ours(principal: Principal, work: _Work, cursor: Any) -> bool:
    cursor.execute(
        _SHOW,
        {
            **_key(principal, work),
            "runs": work.runs_done,
            "entries": work.entries_done + work.entries_of_run,
            "lease": _LEASE_SECONDS,
        },
    )
    return cursor.fetchone() is not None


def _finish(principal: Principal, work: _Work, cursor: Any) -> None:
    states = [State(state) for state in work.states]
    if work.log_bad is not None:
        states.append(State.TAMPERED)
    settle_seals(cursor, principal.tenant_id, work.sealed_log, by=work.job.asked_by)
    state = overall(states)
    found = work.found()
    _end(principal, work, cursor, "done", state=state.value, found=json.dumps(found))
    job = work.job
    payload: dict[str, Any] = {
        "type": "log.verified",
        "state": state.value,
        "runs": work.runs_done,
        "verificationId": str(job.id),
        "requestedBy": job.asked_by,
        "tampered": [one["runId"] for one in found["reports"] if one["state"] == "tampered"],
    }
    if job.run_id is not None:
        payload["runId"] = job.run_id
    log_verification(principal, payload)


def _end(
    principal: Principal,
    work: _Work,
    cursor: Any,
    status: str,
    *,
    state: str | None = None,
    found: str | None = None,
) -> None:
    checkpoint = work.sealed_log.size if status == "done" else None
    cursor.execute(
        _END,
        {
            **_key(principal, work),
            "status": status,
            "state": state,
            "found": found,
            "checkpoint": checkpoint,
        },
    )


def _key(principal: Principal, work: _Work) -> dict[str, Any]:
    return {"tenant": principal.tenant_id, "id": work.job.id, "runner": work.runner}
