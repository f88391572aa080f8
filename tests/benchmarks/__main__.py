"""Runs every benchmark in turn, each in a process and on a database of its own, and ends with 1 when one of them fails.

Run: python -m tests.benchmarks [name …] [--sizes N …], such as `append search`; all of them without a name, and then
docs/benchmarks.md is written anew. `--sizes 1000 10000 100000 1000000` is for those that measure at several sizes.
What they print are ratios of what ran interleaved, mostly; absolute figures are of this machine.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.harness import ROOT, SIZES_VARIABLE
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names())}")
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="how many facts")
    given = parser.parse_args()
    wanted = given.names or names()
    if given.sizes:
        os.environ[SIZES_VARIABLE] = " ".join(map(str, given.sizes))
    if unknown := sorted(set(wanted) - set(names())):
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    failed, printed = [], {}
    for name in wanted:
        print(f"# {name}", flush=True)
        started = time.monotonic()
        code, printed[name] = run(name)
        if code != 0:
            failed.append(name)
        print(f"# {name}: {time.monotonic() - started:.0f} s\n", flush=True)
    if wanted == names() and all(printed.values()):
        write_report(ROOT / "docs" / "benchmarks.md", printed)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
