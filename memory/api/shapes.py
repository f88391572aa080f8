"""Shapes of request bodies as JSON Schema 2020-12: checked in one pass, and the same text that the API description shows.

Messages name the rule and never the value. A property that the shape doesn't know is `unknown-field`; anything else `bad-input`.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jsonschema_rs

from memory.errors import BadInput, UnknownField
from memory.instants import day, instant

Schema = Mapping[str, Any]
_MOST_ISSUES = 20

TEXT = {"type": "string"}
ID = {"type": "string", "minLength": 1, "maxLength": 256}
INSTANT = {"type": "string", "format": "date-time"}
ANY: dict[str, Any] = {}


def shape(
    properties: Mapping[str, Schema], *, required: Iterable[str] = (), **more: Any
) -> dict[str, Any]:
    """An object shape that knows exactly these properties."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(properties),
        "required": list(required),
        **more,
    }


def array_of(part: Schema, *, most: int, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": dict(part), "minItems": least, "maxItems": most}


def _is_read_by(read: Callable[[str], object]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return reads


_FORMATS = {"date-time": _is_read_by(instant), "date": _is_read_by(day)}
"""Times and days are checked by what reads them: the validator's own formats take the year 0 and seconds that no clock shows."""


class Shape:
    """A compiled shape. `check(value)` raises UnknownField or BadInput."""

    def __init__(self, schema: Schema) -> None:
        self.schema = dict(schema)
        self._validator = jsonschema_rs.Draft202012Validator(
            self.schema, validate_formats=True, formats=_FORMATS
        )

    def check(self, value: Any) -> None:
        if self._validator.is_valid(value):
            return
        unknown: list[str] = []
        issues: list[dict[str, str]] = []
        for error in self._validator.iter_errors(value):
            if len(issues) + len(unknown) >= _MOST_ISSUES:
                break
            at = pointer(error.instance_path)
            if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
                left = _MOST_ISSUES - len(issues) - len(unknown)
                unknown += [f"{at}/{_escape(name)}" for name in error.kind.unexpected[:left]]
            else:
                issues += _issues(error, at)
        # An unknown property comes first: it is often why another rule is broken too.
        if unknown:
            raise UnknownField.named(*unknown)
        raise BadInput(issues=issues)


@functools.cache
def _word_of_rule() -> dict[str, str]:
    return {
        "minLength": "is too short",
        "maxLength": "is too long",
        "minimum": "is too small",
        "maximum": "is too large",
        "exclusiveMinimum": "is too small",
        "exclusiveMaximum": "is too large",
        "minItems": "has too few entries",
        "maxItems": "has too many entries",
        "minProperties": "has too few properties",
        "maxProperties": "has too many properties",
        "uniqueItems": "repeats an entry",
        "anyOf": "fits none of the allowed shapes",
        "oneOf": "fits not exactly one of the allowed shapes",
        "not": "is not allowed here",
        "const": "is not the allowed value",
    }


def _issues(error: jsonschema_rs.ValidationError, at: str) -> list[dict[str, str]]:
    kinds = jsonschema_rs.ValidationErrorKind
    kind = error.kind
    if isinstance(kind, kinds.Required):
        return [{"path": f"{at}/{_escape(kind.property)}", "message": "is required"}]
    if isinstance(kind, kinds.Type):
        types = getattr(kind, "types", None)
        wanted = " or ".join(types) if types else "another type"
        return [{"path": at, "message": f"must be {wanted}"}]
    if isinstance(kind, kinds.Enum):
        allowed = [option for option in kind.options if isinstance(option, str)]
        return [{"path": at, "message": "must be one of: " + ", ".join(allowed)}]
    if isinstance(kind, kinds.Format):
        return [{"path": at, "message": _format_message(kind.format)}]
    if isinstance(kind, kinds.Pattern):
        return [{"path": at, "message": f"must match {kind.pattern}"}]
    rule = str(error.schema_path[-1]) if error.schema_path else ""
    message = _word_of_rule().get(rule, f"breaks the rule '{rule}'")
    limit = getattr(kind, "limit", None)
    return [{"path": at, "message": f"{message} (limit {limit})" if limit is not None else message}]


def _format_message(name: str) -> str:
    if name == "date-time":
        return "must be an RFC 3339 time that exists, with a zone, such as 2026-01-31T09:30:00Z"
    if name == "date":
        return "must be a date that exists, such as 2026-01-31"
    return f"must be a valid {name}"


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path."""
    return "".join(f"/{_escape(str(part))}" for part in path)


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")[:256]


def always(body: Any) -> bool:
    """For an operation's `matters`, where every body does."""
    return True
