"""A long answer read in pieces, each asked for after the last one seen: no offset, no cursor kept open."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_One = TypeVar("_One")


def in_batches(batch: Callable[[_One | None], Sequence[_One]], size: int) -> Iterator[_One]:
    """All of them. `batch`: at most `size` that come after the one given, or the first ones after none."""
    last: _One | None = None
    while found := batch(last):
        yield from found
        if len(found) < size:
            return
        last = found[-1]
