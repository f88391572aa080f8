"""The tables of the README and the pages of docs are whole: a row with a cell too many is shown cut off."""

import re
from pathlib import Path

import pytest

from tests.completeness.sources import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def uneven_rows(text: str) -> list[str]:
    """The rows with another number of cells than the row above them."""
    uneven, above = [], None
    for line in _CODE.sub("", text).splitlines():
        bars = None
        if line.startswith("|"):
            bars = re.sub(r"`[^`]*`", "", line).replace("\\|", "").count("|")
            if above not in (None, bars):
                uneven.append(line)
        above = bars
    return uneven


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_row_of_a_table_has_the_cells_of_its_head(page: Path) -> None:
    assert uneven_rows(page.read_text("utf-8")) == []


def test_a_row_with_a_cell_too_many_is_found() -> None:
    table = "| to | do |\n|---|---|\n| go | `a | b` |\n"
    assert uneven_rows(table) == []
    assert uneven_rows(f"{table}| go | there | now |\n") == ["| go | there | now |"]
