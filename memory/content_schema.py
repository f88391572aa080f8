"""The content schema of a fact type: which schemas are taken, and what a content that doesn't fit is told.

JSON Schema 2020-12. Nothing is fetched, patterns run in linear time, and references neither leave the schema nor lead back to
themselves, so that no schema can make a write slow. Formats are asserted. Messages never hold content.
"""

import functools
import json
from collections.abc import Iterator
from typing import Any, Final

import jsonschema_rs

from memory.canonical import canonical
from memory.errors import BadInput, ContentSchemaViolated

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MOST_BYTES: Final = 65_536
MOST_STEPS: Final = 10_000
"""Most subschemas that one reading of the schema may pass, references followed."""
_PATTERN_BYTES: Final = 1 << 20
_MOST_ISSUES: Final = 20
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_NOT_APPLIED: Final = ("const", "enum", "default", "examples", "$defs", "definitions")


def checked_schema(schema: dict[str, Any] | bool) -> str:
    """The canonical text of a schema that is taken. Raises BadInput at `/contentSchema`."""
    text = canonical(schema)
    if len(text.encode()) > MOST_BYTES:
        raise _refused("", f"is larger than {MOST_BYTES} bytes")
    if isinstance(schema, dict) and schema.get("$schema", DIALECT) not in (DIALECT, f"{DIALECT}#"):
        raise _refused("/$schema", f"must be {DIALECT}")
    _check_references(schema)
    try:
        _validator(text)
    except jsonschema_rs.ValidationError as error:
        at = "".join(f"/{part}" for part in error.instance_path)
        rule = "has a pattern that can't run in linear time, or " if at.endswith("/pattern") else ""
        raise _refused(at, f"{rule}is not valid JSON Schema 2020-12") from None
    except (ValueError, jsonschema_rs.ReferencingError):
        raise _refused("", "is not valid JSON Schema 2020-12") from None
    return text


def check_content(type: str, schema_text: str | None, content: Any) -> None:
    """Raise ContentSchemaViolated unless the content fits; a type without a schema takes anything."""
    if schema_text is None:
        return
    validator = _validator(schema_text)
    if validator.is_valid(content):
        return
    issues = []
    for error in validator.iter_errors(content):
        rule = "".join(f"/{part}" for part in error.schema_path)
        issues.append(
            {
                "path": "/content" + "".join(f"/{part}" for part in error.instance_path)[:1024],
                "message": f"breaks the type's schema at #{rule}",
            }
        )
        if len(issues) == _MOST_ISSUES:
            break
    raise ContentSchemaViolated(type=type, issues=issues)


@functools.lru_cache(maxsize=64)
def _validator(text: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        json.loads(text),
        validate_formats=True,
        offline=True,
        pattern_options=jsonschema_rs.RegexOptions(
            size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES
        ),
    )


def _check_references(schema: Any) -> None:
    """Follow every `$ref` from the root: each must stay inside, none may come back, and all together stay few."""
    steps = 0
    # (place, whether its keys are names rather than keywords, the references that led here). Places reached twice count twice.
    waiting: list[tuple[Any, bool, frozenset[str]]] = [(schema, False, frozenset({"#"}))]
    while waiting:
        place, is_named, through = waiting.pop()
        steps += 1
        if steps > MOST_STEPS:
            raise _refused("", f"leads through more than {MOST_STEPS} subschemas")
        if isinstance(place, list):
            waiting.extend((part, False, through) for part in place)
        elif isinstance(place, dict) and is_named:
            waiting.extend((part, False, through) for part in place.values())
        elif isinstance(place, dict):
            target = _reference(place, is_root=place is schema)
            if target is not None:
                if target in through:
                    raise _refused("", "refers back to itself; spell its levels out")
                waiting.append((_resolved(schema, target), False, through | {target}))
            waiting.extend(
                (part, keyword in _NAMED, through)
                for keyword, part in place.items()
                if keyword not in _NOT_APPLIED
            )


def _reference(place: dict[str, Any], *, is_root: bool) -> str | None:
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if isinstance(place.get(keyword), str):
            raise _refused("", f"uses {keyword}; use $ref")
    if not is_root and isinstance(place.get("$id"), str):
        raise _refused("", "has an $id inside")
    target = place.get("$ref")
    return target if isinstance(target, str) else None


def _resolved(schema: Any, target: str) -> Any:
    if not target.startswith("#"):
        raise _refused("", "has a $ref that leaves the schema")
    if not target.startswith("#/"):
        for place in _places(schema):
            if place.get("$anchor") == target[1:]:
                return place
        raise _refused("", "has a $ref that leads nowhere")
    found = schema
    for step in target[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise _refused("", "has a $ref that leads nowhere")
    return found


def _places(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        place = waiting.pop()
        if isinstance(place, dict):
            yield place
            waiting.extend(place.values())
        elif isinstance(place, list):
            waiting.extend(place)


def _refused(at: str, message: str) -> BadInput:
    return BadInput.at("/contentSchema" + at, message)
