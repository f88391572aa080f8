"""JSON laid out for reading without changing a token: the text is what was hashed, so nothing is parsed and written anew."""

import re

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+', re.S)
DEPTH_MAX = 40


def laid_out(text: str) -> str:
    """Canonical JSON text with line breaks and indents between its tokens."""
    out: list[str] = []
    depth = 0
    pieces = _TOKENS.findall(text)
    for index, piece in enumerate(pieces):
        following = pieces[index + 1] if index + 1 < len(pieces) else ""
        if piece in "{[":
            depth += 1
            out.append(piece if following in "}]" else piece + _break(depth))
        elif piece in "}]":
            depth -= 1
            is_empty = index > 0 and pieces[index - 1] in "{["
            out.append(piece if is_empty else _break(depth) + piece)
        elif piece == ",":
            out.append("," + _break(depth))
        elif piece == ":":
            out.append(": ")
        else:
            out.append(piece)
    return "".join(out)


def _break(depth: int) -> str:
    return "\n" + "  " * min(depth, DEPTH_MAX)
