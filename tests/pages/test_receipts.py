"""A receipt says what its act really changed, kind by kind, and offers an undo only where the undo would go through."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.records import clock
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.pages.test_falling import CASE, guessed, remembered
from tests.records.builders import body_of

STOPPED = "Who stopped using it"
GONE = "What it said is not kept any more"


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def sent(who: Person, record: str, route: str, **fields: str) -> str:
    answer = who.post(f"memory/{record}/correct/{route}", fields)
    assert answer.status_code == 302, text_of(answer)
    return str(answer["Location"])


def undone(who: Person, receipt: str) -> str:
    answer = who.post(f"{receipt}undo")
    assert answer.status_code == 302, text_of(answer)
    return str(answer["Location"])


def shown(who: Person, path: str) -> str:
    return text_of(who.get(path))


def confirmed(who: Person, record: str) -> str:
    who.post(f"memory/{record}/confirm")
    page = who.get("receipts/").content.decode()
    return page.split('data-open href="', 1)[1].split('"', 1)[0]


def test_confirming_stops_nothing_and_changes_no_words(ann: Person) -> None:
    receipt = confirmed(ann, guessed(ann.kit))
    told = shown(ann, receipt)
    assert "It says aisle" in told
    assert "Agents know that you agree with it" in told
    assert "− aisle" not in told
    assert STOPPED not in told
    back = shown(ann, undone(ann, receipt))
    assert "Agents no longer read that you agreed" in back
    assert STOPPED not in back


def test_a_dispute_stops_nothing_and_says_what_agents_are_told(ann: Person) -> None:
    receipt = sent(ann, guessed(ann.kit), "dispute", statement="I never said so")
    told = shown(ann, receipt)
    assert "It says aisle" in told
    assert "ask before they use it" in told
    assert "I never said so" in told
    assert STOPPED not in told
    back = shown(ann, undone(ann, receipt))
    assert "Agents no longer ask because you disagreed" in back
    assert STOPPED not in back


def test_a_fix_for_another_case_says_that_the_words_before_stay_in_use(ann: Person) -> None:
    record = remembered(ann.kit)
    told = shown(ann, sent(ann, record, "fix-value", new_value="window", case_other="trip", case_value="X"))  # fmt: skip
    assert "− aisle" in told
    assert "+ window" in told
    assert "stay in use" in told
    assert STOPPED not in told


def test_a_fix_of_its_own_case_says_who_stopped_and_its_undo_shows_the_way_back(
    ann: Person,
) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    receipt = sent(ann, record, "fix-value", new_value="window")
    assert STOPPED in shown(ann, receipt)
    back = shown(ann, undone(ann, receipt))
    assert "− window" in back
    assert "+ aisle" in back
    assert "Way Undo" in back
    assert STOPPED not in back
    before = shown(ann, receipt)
    assert "Applied until it was undone" in before
    assert STOPPED not in before


@pytest.mark.parametrize("route", ["out-of-date", "wrong-person", "forget", "never-infer"])
def test_what_no_agent_uses_any_more_applies_nowhere_and_its_undo_brings_it_back(
    ann: Person, route: str
) -> None:
    receipt = sent(ann, guessed(ann.kit), route, prefix="travel")
    told = shown(ann, receipt)
    assert "Applies now nowhere" in told
    assert STOPPED in told
    assert "nowhere" in shown(ann, "receipts/")
    back = shown(ann, undone(ann, receipt))
    assert "It says again aisle" in back
    assert "Applied before nowhere" in back
    assert "Agents use it again" in back
    assert STOPPED not in back


def test_ruling_out_guesses_leaves_what_was_said_and_tells_of_the_guesses(ann: Person) -> None:
    record = remembered(ann.kit)
    guessed(ann.kit, "quiet", key="travel.room")
    told = shown(ann, sent(ann, record, "never-infer", prefix="travel"))
    assert "This one is no guess: it stays in use" in told
    assert "1 more memory ended: a guess of that kind, or derived from one" in told
    assert "Applies everywhere for you" in told
    assert STOPPED not in told


def test_what_a_correction_of_a_correction_left_can_not_be_undone_and_is_not_offered(
    ann: Person,
) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    first = sent(ann, record, "fix-value", new_value="window")
    [now] = body_of(ann.kit.client("app", users=["ann"]).get("/v1/memory/records"), 200)["data"]
    second = sent(ann, now["id"], "fix-value", new_value="front")
    body = ann.get(first).content.decode()
    assert f"{first}undo" not in body
    assert "changed again since" in text_of(ann.get(first))
    assert f"{second}undo" in ann.get(second).content.decode()
    listed = text_of(ann.get("receipts/"))
    assert listed.count("until") == 1
    assert ann.post(f"{first}undo").status_code == 409


def filled_anew(ann: Person, record: str) -> None:
    remembered(ann.kit, "middle")


def parent_gone(ann: Person, record: str) -> None:
    sent(ann, "parent", "forget")


def confirmed_again(ann: Person, record: str) -> None:
    ann.post(f"memory/{record}/confirm")


def said_elsewhere(ann: Person, record: str) -> None:
    sent(ann, record, "wrong-person")


@pytest.mark.parametrize(
    ("route", "since"),
    [
        ("forget", filled_anew),
        ("out-of-date", filled_anew),
        ("wrong-person", filled_anew),
        ("forget", parent_gone),
        ("confirm", confirmed_again),
        ("dispute", said_elsewhere),
        ("confirm", said_elsewhere),
    ],
)
def test_an_undo_is_offered_just_where_it_goes_through(ann: Person, route: str, since: Any) -> None:
    remembered(ann.kit, "sits at the side", id="parent", key="travel.side")
    derived = {"derived_from": ["parent"]} if since is parent_gone else {}
    record = remembered(ann.kit, **derived)
    fields = {"statement": "no"} if route == "dispute" else {}
    receipt = confirmed(ann, record) if route == "confirm" else sent(ann, record, route, **fields)
    assert f"{receipt}undo" in ann.get(receipt).content.decode()
    since(ann, record)
    page = ann.get(receipt)
    assert f"{receipt}undo" not in page.content.decode()
    assert "can't be undone any more" in text_of(page)
    assert ann.post(f"{receipt}undo").status_code == 409


def test_forms_promise_no_undo_where_the_workspace_has_none(ann: Person) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    assert "undo button" in shown(ann, f"memory/{record}/correct/out-of-date")
    with tenant_context(ann.kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE tenant SET undo_hours = 0 WHERE id = %s::uuid", [ann.kit.id])
    for route in ("out-of-date", "wrong-person", "dispute", "forget", "never-infer"):
        told = shown(ann, f"memory/{record}/correct/{route}")
        assert "undo button" not in told
        assert "can't be undone" in told


@pytest.mark.parametrize("route", ["forget", "out-of-date"])
def test_while_an_undo_is_possible_nothing_is_said_to_be_gone_for_good(
    ann: Person, route: str
) -> None:
    record = remembered(ann.kit)
    receipt = sent(ann, record, route)
    auditor = person(ann.kit, "auditor")
    for who, path in ((ann, f"memory/{record}/"), (auditor, f"audit/record/{record}/")):
        told = shown(who, path)
        assert "is kept sealed" in told
        assert GONE not in told
    page = ann.get(f"memory/{record}/")
    assert f'href="{receipt}"' in page.content.decode()
    assert "for good" not in text_of(page).replace("is erased for good after", "")
    with clock.fixed_at(timezone.now() + timedelta(hours=25)):
        over = shown(ann, f"memory/{record}/")
    assert GONE in over
    assert "can be undone" not in over


@pytest.mark.parametrize("route", ["forget", "out-of-date", "fix-value"])
def test_an_old_page_leads_to_what_agents_use_now(ann: Person, route: str) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    fields = {"new_value": "window"} if route == "fix-value" else {}
    receipt = sent(ann, record, route, **fields)
    back = undone(ann, receipt)
    [now] = body_of(ann.kit.client("app", users=["ann"]).get("/v1/memory/records"), 200)["data"]
    assert now["id"] != record
    for path in (f"memory/{record}/", receipt, back, f"memory/{record}/correct/fix-value"):
        assert f"/memory/{now['id']}/" in ann.get(path).content.decode(), path


@pytest.mark.parametrize("route", ["fix-value", "out-of-date", "dispute", "never-infer", "confirm"])
def test_a_form_for_what_is_over_says_so_without_codes(ann: Person, route: str) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    sent(ann, record, "forget")
    page = ann.get(f"memory/{record}/correct/{route}")
    assert page.status_code == 200
    assert "it is not in use any more" in text_of(page)
    assert "<form" not in page.content.decode().split('<main id="main"', 1)[1].split("</main>")[0]
    fields = {"new_value": "x", "statement": "x", "prefix": "travel"}
    late = ann.post(f"memory/{record}/correct/{route}", fields)
    assert late.status_code == 409
    told = text_of(late)
    assert "not in use any more" in told
    assert "Read it again" not in told


def test_the_api_says_of_each_act_what_it_changed_and_what_it_took_along(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])

    def receipt(route: str, **form: Any) -> dict[str, Any]:
        key = f"k.{route.replace('-', '_')}"
        record = guessed(acme, key=key)
        remembered(acme, "x", key=f"l.{route.replace('-', '_')}", derived_from=[record], **CASE)
        path = f"/v1/memory/records/{record}/routes/{route}"
        told: dict[str, Any] = body_of(app.post(path, form), 200)["receipt"]
        return told

    fix = {"new_value": "window", "context": {"trip_id": "PUNE"}}
    told = {
        "confirm": receipt("confirm"),
        "fix-value": receipt("fix-value", **fix),
        "out-of-date": receipt("out-of-date"),
        "wrong-person": receipt("wrong-person"),
        "dispute": receipt("dispute", statement="no"),
        "forget": receipt("forget"),
        "never-infer": receipt("never-infer"),
    }
    assert {route: one["changed"] for route, one in told.items()} == {
        "confirm": ["confirmed"],
        "fix-value": ["value", "scope"],
        "out-of-date": ["ended"],
        "wrong-person": ["withdrawn"],
        "dispute": ["disputed"],
        "forget": ["forgotten"],
        "never-infer": ["inferences-refused", "ended"],
    }
    assert {route: one["took_along"] for route, one in told.items()} == {
        **dict.fromkeys(told, 1),
        "confirm": 0,
    }
    for route in ("out-of-date", "wrong-person", "forget", "never-infer"):
        assert told[route]["after"] is None, route
    path = f"/v1/memory/receipts/{told['fix-value']['number']}/undo"
    back = body_of(app.post(path, {}), 200)["receipt"]
    assert back["changed"] == ["undone"]
    assert (back["before"]["value"], back["after"]["value"]) == ("window", "aisle")


def test_a_widened_confirmation_is_not_undone_into_a_place_that_was_filled_since(
    ann: Person,
) -> None:
    record = guessed(ann.kit)
    app = ann.kit.client("app", users=["ann"])
    path = f"/v1/memory/records/{record}/routes/confirm"
    wide = {"broaden_to": {"level": "user", "bindings": {}}}
    told = body_of(app.post(path, wide), 200)["receipt"]
    assert told["changed"] == ["confirmed", "scope"]
    receipt = f"receipts/{told['number']}/"
    shown_once = shown(ann, receipt)
    assert "It applies more widely than before" in shown_once
    assert f"{told['number']}/undo" in ann.get(receipt).content.decode()
    remembered(ann.kit, "window", **CASE)
    assert f"{told['number']}/undo" not in ann.get(receipt).content.decode()
    assert ann.post(f"{receipt}undo").status_code == 409
