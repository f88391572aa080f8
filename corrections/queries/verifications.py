"""Verification results: one, and the list, newest first; those of the worker's among them when they are of one run."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.queries.verification_jobs import VerificationJob

_COLUMNS = (
    "v.id, v.run_id, v.report_text, v.product_version, v.started_at, v.finished_at, v.asked_by"
)


@dataclass(frozen=True, slots=True)
class Verification:
    """A kept report. `report` is the wire form of a chain report."""

    id: UUID
    run_id: str
    report: dict[str, Any]
    product_version: str
    started_at: datetime
    finished_at: datetime
    asked_by: str

    @property
    def state(self) -> str:
        return str(self.report["state"])

    @property
    def first_bad(self) -> dict[str, Any] | None:
        bad: dict[str, Any] | None = self.report.get("firstBad")
        return bad


def _made(row: Any) -> Verification:
    return Verification(row[0], row[1], json.loads(row[2]), *row[3:])


def of_job(job: VerificationJob) -> Verification:
    """What the worker found of one run, once it is done."""
    assert job.run_id is not None
    assert job.finished_at is not None
    return Verification(
        id=job.id,
        run_id=job.run_id,
        report=dict(job.reports[0]),
        product_version=settings.KINDMEM_VERSION,
        started_at=job.started_at or job.created_at,
        finished_at=job.finished_at,
        asked_by=job.asked_by,
    )


def verification(principal: Principal, result_id: UUID) -> Verification | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM verification_result v WHERE v.tenant_id = %(tenant)s::uuid AND v.id = %(id)s::uuid",
            {"tenant": principal.tenant_id, "id": result_id},
        )
        row = cursor.fetchone()
    return None if row is None else _made(row)


def verifications(
    principal: Principal,
    *,
    run_id: str | None = None,
    before: tuple[datetime, UUID] | None = None,
    limit: int,
) -> list[Verification]:
    """At most `limit`, newest first."""
    where = " AND v.run_id = %(run)s::text" if run_id else ""
    if before is not None:
        where += " AND (v.finished_at, v.id) < (%(at)s::timestamptz, %(id)s::uuid)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM verification_result v WHERE v.tenant_id = %(tenant)s::uuid{where} "
            "ORDER BY v.finished_at DESC, v.id DESC LIMIT %(limit)s::int",
            {
                "tenant": principal.tenant_id,
                "run": run_id,
                "at": before[0] if before else None,
                "id": before[1] if before else None,
                "limit": limit,
            },
        )
        return [_made(row) for row in cursor.fetchall()]
