"""What the benchmarks' report makes of the lines that they print, and that every benchmark runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import asked, names
from tests.benchmarks.harness import ROOT
from tests.benchmarks.report import figure_of, write_report


def test_a_figure_is_read_with_what_is_wanted_of_it() -> None:
    said = figure_of("verify in SQL / sha256 alone (want >= 0.35)        0.412")
    assert said is not None
    assert (said.name, said.value, said.wish) == (
        "verify in SQL / sha256 alone",
        "0.412",
        ">= 0.35",
    )
    assert said.verdict == "reached"
    after = figure_of("first answer, seconds      61.00   (at most 60)")
    assert after is not None
    assert (after.wish, after.verdict) == ("<= 60", "**missed**")


def test_what_is_wanted_of_a_figure_by_its_name_is_found() -> None:
    told = figure_of("recall / noop, 10000 records, 8 clients      0.57")
    assert told is not None
    assert (told.wish, told.verdict) == (">= 0.5", "reached")
    plain = figure_of("recalls a second, 10000 records      667.92")
    assert plain is not None
    assert (plain.wish, plain.verdict) == ("", "")


def test_other_lines_are_no_figures() -> None:
    for line in ("", "# append", "not reached: first answer", "done in  time"):
        assert figure_of(line) is None


def test_the_report_has_a_table_a_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    write_report(path, {"recall": ["recall / noop, 1 clients    0.30\n", "chatter\n"]})
    text = path.read_text("utf-8")
    assert "## recall" in text
    assert "| recall / noop, 1 clients | 0.30 | >= 0.5 | **missed** |" in text
    assert "chatter" not in text


def test_the_page_says_first_what_is_missed_and_why(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    lines = ["recall / noop, 1 clients    0.30\n", "recall / noop, 8 clients    0.60\n"]
    write_report(path, {"recall": lines}, minutes=12.4)
    before, section = path.read_text("utf-8").split("## recall\n")
    assert "took 12 minutes" in before
    assert "1 of the 2 figures that have a target reach it." in before
    assert "| recall: recall / noop, 1 clients | 0.30 | >= 0.5 |" in before
    assert "How fast recall is over HTTP" in section
    assert "python -m" not in section


def test_figures_of_several_sizes_stand_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    lines = [
        "page 1: a second, 1000 facts      300.00\n",
        "page 1: a second, 100000 facts      150.00\n",
        "growth of page 1: a second, 1000 to 100000      2.00   (at most 1.5)\n",
    ]
    write_report(path, {"breadth": lines})
    text = path.read_text("utf-8")
    assert "| 1,000 | 100,000 | growth 1,000 → 100,000 (<= 1.5) |" in text
    assert "| page 1: a second | 300.00 | 150.00 | **2.00** (missed) |" in text


def test_each_request_stands_beside_its_floor(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    lines = [
        "append, 1 client: / its floor (want >= 0.6)      0.71\n",
        "append, 1 client: a second      391.00\n",
        "recall, 1 client: / its floor (want >= 0.6)      0.50\n",
    ]
    write_report(path, {"floor": lines})
    text = path.read_text("utf-8")
    assert "| request | / its floor (>= 0.6) | a second |" in text
    assert "| append, 1 client | 0.71 | 391.00 |" in text
    assert "| recall, 1 client | **0.50** (missed) |  |" in text


def test_what_failed_is_said_and_takes_nothing_from_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    write_report(path, {"recall": [], "append": ["noop / plain, 1 clients    0.60\n"]})
    text = path.read_text("utf-8")
    assert "nothing was measured" in text.split("## recall\n")[1].split("## append\n")[0]
    assert "| noop / plain, 1 clients | 0.60 | >= 0.45 | reached |" in text


def test_the_page_is_written_by_whole_runs_alone() -> None:
    assert asked([]).report == ROOT / "docs" / "benchmarks.md"
    assert asked(["--quick"]).report is None
    assert asked(["append"]).report is None


@pytest.mark.full
def test_every_benchmark_runs_and_says_figures(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "tests.benchmarks", "--quick", "--report", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    text = page.read_text("utf-8")
    for name in names():
        _, section = text.split(f"## {name}\n")
        assert section.split("\n## ")[0].count("\n| ") > 2, name
