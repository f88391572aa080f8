"""Verify a run, or a range of it: its chain, its seals and the tenant's log of seals; keep what was found, and log it."""

from collections.abc import Callable
from typing import Any

import structlog
from django.db import connection, transaction

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput, InvariantViolated, PermissionDenied
from memory.integrity.anchors import read_anchors
from memory.integrity.chain_sql import verify_run_in_sql
from memory.integrity.rows import Progress
from memory.integrity.sealed_log import SealedLog, verify_sealed_log
from memory.integrity.sealed_run import SealComparison, run_seals, stored_records
from memory.integrity.sealed_run_sql import compare_in_sql
from memory.integrity.signing import signer
from memory.integrity.states import ChainReport
from memory.integrity.stored_run import verify_stored_run
from memory.integrity.verdict import verdict
from memory.queries.run_log import check_run_is_readable, has_unreadable_entry

log = structlog.get_logger("kindmem.integrity")

_KEEP = """
INSERT INTO run_verification
  (tenant_id, run_id, state, verified_to, first_bad_sequence, first_bad_class, verified_at, verified_by)
VALUES (%(tenant)s::uuid, %(run)s::text, %(state)s::text, %(to)s::bigint, %(bad)s::bigint, %(class)s::text,
        clock_timestamp(), %(by)s::text)
ON CONFLICT (tenant_id, run_id) DO UPDATE
SET state = excluded.state, verified_to = excluded.verified_to, first_bad_sequence = excluded.first_bad_sequence,
    first_bad_class = excluded.first_bad_class, verified_at = excluded.verified_at, verified_by = excluded.verified_by
"""


def verify_run(
    *,
    principal: Principal,
    run_id: str,
    first: int | None = None,
    last: int | None = None,
    in_sql: bool = False,
    sealed_log: SealedLog | None = None,
    on_batch: Callable[[Progress], None] | None = None,
) -> ChainReport:
    """The report of the run; `in_sql` uses the second verifier. `sealed_log`: the tenant's, when the caller has just verified it.

    Raises LogNotFound; PermissionDenied unless the caller may read every entry of the run; BadInput for an empty range.
    """
    if first is not None and last is not None and first > last:
        raise BadInput.at("/to", "must not be before from")
    check_run_is_readable(principal, run_id)
    if has_unreadable_entry(principal, run_id):
        raise PermissionDenied(needs="read on every entry of the run")
    with connection.cursor() as cursor:
        if sealed_log is None:
            sealed_log = sealed_log_of(cursor, principal)
        report = _report(cursor, principal, run_id, first or 0, last, in_sql, sealed_log, on_batch)
        if first is None and last is None:
            _keep(cursor, principal, report)
    _log(principal, report)
    return report


def sealed_log_of(cursor: Any, principal: Principal) -> SealedLog:
    """The tenant's log of seals, recomputed and held against signatures and anchors."""
    return verify_sealed_log(
        cursor,
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        anchors=read_anchors(principal.tenant_slug),
        public_keys=signer().public_keys,
    )


def _report(
    cursor: Any,
    principal: Principal,
    run_id: str,
    first: int,
    last: int | None,
    in_sql: bool,
    sealed_log: SealedLog,
    on_batch: Callable[[Progress], None] | None,
) -> ChainReport:
    tenant_id = principal.tenant_id
    seals = run_seals(cursor, tenant_id, run_id, sealed_log.size)
    key: dict[str, Any] = {
        "tenant_id": tenant_id,
        "tenant_slug": principal.tenant_slug,
        "run_id": run_id,
        "first": first,
        "last": last,
        "sealed_to": seals.sealed_to,
        "attested_ids": seals.attested_ids,
    }
    if in_sql:
        chain = verify_run_in_sql(cursor, **key)
        bad = compare_in_sql(cursor, tenant_id, seals, first=first, last=last)
        return verdict(chain, seals, bad, sealed_log)
    comparison = SealComparison(seals, stored_records(cursor, tenant_id), first=first, last=last)
    chain = verify_stored_run(cursor, **key, seals=comparison, on_batch=on_batch)
    return verdict(chain, seals, comparison.finish(), sealed_log)


def _log(principal: Principal, report: ChainReport) -> None:
    bad = report.first_bad
    payload: dict[str, Any] = {
        "type": "log.verified",
        "runId": report.run_id,
        "state": report.state.value,
        "from": report.from_sequence,
        "to": report.to_sequence,
    }
    if bad is not None:
        payload["firstBad"] = {"sequence": bad.sequence, "class": bad.tampering.value}
    try:
        with transaction.atomic():
            append_governance(principal=principal, payload=payload)
    except InvariantViolated as error:
        # The record of governance was itself cut, so nothing continues it. What was found is answered all the same.
        log.error("the record of governance takes no entry", invariant=error.invariant)


def _keep(cursor: Any, principal: Principal, report: ChainReport) -> None:
    bad = report.first_bad
    cursor.execute(
        _KEEP,
        {
            "tenant": principal.tenant_id,
            "run": report.run_id,
            "state": report.state.value,
            "to": report.to_sequence,
            "bad": bad.sequence if bad else None,
            "class": bad.tampering.value if bad else None,
            "by": principal.writer,
        },
    )
