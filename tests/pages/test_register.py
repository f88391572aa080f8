"""The register of what ended: who sees which rows, what a row says, and that no tombstone and no masked value is in it."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from corrections.views import register
from tests.builders import TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.records.builders import a_record, an_inference, body_of


def remember(kit: TenantKit, value: Any = "aisle", **changes: Any) -> str:
    app = kit.client("app", users=["ann", "bob", "zoe"])
    return body_of(app.post("/v1/memory/records", a_record(value, **changes)), 201)["id"]


def ended(kit: TenantKit, whom: str = "ann") -> dict[str, str]:
    """One replaced, one forgotten with what was derived from it, and a fact with two versions; ids by what happened."""
    app = kit.client("app", users=[whom], may=["read", "write"])
    old = remember(kit, "old seat", subject=whom)
    remember(kit, "new seat", subject=whom)
    gone = remember(kit, "secret diet", subject=whom, key="food.diet")
    child = remember(kit, "secret menu", subject=whom, key="food.menu", derived_from=[gone])
    body_of(app.post(f"/v1/memory/records/{gone}/forget", {"reason": "mine alone"}), 200)
    fact = {"type": "travel-note", "scope": {"userId": whom}, "content": "first wording"}
    made = body_of(app.post("/v1/memory/facts", fact), 201)["id"]
    body_of(app.post(f"/v1/memory/facts/{made}/supersede", {"content": "second wording"}), 200)
    return {"old": old, "gone": gone, "child": child, "fact": made}


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def rows(answer: Any) -> list[str]:
    assert answer.status_code == 200
    body = re.findall(r"<tr data-row>(.*?)</tr>", answer.content.decode(), re.S)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)).strip() for row in body]


def test_before_anything_ended_the_register_says_what_will_be_there(ann: Person) -> None:
    assert "Nothing has ended yet" in text_of(ann.get("register/"))


def test_a_person_reads_how_when_by_whom_and_why_their_own_ended(ann: Person) -> None:
    made = ended(ann.kit)
    ended(ann.kit, "bob")
    found = rows(ann.get("register/"))
    assert len(found) == 4
    fact, *memories, seat = found
    assert "travel-note version 1 first wording" in fact
    assert "Replaced" in fact
    assert "travel › seat old seat" in seat
    assert "a person said something newer" in seat
    diet = next(row for row in memories if "diet" in row)
    assert "Forgotten" in diet
    assert "a person asked for it" in diet
    assert "1 derived from it" in diet
    menu = next(row for row in memories if "menu" in row)
    assert "it fell with this" in menu
    body = ann.get("register/").content.decode()
    assert ann.path(f"memory/{made['old']}/") in body
    assert ann.path(f"facts/{made['fact']}/") in body


def test_a_tombstone_never_shows_what_it_said_to_anybody(acme: TenantKit, ann: Person) -> None:
    made = ended(acme)
    for reader in (ann, person(acme, "admin"), person(acme, "auditor"), person(acme, "owner")):
        pages = [reader.get("register/"), reader.get("register/", {"how": "forgotten"})]
        if reader is not ann:
            pages += [reader.get(f"audit/record/{made[one]}/") for one in ("gone", "child")]
        for page in pages:
            assert page.status_code == 200
            assert "secret" not in page.content.decode()


def test_what_is_left_of_values_is_shown_to_admins_and_left_out_for_auditors(
    acme: TenantKit,
) -> None:
    ended(acme)
    assert "old seat" in text_of(person(acme, "admin").get("register/"))
    masked = text_of(person(acme, "auditor").get("register/"))
    assert "travel › seat" in masked
    for word in ("old seat", "first wording"):
        assert word not in masked


def test_who_governs_reads_everybodys_and_nobody_another_workspaces(live_acme: TenantKit) -> None:
    ended(make_tenant(), "zoe")
    ended(live_acme, "ann")
    ended(live_acme, "bob")
    auditor = person(live_acme, "auditor")
    assert len(rows(auditor.get("register/"))) == 8
    assert len(rows(auditor.get("register/", {"subject": "bob"}))) == 4
    assert "zoe" not in text_of(auditor.get("register/"))


def test_filters_choose_by_end_kind_name_and_act(acme: TenantKit, ann: Person) -> None:
    ended(acme)
    assert len(rows(ann.get("register/", {"how": "forgotten"}))) == 2
    assert len(rows(ann.get("register/", {"what": "fact"}))) == 1
    assert len(rows(ann.get("register/", {"name": "MENU"}))) == 1
    act = re.search(r'href="([^"]*\?act=[^"]+)"', ann.get("register/").content.decode())
    assert act
    assert len(rows(ann.get(act.group(1)))) == 2
    assert "Nothing matches" in text_of(ann.get("register/", {"name": "zebra"}))
    assert "Nothing matches" in text_of(ann.get("register/", {"until": "2020-01-01"}))


def test_paging_shows_each_row_once_also_those_of_one_moment(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(acme, "ann")
    ended(acme, "bob")
    auditor = person(acme, "auditor")
    whole = rows(auditor.get("register/"))
    monkeypatch.setattr(register, "ROWS_A_PAGE", 1)
    page, seen = auditor.path("register/"), []
    while page:
        answer = auditor.get(page)
        seen += rows(answer)
        following = re.search(r'href="([^"]+)" data-next', answer.content.decode())
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert seen == whole
    assert len(seen) == 8


def test_a_route_taken_on_the_page_is_named_with_its_receipt(ann: Person) -> None:
    agent = ann.kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    record = body_of(agent.post("/v1/memory/records", guess), 201)["id"]
    ann.post(f"memory/{record}/correct/out-of-date", {})
    (row,) = rows(ann.get("register/"))
    assert "Out of date" in row
    assert re.search(r"It used to be true: it was said to be out of date R-\w{4}", row), row
    assert ann.email in row


def test_a_receipt_of_a_forget_leads_to_what_fell_with_it(ann: Person) -> None:
    gone = remember(ann.kit, "nuts", key="food.diet")
    remember(ann.kit, "no satay", key="food.menu", derived_from=[gone])
    receipt = ann.get(ann.post(f"memory/{gone}/correct/forget")["Location"])
    assert "1 more memory was forgotten: derived from it" in text_of(receipt)
    act = re.search(r'href="([^"]*\?act=[^"]+)"', receipt.content.decode())
    assert act
    assert len(rows(ann.get(act.group(1)))) == 2


def test_an_auditor_reveals_what_a_memory_says_with_a_reason_that_is_logged(
    acme: TenantKit,
) -> None:
    record = remember(acme, "window <b>")
    auditor, other = person(acme, "auditor"), person(acme, "auditor")
    page = f"audit/record/{record}/"
    assert "window" not in auditor.get(page).content.decode()
    assert auditor.post(page, {"reason": ""}).status_code == 422
    assert auditor.post(page, {"reason": "complaint"}).status_code == 302
    assert escape("window <b>") in auditor.get(page).content.decode()
    assert "window" not in other.get(page).content.decode()
    assert "Revealed a memory" in text_of(auditor.get("audit/access/"))
    assert escape("window <b>") in person(acme, "admin").get(page).content.decode()
    assert person(acme, "person", subject="ann").get(page).status_code == 403


@pytest.mark.parametrize("path", ["register/", "audit/record/{old}/"])
def test_each_page_asks_the_database_little_and_is_light(acme: TenantKit, path: str) -> None:
    made = ended(acme)
    for number in range(60):
        remember(acme, f"v{number}", key="notes.many")
    admin = person(acme, "admin")
    with CaptureQueriesContext(connection) as asked:
        answer = admin.get(path.format(**made))
    assert answer.status_code == 200
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12, [one["sql"][:90] for one in statements]
    assert len(answer.content) <= 100_000
