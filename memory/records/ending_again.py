"""End again, after a restore, exactly those records that had ended since the backup was made.

What ended along with each is named by itself, and so are the marks that forbid a value: nothing is followed here. What a hold
keeps is sealed, as when it ended first; superseding what is held is left.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from memory.records.ending import (
    Ending,
    bury,
    drop_values,
    forget_traces,
    lock_closure,
    replaced_by,
    withhold,
    withhold_answers,
)
from memory.records.sealing import destroy_undo_copies
from memory.records.store import find_records, update_records

REASON: Final = "restored"
"""Why: it was so when the backup was made into an installation again."""

EndStatus = Literal["deleted", "expired", "superseded"]
_THEMSELVES = "WITH gone (id) AS (SELECT unnest(%(roots)s::text[]))"


def end_again(
    tenant_id: UUID, ids: Sequence[str], at: datetime, *, status: EndStatus
) -> tuple[list[Ending], list[str]]:
    """What ended, and the ids of what a hold keeps as it is."""
    condition = "r.status <> 'deleted'" if status == "deleted" else "r.status = 'active'"
    endings = lock_closure(tenant_id, ids, _THEMSELVES, condition)
    held = [one.id for one in endings if one.is_held] if status == "superseded" else []
    endings = [one for one in endings if one.id not in held]
    if not endings:
        return [], held
    gone = [one.id for one in endings]
    if status == "deleted":
        destroy_undo_copies(tenant_id, record_ids=gone)
        drop_values(tenant_id, endings, at, None)
        bury(tenant_id, endings, at, REASON)
        forget_traces(tenant_id, gone, at)
        withhold_answers(tenant_id, replaced_by(tenant_id, gone), at)
    else:
        update_records(tenant_id, gone, at, status=status, ended_at=at)
        if status == "expired":
            drop_values(tenant_id, [one for one in endings if not one.keeps_value], at, None)
    withhold(tenant_id, gone, at)
    return endings, held


def set_aside_again(tenant_id: UUID, ids: Sequence[str], at: datetime) -> list[str]:
    """Take active records out of use until an admin decides: which they are."""
    found = _active(tenant_id, ids, "r.review IS NULL")
    if found:
        update_records(tenant_id, found, at, review="pending", review_reason=REASON)
        withhold(tenant_id, found, at)
    return found


def dispute_again(tenant_id: UUID, ids: Sequence[str], at: datetime) -> list[str]:
    """Have active records asked about before they are used: which they are."""
    found = _active(tenant_id, ids, "r.disputed_at IS NULL")
    if found:
        update_records(tenant_id, found, at, disputed_at=at)
    return found


def _active(tenant_id: UUID, ids: Sequence[str], condition: str) -> list[str]:
    found = find_records(
        tenant_id,
        f"r.id = ANY(%(ids)s::text[]) AND r.status = 'active' AND {condition} ORDER BY r.id FOR UPDATE OF r",
        {"ids": list(ids)},
    )
    return [one.id for one in found]
