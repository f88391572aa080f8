"""What the benchmarks' report makes of the lines that they print."""

from pathlib import Path

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
