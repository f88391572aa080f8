"""Show an auditor what a fact says, in all its versions: who, which and why is logged first.

A reveal holds for 15 minutes for the same reader, so that going back or reloading is no second one.
"""

from corrections.actions.looking import check_reason, was_revealed
from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.fact_shape import FactView


def reveal_fact(*, principal: Principal, fact: FactView, reason: str) -> str:
    """The id of the reveal. Raises PermissionDenied, BadInput for an unknown reason."""
    principal.needs_role("owner", "admin", "auditor")
    check_reason(reason)
    payload = {
        "type": "fact.revealed",
        "factId": fact.id,
        "version": fact.version,
        "reasonCode": reason,
    }
    return append_governance(principal=principal, payload=payload).id


def sees_content(principal: Principal, fact: FactView, reveal_id: str | None) -> bool:
    """Whether the reader may see what it says now: anybody but an auditor, and an auditor after a reveal of their own."""
    if principal.role != "auditor":
        return True
    return reveal_id is not None and was_revealed(
        principal, reveal_id, act="fact.revealed", name="factId", of=fact.id
    )
