"""Charts drawn by the server as SVG: shapes only, no style attributes, with words and numbers beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 640
_GAP = 2


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a stacked bar; `tone` is a class, `url` what the piece links to."""

    label: str
    count: int
    tone: str
    url: str


@dataclass(frozen=True, slots=True)
class Piece:
    part: Part
    x: int
    width: int


def stacked_bar(parts: Sequence[Part]) -> list[Piece]:
    """Pieces of one bar of WIDTH units, in order; each part that has any is at least 8 units wide."""
    shown = [part for part in parts if part.count]
    total = sum(part.count for part in shown)
    if not total:
        return []
    room = WIDTH - _GAP * (len(shown) - 1) - 8 * len(shown)
    pieces, x = [], 0
    for part in shown:
        width = 8 + max(0, room) * part.count // total
        pieces.append(Piece(part, x, width))
        x += width + _GAP
    return pieces
