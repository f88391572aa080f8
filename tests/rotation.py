"""Cases by turns: a share of them with every change, the rest of them before a release.

Which cases are in the share is told by their place in the list, never by chance. `first` moves the share along, so that two tests
over the same list take different cases.
"""

from collections.abc import Sequence
from typing import Any

import pytest


def one_in(count: int, cases: Sequence[Any], *, first: int = 0) -> list[Any]:
    """Every case for `parametrize`: one in so many with every change, the others marked `full`."""
    return [
        case if at % count == first % count else pytest.param(case, marks=pytest.mark.full)
        for at, case in enumerate(cases)
    ]


def shares(count: int, cases: Sequence[Any], *, first: int = 0) -> list[Any]:
    """Each case with a slice of what it goes through: one in so many, another one for each case; marked `full`, all."""
    parts = [
        pytest.param(case, slice((at + first) % count, None, count), id=f"{name_of(case)}-in turn")
        for at, case in enumerate(cases)
    ]
    wholes = [
        pytest.param(case, slice(None), marks=pytest.mark.full, id=f"{name_of(case)}-all")
        for case in cases
    ]
    return [*parts, *wholes]


def name_of(case: Any) -> str:
    """What the case is called in a test's name."""
    if isinstance(case, tuple):
        return "-".join(map(name_of, case))
    return str(getattr(case, "id", case))
