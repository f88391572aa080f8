"""Verify every run of a tenant, and every run that its seals name, against the log of seals; keep what was found; log it once.

The verification is logged after everything was looked at: the entry that says so would otherwise be an unsealed tail of its own.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from django.db import connection

from memory.access import Principal
from memory.actions.raise_alarm import settle_seals
from memory.actions.verify_run import keep_verification, log_verification, sealed_log_of
from memory.errors import LogNotFound
from memory.integrity.examination import RunExamination
from memory.integrity.receipts import Receipt, first_contradicted
from memory.integrity.rows import Progress
from memory.integrity.sealed_log import SealedLog
from memory.integrity.states import ChainReport, FirstBad, State, overall
from memory.tenancy import tenant_context

_STEP_SECONDS = 10.0
"""How long one transaction reads; the role's own limit is longer."""

# Index skips, one look-up a run: a DISTINCT would read every entry.
RUNS = """
WITH RECURSIVE logged AS (
  SELECT min(run_id) AS run_id FROM log_entry WHERE tenant_id = %(tenant)s::uuid
  UNION ALL
  SELECT (SELECT min(e.run_id) FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id > logged.run_id)
  FROM logged WHERE logged.run_id IS NOT NULL
), sealed AS (
  SELECT min(run_id) AS run_id FROM seal_leaf WHERE tenant_id = %(tenant)s::uuid AND run_id IS NOT NULL
  UNION ALL
  SELECT (SELECT min(l.run_id) FROM seal_leaf l WHERE l.tenant_id = %(tenant)s::uuid AND l.run_id > sealed.run_id)
  FROM sealed WHERE sealed.run_id IS NOT NULL
)
SELECT run_id FROM run_head WHERE tenant_id = %(tenant)s::uuid
UNION SELECT run_id FROM logged WHERE run_id IS NOT NULL
UNION SELECT run_id FROM sealed WHERE run_id IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class TenantReport:
    """One report a run, and the state that speaks for all. `log_bad`: what is wrong with the log of seals itself.

    `unanchored_from`: the first leaf under a signed head that the anchor file should have and has not.
    """

    state: State
    reports: tuple[ChainReport, ...]
    log_bad: FirstBad | None
    unanchored_from: int | None = None


def verify_tenant(
    *,
    principal: Principal,
    run_id: str | None = None,
    in_sql: bool = False,
    receipts: Sequence[Receipt] = (),
    on_run: Callable[[int, int, str], None] | None = None,
    on_batch: Callable[[Progress], None] | None = None,
) -> TenantReport:
    """Opens its own transactions, so that a long log keeps none open; call it outside any.

    `run_id`: that run only. `on_run` hears number, count and id of each run as it begins. Raises PermissionDenied, LogNotFound.
    """
    principal.needs_role("admin", "auditor", "owner")
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        sealed_log = sealed_log_of(cursor, principal)
        cursor.execute(RUNS, {"tenant": principal.tenant_id})
        runs = [row[0] for row in cursor.fetchall()]
        contradicted = first_contradicted(cursor, principal.tenant_id, receipts)
    runs = sorted({*runs, *contradicted})
    if run_id is not None:
        if run_id not in runs:
            raise LogNotFound
        runs = [run_id]
    reports: list[ChainReport] = []
    for number, run in enumerate(runs, start=1):
        if on_run is not None:
            on_run(number, len(runs), run)
        report = _examined(principal, run, sealed_log, in_sql, on_batch)
        reports.append(_with_receipt(report, contradicted.get(run)))
        with tenant_context(principal.tenant_id), connection.cursor() as cursor:
            keep_verification(cursor, principal, reports[-1])
    log_bad = sealed_log.bad_anywhere if run_id is None else sealed_log.first_bad
    state = overall(_states(reports, log_bad))
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        settle_seals(cursor, principal.tenant_id, sealed_log, by=principal.writer)
        log_verification(
            principal,
            {
                "type": "log.verified",
                "state": state.value,
                "runs": len(runs),
                "tampered": [r.run_id for r in reports if r.state is State.TAMPERED][:100],
            },
        )
    return TenantReport(state, tuple(reports), log_bad, sealed_log.unanchored_from)


def _examined(
    principal: Principal,
    run_id: str,
    sealed_log: SealedLog,
    in_sql: bool,
    on_batch: Callable[[Progress], None] | None,
) -> ChainReport:
    examination: RunExamination | None = None
    while True:
        with tenant_context(principal.tenant_id), connection.cursor() as cursor:
            if examination is None:
                examination = RunExamination(
                    cursor,
                    tenant_id=principal.tenant_id,
                    tenant_slug=principal.tenant_slug,
                    run_id=run_id,
                    sealed_log=sealed_log,
                    on_batch=on_batch,
                )
            until = time.monotonic() + _STEP_SECONDS
            if in_sql:
                if examination.read_in_sql(cursor, until=until):
                    return examination.report_in_sql()
            elif examination.read(cursor, until=until):
                return examination.report()


def examine_run(*, principal: Principal, run_id: str) -> ChainReport:
    """The report on one run, over several transactions, neither kept nor logged: for an act that logs itself."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        sealed_log = sealed_log_of(cursor, principal)
    return _examined(principal, run_id, sealed_log, False, None)


def _with_receipt(report: ChainReport, bad: FirstBad | None) -> ChainReport:
    if bad is None or (
        report.first_bad is not None
        and report.first_bad.run_id == report.run_id
        and report.first_bad.sequence <= bad.sequence
    ):
        return report
    return replace(report, state=State.TAMPERED, first_bad=bad)


def _states(reports: Iterable[ChainReport], log_bad: FirstBad | None) -> Iterable[State]:
    yield from (report.state for report in reports)
    if log_bad is not None:
        yield State.TAMPERED
