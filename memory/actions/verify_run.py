"""Verify a run, or a range of it: its chain, its seals and the tenant's log of seals; keep what was found, and log it."""

from collections.abc import Callable
from typing import Any

from django.db import connection, transaction

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.note_damage import note_damage
from memory.errors import BadInput, PermissionDenied, RunDamaged
from memory.integrity.anchors import read_anchors
from memory.integrity.examination import RunExamination
from memory.integrity.rows import Progress
from memory.integrity.sealed_log import SealedLog, verify_sealed_log
from memory.integrity.signing import signer
from memory.integrity.states import ChainReport, State
from memory.queries.run_log import check_run_is_readable, has_unreadable_entry

_KEEP = """
INSERT INTO run_verification
  (tenant_id, run_id, state, verified_to, first_bad_sequence, first_bad_class, verified_at, verified_by)
VALUES (%(tenant)s::uuid, %(run)s::text, %(state)s::text, %(to)s::bigint, %(bad)s::bigint, %(class)s::text,
        clock_timestamp(), %(by)s::text)
ON CONFLICT (tenant_id, run_id) DO UPDATE
SET state = excluded.state, verified_to = excluded.verified_to, first_bad_sequence = excluded.first_bad_sequence,
    first_bad_class = excluded.first_bad_class, verified_at = excluded.verified_at, verified_by = excluded.verified_by
WHERE %(is_full)s::boolean OR excluded.state = 'tampered' OR run_verification.state <> 'tampered'
"""


def verify_run(
    *,
    principal: Principal,
    run_id: str,
    first: int | None = None,
    last: int | None = None,
    in_sql: bool = False,
    on_batch: Callable[[Progress], None] | None = None,
) -> ChainReport:
    """The report of the run; `in_sql` uses the second verifier.

    Raises LogNotFound; PermissionDenied unless the caller may read every entry of the run; BadInput for an empty range.
    """
    if first is not None and last is not None and first > last:
        raise BadInput.at("/to", "must not be before from")
    check_run_is_readable(principal, run_id)
    if has_unreadable_entry(principal, run_id):
        raise PermissionDenied(needs="read on every entry of the run")
    with connection.cursor() as cursor:
        examination = RunExamination(
            cursor,
            tenant_id=principal.tenant_id,
            tenant_slug=principal.tenant_slug,
            run_id=run_id,
            sealed_log=sealed_log_of(cursor, principal),
            first=first or 0,
            last=last,
            on_batch=on_batch,
        )
        if in_sql:
            report = examination.in_sql(cursor)
        else:
            examination.read(cursor)
            report = examination.report()
        is_whole = first is None and last is None
        if is_whole or report.state is State.TAMPERED:
            keep_verification(cursor, principal, report, is_full=is_whole)
    log_verification(principal, _payload(report))
    return report


def sealed_log_of(cursor: Any, principal: Principal) -> SealedLog:
    """The tenant's log of seals, recomputed and held against signatures and anchors."""
    return verify_sealed_log(
        cursor,
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        anchors=lambda: read_anchors(principal.tenant_slug),
        public_keys=signer().public_keys,
    )


def _payload(report: ChainReport) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "type": "log.verified",
        "runId": report.run_id,
        "state": report.state.value,
        "from": report.from_sequence,
        "to": report.to_sequence,
    }
    bad = report.first_bad
    if bad is not None:
        payload["firstBad"] = {"sequence": bad.sequence, "class": bad.tampering.value}
    return payload


def log_verification(principal: Principal, payload: dict[str, Any]) -> None:
    """A verification is itself an act that is logged, also where the record of governance was cut."""
    try:
        with transaction.atomic():
            append_governance(principal=principal, payload=payload)
    except RunDamaged as error:
        # The record of governance was itself cut, so nothing continues it. What was found is answered all the same.
        note_damage(error)


def keep_verification(
    cursor: Any,
    principal: Principal,
    report: ChainReport,
    *,
    asked_by: str | None = None,
    is_full: bool = True,
) -> None:
    """Keep for lists what was found of a whole run. asked_by: a writer, when it is not the principal's own.

    What was not read in full takes back no tampering that was found.
    """
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
            "by": asked_by or principal.writer,
            "is_full": is_full,
        },
    )
