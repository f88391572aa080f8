"""The records that a new one says it supersedes: active, of the same thing, and no policy unless it is one."""

from memory.access import Principal
from memory.errors import InvariantViolated, PolicyNotCorrectable, RecordChanged
from memory.records.record import Record
from memory.records.routes import correction_url
from memory.records.shape import Draft
from memory.records.store import find_records


def named_targets(principal: Principal, draft: Draft) -> list[Record]:
    """Raises InvariantViolated, RecordChanged, PolicyNotCorrectable."""
    if not draft.supersedes:
        return []
    found = find_records(
        principal.tenant_id, "r.id = ANY(%(ids)s::text[])", {"ids": list(draft.supersedes)}
    )
    same = [
        one
        for one in found
        if one.review is None
        and (one.subject_type, one.subject_id, one.key)
        == (draft.subject_type, draft.subject_id, draft.key)
    ]
    if len(same) != len(draft.supersedes):
        raise InvariantViolated(invariant="supersedes-the-same-thing")
    for one in same:
        if one.status != "active":
            raise RecordChanged(
                active_id=one.superseded_by,
                expected_id=one.id,
                status=one.status,
                differs=["status"],
            )
        if one.authority == "policy" and draft.authority != "policy":
            raise refuse_policy(principal, one)
    return same


def refuse_policy(principal: Principal, policy: Record) -> PolicyNotCorrectable:
    """The refusal that names a policy's route."""
    return PolicyNotCorrectable(
        record_id=policy.id,
        route=policy.route,
        correction_url=correction_url(principal, policy.id, policy.route),
    )
