"""No cell of any table that is exported runs in a spreadsheet, whatever the text; what a cell said can be read back.

Each export by itself: tests/pages/test_audit.py, test_access_log.py and test_downloads.py.
"""

import ast
import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrections.csv_text import BOM, csv_bytes, csv_line
from tests.completeness.sources import ROOT, files, name_of, nodes

EXPORTS = {
    "corrections/actions/export_entries.py": "tests/pages/test_audit.py",
    "corrections/actions/export_access_log.py": "tests/pages/test_access_log.py",
    "corrections/actions/export_memory.py": "tests/pages/test_downloads.py",
}
"""What writes tables, and where each is tried."""
OF_OUR_OWN_WORDS = {"memory/integrity/bundle.py"}
"""Numbers, hashes and times alone, for a verifier on another machine."""
RUNS = re.compile(r"[=+\-@\t\r\n\0＝＋－＠]")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
STARTS = st.sampled_from([*"=+-@\t\r\n＝＋－＠", "'=", '"=', ",=", "\r\n=", ""])
CELLS = st.builds(
    lambda start, rest: start + rest,
    STARTS,
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
)


def read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


@given(st.lists(CELLS, min_size=1, max_size=6))
def test_no_cell_begins_like_a_formula_and_each_can_be_read_back(cells: list[str]) -> None:
    heads = [f"h{n}" for n in range(len(cells))]
    whole, line = csv_bytes(heads, [cells]), BOM + csv_line(heads) + csv_line(cells)
    for data in (whole, line):
        first, written = read(data)
        assert first == heads
        for said, cell in zip(cells, written, strict=True):
            assert cell in (said, f"'{said}")
            assert not RUNS.match(cell) or NUMBER.fullmatch(cell)


def test_every_table_is_written_by_the_one_writer() -> None:
    users = {
        name_of(path)
        for path in files(".py")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "corrections.csv_text"
    }
    assert users == set(EXPORTS)
    importing = {
        name_of(path)
        for path in files(".py")
        for node in nodes(path)
        if isinstance(node, ast.Import) and any(alias.name == "csv" for alias in node.names)
    }
    assert importing == {"corrections/csv_text.py", *OF_OUR_OWN_WORDS}


@pytest.mark.parametrize("tried", EXPORTS.values())
def test_every_table_is_tried_with_formulas(tried: str) -> None:
    assert "runs_no_formula" in (ROOT / tried).read_text("utf-8")
