#!/usr/bin/env python3
"""Runs an operator command, with the database it needs.

`--data-dir` is taken here, before settings load. The embedded database is started when it isn't
running and stopped by whoever uses it last; `up`, `doctor` and the commands that must find it
stopped see to it themselves.
"""

import os
import signal
import sys
from types import FrameType

if sys.version_info < (3, 11):  # noqa: UP036 - in words, for whoever runs an older one
    sys.exit(f"kindmem needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

from kindmem.postgres import paths
from kindmem.postgres.embedded import embedded_database, has_tables
from kindmem.postgres.errors import ClusterError
from kindmem.state import StateError

# Commands that don't look into the database, or that start and stop it themselves.
WITHOUT_DATABASE = frozenset(
    (
        *(
            "check",
            "collectstatic",
            "compilemessages",
            "diffsettings",
            "doctor",
            "findstatic",
            "help",
            "makemessages",
        ),
        *(
            "makemigrations",
            "restore",
            "spectacular",
            "up",
            "upgrade_database",
            "version",
            "--version",
            "witness",
        ),
    )
)


def main(argv: list[str]) -> None:
    """Run the command; exits with 1 and a sentence when there is no database to run it on."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")
    try:
        argv = paths.take_data_dir(argv, os.environ)
        command = argv[1] if len(argv) > 1 else "help"
        if command in WITHOUT_DATABASE or {"--help", "-h"} & set(argv):
            _run(argv)
        else:
            _run_with_database(argv)
    except (ClusterError, StateError, ValueError) as error:
        sys.exit(f"{error}")


def _run_with_database(argv: list[str]) -> None:
    # Asked to end, the command still hands the database back.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit)
    with embedded_database(paths.data_dir(), _say) as cluster:
        if cluster is not None and argv[1] != "migrate" and not has_tables(cluster):
            _say("Laying the tables")
            _run([argv[0], "migrate", "--verbosity", "0"])
        _run(argv)


def _run(argv: list[str]) -> None:
    from django.core.management import execute_from_command_line

    execute_from_command_line(argv)


def _say(message: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{message} …\n")


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main(sys.argv)
