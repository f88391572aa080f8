"""Who comes second chooses between theirs and mine; a form sent again with another text is told apart; a form's address leads to
the form.
"""

import html
import re
from typing import Any

import pytest
from django.test import Client

from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.pages.test_falling import CASE, guessed, remembered
from tests.pages.test_page_links import made
from tests.records.builders import body_of


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def value_of(kit: TenantKit, **context: Any) -> Any:
    agent = kit.client("agent", users=["ann"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", "trip_id": "PUNE", **context}}
    return body_of(agent.post("/v1/memory/recall", body), 200)["value"]


def form_with(page: Any, button: str) -> tuple[str, dict[str, str]]:
    """Address and fields of the form that has a button of this name."""
    for form in re.findall(r"<form\b[^>]*>.*?</form>", page.content.decode(), re.S):
        if re.search(rf"<button[^>]*>\s*{button}\s*</button>", form):
            fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
            found = re.search(r'action="([^"]+)"', form)
            assert found is not None
            return found.group(1), {name: html.unescape(value) for name, value in fields}
    raise AssertionError(f"no form with {button}")


def second_of(ann: Person, record: str, mine: str = "front row") -> Any:
    """What the second one reads, after the first said window."""
    form = {"new_value": "window", "expect": record}
    assert ann.post(f"memory/{record}/correct/fix-value", form).status_code == 302
    late = ann.post(
        f"memory/{record}/correct/fix-value", {**form, "new_value": mine, "reason": "r"}
    )
    assert late.status_code == 409
    return late


def test_who_comes_second_reads_before_theirs_and_mine_each_once(ann: Person) -> None:
    page = second_of(ann, guessed(ann.kit))
    shown = text_of(page)
    for words in ("− aisle", "+ window", "Mine: what you typed front row"):
        assert shown.count(words) == 1, words
    assert "it says now window" in shown
    assert "it says now aisle" not in shown


def test_using_mine_is_a_correction_on_top_of_theirs(ann: Person) -> None:
    page = second_of(ann, guessed(ann.kit))
    action, fields = form_with(page, "Use mine")
    assert fields["reason"] == "r"
    answer = ann.post(action, fields)
    assert answer.status_code == 302, text_of(answer)
    receipt = text_of(ann.get(answer["Location"]))
    assert "− window" in receipt
    assert "+ front row" in receipt
    assert value_of(ann.kit) == "front row"


def test_keeping_theirs_leads_to_theirs_and_editing_goes_on_from_there(ann: Person) -> None:
    record = guessed(ann.kit)
    page = second_of(ann, record)
    body = page.content.decode()
    kept = re.search(r'<a class="button" href="([^"]+)">Keep theirs', body)
    assert kept is not None
    assert "window" in text_of(ann.get(kept.group(1)))
    action, fields = form_with(page, "Save for this case")
    assert record not in action
    answer = ann.post(action, {**fields, "new_value": "front row, left"})
    assert answer.status_code == 302
    assert value_of(ann.kit) == "front row, left"


def test_of_two_who_both_use_theirs_the_second_is_asked_again(ann: Person) -> None:
    page = second_of(ann, guessed(ann.kit))
    action, fields = form_with(page, "Use mine")
    assert ann.post(action, fields).status_code == 302
    again = ann.post(action, {**fields, "once": "9" * 20, "new_value": "roof"})
    assert again.status_code == 409
    assert "+ front row" in text_of(again)


def test_mine_stays_for_its_case_when_theirs_is_wider(ann: Person) -> None:
    wide = remembered(ann.kit)
    case = {"new_value": "front", "case_other": "trip id", "case_value": "PUNE"}
    assert ann.post(f"memory/{wide}/correct/fix-value", case).status_code == 302
    app = ann.kit.client("app", users=["ann"])
    listed = body_of(app.get("/v1/memory/records"), 200)["data"]
    [record] = [one["id"] for one in listed if one["value"] == "front"]
    preview = ann.post(f"memory/{record}/widen", {"new_value": "window"})
    fields = dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', preview.content.decode())
    )
    count = re.search(r"\((\d+)\)</label>", preview.content.decode())
    assert count is not None
    widened = ann.post(f"memory/{record}/widen", {**fields, "count": count.group(1)})
    assert widened.status_code == 302
    form = {"new_value": "front row", "expect": record}
    late = ann.post(f"memory/{record}/correct/fix-value", form)
    assert late.status_code == 409
    action, mine = form_with(late, "Use mine")
    assert ann.post(action, mine).status_code == 302
    assert value_of(ann.kit) == "front row"
    assert value_of(ann.kit, trip_id="ROME") == "window"


@pytest.mark.parametrize("route", ["out-of-date", "wrong-person", "dispute"])
def test_another_way_goes_on_with_what_it_says_now(ann: Person, route: str) -> None:
    record = guessed(ann.kit)
    ann.post(f"memory/{record}/correct/fix-value", {"new_value": "window"})
    late = ann.post(f"memory/{record}/correct/{route}", {"statement": "my words"})
    assert late.status_code == 409
    shown = text_of(late)
    assert "+ window" in shown
    assert "it says now window" in shown
    action = re.search(rf'action="([^"]+/correct/{route})"', late.content.decode())
    assert action is not None
    assert record not in action.group(1)
    assert ann.post(action.group(1), {"statement": "my words"}).status_code == 302


def test_confirming_what_somebody_changed_meanwhile_shows_what_it_says_now(ann: Person) -> None:
    record = guessed(ann.kit)
    ann.post(f"memory/{record}/correct/fix-value", {"new_value": "window"})
    late = ann.post(f"memory/{record}/confirm")
    assert late.status_code == 409
    assert "+ window" in text_of(late)
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    row = ann.post(f"memory/{record}/confirm", headers=part)
    assert (row.status_code, row["HX-Redirect"]) == (
        204,
        ann.path(f"memory/{record}/correct/confirm"),
    )


# ---- the same form with another text ------------------------------------------------------------------------------------------


def test_the_same_form_with_another_text_does_nothing_and_shows_both(ann: Person) -> None:
    record = guessed(ann.kit)
    form = {"new_value": "window", "expect": record, "once": "1" * 20}
    first = ann.post(f"memory/{record}/correct/fix-value", form)["Location"]
    again = ann.post(f"memory/{record}/correct/fix-value", {**form, "new_value": "front row"})
    assert again.status_code == 409
    shown = text_of(again)
    assert "This form was sent already" in shown
    assert "What is right front row" in shown
    assert f'href="{first}"' in again.content.decode()
    assert value_of(ann.kit) == "window"
    action, fields = form_with(again, "Send this, too")
    assert fields["once"] != form["once"]
    choice = ann.post(action, fields)
    assert choice.status_code == 409
    assert "Somebody changed this meanwhile" in text_of(choice)
    assert ann.post(f"memory/{record}/correct/fix-value", form)["Location"] == first


def test_what_took_the_memory_out_of_sight_tells_another_text_apart_too(ann: Person) -> None:
    record = guessed(ann.kit)
    form = {"reason": "my brother's", "once": "1" * 20}
    path = f"memory/{record}/correct/wrong-person"
    first = ann.post(path, form)["Location"]
    assert ann.post(path, form)["Location"] == first
    other = ann.post(path, {**form, "reason": "my sister's"})
    assert other.status_code == 409
    assert "my sister" in text_of(other)


# ---- addresses of forms, and links --------------------------------------------------------------------------------------------


def test_the_address_of_a_form_leads_whoever_opens_it_to_the_form(ann: Person) -> None:
    record = remembered(ann.kit, **CASE)
    receipt = ann.post(f"memory/{record}/correct/dispute", {"statement": "no"})["Location"]
    leads = {
        f"memory/{record}/widen": f"memory/{record}/correct/fix-value",
        f"memory/{record}/confirm": f"memory/{record}/correct/confirm",
        f"{receipt}undo": receipt,
    }
    for path, page in leads.items():
        answer = ann.get(path)
        assert (answer.status_code, answer["Location"]) == (302, ann.path(page)), path
        assert ann.get(answer["Location"]).status_code == 200
        assert ann.browser.put(ann.path(path)).status_code == 405


def test_a_page_link_opens_again_until_its_time_is_over(acme: TenantKit) -> None:
    link = made(acme.client("app", users=["dana"]))
    path = link["url"].removeprefix("http://localhost:8000")
    for _again in range(2):
        browser = Client()
        assert "may be opened again until then" in text_of(browser.get(path))
        assert browser.post(path, follow=True).status_code == 200
        assert browser.get(f"/t/{acme.slug}/memory/").status_code == 200
