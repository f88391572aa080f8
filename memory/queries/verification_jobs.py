"""Verifications that the worker does: one, and the list, newest first. For those who govern."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.errors import VerificationNotFound
from memory.instants import instant_text

GOVERNING = ("admin", "auditor", "owner")
COLUMNS = (
    "v.id, v.run_id, v.from_sequence, v.to_sequence, v.is_incremental, v.status, v.since_size, v.checkpoint_size, v.runs_done,"
    " v.runs_total, v.entries_done, v.entries_total, v.state, v.found_text, v.asked_by, v.created_at, v.started_at,"
    " v.finished_at, v.cancel_asked_at IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class VerificationJob:
    """One verification. `since`: the size of the log of seals that was taken on its signature; entries and runs are counts."""

    id: UUID
    run_id: str | None
    first: int | None
    last: int | None
    is_incremental: bool
    status: str
    since: int | None
    checkpoint: int | None
    runs_done: int
    runs_total: int
    entries_done: int
    entries_total: int
    state: str | None
    found_text: str | None
    asked_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    is_cancelling: bool

    @property
    def is_over(self) -> bool:
        return self.finished_at is not None

    @property
    def states(self) -> Mapping[str, int]:
        """How many runs were found in which state."""
        states: dict[str, int] = self._found.get("states", {})
        return states

    @property
    def reports(self) -> Sequence[Mapping[str, Any]]:
        """Of one run its report; of a tenant those that most need to be looked at."""
        reports: list[dict[str, Any]] = self._found.get("reports", [])
        return reports

    @property
    def first_bad(self) -> Mapping[str, Any] | None:
        """What is wrong with the log of seals itself."""
        bad: dict[str, Any] | None = self._found.get("firstBad")
        return bad

    @property
    def _found(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.found_text) if self.found_text else {}
        return found

    def wire(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "id": str(self.id),
            "status": self.status,
            "mode": "incremental" if self.is_incremental else "full",
            "runs": {"done": self.runs_done, "total": self.runs_total},
            "entries": {"done": self.entries_done, "total": self.entries_total},
            "requestedBy": self.asked_by,
            "createdAt": instant_text(self.created_at),
        }
        optional = {
            "runId": self.run_id,
            "from": self.first,
            "to": self.last,
            "sinceCheckpoint": self.since,
            "checkpoint": self.checkpoint,
            "state": self.state,
            "startedAt": instant_text(self.started_at) if self.started_at else None,
            "finishedAt": instant_text(self.finished_at) if self.finished_at else None,
        }
        body |= {name: value for name, value in optional.items() if value is not None}
        return body | self._found


def verification_job(principal: Principal, job_id: str | UUID) -> VerificationJob:
    """Raises PermissionDenied, VerificationNotFound."""
    try:
        wanted = UUID(str(job_id))
    except ValueError:
        raise VerificationNotFound from None
    found = _read(principal, "v.id = %(id)s::uuid", {"id": wanted}, limit=1)
    if not found:
        raise VerificationNotFound
    return found[0]


def verification_jobs(
    principal: Principal, *, before: tuple[datetime, UUID] | None = None, limit: int
) -> list[VerificationJob]:
    """At most `limit`, newest first. Raises PermissionDenied."""
    if before is None:
        return _read(principal, "true", {}, limit=limit)
    where = "(v.created_at, v.id) < (%(at)s::timestamptz, %(id)s::uuid)"
    return _read(principal, where, {"at": before[0], "id": before[1]}, limit=limit)


def _read(
    principal: Principal, where: str, parameters: Mapping[str, Any], *, limit: int
) -> list[VerificationJob]:
    principal.needs_role(*GOVERNING)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM verification_job v WHERE v.tenant_id = %(tenant)s::uuid AND {where}"
            " ORDER BY v.created_at DESC, v.id DESC LIMIT %(limit)s::int",
            {
                "tenant": principal.tenant_id,
                "limit": limit,
                **parameters,
            },
        )
        return [VerificationJob(*row) for row in cursor.fetchall()]
