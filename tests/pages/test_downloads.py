"""The file with everything about a person: what is in it, what never is, how one sees that all arrived, who may take it."""

import csv
import io
import json
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corrections.actions import export_memory
from corrections.page_links import make_page_link
from corrections.queries import about_me
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.pages.people import PASSWORD, Person, person, text_of
from tests.records.builders import a_record, body_of


def seed(kit: TenantKit, whom: str, word: str) -> None:
    """Something of every kind about a person, each with the word in it."""
    app = kit.client("app", users=[whom])
    body_of(app.post("/v1/memory/records", a_record(f"{word} memory", subject=whom)), 201)
    fact = {"type": "note", "scope": {"userId": whom}, "content": f"{word} fact"}
    made = body_of(app.post("/v1/memory/facts", fact), 201)
    changed = {"content": f"{word} changed fact"}
    body_of(app.post(f"/v1/memory/facts/{made['id']}/supersede", changed), 200)
    entry = {
        "kind": "user-message",
        "scope": {"userId": whom},
        "payload": {"text": f"{word} entry"},
    }
    body_of(app.post(f"/v1/memory/runs/run-{whom}/log", entry), 201)
    gone = a_record(f"{word} forgotten", subject=whom, key="food.gone")
    record = body_of(app.post("/v1/memory/records", gone), 201)["id"]
    body_of(app.post(f"/v1/memory/records/{record}/forget", {"reason": f"{word} reason"}), 200)


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def taken(who: Person, format: str = "jsonl") -> bytes:
    answer = who.post("downloads/", {"format": format})
    assert answer.status_code == 200, text_of(answer)
    assert answer["Content-Disposition"].startswith('attachment; filename="about-me-')
    assert answer["Cache-Control"] == "no-store"
    body = b"".join(answer.streaming_content)
    assert int(answer["Content-Length"]) == len(body)
    assert answer["Kindmem-Sha256"] == sha256(body).hexdigest()
    return body


def lines_of(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.decode().splitlines()]


def test_the_file_holds_everything_about_the_person_and_nothing_of_anybody_else(
    ann: Person,
) -> None:
    seed(ann.kit, "ann", "hers")
    seed(ann.kit, "bob", "his")
    body = taken(ann)
    for word in ("hers memory", "hers fact", "hers changed fact", "hers entry", "hers reason"):
        assert word in body.decode()
    assert "his " not in body.decode()
    assert "hers forgotten" not in body.decode()
    about, *rest, end = lines_of(body)
    assert about["about"]["subject"] == "ann"
    kinds = [next(iter(line)) for line in rest]
    assert end["end"] == {
        "counts": {kind: kinds.count(kind) for kind in about_me.KINDS},
        "truncated": [],
    }
    assert end["end"]["counts"] == {"memory": 2, "fact": 2, "receipt": 1, "log-entry": 1}


def test_another_workspaces_memory_of_the_same_person_stays_there(live_acme: TenantKit) -> None:
    other = make_tenant()
    seed(other, "ann", "elsewhere")
    seed(live_acme, "ann", "here")
    body = taken(person(live_acme, "person", subject="ann")).decode()
    assert "here memory" in body
    assert "elsewhere" not in body


def test_the_page_counts_what_the_file_holds(ann: Person) -> None:
    seed(ann.kit, "ann", "hers")
    with tenant_context(ann.kit.id):
        counts = about_me.counts_about_me(ann.principal)
    assert counts == lines_of(taken(ann))[-1]["end"]["counts"]


def test_batches_lose_and_repeat_nothing(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    seed(ann.kit, "ann", "hers")
    whole = lines_of(taken(ann))[1:]
    monkeypatch.setattr(about_me, "BATCH", 1)
    again = lines_of(taken(ann))[1:]
    assert again == whole


def test_a_table_runs_no_formula_and_ends_with_the_counts(ann: Person) -> None:
    app = ann.kit.client("app", users=["ann"])
    entry = {"kind": "user-message", "scope": {"userId": "ann"}, "actor": "=HYPERLINK(1)"}
    body_of(app.post("/v1/memory/runs/r1/log", entry), 201)
    receipt = body_of(app.post("/v1/memory/records", a_record("nuts")), 201)["id"]
    ann.post(f"memory/{receipt}/correct/forget", {"reason": "＝1+1"})
    body = taken(ann, "csv")
    assert body.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))
    assert {row["kind"] for row in rows} == {"memory", "receipt", "log-entry", "end"}
    by_kind = {row["kind"]: row for row in rows}
    assert by_kind["log-entry"]["source"] == "'=HYPERLINK(1)"
    assert by_kind["receipt"]["reason"] == "'＝1+1"
    assert rows[-1]["status"] == "complete"
    assert rows[-1]["says"] == "1 memory, 0 fact, 1 receipt, 1 log-entry"


