"""Reject what waits: it ends without ever having been used, and nobody learns so from a read. A complaint that is rejected
leaves the record in use.
"""

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.approve_review import REVIEWERS
from memory.actions.discard_fact import discard_fact
from memory.errors import ReviewNotFound
from memory.queries.reviews import ReviewItem, find_review
from memory.records.acts import Act, ended
from memory.records.complaints import complaint, dismiss
from memory.records.pending import decide
from memory.records.rejecting import discard
from memory.records.store import lock_thing


def reject_review(*, principal: Principal, kind: str, item_id: str) -> None:
    """End it. Raises ReviewNotFound, PermissionDenied, LegalHoldActive, RecordChanged."""
    principal.needs_role(*REVIEWERS)
    item = find_review(principal, kind, item_id)
    if item.kind == "record":
        _record(principal, item)
    elif item.kind == "fact":
        discard_fact(principal=principal, fact_id=item.id)
    elif item.kind == "act":
        if not decide(principal, item.id, "rejected"):
            raise ReviewNotFound
        append_governance(
            principal=principal,
            payload={"type": "review.rejected", "pendingId": item.id, "act": item.act},
        )
    else:
        act = Act(principal, "settled")
        dismiss(act, *complaint(act, item.id))


def _record(principal: Principal, item: ReviewItem) -> None:
    act = Act(principal, "rejected")
    lock_thing(act.tenant_id, str(item.subject_type), str(item.subject_id), str(item.name))
    endings = discard(act.tenant_id, [item.id], act.at, reason="rejected")
    if item.id not in {one.id for one in endings}:
        raise ReviewNotFound
    entry = act.log(
        recordId=item.id,
        reviewReason=item.reason,
        recordIds=[one.id for one in endings],
        held=[one.id for one in endings if one.is_held],
    )
    act.keep(ended(endings, "deleted"), entry, reason_code="rejected")
