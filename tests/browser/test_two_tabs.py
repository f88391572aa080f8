"""Two tabs, two browsers, real sign-ins: what one does never undoes, hides or half does what the other did."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor, Windows
from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, person
from tests.records.builders import an_inference, body_of

pytestmark = pytest.mark.browser


@pytest.fixture
def ann(kit: TenantKit) -> Person:
    return person(kit, "person", subject="ann")


def guessed(kit: TenantKit) -> str:
    agent = kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    return str(body_of(agent.post("/v1/memory/records", guess), 201)["id"])


def recalled(kit: TenantKit) -> Any:
    agent = kit.client("agent", users=["ann"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", "trip_id": "PUNE"}}
    return body_of(agent.post("/v1/memory/recall", body), 200)["value"]


def sign_in(page: Page, who: Person) -> None:
    page.get_by_label("Email").fill(who.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/t/**")


def second_tab(visitor: Visitor) -> Page:
    tab = visitor.context.new_page()
    visitor.watch(tab)
    return tab


def test_of_two_tabs_the_second_is_shown_what_the_first_saved_and_keeps_its_text(
    windows: Windows, kit: TenantKit, ann: Person
) -> None:
    record = guessed(kit)
    window = windows.of(ann)
    window.allowed = ["status of 409"]
    first, second = window.open(f"memory/{record}/correct/fix-value"), second_tab(window)
    second.goto(window.url(f"memory/{record}/correct/fix-value"))
    first.get_by_label("What is right").fill("window")
    first.get_by_role("button", name="Save for this case").click()
    first.get_by_text("only in this case (trip PUNE)").first.wait_for()
    second.get_by_label("What is right").fill("front row")
    second.get_by_role("button", name="Save for this case").click()
    second.get_by_role("heading", name="Somebody changed this meanwhile").wait_for()
    assert second.get_by_label("What is right").input_value() == "front row"
    assert second.locator("ins", has_text="window").count() == 1
    assert recalled(kit) == "window"
    second.get_by_role("button", name="Use mine").click()
    second.get_by_text("only in this case (trip PUNE)").first.wait_for()
    assert recalled(kit) == "front row"


def test_a_form_whose_token_went_stale_in_another_tab_keeps_its_text_and_is_sent_again(
    windows: Windows, kit: TenantKit, ann: Person
) -> None:
    record = guessed(kit)
    window = windows.of(ann)
    window.allowed = ["status of 403"]
    first, second = window.open(f"memory/{record}/correct/fix-value"), second_tab(window)
    first.get_by_label("What is right").fill("window")
    second.goto(window.url("memory/"))
    second.get_by_role("button", name="Sign out").click()
    second.wait_for_url("**/account/login/**")
    sign_in(second, ann)
    first.get_by_role("button", name="Save for this case").click()
    first.get_by_role("heading", name="Please send it again").wait_for()
    assert recalled(kit) == "aisle"
    first.get_by_role("button", name="Send it again").click()
    first.get_by_text("only in this case (trip PUNE)").first.wait_for()
    assert recalled(kit) == "window"


def test_signing_out_everywhere_else_ends_the_other_browser_at_once(
    windows: Windows, kit: TenantKit, ann: Person
) -> None:
    here, there = windows.of(ann), windows.of(ann)
    for window in (here, there):
        window.context.clear_cookies()
        sign_in(window.open("memory/"), ann)
    page = here.page
    page.goto(here.url("/account/sessions/"))
    expect(page.locator("tbody tr")).to_have_count(2)
    assert page.get_by_text("this one").count() == 1
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    there.open("memory/").get_by_role("heading", name="Sign in").wait_for()
    here.open("memory/").get_by_role("heading", name="What is remembered about you").wait_for()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_what_matters_waits_for_a_proof_in_another_tab_and_goes_on_where_it_was(
    windows: Windows, kit: TenantKit, ann: Person, scripts: bool
) -> None:
    record = guessed(kit)
    session = ann.browser.session
    del session["account_authentication_methods"]
    session.save()
    window = windows.of(ann, scripts=scripts)
    window.allowed = ["status of 403"]
    page = window.open(f"memory/{record}/correct/fix-value")
    page.get_by_label("What is right").fill("window")
    page.get_by_role("button", name="Everywhere it applies").click()
    page.get_by_label("To confirm").fill("1")
    page.get_by_role("button", name="Change it everywhere").click()
    page.get_by_role("heading", name="Is it you?").wait_for()
    assert recalled(kit) == "aisle"
    with window.context.expect_page() as opened:
        page.get_by_role("link", name="Prove it in a new tab").click()
    proof = opened.value
    window.watch(proof)
    proof.get_by_label("Password").fill(PASSWORD)
    proof.get_by_role("button", name="Go on").click()
    proof.get_by_role("heading", name="It is you").wait_for()
    page.get_by_role("button", name="Send it again").click()
    page.get_by_role("heading", name="Done").wait_for()
    assert recalled(kit) == "window"


def test_forgetting_by_keyboard_ends_on_the_receipt_and_undo_by_keyboard_brings_it_back(
    windows: Windows, kit: TenantKit, ann: Person
) -> None:
    guessed(kit)
    page = windows.of(ann).open("memory/")
    page.get_by_role("link", name="Forget travel › seat").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Forget this").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Agents stopped using it").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    assert recalled(kit) is None
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Done").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    assert recalled(kit) == "aisle"


def test_new_entries_are_told_without_moving_what_is_read(windows: Windows, kit: TenantKit) -> None:
    agent = kit.client("agent", projects=["trips"])
    entry = {"kind": "tool-call", "scope": {"projectId": "trips"}}
    body_of(agent.post("/v1/memory/runs/trip/log/batch", {"entries": [entry] * 3}), 201)
    page = windows.of(person(kit, "auditor")).open("audit/run/trip/")
    page.get_by_role("link", name="#1", exact=True).focus()
    rows = page.locator(".entry").count()
    place = page.get_by_role("link", name="#1", exact=True).bounding_box()
    body_of(agent.post("/v1/memory/runs/trip/log/batch", {"entries": [entry] * 50}), 201)
    page.evaluate(
        "htmx.ajax('GET', document.querySelector('#live').getAttribute('hx-get'), '#live')"
    )
    page.get_by_role("link", name="50 new entries").wait_for()
    assert page.locator(".entry").count() == rows
    assert page.evaluate("document.activeElement.textContent") == "#1"
    now = page.get_by_role("link", name="#1", exact=True).bounding_box()
    assert place is not None
    assert now is not None
    assert abs(now["y"] - place["y"]) < 60