def test_what_is_beyond_the_most_is_said_in_the_page_and_the_file(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed(ann.kit, "ann", "hers")
    monkeypatch.setattr(export_memory, "ROWS_MAX", 1)
    end = lines_of(taken(ann))[-1]["end"]
    assert end["truncated"] == ["memory", "fact"]
    assert end["counts"]["memory"] == 1


def test_taking_it_is_an_entry_of_the_access_log_without_anything_of_the_person(
    ann: Person,
) -> None:
    seed(ann.kit, "ann", "hers")
    taken(ann)
    log = ann.kit.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    told = [one["payload"] for one in log if one["payload"]["type"] == "memory.exported"]
    assert told == [{"type": "memory.exported", "format": "jsonl", "cut": [],
                     "counts": {"memory": 2, "fact": 2, "receipt": 1, "log-entry": 1}}]  # fmt: skip
    shown = text_of(person(ann.kit, "auditor").get("audit/access/"))
    assert "Downloaded a person&#x27;s memory" in shown
    assert ann.email in shown


def test_with_nothing_kept_the_file_says_just_that(ann: Person) -> None:
    assert "Nothing is kept about you" in text_of(ann.get("downloads/"))
    assert [next(iter(line)) for line in lines_of(taken(ann))] == ["about", "end"]


def test_five_minutes_after_signing_in_it_asks_again_who_it_is(ann: Person) -> None:
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        assert "be asked to prove" in text_of(ann.get("downloads/"))
        asked = ann.post("downloads/", {"format": "csv"})
        assert asked.status_code == 403
        assert "Is it you?" in text_of(asked)
        assert '<input type="hidden" name="format" value="csv">' in asked.content.decode()
        wrong = ann.post("/account/reauthenticate/", {"password": "not this one"})
        assert wrong.status_code == 200
        assert ann.post("downloads/", {"format": "csv"}).status_code == 403
        proved = ann.path("proved/")
        done = ann.post(f"/account/reauthenticate/?next={proved}", {"password": PASSWORD})
        assert done["Location"] == proved
        assert "Go back to the other tab" in text_of(ann.get("proved/"))
        taken(ann, "csv")


def test_a_page_link_takes_no_file_and_says_what_it_may_do(acme: TenantKit) -> None:
    with tenant_context(acme.id):
        link = make_page_link(principal=acme.principal("app", users=["ann"]), subject="ann")
    browser = Client()
    browser.post(link.path)
    for answer in (browser.get(f"/t/{acme.slug}/downloads/"),
                   browser.post(f"/t/{acme.slug}/downloads/", {"format": "csv"})):  # fmt: skip
        assert answer.status_code == 403
        assert "This needs an account" in text_of(answer)
        assert "have it forgotten" in text_of(answer)
    assert "Downloads" not in text_of(browser.get(f"/t/{acme.slug}/memory/"))


def test_an_unknown_format_is_refused_and_the_page_asks_little(ann: Person) -> None:
    assert ann.post("downloads/", {"format": "exe"}).status_code == 422
    with CaptureQueriesContext(connection) as asked:
        ann.get("downloads/")
    assert len([one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]) <= 12


_IN_THE_FILE = {
    "fact": "facts",
    "fact_document": "made from facts, for the search",
    "fact_embedding": "made from facts, for the search",
    "fact_subject": "facts, in `subjects`",
    "log_entry": "entries",
    "memory_record": "memories",
    "api_key": "which keys may read and write about the person is the workspace's, and named in its log",
    "erasure": "a request in words of the operator; kept answers of it hold keyed hashes",
    "erasure_lock": "ends with the erasure",
    "legal_hold": "a person may not be told of a case",
    "member": "the account's own link to the person, shown under settings",
    "page_link": "ends after 15 minutes",
    "pending_act": "waits for review; no read path returns it",
}
"""Every table with a column that names a person → where it is in the file, or why it is not."""


def test_every_table_that_names_a_person_is_in_the_file_or_says_why_not(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND column_name IN ('subject_id', 'participant_id', 'subject_ids', 'participants', 'users') "
            "OR table_schema = 'public' AND column_name = 'user_id' AND data_type = 'text'"
        )
        tables = {row[0] for row in cursor.fetchall()}
    assert tables <= set(_IN_THE_FILE), tables - set(_IN_THE_FILE)
