"""Bodies with one property more: from a route's own shape, so that a new property is tried without being named here."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Property:
    """A property of a body, at any depth; in an array, of its first entry."""

    path: Path
    schema: Mapping[str, Any]

    @property
    def pointer(self) -> str:
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


def properties_of(schema: Mapping[str, Any], before: Path = ()) -> Iterator[Property]:
    """Every property that the shape names, the outer ones first."""
    for name, part in schema.get("properties", {}).items():
        yield Property((*before, name), part)
        yield from properties_of(part, (*before, name))
    if isinstance(schema.get("items"), Mapping):
        yield Property((*before, 0), schema["items"])
        yield from properties_of(schema["items"], (*before, 0))


def sample_of(schema: Mapping[str, Any]) -> Any:
    """A small value that fits a shape of this API."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        return {name: sample_of(schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "array":
        return [sample_of(schema["items"])] * schema.get("minItems", 0)
    if kind == "string":
        return _TEXTS.get(schema.get("format", ""), "x" * schema.get("minLength", 1))
    return {"boolean": False, "integer": schema.get("minimum", 1), "null": None}.get(kind, 1)


_TEXTS = {
    "date-time": "2026-03-01T09:30:00Z",
    "date": "2026-03-01",
    "uuid": "0190a3a0-0000-7000-8000-000000000000",
}


def with_value(
    body: Mapping[str, Any], schema: Mapping[str, Any], path: Path, value: Any
) -> dict[str, Any]:
    """The body with a value at a path; what is missing on the way there is the smallest that fits."""
    filled = copy.deepcopy(dict(body))
    place: Any = filled
    for step, then in zip(path, (*path[1:], None), strict=True):
        part = schema["items"] if isinstance(step, int) else schema["properties"][step]
        if isinstance(step, int) and not place:
            place.append(sample_of(part))
        if then is None:
            place[step] = value
            break
        if not isinstance(step, int) and not isinstance(place.get(step), dict | list):
            place[step] = sample_of(part)
        place, schema = place[step], part
    return filled
