"""What changed between two JSON texts, line by line as people read them; bounded, whatever somebody stored.

Both texts are laid out without changing a token. Beyond LINES_MAX lines only the first ones are compared, and the answer says so.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeVar

from django.utils.html import escape

from corrections.pretty import laid_out

LINES_MAX = 200
LINE_MAX = 400
MARKUP_BYTES = 90
"""What a line weighs around its text."""
_AROUND = 2

T = TypeVar("T")
Kind = Literal["same", "gone", "new", "left-out"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `left-out`: the text is how many unchanged lines are not shown."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The lines, and whether there was more than was compared."""

    lines: list[Line]
    is_cut: bool


def lines_of(text: str | None) -> tuple[list[str], bool]:
    """Content as lines to read: plain text without its quotes, anything else as laid-out JSON; and whether it was cut."""
    if text is None:
        return [], False
    value = json.loads(text) if text.startswith('"') else None
    lines = (value if isinstance(value, str) else laid_out(text)).split("\n")
    is_cut = len(lines) > LINES_MAX or any(len(line) > LINE_MAX for line in lines[:LINES_MAX])
    return [_short(line) for line in lines[:LINES_MAX]], is_cut


def _short(line: str) -> str:
    return line if len(line) <= LINE_MAX else line[:LINE_MAX] + "…"


def difference(before: str | None, after: str | None) -> Difference:
    """From one canonical text to the next; without a text before, everything is new."""
    old, old_is_cut = lines_of(before)
    new, new_is_cut = lines_of(after)
    if before is None:
        return Difference([Line("same", line) for line in new], new_is_cut)
    return Difference(list(_compared(old, new)), old_is_cut or new_is_cut)


def within(lines: Sequence[T], weight: int, text_of: Callable[[T], str]) -> tuple[list[T], int]:
    """The first lines that a page of limited weight has room for, and what weight is left; in bytes as markup."""
    kept: list[T] = []
    for line in lines:
        weight -= len(escape(text_of(line)).encode()) + MARKUP_BYTES
        if weight < 0:
            return kept, 0
        kept.append(line)
    return kept, weight


def cut_to(found: Difference, weight: int) -> tuple[Difference, int]:
    """The difference as far as a page has room for it, and what room is left."""
    lines, left = within(found.lines, weight, lambda line: line.text)
    return Difference(lines, found.is_cut or len(lines) < len(found.lines)), left


def _compared(old: list[str], new: list[str]) -> Iterator[Line]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND):
        if group[0][1] > 0:
            yield Line("left-out", "")
        for act, first, last, new_first, new_last in group:
            if act == "equal":
                yield from (Line("same", line) for line in old[first:last])
                continue
            yield from (Line("gone", line) for line in old[first:last])
            yield from (Line("new", line) for line in new[new_first:new_last])
