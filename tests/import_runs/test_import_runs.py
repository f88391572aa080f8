"""`import_runs`: once, whatever interrupts it; what is broken is named, and what is somebody else's is left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from memory.actions.append_log_entries import append_log_entries
from memory.actions.declare_type import Declaration, declare_type
from memory.actions.delete_fact import delete_fact
from memory.actions.verify_run import verify_run
from memory.log_entry import NewEntry
from memory.queries.facts import current_fact, fact_revisions
from memory.tenancy import tenant_context
from tests.at_once import at_once
from tests.builders import TenantKit
from tests.commands.commands import answered, told
from tests.import_runs.readers import counts_in, entries_of, operator_of, runs_of
from tests.import_runs.transcripts import (
    ROOT,
    agent,
    result,
    user,
    written,
)

NO_EMBEDDINGS = override_settings(KINDMEM_EMBEDDINGS="none")


A_RUN = {
    "messages": [
        user("Hi"),
        agent(None, ("c", "get_user_details", '{"user_id": "u1"}')),
        result("c", '{"tier": "gold"}'),
    ]
}


def test_jsonl_a_list_and_gzip_make_the_same_runs(live_acme: TenantKit, tmp_path: Path) -> None:
    runs = [A_RUN, {"traj": A_RUN["messages"]}]
    as_list = tmp_path / "list.json"
    as_list.write_text(json.dumps(runs, indent=2))
    files = [as_list, written(tmp_path / "l.jsonl", runs), written(tmp_path / "l.jsonl.gz", runs)]
    for file, added in zip(files, (2, 0, 0), strict=True):
        answer = answered("import_runs", live_acme.slug, str(file), "--run-prefix", "x-")
        assert (answer["runsAdded"], answer["runsPresent"]) == (added, 2 - added)
    assert runs_of(live_acme) == {"x-0": 3, "x-1": 3}


def test_run_ids_are_the_files_name_and_the_items_number(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    told("import_runs", live_acme.slug, str(written(tmp_path / "my calls.v2.jsonl", [A_RUN])))
    assert runs_of(live_acme) == {"my-calls-0": 3}
    assert [one.id for one in entries_of(live_acme, "my-calls-0")] == [
        f"my-calls-0:{n}" for n in range(3)
    ]


def test_with_a_project_only_its_holders_read_the_runs_and_facts(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    told(
        "import_runs",
        live_acme.slug,
        str(written(tmp_path / "x.jsonl", [A_RUN])),
        "--project",
        "p1",
    )
    holder, other = (
        live_acme.client("agent", projects=["p1"]),
        live_acme.client("agent", projects=["p2"]),
    )
    for path in ("/v1/memory/runs/x-0/log", "/v1/memory/facts/x-0:customer-profile:u1"):
        assert [client.get(path).status_code for client in (holder, other)] == [200, 404]


def test_the_facts_name_their_entry_over_the_api(live_acme: TenantKit, tmp_path: Path) -> None:
    told("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [A_RUN])))
    fact = live_acme.client("agent").get("/v1/memory/facts/x-0:customer-profile:u1").json()
    assert fact["causedByLogId"] == ["x-0:2"]
    assert fact["subjects"] == [{"kind": "external", "id": "u1"}]
    assert fact["content"] == {"user_id": "u1", "tier": "gold"}


def test_broken_items_are_named_and_stop_no_other(
    live_acme: TenantKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps(A_RUN),
        '{"messages": [{"role": "user", "content": "nul \\u0000"}]}',
        '{"messages": [{"role": "wizard", "content": "x"}]}',
        "{cut",
        '{"other": 1}',
        json.dumps(A_RUN),
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(CommandError, match="4 items were refused") as refused:
        call_command("import_runs", live_acme.slug, str(path), "--json")
    assert refused.value.returncode == 1
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["runsAdded"], answer["refused"]) == (2, 4)
    assert [(one["place"], one["issues"][0]["path"]) for one in answer["refusals"]] == [
        ("line 2", "/messages/0/content"),
        ("line 3", "/messages/0/role"),
        ("line 4", ""),
        ("line 5", ""),
    ]
    assert "Refused line 2: messages/0/content contains U+0000" in err
    assert "nul" not in out + err.replace("U+0000", "")
    assert runs_of(live_acme) == {"x-0": 3, "x-5": 3}


def test_a_file_that_is_something_else_is_given_up_early(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n" * 1_000)
    with pytest.raises(CommandError, match="no transcript among its first 20 items"):
        told("import_runs", live_acme.slug, str(path))
    assert runs_of(live_acme) == {}


def test_a_file_that_is_cut_off_gives_what_it_has_and_fails(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(f"[{json.dumps(A_RUN)}, {json.dumps(A_RUN)[:-5]}")
    with pytest.raises(CommandError, match="ends before its list does"):
        told("import_runs", live_acme.slug, str(path))
    assert runs_of(live_acme) == {"x-0": 3}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.jsonl"], "No such file"),
        (["x.jsonl", "--run-prefix", "kindmem."], "run-prefix must not begin"),
        (["x.jsonl", "--run-prefix", "x" * 201], "run-prefix has at most"),
        (["x.jsonl", "--run-prefix", "a\nb"], "run-prefix has at most"),
    ],
)
def test_what_it_does_not_take_it_names(
    acme: TenantKit, tmp_path: Path, arguments: list[str], says: str
) -> None:
    written(tmp_path / "x.jsonl", [A_RUN])
    with pytest.raises(CommandError, match=says):
        told("import_runs", "acme", str(tmp_path / arguments[0]), *arguments[1:])
    assert runs_of(acme) == {}


def test_another_transcript_under_the_same_ids_is_refused_and_changes_nothing(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    told("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [A_RUN])))
    before = counts_in(live_acme)
    other = {"messages": [user("Hi"), agent("Something else")]}
    with pytest.raises(CommandError, match="1 items were refused"):
        told("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [other])))
    assert counts_in(live_acme) == before


def test_a_run_of_somebody_else_is_not_continued(live_acme: TenantKit, tmp_path: Path) -> None:
    with tenant_context(live_acme.id):
        entry = NewEntry(
            kind="user-message",
            scope={"tenantId": live_acme.slug},
            id="theirs",
            payload={"text": "Hi"},
        )
        append_log_entries(principal=live_acme.principal("app"), run_id="x-0", entries=[entry])
    with pytest.raises(CommandError, match="1 items were refused"):
        told("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [A_RUN])))
    assert runs_of(live_acme) == {"x-0": 1}


def test_a_transcript_that_grew_continues_its_run(live_acme: TenantKit, tmp_path: Path) -> None:
    told("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [A_RUN])))
    grown = {"messages": [*A_RUN["messages"], agent("Gold it is."), user("Thanks")]}
    answer = answered("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [grown])))
    assert (answer["entriesPresent"], answer["entriesAdded"], answer["factsWritten"]) == (3, 2, 0)
    assert runs_of(live_acme) == {"x-0": 5}


def test_a_fact_that_was_deleted_does_not_come_back(live_acme: TenantKit, tmp_path: Path) -> None:
    path = str(written(tmp_path / "x.jsonl", [A_RUN]))
    told("import_runs", live_acme.slug, path)
    with tenant_context(live_acme.id):
        delete_fact(principal=operator_of(live_acme), fact_id="x-0:customer-profile:u1")
    told("import_runs", live_acme.slug, path)
    update = agent(None, ("d", "update_user", '{"user_id": "u1"}'))
    grown = {"messages": [*A_RUN["messages"], update, result("d", '{"tier": "lead"}')]}
    answer = answered("import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [grown])))
    assert (answer["entriesAdded"], answer["factsWritten"]) == (2, 0)
    assert (
        live_acme.client("agent").get("/v1/memory/facts/x-0:customer-profile:u1").status_code == 404
    )


@NO_EMBEDDINGS
def test_a_long_run_is_appended_in_batches_and_its_changes_are_revisions(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    messages = [user("Go on")]
    for n in range(60):
        call = agent(f"Step {n}", (f"c{n}", "update_order_status", json.dumps({"order_id": "O1"})))
        messages += [
            call,
            result(f"c{n}", json.dumps({"order_id": "O1", "user_id": "u1", "step": n})),
        ]
    messages += [user(f"and {n}") for n in range(1_000)]
    answer = answered(
        "import_runs", live_acme.slug, str(written(tmp_path / "x.jsonl", [{"messages": messages}]))
    )
    assert (answer["entriesAdded"], answer["factsWritten"]) == (1 + 3 * 60 + 1_000, 60)
    with tenant_context(live_acme.id):
        revisions = fact_revisions(operator_of(live_acme), "x-0:order:O1")
        report = verify_run(principal=operator_of(live_acme), run_id="x-0")
    assert [one.content["step"] for one in revisions] == list(range(59, -1, -1))
    assert [one.cause_ids for one in revisions] == [
        (f"x-0:{3 * n + 3}",) for n in range(59, -1, -1)
    ]
    assert (report.entries, report.first_bad) == (1_181, None)


@NO_EMBEDDINGS
def test_two_imports_at_once_make_one(live_acme: TenantKit, tmp_path: Path) -> None:
    path = str(written(tmp_path / "x.jsonl", [A_RUN] * 8))
    answers = at_once(3, lambda _: answered("import_runs", live_acme.slug, path))
    assert [isinstance(one, dict) and one["refused"] for one in answers] == [0, 0, 0], answers
    assert sum(one["entriesAdded"] for one in answers) == 24
    assert runs_of(live_acme) == {f"x-{n}": 3 for n in range(8)}
    assert counts_in(live_acme)["fact_revision"] == 8


KILLED_AFTER = 5


@pytest.mark.faults
def test_an_import_that_is_killed_goes_on_where_it_was(
    live_acme: TenantKit, tmp_path: Path, app_conninfo: str
) -> None:
    """The process is killed hard while it works; what it left is whole runs, and the next import makes the rest."""
    path = written(tmp_path / "x.jsonl", [A_RUN] * 2_000)
    environ = {**os.environ, "DATABASE_URL": app_conninfo, "KINDMEM_EMBEDDINGS": "none"}
    worker = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "import_runs", live_acme.slug, str(path)],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(runs_of(live_acme)) < KILLED_AFTER:
        assert worker.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    left = runs_of(live_acme)
    assert KILLED_AFTER <= len(left) < 2_000
    assert set(left.values()) == {3}
    whole = len(left) + 20
    with NO_EMBEDDINGS:
        answer = answered("import_runs", live_acme.slug, str(written(path, [A_RUN] * whole)))
    assert (answer["runsPresent"], answer["runsAdded"], answer["refused"]) == (len(left), 20, 0)
    assert counts_in(live_acme) == {
        "run_head": whole,
        "log_entry": 3 * whole,
        "fact": whole,
        "fact_revision": whole,
        "fact_cause": whole,
    }


@NO_EMBEDDINGS
def test_a_run_whose_fact_is_refused_keeps_whole_batches_and_is_finished_later(
    live_acme: TenantKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.actions.import_run.MOST_ENTRIES", 2)
    path = str(written(tmp_path / "x.jsonl", [A_RUN]))

    def declare(tier: str) -> None:
        schema = {"properties": {"tier": {"const": tier}}}
        with tenant_context(live_acme.id):
            declare_type(
                principal=operator_of(live_acme),
                type="customer-profile",
                declaration=Declaration(content_schema=schema),
            )

    declare("silver")
    with pytest.raises(CommandError, match="1 items were refused"):
        told("import_runs", live_acme.slug, path)
    assert runs_of(live_acme) == {"x-0": 2}
    declare("gold")
    answer = answered("import_runs", live_acme.slug, path)
    assert (answer["entriesPresent"], answer["entriesAdded"], answer["factsWritten"]) == (2, 1, 1)
    with tenant_context(live_acme.id):
        assert current_fact(operator_of(live_acme), "x-0:customer-profile:u1").version == 1
