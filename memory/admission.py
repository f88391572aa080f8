"""The one gate for JSON: strict I-JSON, checked on the bytes before anything else looks at them.

Admits what canonical JSON (RFC 8785), PostgreSQL and every client read alike; refuses the rest
with a JSON Pointer to the place and never the value. Nothing is normalised or coerced.

The C scanner does the reading. Hooks refuse duplicate keys and numbers as it goes; strings and
depth are walked only when the text could hold something to refuse. Where the place is, is worked
out only after a refusal, in a second reading that puts a mark where the rule was broken.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypedDict

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1
ID_MAX: Final = 256
"""Most characters (code points) that a wire id may have."""

_MAX_ISSUES = 10
_MAX_POINTER_CHARACTERS = 1024
_JSON_WHITESPACE = " \t\n\r"

_TOO_DEEP = f"nests deeper than {MAX_DEPTH} levels"
_DUPLICATE_KEY = "repeats a key of the same object"
_NOT_FINITE = "is not a finite number"
_OUT_OF_RANGE = "is an integer beyond ±(2^53 − 1); send it as a string"
_BAD_TEXT = "contains U+0000 or a lone surrogate"
_BAD_KEY = "has a key that contains U+0000 or a lone surrogate"
_KEY_NOT_TEXT = "has a key that is not a string"
_NOT_JSON = "is not a JSON value"

# Only such an escape can bring U+0000 or a surrogate into a string: the scanner refuses raw
# control characters, and UTF-8 has no raw surrogates.
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_REFUSED_CHARACTER = re.compile("[\x00\ud800-\udfff]")


class Issue(TypedDict):
    """One refusal: where (a JSON Pointer, RFC 6901; "" is the whole value) and which rule."""

    path: str
    message: str


class BadInput(Exception):
    """The value is not admissible JSON; `issues` holds 1 to 10 places in document order."""

    code = "bad-input"

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__(self.code, issues)
        self.issues = issues


class TooLarge(Exception):
    """The body has more bytes than its route takes."""

    code = "content-too-large"

    def __init__(self, max_bytes: int) -> None:
        super().__init__(self.code, max_bytes)
        self.max_bytes = max_bytes


def admit(data: bytes, *, max_bytes: int) -> Any:
    """Return the JSON value of a body (docs/integrity.md): dict, list, str, int, float, bool or None.

    Raises TooLarge, or BadInput for anything else that is refused.
    """
    if len(data) > max_bytes:
        raise TooLarge(max_bytes)
    if data.startswith(b"\xef\xbb\xbf"):
        raise BadInput([{"path": "", "message": "starts with a byte order mark"}])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"is not valid UTF-8 at byte {error.start}"
        raise BadInput([{"path": "", "message": message}]) from None
    text = text.strip(_JSON_WHITESPACE)
    if not text:
        raise BadInput([{"path": "", "message": "is empty"}])

    try:
        value, end = _SCANNER.raw_decode(text)
    except (_Refused, json.JSONDecodeError, RecursionError):
        raise BadInput(_issues_of_text(text)) from None
    if end != len(text):
        raise BadInput(
            [{"path": "", "message": f"goes on after the JSON value at character {end}"}]
        )
    needs_walk = text.count("[") + text.count("{") > MAX_DEPTH or (
        "\\u" in text and _SUSPECT_ESCAPE.search(text) is not None
    )
    if needs_walk and not _is_admissible(value):
        raise BadInput(_issues_of_value(value))
    return value


def admit_value(value: Any) -> Any:
    """Return `value` itself when it is admissible as it stands; for callers that hold Python.

    Same rules as `admit`. Only the exact types that JSON has pass: no tuples, no subclasses, no
    dates, no Decimal. Raises BadInput.
    """
    if not _is_admissible(value):
        raise BadInput(_issues_of_value(value))
    return value


def id_issue(text: str, path: str) -> Issue | None:
    """Return what is wrong with a wire id's length, or None; `path` is where it stood."""
    if not text:
        return {"path": path, "message": "must not be empty"}
    if len(text) > ID_MAX:
        return {"path": path, "message": f"must have at most {ID_MAX} characters"}
    return None


class _Refused(Exception):
    """The first reading met something inadmissible; the second one finds out where."""


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused
    return found


def _integer_in_range(digits: str) -> int:
    # Up to 15 digits can't leave the range; beyond 17 characters they always do, and int() of a
    # long text is slow.
    if len(digits) < 16:
        return int(digits)
    if len(digits) <= 17 and -MAX_INTEGER <= (number := int(digits)) <= MAX_INTEGER:
        return number
    raise _Refused


def _float_in_range(digits: str) -> float:
    # From 2^53 on every float is integral, so one comparison refuses those and infinity.
    number = float(digits)
    if -MAX_INTEGER <= number <= MAX_INTEGER:
        return number
    raise _Refused


