"""One fact for those who govern: its envelope and revisions for all of them, its words for an auditor after a reveal."""

import re
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corrections.views import audit_facts
from tests.builders import TenantKit, make_tenant
from tests.facts.shapes import at, written
from tests.pages.people import Person, person, text_of
from tests.pages.test_my_facts import fact_about, superseded
from tests.records.builders import a_record, body_of


@pytest.fixture
def auditor(acme: TenantKit) -> Person:
    return person(acme, "auditor")


def two_versions(kit: TenantKit) -> str:
    made = fact_about(kit, {"city": "Rome", "seat": "aisle"})
    superseded(kit, made, {"city": "Oslo", "seat": "aisle"})
    return f"audit/fact/{made['id']}/"


def test_an_admin_reads_each_version_with_what_it_changed_by_whom_and_when(
    acme: TenantKit,
) -> None:
    shown = text_of(person(acme, "admin").get(two_versions(acme)))
    assert "person ann" in shown
    assert re.search(r"Changed version 2 · .*put in: \+ .*Oslo", shown)
    assert re.search(r"taken out: − .*Rome", shown)
    assert "Written version 1" in shown
    assert "decides" in shown


def test_an_auditor_reads_what_it_says_only_after_a_reveal_that_is_logged(
    acme: TenantKit, auditor: Person
) -> None:
    page = two_versions(acme)
    hidden = text_of(auditor.get(page))
    assert "Oslo" not in hidden
    assert "Rome" not in hidden
    assert "What changed is hidden until you reveal it" in hidden
    assert auditor.post(page, {"reason": ""}).status_code == 422
    revealed = auditor.post(page, {"reason": "complaint"})["Location"]
    assert "Oslo" in text_of(auditor.get(revealed))
    assert "Rome" in text_of(auditor.get(revealed))
    log = auditor.get("audit/access/", {"act": "fact.revealed"}).content.decode()
    assert f'href="/t/acme/{page}"' in log
    assert "A person complained" in text_of(auditor.get("audit/access/"))


def test_over_the_api_an_auditor_reads_facts_whole_and_records_and_entries_without_their_words(
    acme: TenantKit,
) -> None:
    fact = fact_about(acme, {"city": "Rome"})["id"]
    app, auditor = acme.client("app", users=["ann"]), acme.client("auditor")
    record = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    entry = {
        "id": "said",
        "kind": "user-message",
        "scope": {"userId": "ann"},
        "payload": {"text": "aisle"},
    }
    body_of(app.post("/v1/memory/runs/r/log", entry), 201)
    assert body_of(auditor.get(f"/v1/memory/facts/{fact}"), 200)["content"] == {"city": "Rome"}
    for path in (f"/v1/memory/records/{record}", "/v1/memory/log/said"):
        told = body_of(auditor.get(path), 200)
        assert told["meta"]["masked"] is True
        assert "aisle" not in str(told)


def test_a_reveal_is_its_readers_own_of_that_fact_and_ends_after_a_quarter_of_an_hour(
    acme: TenantKit, auditor: Person
) -> None:
    page, other = two_versions(acme), two_versions(acme)
    revealed = auditor.post(page, {"reason": "complaint"})["Location"]
    reveal = revealed.partition("?")[2].partition("#")[0]
    assert "Oslo" not in text_of(person(acme, "auditor").get(revealed))
    assert "Oslo" not in text_of(auditor.get(f"{other}?{reveal}"))
    assert "Oslo" not in text_of(auditor.get(f"{page}?revealed=made-up"))
    with time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False):
        assert "Oslo" not in text_of(auditor.get(revealed))


def test_all_versions_are_reached_page_by_page_without_a_second_reveal(
    acme: TenantKit, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_facts, "REVISIONS_A_PAGE", 2)
    made = fact_about(acme, "wording 1")
    for number in range(2, 6):
        superseded(acme, made, f"wording {number}")
    page = auditor.post(f"audit/fact/{made['id']}/", {"reason": "incident"})["Location"]
    seen = ""
    while page:
        body = auditor.get(page).content.decode()
        seen += text_of(auditor.get(page)).partition("Versions")[2]
        older = re.search(r'href="([^"]+)" data-next', body)
        page = older.group(1).replace("&amp;", "&") if older else ""
    assert re.findall(r"\bversion (\d)\b", seen) == ["5", "4", "3", "2", "1"]
    assert all(f"wording {number}" in seen for number in range(1, 6))


def test_the_register_leads_to_a_facts_page(acme: TenantKit, auditor: Person) -> None:
    page = two_versions(acme)
    assert f'href="/t/acme/{page}"' in auditor.get("register/").content.decode()


