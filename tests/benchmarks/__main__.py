"""Runs every benchmark in turn, each in a process and on a database of its own, and ends with 1 when one of them fails.

Run: python -m tests.benchmarks [name …] [--sizes N …], such as `append search`; all of them without a name, and then
docs/benchmarks.md is written anew, or what `--report` names. `--sizes 1000 10000 100000 1000000` is for those that measure at
several sizes. `--quick` does as little of everything as shows that it works; its figures mean nothing.
What they print are ratios of what ran interleaved, mostly; absolute figures are of this machine.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.harness import QUICK_VARIABLE, ROOT, SIZES_VARIABLE
from tests.benchmarks.report import write_report

_SUFFIX = "_bench"


def names() -> list[str]:
    """Every benchmark's name, which is its module's without the suffix."""
    found = Path(__file__).parent.glob(f"*{_SUFFIX}.py")
    return sorted(path.stem.removesuffix(_SUFFIX) for path in found)


def run(name: str) -> tuple[int, list[str]]:
    """Its exit code, and the lines that it printed, which are shown as they come."""
    module = f"tests.benchmarks.{name}{_SUFFIX}"
    lines = []
    with subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, lines


def asked(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names())}")
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="how many facts")
    parser.add_argument("--quick", action="store_true", help="only to see that everything works")
    parser.add_argument("--report", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.names) - set(names())):
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    if given.report is None and not given.names and not given.quick:
        given.report = ROOT / "docs" / "benchmarks.md"
    given.names = given.names or names()
    return given


def main() -> int:
    given = asked()
    if given.sizes:
        os.environ[SIZES_VARIABLE] = " ".join(map(str, given.sizes))
    if given.quick:
        os.environ[QUICK_VARIABLE] = "1"
    failed, printed = [], {}
    begun = time.monotonic()
    for name in given.names:
        print(f"# {name}", flush=True)
        started = time.monotonic()
        code, printed[name] = run(name)
        if code != 0:
            failed.append(name)
        print(f"# {name}: {time.monotonic() - started:.0f} s\n", flush=True)
    if given.report is not None:
        write_report(given.report, printed, minutes=(time.monotonic() - begun) / 60)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
