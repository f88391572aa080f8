"""Runs PostgreSQL's own dump and restore programs: whole or not at all, as a role that may no more than it must.

A dump is read by kindmem_backup, which writes nothing; a restore is written by kindmem_owner, which needs no superuser: roles,
extensions and rights of the database come from the bootstrap, and are left out of what is restored.
"""

import itertools
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psycopg
from psycopg.conninfo import make_conninfo

from kindmem.postgres.binaries import find_binaries

_NOT_OURS = re.compile(
    r"^\d+; \d+ \d+ (EXTENSION|COMMENT - EXTENSION|SCHEMA - public|COMMENT - SCHEMA|ACL - SCHEMA|DEFAULT ACL)\b"
)
"""Lines of a dump's contents that the bootstrap lays."""


_OTHER_OWNER = "kindmem_search"
_RIGHTS_OF_OTHERS = re.compile(rf"^\d+; \d+ \d+ ACL .* {_OTHER_OWNER}$")
"""Only an owner gives rights, and the functions that look across tenants are the search role's."""


class ProgramFailed(RuntimeError):
    """A program ended with an error; the message is its last words."""


def conninfo(database: dict[str, Any], user: str) -> str:
    """A libpq conninfo of a Django database for another role; empty parts are left to libpq."""
    parts = {
        "host": database["HOST"],
        "port": database["PORT"],
        "dbname": database["NAME"],
        "user": user,
    }
    return make_conninfo("", **{name: str(value) for name, value in parts.items() if value})


def dump(source: str, target: Path, on_table: Callable[[str], None]) -> None:
    """Dump the database at this conninfo into a file that doesn't exist yet. Raises ProgramFailed."""
    command = [
        find_binaries().program("pg_dump"),
        "--format=custom",
        "--compress=6",
        "--no-password",
        "--verbose",
        f"--file={target}",
        f"--dbname={source}",
    ]
    _run(
        command,
        lambda line: _told(line, r'dumping contents of table "(?:public\.)?(\w+)', on_table),
    )


def load(source: Path, target: str, on_table: Callable[[str], None]) -> None:
    """Restore a dump into the empty database at this conninfo, in one transaction. Raises ProgramFailed."""
    with _without_default_rights(target):
        _restore(
            source,
            target,
            on_table,
            "--verbose",
            takes=lambda line: not _RIGHTS_OF_OTHERS.match(line),
        )


_DEFAULT_RIGHTS = (
    ("SELECT, INSERT, UPDATE, DELETE", "TABLES", "kindmem_app"),
    ("USAGE", "SEQUENCES", "kindmem_app"),
    ("EXECUTE", "FUNCTIONS", "kindmem_app"),
    ("SELECT", "TABLES", "kindmem_backup"),
    ("SELECT", "SEQUENCES", "kindmem_backup"),
)
"""As kindmem/postgres/database.sql lays them for what kindmem_owner makes."""


@contextmanager
def _without_default_rights(target: str) -> Iterator[None]:
    """A dump says which rights each table has and counts on no others: with them the log would not be append-only."""
    with psycopg.connect(target, autocommit=True) as owner:
        try:
            for rights, what, role in _DEFAULT_RIGHTS:
                owner.execute(f"ALTER DEFAULT PRIVILEGES REVOKE {rights} ON {what} FROM {role}")
            yield
        finally:
            for rights, what, role in _DEFAULT_RIGHTS:
                owner.execute(f"ALTER DEFAULT PRIVILEGES GRANT {rights} ON {what} TO {role}")


def give_rights(source: Path, target: str) -> None:
    """The rights on what the search role owns, which only that role gives; any number of times. Raises ProgramFailed."""
    _restore(
        source,
        target,
        lambda table: None,
        f"--role={_OTHER_OWNER}",
        takes=lambda line: bool(_RIGHTS_OF_OTHERS.match(line)),
    )


