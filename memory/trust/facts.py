"""Why an agent's write of a fact waits for a person: it reads like an instruction, or it would be read far and wide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.access import Principal, Scope
from memory.fact_shape import Subject
from memory.log_entry import ABSENT
from memory.trust.instructions import reads_like_instruction


@dataclass(frozen=True, slots=True)
class Waiting:
    """A write that changed nothing that is served: the fact, or the act, of this id waits for review."""

    id: str


def is_wide(scope: Scope) -> bool:
    """Whether everybody in the tenant, or in an org, would read it. A project that the key holds is not wide."""
    return not any(scope.get(name) for name in ("projectId", "userId", "participantId", "threadId"))


def waits_because(
    principal: Principal, scope: Scope, content: Any, subjects: Sequence[Subject] = ()
) -> str | None:
    """`instruction`, `wide`, or None when it may be served at once."""
    if not principal.is_agent:
        return None
    texts = [one.id for one in subjects]
    if reads_like_instruction([None if content is ABSENT else content, *texts]):
        return "instruction"
    return "wide" if is_wide(scope) else None
