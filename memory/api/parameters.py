"""Query parameters: each route names the ones it takes; any other, or one given twice, is refused."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from memory import admission
from memory.api.shapes import Schema, Shape
from memory.errors import BadInput, UnknownField
from memory.instants import instant

_INTEGER = re.compile(r"-?[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter. `read` gets the text and returns the value or raises ValueError saying what is wanted."""

    name: str
    read: Callable[[str], Any]
    schema: Schema
    description: str = ""
    default: Any = None


def text(name: str, description: str = "", *, most: int = 256) -> Parameter:
    def read(value: str) -> str:
        if not 1 <= len(value) <= most:
            raise ValueError(f"must have 1 to {most} characters")
        if "\x00" in value:
            raise ValueError("must not hold U+0000")
        return value

    return Parameter(name, read, {"type": "string", "minLength": 1, "maxLength": most}, description)


def integer(
    name: str, description: str = "", *, least: int, most: int, default: int | None = None
) -> Parameter:
    def read(value: str) -> int:
        if not _INTEGER.fullmatch(value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Parameter(name, read, schema, description, default)


def moment(name: str, description: str = "") -> Parameter:
    return Parameter(name, instant, {"type": "string", "format": "date-time"}, description)


def choice(name: str, options: Sequence[str], description: str = "") -> Parameter:
    def read(value: str) -> str:
        if value not in options:
            raise ValueError("must be one of: " + ", ".join(options))
        return value

    return Parameter(name, read, {"type": "string", "enum": list(options)}, description)


def boolean(name: str, description: str = "") -> Parameter:
    def read(value: str) -> bool:
        if value not in ("true", "false"):
            raise ValueError("must be true or false")
        return value == "true"

    return Parameter(name, read, {"type": "boolean"}, description)


def json_object(name: str, shape: Shape, description: str = "") -> Parameter:
    """A parameter whose text is a JSON object of the given shape."""

    def read(value: str) -> Any:
        try:
            admitted = admission.admit(value.encode("utf-8", "surrogatepass"), max_bytes=8192)
        except (admission.BadInput, admission.TooLarge):
            raise ValueError("must be a JSON object") from None
        shape.check(admitted)
        return admitted

    return Parameter(name, read, {"type": "string"}, description)


LIMIT = integer("limit", "How many at the most.", least=1, most=200, default=50)
CURSOR = text("cursor", "The nextCursor of the page before.", most=2048)


def read_query(given: QueryDict, known: dict[str, Parameter]) -> dict[str, Any]:
    """Every known parameter's value, defaults filled in. Raises UnknownField, BadInput."""
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UnknownField.named(*(name[:256] for name in unknown[:20]))
    values = {name: parameter.default for name, parameter in known.items()}
    for name, texts in given.lists():
        if len(texts) > 1:
            raise BadInput.at(name, "is given more than once")
        try:
            values[name] = known[name].read(texts[0])
        except ValueError as error:
            raise BadInput.at(name, str(error)) from None
    return values