def _refuse_constant(name: str) -> Any:
    raise _Refused


_SCANNER = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates,
    parse_int=_integer_in_range,
    parse_float=_float_in_range,
    parse_constant=_refuse_constant,
)


def _is_admissible(root: Any) -> bool:
    """Check a tree of Python values level by level, so that depth costs nothing to know."""
    texts: list[str] = []
    level = [root]
    for depth in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                texts.append(value)
            elif kind is dict or kind is list:
                if depth == MAX_DEPTH:
                    return False
                if kind is dict:
                    texts.extend(value)
                    below.extend(value.values())
                else:
                    below.extend(value)
            elif kind is int or kind is float:
                if not -MAX_INTEGER <= value <= MAX_INTEGER:
                    return False
            elif value is not None and kind is not bool:
                return False
        if not below:
            break
        level = below
    if not set(map(type, texts)) <= {str}:
        return False
    joined = "".join(texts)
    if joined.isascii():
        return "\x00" not in joined
    return _REFUSED_CHARACTER.search(joined) is None


class _Mark:
    """Stands in a tree for something refused; `key` is set when a key under it is repeated."""

    __slots__ = ("key", "message")

    def __init__(self, message: str, key: str | None = None) -> None:
        self.message = message
        self.key = key


def _marked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Mark:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            return _Mark(_DUPLICATE_KEY, key)
        found[key] = value
    return found


def _marked_integer(digits: str) -> int | _Mark:
    if len(digits) < 16:
        return int(digits)
    try:
        return _integer_in_range(digits)
    except _Refused:
        return _Mark(_OUT_OF_RANGE)


def _marked_float(digits: str) -> float | _Mark:
    try:
        return _float_in_range(digits)
    except _Refused:
        return _Mark(_number_rule(float(digits)))


def _marked_constant(name: str) -> _Mark:
    return _Mark(_NOT_FINITE)


_MARKING_SCANNER = json.JSONDecoder(
    object_pairs_hook=_marked_object,
    parse_int=_marked_integer,
    parse_float=_marked_float,
    parse_constant=_marked_constant,
)


def _issues_of_text(text: str) -> list[Issue]:
    try:
        value = _MARKING_SCANNER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return [{"path": "", "message": f"is not valid JSON: {place}"}]
    except RecursionError:
        return [{"path": "", "message": _TOO_DEEP}]
    return _issues_of_value(value)


def _issues_of_value(root: Any) -> list[Issue]:
    """Name the first places, in document order, where the tree breaks a rule."""
    issues: list[Issue] = []
    steps: list[str | int] = []
    open_containers: list[Iterator[tuple[str | int, Any]]] = [iter([("", root)])]
    while open_containers:
        members = open_containers[-1]
        for step, value in members:
            kind = type(value)
            if kind is int and -MAX_INTEGER <= value <= MAX_INTEGER:
                continue  # a long row of plain numbers must not make a refusal slow
            message = _broken_rule(value, kind, len(steps))
            if message is not None:
                place = [*steps[1:], step] if steps else []
                if kind is _Mark and value.key is not None and _is_clean(value.key):
                    place.append(value.key)
                issues.append({"path": _pointer(place), "message": message})
                if len(issues) == _MAX_ISSUES:
                    return issues
            elif kind is dict or kind is list:
                steps.append(step)
                open_containers.append(iter(value.items() if kind is dict else enumerate(value)))
                break
        else:
            open_containers.pop()
            if steps:
                steps.pop()
    return issues


def _broken_rule(value: Any, kind: type, depth: int) -> str | None:
    if kind is str:
        return None if _is_clean(value) else _BAD_TEXT
    if kind is int or kind is float:
        return None if -MAX_INTEGER <= value <= MAX_INTEGER else _number_rule(value)
    if value is None or kind is bool:
        return None
    if kind is dict or kind is list:
        if depth == MAX_DEPTH:
            return _TOO_DEEP
        if kind is list:
            return None
        if not all(type(key) is str for key in value):
            return _KEY_NOT_TEXT
        return None if all(map(_is_clean, value)) else _BAD_KEY
    return str(value.message) if kind is _Mark else _NOT_JSON


def _number_rule(number: float) -> str:
    return _OUT_OF_RANGE if float("-inf") < number < float("inf") else _NOT_FINITE


def _is_clean(text: str) -> bool:
    return _REFUSED_CHARACTER.search(text) is None


def _pointer(steps: list[str | int]) -> str:
    """Write the way from the root as a JSON Pointer, cut so that an answer stays small."""
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
    if len(pointer) > _MAX_POINTER_CHARACTERS:
        return pointer[:_MAX_POINTER_CHARACTERS] + "…"
    return pointer
