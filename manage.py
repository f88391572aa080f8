#!/usr/bin/env python3
"""Runs an operator command, with the database it needs.

`--data-dir` is taken here, before settings load, and folders that can't be used are refused. The
embedded database is started when it isn't running and stopped by whoever uses it last; `up`,
`doctor` and the commands that must find it stopped see to it themselves.
"""

import json
import os
import signal
import sys
from types import FrameType

if sys.version_info < (3, 11):  # noqa: UP036 - in words, for whoever runs an older one
    sys.exit(f"kindmem needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

from kindmem import arrival, state
from kindmem.postgres import paths
from kindmem.postgres.embedded import embedded_database, has_tables
from kindmem.postgres.errors import ClusterError


def main(argv: list[str]) -> None:
    """Run the command; exits with 1 and a sentence when there is no database to run it on."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")
    state.keep_later()
    try:
        argv = paths.take_data_dir(argv, os.environ)
        command = argv[1] if len(argv) > 1 else "help"
        if {"--help", "-h"} & set(argv):
            _run(argv)
            return
        arrival.refuse_unusable(command, paths.data_dir(), paths.state_dir())
        if arrival.needs_database(command):
            _run_with_database(argv)
        else:
            _run(argv)
    except (ClusterError, state.StateError, ValueError) as error:
        _refuse(str(error), as_json="--json" in argv)


def _run_with_database(argv: list[str]) -> None:
    # Asked to end, the command still hands the database back.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit)
    with embedded_database(paths.data_dir(), _say) as cluster:
        if cluster is not None and argv[1] != "migrate" and not has_tables(cluster):
            _say("Laying the tables")
            _run([argv[0], "migrate", "--verbosity", "0"])
        _check_keys_for(argv[1])
        _run(argv)


def _check_keys_for(command: str) -> None:
    """Our own commands look at the keys themselves; those of the framework are looked at here."""
    import django
    from django.core.management import get_commands

    from memory.installation_keys import OtherKeys, claim_keys

    django.setup()
    if not str(get_commands().get(command, "memory")).startswith(("django", "allauth")):
        return
    try:
        claim_keys()
    except OtherKeys as error:
        raise state.StateError(str(error)) from error


def _run(argv: list[str]) -> None:
    from django.core.management import execute_from_command_line

    execute_from_command_line(argv)


def _refuse(message: str, *, as_json: bool) -> None:
    refusal = {"error": {"code": "refused", "message": message, "details": {}}}
    sys.exit(json.dumps(refusal, ensure_ascii=False) if as_json else message)


def _say(message: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{message} …\n")


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main(sys.argv)
