"""When an erasure has left the disk pages too: deleted rows stay in the files of tables and indexes until they are rewritten.

The end of an erasure asks for a maintenance, in its own transaction. The worker runs it once a day at most
(actions/maintain_pages.py): it rewrites every table of tenants that is small enough to be locked for it, with its indexes; of a
larger one it makes the indexes anew and frees the rows, whose bytes stay until the space is used again.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from memory.ids import new_id

_ASK = """
INSERT INTO page_maintenance (id) VALUES (%s::uuid)
ON CONFLICT (status) WHERE status = 'due' DO UPDATE SET asked_at = clock_timestamp()
"""
_STANDING = """
SELECT (SELECT max(started_at) FROM page_maintenance WHERE status = 'done'),
       (SELECT max(asked_at) FROM page_maintenance WHERE status IN ('due', 'running')),
       (SELECT f.failure FROM page_maintenance f WHERE f.status = 'failed'
          AND f.started_at > coalesce((SELECT max(d.started_at) FROM page_maintenance d WHERE d.status = 'done'), '-infinity')
        ORDER BY f.started_at DESC LIMIT 1),
       (SELECT l.vacuumed_count FROM page_maintenance l WHERE l.status = 'done' ORDER BY l.started_at DESC LIMIT 1)
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """`failure`: the code of a try since the last that was done. `left`: tables that the last one could not rewrite."""

    last_at: datetime | None
    asked_at: datetime | None
    failure: str | None
    left: int

    def has_cleared(self, moment: datetime | None) -> bool:
        """Whether what was deleted until that moment has left the pages that could be rewritten."""
        return moment is not None and self.last_at is not None and moment < self.last_at


def ask_for_maintenance() -> None:
    """In the transaction that deleted something: who runs the maintenance waits for its end."""
    with connection.cursor() as cursor:
        cursor.execute(_ASK, [new_id()])


def standing() -> Standing:
    with connection.cursor() as cursor:
        cursor.execute(_STANDING)
        last_at, asked_at, failure, left = cursor.fetchone()
    return Standing(last_at, asked_at, failure, left or 0)
