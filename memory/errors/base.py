"""What every refusal is: a stable code, a sentence for people, and details that are ready for the wire."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class DomainError(Exception):
    """The request can't be done."""

    code: ClassVar[str] = "invariant-violated"
    message: ClassVar[str] = "The request can't be done."

    @property
    def details(self) -> dict[str, Any]:
        """What the error names, ready for the wire; absent values are left out."""
        if not is_dataclass(self):
            return {}
        pairs = ((camel(field.name), getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}

    def __str__(self) -> str:
        return self.message


class NotFound(DomainError):
    """What doesn't exist and what the caller may not see answer the same."""

    code = "not-found"
    message = "There is nothing at this address, or you may not see it."


@dataclass(eq=False)
class InvariantViolated(DomainError):
    code = "invariant-violated"
    message = (
        "A rule refuses this: details.invariant names it, and docs/errors.md says what it means."
    )
    invariant: str
