"""How what waits, or was set aside, ends for good: a tombstone that nobody reads, and no fingerprint.

The record stays in review, so that whoever proposed it finds as little as before: no read tells a decision from its absence, and
the same proposal again is answered like the first. What is held is sealed.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory.records.ending import Ending, descendants, drop_values, forget_traces, withhold
from memory.records.store import update_records


def discard(tenant_id: UUID, ids: Sequence[str], at: datetime, *, reason: str) -> list[Ending]:
    """Tombstone records in review, with what waits because it was derived from them."""
    endings = [one for one in descendants(tenant_id, *ids) if one.review is not None]
    if not endings:
        return []
    gone = [one.id for one in endings]
    drop_values(tenant_id, endings, at, None)
    update_records(
        tenant_id,
        gone,
        at,
        status="deleted",
        ended_at=at,
        deleted_at=at,
        deleted_reason=reason,
        request_digest=None,
    )
    withhold(tenant_id, gone, at)
    forget_traces(tenant_id, gone, at)
    return endings
