"""Which kinds of work the worker does for a tenant, and how an action asks for one in its own transaction.

The worker looks for what is due by itself; asking makes it start at once. What is asked for is one job a kind and tenant, however
often; it names the tenant alone. What a job does is in `memory.housekeeping`.
"""

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from django.db import connection

Queue = Literal["near", "far", "slow"]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind. `every_seconds`: how often the worker looks whether it is due; the more urgent comes first.

    Work that waits on machines of others is in the queue `far`, so that it holds up nothing of what is `near`; what waits on
    machines that a tenant chose, and that may not answer, is in `slow`, so that it holds up neither.
    """

    every_seconds: float
    queue: Queue = "near"
    urgency: int = 0


WORKS: Final[dict[str, Work]] = {
    "seal": Work(2.0, urgency=20),
    "witness": Work(3.0, queue="far", urgency=10),
    "stamp": Work(30.0, queue="far", urgency=10),
    "fill-in-vectors": Work(1.0, queue="far", urgency=20),
    "drop-old-answers": Work(600.0),
    "sweep-retention": Work(3600.0),
    "expire-records": Work(300.0),
    "destroy-undo-copies": Work(60.0),
    "run-erasures": Work(1.0, urgency=10),
    "keep-ledgers": Work(60.0, queue="far"),
    "maintain-pages": Work(600.0, queue="far"),
    "finish-holds": Work(1.0, urgency=10),
    "verify": Work(1.0, urgency=5),
    "refresh-stale": Work(5.0, queue="slow"),
    "reindex": Work(2.0),
    "deliver-webhooks": Work(1.0, queue="far", urgency=10),
    "deliver-slowly": Work(1.0, queue="slow"),
    "prune-webhook-log": Work(3600.0),
}

OF_THE_INSTALLATION: Final = frozenset({"witness", "stamp", "keep-ledgers", "maintain-pages"})
"""Work of no tenant: a turn of it is for them all."""
NOBODY: Final = UUID(int=0)
"""In place of a tenant, for work of the installation."""


def begin_soon(work: str, tenant_id: UUID) -> None:
    """Ask for one kind of work in a tenant; it is there when the caller's transaction is."""
    kind = WORKS[work]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT defer_work(%s::text, %s::text, %s::int, %s::uuid)",
            [work, kind.queue, kind.urgency, tenant_id],
        )