def test_the_list_finds_by_id_kind_person_and_project_and_tells_auditors_no_words(
    acme: TenantKit, auditor: Person
) -> None:
    app = acme.client("app", users=["ann"], projects=["p1"])
    mine = fact_about(acme, "prefers mornings", type="habit")["id"]
    other = written(app, scope={"projectId": "p1"}, content="ships on Friday", type="plan")["id"]
    for query, found in (
        ({}, {mine, other}),
        ({"type": "habit"}, {mine}),
        ({"person": "ann"}, {mine}),
        ({"project": "p1"}, {other}),
        ({"type": "nothing"}, set()),
    ):
        body = auditor.get("audit/facts/", query).content.decode()
        listed = set(re.findall(r'data-open href="[^"]*/audit/fact/([^"/]+)/"', body))
        assert listed == found, query
        assert "mornings" not in body
    assert "prefers mornings" in text_of(person(acme, "admin").get("audit/facts/"))
    assert auditor.get("audit/facts/", {"fact": mine})["Location"] == f"/t/acme/audit/fact/{mine}/"
    assert "Nothing matches" in text_of(auditor.get("audit/facts/", {"fact": "made-up"}))
    assert person(acme, "person", subject="ann").get("audit/facts/").status_code == 403


def test_the_list_shows_each_fact_once_and_its_fragment_alone_to_htmx(
    acme: TenantKit, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_facts, "FACTS_A_PAGE", 2)
    made = {fact_about(acme, f"v{number}")["id"] for number in range(5)}
    page, seen = auditor.path("audit/facts/?person=ann"), []
    while page:
        body = auditor.get(page).content.decode()
        seen += re.findall(r'data-open href="[^"]*/audit/fact/([^"/]+)/"', body)
        older = re.search(r'href="([^"]+)" data-next', body)
        page = older.group(1).replace("&amp;", "&") if older else ""
    assert len(seen) == 5
    assert set(seen) == made
    partial = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert "<h1" not in auditor.get("audit/facts/", headers=partial).content.decode()


def test_a_removed_fact_keeps_its_page_and_says_who_removed_it(acme: TenantKit) -> None:
    made = fact_about(acme, "soon gone")
    app = acme.client("app", users=["ann"])
    assert app.delete(at(made)).status_code == 200
    shown = text_of(person(acme, "admin").get(f"audit/fact/{made['id']}/"))
    assert "No agent reads it any more" in shown
    assert "Removed" in shown


def test_people_and_other_workspaces_do_not_come_here(acme: TenantKit) -> None:
    stranger = person(make_tenant(), "auditor")
    page = two_versions(acme)
    assert person(acme, "person", subject="ann").get(page).status_code == 403
    assert stranger.get(f"/t/acme/{page}").status_code == 404
    assert stranger.get(page).status_code == 404
    assert person(acme, "admin").get("audit/fact/no-such-fact/").status_code == 404


def test_what_a_fact_says_is_never_markup_and_its_hidden_controls_are_seen(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["ann"])
    made = written(app, scope={"userId": "ann"}, content="<b>x</b> \u202egnp", type="a<i>\u202eb")
    body = person(acme, "admin").get(f"audit/fact/{made['id']}/").content.decode()
    assert "<b>x</b>" not in body
    assert "<i>" not in body
    assert "\u202e" not in body
    assert "U+202E" in body


def test_the_list_asks_the_database_little_and_is_light(acme: TenantKit) -> None:
    for number in range(60):
        fact_about(acme, {"text": "w" * 200, "n": number})
    admin = person(acme, "admin")
    with CaptureQueriesContext(connection) as asked:
        answer = admin.get("audit/facts/")
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12
    assert len(answer.content) <= 100_000


def test_the_page_asks_the_database_little_and_is_light(acme: TenantKit) -> None:
    made = fact_about(acme, {"text": "w" * 5000, **{f"k{n}": "v" * 40 for n in range(200)}})
    for number in range(12):
        superseded(acme, made, {f"k{n}": f"{number}" * 40 for n in range(200)})
    admin = person(acme, "admin")
    with CaptureQueriesContext(connection) as asked:
        answer = admin.get(f"audit/fact/{made['id']}/")
    assert answer.status_code == 200
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12, [one["sql"][:90] for one in statements]
    assert len(answer.content) <= 100_000
    assert "only the beginning is compared" in text_of(answer)
    mine = person(acme, "person", subject="ann").get(f"facts/{made['id']}/")
    assert len(mine.content) <= 100_000
