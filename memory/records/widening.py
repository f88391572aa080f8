"""Where a correction or a confirmation is to apply, and how far a person may widen it.

The case at hand by default; wider only on request. A person widens at most to `user`, an admin further. Source: the
product contract, I4.
"""

from dataclasses import dataclass
from typing import Any

from memory.access import Principal
from memory.api.shapes import Shape, shape
from memory.canonical import canonical
from memory.errors import BadInput, InstanceUnnamed, InvariantViolated, PermissionDenied
from memory.models.record import LEVELS
from memory.records.bindings import Bindings, Context, check_scalars, covers

WIDEST_FOR_A_PERSON = LEVELS.index("user")
_BROADEN_TO = Shape(
    shape(
        {"level": {"enum": list(LEVELS)}, "bindings": {"type": "object"}},
        required=("level", "bindings"),
    )
)


@dataclass(frozen=True, slots=True)
class Scope:
    level: str
    bindings: dict[str, Any]

    @property
    def text(self) -> str:
        return canonical(self.bindings)


def read_scope(principal: Principal, context: Context, *, broaden: bool) -> Scope:
    """Where a correction is to apply. Raises InstanceUnnamed, InvariantViolated, BadInput, PermissionDenied."""
    if not broaden:
        if not context.instance:
            raise InstanceUnnamed
        return Scope("instance", context.instance)
    if context.broaden_to is None:
        raise InvariantViolated(invariant="I4")
    scope = read_broaden_to(principal, context.broaden_to, "/context/broaden_to")
    if scope.level == "instance" and not scope.bindings:
        raise InstanceUnnamed
    return scope


def read_broaden_to(principal: Principal, given: Any, path: str) -> Scope:
    """A wider scope that a person wants. Raises BadInput, PermissionDenied for one that takes an admin."""
    try:
        _BROADEN_TO.check(given)
    except BadInput as error:
        raise BadInput(
            issues=[{**issue, "path": path + issue["path"]} for issue in error.issues]
        ) from None
    bindings = dict(given["bindings"])
    check_scalars(bindings, f"{path}/bindings")
    if LEVELS.index(given["level"]) > WIDEST_FOR_A_PERSON and principal.role not in (
        "admin",
        "owner",
    ):
        raise PermissionDenied(needs="an admin, to widen beyond one user")
    return Scope(given["level"], bindings)


def check_takes_in(scope: Scope, context: Context, own: Bindings) -> None:
    """The case corrected is within the wider scope, else the old value would stay in use just there.

    own: the bindings of the record pointed at, which say what the case is where the context doesn't. Raises
    InvariantViolated.
    """
    if not covers(scope.bindings, {**own, **context.values}):
        raise InvariantViolated(invariant="I4")


def is_over(scope: Scope, level: str, bindings: Bindings) -> bool:
    """Whether the scope takes in all of another one."""
    return LEVELS.index(scope.level) >= LEVELS.index(level) and covers(scope.bindings, bindings)
