"""`import_runs` on the whole file: every message, its cause, its chain and its facts; and nothing twice."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from memory.actions.verify_run import verify_run
from memory.queries.facts import facts_by_ids
from memory.queries.run_log import entries_by_ids
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.commands.commands import answered
from tests.import_runs.readers import counts_in, entries_of, operator_of
from tests.import_runs.transcripts import (
    counted,
    the_file,
    transcripts,
)

NO_EMBEDDINGS = override_settings(KINDMEM_EMBEDDINGS="none")


@dataclass(frozen=True)
class Imported:
    kit: TenantKit
    answer: dict[str, Any]
    runs: list[dict[str, Any]]


@pytest.fixture(scope="module")
def imported(django_db_setup: None, django_db_blocker: Any) -> Imported:
    """The whole file, imported once for all tests of it. Vectors are tested on fewer runs."""
    with django_db_blocker.unblock(), NO_EMBEDDINGS:
        kit = make_tenant()
        answer = answered("import_runs", kit.slug, str(the_file()), "--run-prefix", "run-")
        connection.close()
    return Imported(kit, answer, transcripts(the_file()))


def test_every_message_is_an_entry_of_the_right_kind(imported: Imported, live_db: None) -> None:
    wanted = {f"run-{n}": counted(run["traj"]) for n, run in enumerate(imported.runs)}
    with tenant_context(imported.kit.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT run_id, kind, count(*) FROM log_entry WHERE tenant_id = %s::uuid GROUP BY 1, 2",
            [imported.kit.id],
        )
        found: dict[str, dict[str, int]] = {}
        for run_id, kind, count in cursor.fetchall():
            found.setdefault(run_id, {})[kind] = count
    assert found == {
        run: {kind: n for kind, n in kinds.items() if n} for run, kinds in wanted.items()
    }
    assert imported.answer["entriesAdded"] == sum(sum(kinds.values()) for kinds in wanted.values())
    assert (imported.answer["refused"], imported.answer["notes"]) == (0, [])


def test_every_text_is_there_in_its_order(imported: Imported, live_db: None) -> None:
    for n in (0, len(imported.runs) // 2, len(imported.runs) - 1):
        said = [one["content"] for one in imported.runs[n]["traj"] if one["content"] is not None]
        payloads = [
            json.loads(one.payload_text or "") for one in entries_of(imported.kit, f"run-{n}")
        ]
        assert [one["text"] for one in payloads if "text" in one] == said


def test_every_result_is_caused_by_the_call_with_its_id(imported: Imported, live_db: None) -> None:
    results = 0
    for n in range(len(imported.runs)):
        entries = {one.id: one for one in entries_of(imported.kit, f"run-{n}")}
        for one in entries.values():
            if one.kind != "tool-result":
                continue
            call = entries[one.caused_by or ""]
            assert (call.kind, call.sequence < one.sequence) == ("tool-call", True)
            ids = [json.loads(entry.payload_text or "")["tool_call_id"] for entry in (one, call)]
            assert ids[0] == ids[1]
            results += 1
    assert results == sum(counted(run["traj"])["tool-result"] for run in imported.runs)


def test_every_run_verifies_with_both_verifiers(imported: Imported, live_db: None) -> None:
    states = Counter()
    for n, run in enumerate(imported.runs):
        with tenant_context(imported.kit.id):
            for in_sql in (False, True):
                report = verify_run(
                    principal=operator_of(imported.kit), run_id=f"run-{n}", in_sql=in_sql
                )
                assert report.entries == sum(counted(run["traj"]).values())
                assert report.first_bad is None
                states[str(report.state)] += 1
    assert len(states) == 1


def test_facts_are_about_a_customer_and_caused_by_the_result_that_told_them(
    imported: Imported, live_db: None
) -> None:
    with tenant_context(imported.kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM fact WHERE tenant_id = %s::uuid", [imported.kit.id])
        ids = [row[0] for row in cursor.fetchall()]
        facts = facts_by_ids(operator_of(imported.kit), ids)
        causes = entries_by_ids(imported.kit.id, [one.cause_ids[-1] for one in facts])
    assert len(facts) >= len(imported.runs)
    for fact in facts:
        cause = causes[fact.cause_ids[-1]]
        told_by = json.loads(json.loads(cause.payload_text or "")["text"])
        assert cause.kind == "tool-result"
        assert fact.id.startswith(f"{cause.run_id}:{fact.type}:")
        assert told_by.items() <= fact.content.items()
        (subject,) = fact.subjects
        assert (subject.kind, subject.id) == ("external", fact.content["user_id"])


@NO_EMBEDDINGS
def test_a_second_import_adds_nothing(imported: Imported, live_db: None) -> None:
    before = counts_in(imported.kit)
    again = answered("import_runs", imported.kit.slug, str(the_file()), "--run-prefix", "run-")
    assert counts_in(imported.kit) == before
    assert (again["runsAdded"], again["entriesAdded"], again["factsWritten"]) == (0, 0, 0)
    assert (again["runsPresent"], again["entriesPresent"]) == (
        len(imported.runs),
        imported.answer["entriesAdded"],
    )


@NO_EMBEDDINGS
def test_a_dry_run_says_what_an_import_would_add_and_adds_nothing(
    imported: Imported, live_db: None
) -> None:
    kit = make_tenant()
    before = counts_in(kit)
    would = answered("import_runs", kit.slug, str(the_file()), "--dry-run")
    assert counts_in(kit) == before
    for count in ("runsAdded", "entriesAdded", "factsWritten"):
        assert would[count] == imported.answer[count]
