"""Reading the sweeps of a tenant, newest first."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.instants import instant_text

_COLUMNS = """id, is_dry_run, status, started_by, started_at, finished_at, stopped_because, batches, due_count,
destroyed_count, held_count, counts_text"""


@dataclass(frozen=True, slots=True)
class PastSweep:
    """One sweep. `counts_text`: canonical JSON, rule → facts."""

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
    counts_text: str

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
            "counts": json.loads(self.counts_text),
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
