"""How answers become JSON text. Canonical text that is stored goes out as it is: `Raw` pieces are spliced, never re-read."""

import json
from typing import Any


class Raw(str):
    """A piece of JSON text that is written as it stands."""

    __slots__ = ()


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def dumps(value: Any) -> str:
    """JSON text of dicts with string keys, lists, scalars and Raw pieces."""
    kind = type(value)
    if kind is Raw:
        return str(value)
    if kind is dict:
        return "{" + ",".join(f"{_encode(key)}:{dumps(part)}" for key, part in value.items()) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join(map(dumps, value)) + "]"
    return _encode(value)
