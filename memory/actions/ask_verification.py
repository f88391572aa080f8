"""Ask the worker to verify a run, a range of it or the whole tenant; and call it off again."""

from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.errors import BadInput, RateLimited
from memory.ids import new_id
from memory.queries.run_log import check_run_is_readable
from memory.queries.verification_jobs import GOVERNING, VerificationJob, verification_job
from memory.work import begin_soon

WAITING_AT_MOST = 20
"""Verifications of a tenant that wait or run; each reads the whole of what it is about."""
_RETRY_SECONDS = 30

_ASK = """
INSERT INTO verification_job (tenant_id, id, run_id, from_sequence, to_sequence, is_incremental, asked_by)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(run)s::text, %(from)s::bigint, %(to)s::bigint, %(incremental)s::boolean, %(by)s::text)
"""
_WAITING = """
SELECT count(*) FROM verification_job WHERE tenant_id = %(tenant)s::uuid AND status IN ('queued', 'running')
"""
_CALL_OFF = """
UPDATE verification_job
SET cancel_asked_at = coalesce(cancel_asked_at, clock_timestamp()),
    status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END,
    finished_at = CASE status WHEN 'queued' THEN clock_timestamp() ELSE finished_at END
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status IN ('queued', 'running')
"""


def ask_verification(
    *,
    principal: Principal,
    run_id: str | None = None,
    first: int | None = None,
    last: int | None = None,
    incremental: bool = False,
) -> VerificationJob:
    """What will be verified; without `run_id` the whole tenant. For roles that govern, which read every entry.

    `incremental`: what the last finished verification of the same found whole under a checkpoint is taken on that checkpoint's
    signature. Raises PermissionDenied, LogNotFound, BadInput, RateLimited.
    """
    principal.needs_role(*GOVERNING)
    if run_id is not None:
        check_run_is_readable(principal, run_id)
    elif first is not None or last is not None:
        raise BadInput.at("/runId", "is needed for a range")
    if first is not None and last is not None and first > last:
        raise BadInput.at("/to", "must not be before from")
    if incremental and (first is not None or last is not None):
        raise BadInput.at("/mode", "goes with a whole run or the whole tenant")
    job_id = new_id()
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"tenant": principal.tenant_id})
        if cursor.fetchone()[0] >= WAITING_AT_MOST:
            raise RateLimited(retry_after_seconds=_RETRY_SECONDS)
        cursor.execute(
            _ASK,
            {
                "tenant": principal.tenant_id,
                "id": job_id,
                "run": run_id,
                "from": first,
                "to": last,
                "incremental": incremental,
                "by": principal.writer,
            },
        )
    begin_soon("verify", principal.tenant_id)
    return verification_job(principal, job_id)


def cancel_verification(*, principal: Principal, job_id: str | UUID) -> VerificationJob:
    """Call it off: at once while it waits, else within a moment. One that is over stays as it is.

    Raises PermissionDenied, VerificationNotFound.
    """
    job = verification_job(principal, job_id)
    with connection.cursor() as cursor:
        cursor.execute(_CALL_OFF, {"tenant": principal.tenant_id, "id": job.id})
    return verification_job(principal, job.id)
