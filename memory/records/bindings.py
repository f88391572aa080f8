"""Contexts and bindings: scalars by name, compared as JSON values (`1` is not `"1"` and not `true`).

A context is what a caller says about the present case. A few of its keys steer instead of describing; a correction
leaves those out of what it binds to, recall never does. Source: the product contract, rule I4 and recall step 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.admission import ID_MAX
from memory.canonical import canonical
from memory.errors import BadInput

CONTROL_KEYS = frozenset(
    {
        "consequential",
        "confirmation_ref",
        "broaden_to",
        "message_ref",
        "agent",
        "route",
        "user_id",
    }
)
MOST_KEYS = 100
MOST_CHARACTERS = 8192
"""Of a context or of bindings, as canonical text."""

Bindings = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Context:
    """A checked context. `text`: its scalars, canonical. `broaden_to`: the raw value, for a correction to check."""

    values: dict[str, Any]
    text: str
    broaden_to: Any = None

    @property
    def is_consequential(self) -> bool:
        return self.values.get("consequential") is True

    @property
    def user_id(self) -> str | None:
        """The person that the context names."""
        return self.values.get("user_id")

    def named(self, key: str) -> str | None:
        """A control key's text, such as `confirmation_ref`."""
        value = self.values.get(key)
        return value if isinstance(value, str) and value else None

    @property
    def instance(self) -> dict[str, Any]:
        """What a correction binds to: everything but the control keys."""
        return {key: value for key, value in self.values.items() if key not in CONTROL_KEYS}


def read_context(given: Mapping[str, Any] | None, path: str = "/context") -> Context:
    """The context of a request. Raises BadInput for a value of another kind than it may have."""
    values = dict(given or {})
    broaden_to = values.pop("broaden_to", None)
    check_scalars(values, path)
    user_id = values.get("user_id")
    if "user_id" in values and not (isinstance(user_id, str) and 1 <= len(user_id) <= ID_MAX):
        # Read as naming nobody, it would open the recall to every person.
        raise BadInput.at(f"{path}/user_id", f"must be a string of 1 to {ID_MAX} characters")
    if not isinstance(values.get("consequential", False), bool):
        # Read as anything else than true, it would let a value be applied on which much hangs.
        raise BadInput.at(f"{path}/consequential", "must be true or false")
    return Context(values=values, text=canonical(values), broaden_to=broaden_to)


def check_scalars(values: Mapping[str, Any], path: str) -> None:
    """Raise BadInput unless every value is a string, number or boolean and the whole is of a bounded size."""
    issues = [
        {"path": f"{path}/{key[:ID_MAX]}", "message": "must be a string, a number or a boolean"}
        for key, value in values.items()
        if not isinstance(value, str | int | float | bool)
    ]
    issues += [
        {"path": path, "message": f"names must have 1 to {ID_MAX} characters"}
        for key in values
        if not 1 <= len(key) <= ID_MAX
    ]
    if len(values) > MOST_KEYS or len(canonical(dict(values))) > MOST_CHARACTERS:
        issues.append(
            {
                "path": path,
                "message": f"has more than {MOST_KEYS} names or {MOST_CHARACTERS} characters",
            }
        )
    if issues:
        raise BadInput(issues=issues[:20])


def same(left: Any, right: Any) -> bool:
    """Whether two scalars are one JSON value."""
    return canonical(left) == canonical(right)


def covers(wide: Bindings, narrow: Bindings) -> bool:
    """Whether whatever has the narrow bindings has the wide ones."""
    return all(key in narrow and same(value, narrow[key]) for key, value in wide.items())


def agree(left: Bindings, right: Bindings) -> bool:
    """Whether the two say the same on each key that both have: one context can have both."""
    return all(key not in right or same(value, right[key]) for key, value in left.items())
