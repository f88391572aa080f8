"""Decide many of the things that wait, each by itself: what can't be decided is told, and holds up nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memory.access import Principal
from memory.actions.approve_review import REVIEWERS, approve_review
from memory.actions.reject_review import reject_review
from memory.errors import DomainError, LegalHoldActive
from memory.holds import note_refusal
from memory.tenancy import tenant_context

Decision = Literal["approve", "reject"]
MOST_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Named:
    """One thing that waits. `expect`: what the caller saw that would end; None says nothing."""

    kind: str
    id: str
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """`refusal`: why it could not be decided."""

    named: Named
    refusal: DomainError | None = None

    def wire(self, decision: Decision) -> dict[str, Any]:
        done = {"approve": "approved", "reject": "rejected"}[decision]
        body: dict[str, Any] = {"kind": self.named.kind, "id": self.named.id, "outcome": done}
        if self.refusal is not None:
            error = {"code": self.refusal.code, "message": str(self.refusal)}
            # What stands there now is read by its id: an answer that is kept for a retry holds no value of it.
            told = {name: one for name, one in self.refusal.details.items() if name != "current"}
            body |= {"outcome": "refused", "error": {**error, "details": told}}
        return body


def decide_reviews(
    *, principal: Principal, decision: Decision, named: Sequence[Named]
) -> list[Outcome]:
    """Decide at most MOST_AT_ONCE, in the order given, each in a transaction of its own where none is open.

    Raises PermissionDenied.
    """
    principal.needs_role(*REVIEWERS)
    return [_decided(principal, decision, one) for one in named[:MOST_AT_ONCE]]


def _decided(principal: Principal, decision: Decision, one: Named) -> Outcome:
    try:
        with tenant_context(principal.tenant_id):
            if decision == "approve":
                approve_review(
                    principal=principal, kind=one.kind, item_id=one.id, expect=one.expect
                )
            else:
                reject_review(principal=principal, kind=one.kind, item_id=one.id)
    except LegalHoldActive as error:
        with tenant_context(principal.tenant_id):
            note_refusal(principal, f"review.{decision}", error.ids)
        return Outcome(one, error)
    except DomainError as error:
        return Outcome(one, error)
    return Outcome(one)
