"""Verify a run and keep the whole report, so that it has a page to come back to and to show to others."""

import json
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from memory.access import Principal
from memory.actions.verify_run import verify_run
from memory.ids import new_id

_KEEP = """
INSERT INTO verification_result
  (tenant_id, id, run_id, report_text, product_version, started_at, finished_at, asked_by)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(run)s::text, %(report)s::text, %(version)s::text, %(started)s::timestamptz,
        %(finished)s::timestamptz, %(by)s::text)
"""


def verify_and_keep(
    *,
    principal: Principal,
    run_id: str,
    first: int | None = None,
    last: int | None = None,
    run_to: int,
) -> UUID:
    """The result's id. `run_to`: the run's last entry by then, which tells later what came since. Raises as `verify_run`."""
    started = timezone.now()
    report = verify_run(principal=principal, run_id=run_id, first=first, last=last)
    result_id = new_id()
    with connection.cursor() as cursor:
        cursor.execute(
            _KEEP,
            {
                "tenant": principal.tenant_id,
                "id": result_id,
                "run": run_id,
                "report": json.dumps({**report.as_wire(), "runTo": run_to}),
                "version": settings.KINDMEM_VERSION,
                "started": started,
                "finished": timezone.now(),
                "by": principal.writer,
            },
        )
    return result_id
