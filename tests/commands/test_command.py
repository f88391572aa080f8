"""What every operator command shares: one clear message when it fails, JSON when asked, progress where it can be seen."""

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError, OutputWrapper
from django.db import OperationalError

from memory.errors import BadInput, IdTaken, LogNotFound
from memory.management.command import OperatorCommand, Progress, sentence
from tests.builders import TenantKit
from tests.commands.commands import told
from tests.import_runs.transcripts import ROOT

OURS = (
    *("create_tenant", "create_member", "create_api_key", "revoke_api_key", "rotate_keys"),
    *("import_runs", "seed_demo", "declare_type", "refresh_stale", "refresh_sources", "reindex"),
    *("import_records", "export_subject"),
)


def run(app_conninfo: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """`python manage.py …` as an operator types it, on the tests' database."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": app_conninfo},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_line_answers_json_on_stdout_and_ends_with_zero(
    live_acme: TenantKit, app_conninfo: str, tmp_path: Any
) -> None:
    arguments = ("create_api_key", live_acme.slug, "--name", "k", "--role", "agent", "--json")
    done = run(app_conninfo, *arguments, "--data-dir", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)) == {"token", "prefix", "expiresAt"}


def test_a_refusal_is_one_sentence_on_stderr_and_ends_with_one(
    live_acme: TenantKit, app_conninfo: str
) -> None:
    done = run(app_conninfo, "create_tenant", live_acme.slug)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "slug is taken.\n")


def test_with_json_a_refusal_is_json_on_stderr(live_acme: TenantKit, app_conninfo: str) -> None:
    done = run(app_conninfo, "revoke_api_key", live_acme.slug, "nosuchkey0", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"]["code"] == "key-not-found"


@pytest.mark.parametrize("name", OURS)
def test_each_takes_json_and_a_data_folder(name: str) -> None:
    command = load_command_class(get_commands()[name], name)
    assert isinstance(command, OperatorCommand)
    options = {
        option
        for action in command.create_parser("manage.py", name)._actions
        for option in action.option_strings
    }
    assert {"--json", "--data-dir"} <= options
    assert command.help


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (BadInput.at("time_zone", "must be known"), "time-zone must be known."),
        (BadInput.at("/traj/3/content", "contains U+0000"), "traj/3/content contains U+0000."),
        (
            BadInput(issues=[{"path": "a", "message": "is x"}, {"path": "", "message": "is y"}]),
            "a is x; is y.",
        ),
        (IdTaken(id="f1"), "This id is taken. (id f1)"),
        (LogNotFound(), "There is no such log entry or run."),
    ],
)
def test_an_error_is_said_in_a_sentence_with_what_it_names(error: Any, says: str) -> None:
    assert sentence(error) == says


def test_a_database_that_is_gone_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(**given: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("memory.management.commands.create_tenant.create_tenant", gone)
    with pytest.raises(CommandError, match="The database can't do this now: connection refused"):
        told("create_tenant", "x")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def wrapped(stream: io.StringIO) -> Any:
    return OutputWrapper(stream)


def test_on_a_terminal_progress_is_one_line_that_ends_up_empty() -> None:
    stream = Terminal()
    progress = Progress(wrapped(stream))
    progress.show("1 run", runs=1)
    progress.end()
    assert stream.getvalue() == "\r\x1b[K1 run\r\x1b[K"


def test_elsewhere_progress_is_json_lines_some_time_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    Progress(wrapped(stream)).show("1 run", runs=1)
    assert stream.getvalue() == ""
    monkeypatch.setattr("memory.management.command._SECONDS_BETWEEN_LINES", 0.0)
    progress = Progress(wrapped(stream))
    for runs in (1, 2):
        progress.show(f"{runs} runs", runs=runs)
    progress.end()
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"progress": {"runs": 1}},
        {"progress": {"runs": 2}},
    ]
