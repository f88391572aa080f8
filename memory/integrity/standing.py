"""How those who vouch for a tenant's checkpoints from outside stand: what they answered, and when they are asked again.

A witness cosigns and a time stamp authority stamps; what is kept of either is the same. After a failure the next turn comes
5 seconds later, then twice as late each time, up to 10 minutes.
"""

from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from memory.integrity.checkpoints import StoredCheckpoint

_KEEP = """
INSERT INTO anchor (tenant_id, size, place, answer)
VALUES (%(tenant)s::uuid, %(size)s::bigint, %(place)s::text, %(answer)s::text)
ON CONFLICT ON CONSTRAINT anchor_pkey DO NOTHING
"""

_VOUCHED = """
INSERT INTO witness_standing (tenant_id, witness, origin, cosigned_size)
VALUES (%(tenant)s::uuid, %(name)s::text, %(origin)s::text, %(size)s::bigint)
ON CONFLICT ON CONSTRAINT witness_standing_pkey DO UPDATE SET origin = excluded.origin, cosigned_size = excluded.cosigned_size,
  failure = NULL, failed_size = NULL, failed_at = NULL, retry_at = NULL, attempts = 0
"""

_FAILED = """
INSERT INTO witness_standing AS s (tenant_id, witness, origin, failure, failed_size, failed_at, retry_at, attempts)
VALUES (%(tenant)s::uuid, %(name)s::text, %(origin)s::text, %(failure)s::text, %(size)s::bigint, clock_timestamp(),
  clock_timestamp() + interval '5 seconds', 1)
ON CONFLICT ON CONSTRAINT witness_standing_pkey DO UPDATE
SET failure = excluded.failure, failed_size = excluded.failed_size, failed_at = excluded.failed_at, attempts = s.attempts + 1,
  retry_at = clock_timestamp() + least(interval '5 seconds' * power(2, least(s.attempts, 10)), interval '10 minutes')
"""


def keep_answer(
    cursor: CursorWrapper,
    tenant_id: UUID,
    head: StoredCheckpoint,
    *,
    name: str,
    place: str,
    answer: str,
) -> None:
    """Keep what was answered about a checkpoint, and that nothing is owed. `place`: where the answer is shown."""
    said = _said(tenant_id, head, name)
    cursor.execute(_KEEP, {**said, "place": place, "answer": answer})
    cursor.execute(_VOUCHED, said)


def note_failure(
    cursor: CursorWrapper, tenant_id: UUID, head: StoredCheckpoint, *, name: str, reason: str
) -> None:
    """Keep why nothing was answered, and when to ask again."""
    said = _said(tenant_id, head, name)
    cursor.execute(_FAILED, {**said, "failure": reason})


def _said(tenant_id: UUID, head: StoredCheckpoint, name: str) -> dict[str, Any]:
    return {"tenant": tenant_id, "size": head.size, "origin": head.origin, "name": name}
