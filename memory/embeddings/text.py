"""The one text of a JSON value, for the vector and for the keyword index alike.

Equal JSON gives equal text whatever the key order or the spelling of a number, so a
back-filled vector is the vector the write would have stored. Keys are part of the text:
"seat: window" answers a question about seats.
"""

from __future__ import annotations

from typing import Any

DEFAULT_LIMIT_CHARS = 65_536


def text_of(content: Any, *, limit_chars: int = DEFAULT_LIMIT_CHARS) -> str:
    """Return the plain text of a JSON value, at most `limit_chars` characters.

    A string is itself. Objects give one line for each key, in key order; arrays give their
    elements in order; `null` gives nothing beside its key. Works through the value without
    recursion, and stops reading once the limit is reached.
    """
    pieces: list[str] = []
    room = limit_chars
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting and room > 0:
        label, value = waiting.pop()
        if isinstance(value, dict):
            if label:
                pieces.append(label)
                room -= len(label) + 1
            waiting.extend((f"{key}:", value[key]) for key in sorted(value, reverse=True))
            continue
        if isinstance(value, (list, tuple)):
            if label:
                pieces.append(label)
                room -= len(label) + 1
            waiting.extend(("", element) for element in reversed(value))
            continue
        piece = f"{label} {_scalar_text(value)}".strip()
        if piece:
            pieces.append(piece)
            room -= len(piece) + 1
    return "\n".join(pieces)[:limit_chars]


def _scalar_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
