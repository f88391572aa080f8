"""Entries in the order of what caused what: each below its cause, siblings by sequence, with the depth for the eye.

Only what is on the page is arranged; a cause that is elsewhere is named and linked instead. Walked without recursion, since a
run may be one long chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from corrections.queries.run_entries import EntryLine

SHOWN_DEPTH_MAX = 8


@dataclass(frozen=True, slots=True)
class CauseRow:
    """`depth` is true; `indent` is what a narrow screen can take. `cause`: the sequence of a cause on this page."""

    line: EntryLine
    depth: int
    indent: int
    cause: int | None
    children: int


def by_cause(lines: Sequence[EntryLine]) -> list[CauseRow]:
    """Every line once, causes before effects."""
    by_id = {line.id: line for line in lines}
    below: dict[str | None, list[EntryLine]] = {}
    for line in lines:
        cause = by_id.get(line.caused_by or "")
        # A cause that comes later is none for the order: nothing may go round in a circle.
        is_below = cause is not None and cause.sequence < line.sequence
        below.setdefault(line.caused_by if is_below else None, []).append(line)
    rows: list[CauseRow] = []
    waiting = [(line, 0) for line in reversed(below.pop(None, []))]
    while waiting:
        line, depth = waiting.pop()
        # Taken out: an id that is twice there, or none, which only the table's owner can make, goes round in no circle.
        children = below.pop(line.id, [])
        cause = by_id.get(line.caused_by or "")
        rows.append(
            CauseRow(
                line=line,
                depth=depth,
                indent=min(depth, SHOWN_DEPTH_MAX),
                cause=cause.sequence if cause is not None else None,
                children=len(children),
            )
        )
        waiting.extend((child, depth + 1) for child in reversed(children))
    return rows
