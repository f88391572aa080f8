"""Reading the sweeps of a tenant, newest first; one of them, and the evidence of what it destroyed."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.errors import NotFound
from memory.instants import instant_text
from memory.queries.one_row import one_row

_COLUMNS = """id, is_dry_run, status, started_by, started_at, finished_at, stopped_because, batches, due_count,
destroyed_count, held_count, erasing_count, counts_text, types_text"""


@dataclass(frozen=True, slots=True)
class PastSweep:
    """One sweep. `counts_text` (rule → facts) and `types_text` (type → facts) are canonical JSON."""

    id: UUID
    is_dry_run: bool
    status: str
    started_by: str
    started_at: datetime
    finished_at: datetime | None
    stopped_because: str | None
    batches: int
    due: int
    destroyed: int
    held: int
    erasing: int
    counts_text: str
    types_text: str

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": str(self.id),
            "dryRun": self.is_dry_run,
            "status": self.status,
            "startedBy": self.started_by,
            "startedAt": instant_text(self.started_at),
            "finishedAt": None if self.finished_at is None else instant_text(self.finished_at),
            "batches": self.batches,
            "due": self.due,
            "destroyed": self.destroyed,
            "held": self.held,
            "erasing": self.erasing,
            "counts": json.loads(self.counts_text),
            "types": json.loads(self.types_text),
        }
        return {name: value for name, value in said.items() if value is not None}


def past_sweeps(
    tenant_id: UUID, *, after: tuple[str, str] | None = None, limit: int
) -> list[PastSweep]:
    """Sweeps and dry runs. after: (startedAt, id) of the last of the page before."""
    position = (
        ""
        if after is None
        else " AND (started_at, id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM sweep WHERE tenant_id = %(tenant)s::uuid{position}"
            " ORDER BY started_at DESC, id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [PastSweep(*row) for row in cursor.fetchall()]


def find_sweep(tenant_id: UUID, sweep_id: UUID) -> PastSweep:
    """One sweep. Raises NotFound."""
    statement = f"SELECT {_COLUMNS} FROM sweep WHERE tenant_id = %s::uuid AND id = %s::uuid"
    return one_row(statement, [tenant_id, sweep_id], PastSweep, NotFound)


@dataclass(frozen=True, slots=True)
class Destroyed:
    """What is left of one fact that a sweep destroyed. `digest`: keyed, of its last content."""

    fact_id: str
    type: str
    rule: str
    first_written_at: datetime
    due_at: datetime | None
    revisions: int
    digest: bytes | None
    destroyed_at: datetime

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "factId": self.fact_id,
            "type": self.type,
            "rule": self.rule,
            "firstWrittenAt": instant_text(self.first_written_at),
            "dueAt": None if self.due_at is None else instant_text(self.due_at),
            "revisions": self.revisions,
            "contentDigest": None if self.digest is None else bytes(self.digest).hex(),
            "destroyedAt": instant_text(self.destroyed_at),
        }
        return {name: value for name, value in said.items() if value is not None}


def evidence_of(
    tenant_id: UUID, sweep_id: UUID, *, after: str | None, limit: int
) -> list[Destroyed]:
    """The evidence rows of one sweep, by the facts' ids; those after one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT fact_id, type, rule, first_written_at, due_at, revision_count, content_digest, destroyed_at "
            "FROM destroyed_fact WHERE tenant_id = %(tenant)s::uuid AND cause_id = %(sweep)s::uuid "
            "AND (%(after)s::text IS NULL OR fact_id > %(after)s::text) ORDER BY fact_id LIMIT %(limit)s::int",
            {"tenant": tenant_id, "sweep": sweep_id, "after": after, "limit": limit},
        )
        return [Destroyed(*row) for row in cursor.fetchall()]