def _restore(
    source: Path,
    target: str,
    on_table: Callable[[str], None],
    *options: str,
    takes: Callable[[str], bool],
) -> None:
    program = find_binaries().program("pg_restore")
    with _contents(program, source, takes) as contents:
        command = [
            program,
            "--single-transaction",
            "--exit-on-error",
            "--no-password",
            *options,
            f"--use-list={contents}",
        ]

        def on_line(line: str) -> None:
            _told(line, r'processing data for table "(?:public\.)?(\w+)', on_table)

        if _knows(target, "transaction_timeout"):
            _run([*command, f"--dbname={target}", str(source)], on_line)
        else:
            _run([*command, "--file=-", str(source)], on_line, into=_psql(target))


def _knows(target: str, setting: str) -> bool:
    with psycopg.connect(target) as server:
        known = server.execute("SELECT EXISTS (SELECT FROM pg_settings WHERE name = %s)", [setting])
        return bool((known.fetchone() or [False])[0])


def _psql(target: str) -> list[str]:
    return [
        find_binaries().program("psql"),
        "--no-psqlrc",
        "--quiet",
        "--no-password",
        "--set=ON_ERROR_STOP=1",
        f"--dbname={target}",
    ]


@contextmanager
def _contents(program: str, source: Path, takes: Callable[[str], bool]) -> Iterator[str]:
    """The path of a list of what is to be restored."""
    listed = subprocess.run(  # noqa: S603 - our own words
        [program, "--list", str(source)], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        raise ProgramFailed(_last_words(listed.stderr.splitlines()))
    ours = [
        line
        for line in listed.stdout.splitlines()
        if not line.startswith(";") and not _NOT_OURS.match(line) and takes(line)
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
        file.write("\n".join(ours) + "\n")
        file.flush()
        yield file.name


def _told(line: str, pattern: str, on_table: Callable[[str], None]) -> None:
    found = re.search(pattern, line)
    if found:
        on_table(found.group(1))


_UNKNOWN_BEFORE_17 = b"SET transaction_timeout = 0;\n"
_HEAD_LINES = 40
"""How many lines of a script at most come before anything that is restored."""


def _run(
    command: list[str], on_line: Callable[[str], None], *, into: list[str] | None = None
) -> None:
    """Run it to its end; `into`: what takes the script that it writes, where the server is older than the program."""
    environment = {**os.environ, "LC_ALL": "C", "PGOPTIONS": "-c statement_timeout=0"}
    lines: list[str] = []
    with ExitStack() as open_ones:
        said = open_ones.enter_context(tempfile.TemporaryFile())
        taking = None
        if into is not None:
            taking = open_ones.enter_context(
                subprocess.Popen(  # noqa: S603 - our own words
                    into,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=environment,
                    cwd="/",
                )
            )
        running = open_ones.enter_context(
            subprocess.Popen(  # noqa: S603 - our own words
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if taking is None else subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/",
            )
        )
        if taking is not None:
            threading.Thread(target=_pass_on, args=(running.stdout, taking.stdin)).start()
        for line in running.stderr or ():
            text = line.decode("utf-8", "replace")
            on_line(text)
            lines = [*lines[-20:], text.rstrip()]
        ended = [running.wait()]
        if taking is not None:
            ended.append(taking.wait())
            said.seek(0)
            lines += said.read().decode("utf-8", "replace").splitlines()[-20:]
    if any(ended):
        raise ProgramFailed(_last_words(lines))


def _pass_on(script: IO[bytes], taker: IO[bytes]) -> None:
    """Hand the script on, without what an older server doesn't know. It commits in its last line, so half of one does nothing."""
    with script, suppress(BrokenPipeError), taker:
        for line in itertools.islice(script, _HEAD_LINES):
            if line != _UNKNOWN_BEFORE_17:
                taker.write(line)
        shutil.copyfileobj(script, taker)


def _last_words(lines: list[str]) -> str:
    """What a program said went wrong: names of tables and roles, never a row."""
    errors = [line for line in lines if "error:" in line or "ERROR:" in line]
    said = (errors or lines or ["it said nothing"])[-1]
    return re.sub(r"\s+", " ", said)[:500]
