"""Whole stories by the keyboard alone, from the top of each page by Tab: nothing needs a pointer, and the focus is never lost."""

from typing import Any

import psycopg
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Windows
from tests.builders import TenantKit
from tests.pages.people import person
from tests.records.builders import an_inference, body_of
from tests.rotation import one_in

pytestmark = pytest.mark.browser
MOST_STEPS = 90
# One story with scripts and one without is played with every change, the other two before a release.
NAMES_OF_WAYS = {"ids": ["with scripts", "without scripts"]}


def has_focus(one: Locator) -> bool:
    return bool(one.evaluate("element => element === document.activeElement"))


def tab_to(page: Page, one: Locator) -> None:
    """Tab on until it has the focus, which must then be seen."""
    one.wait_for()
    for _step in range(MOST_STEPS):
        if has_focus(one):
            outline = one.evaluate("element => getComputedStyle(element).outlineStyle")
            assert outline != "none"
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{one} is not reached by Tab")


def press(page: Page, one: Locator, key: str = "Enter") -> None:
    tab_to(page, one)
    page.keyboard.press(key)


def write(page: Page, one: Locator, text: str) -> None:
    tab_to(page, one)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def choose(page: Page, one: Locator, first_letters: str) -> None:
    """From a list, by typing its first letters."""
    tab_to(page, one)
    page.keyboard.type(first_letters)


def recalled(kit: TenantKit, **context: Any) -> Any:
    agent = kit.client("agent", users=["ann"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", **context}}
    return body_of(agent.post("/v1/memory/recall", body), 200)["value"]


@pytest.mark.parametrize("scripts", one_in(2, [True, False]), **NAMES_OF_WAYS)
def test_a_person_fixes_a_guess_widens_it_and_undoes(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    agent = kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    body_of(agent.post("/v1/memory/records", guess), 201)
    page = windows.of(person(kit, "person", subject="ann"), scripts=scripts).open("memory/")
    page.keyboard.press("Tab")
    assert has_focus(page.get_by_role("link", name="Skip to content"))
    page.keyboard.press("Enter")
    press(page, page.get_by_role("link", name="Fix travel › seat"))
    write(page, page.get_by_label("What is right"), "window")
    press(page, page.get_by_role("button", name="Save for this case"))
    page.get_by_role("heading", name="Done").wait_for()
    assert recalled(kit, trip_id="PUNE") == "window"
    press(page, page.get_by_role("link", name="Back to memory"))
    press(page, page.get_by_role("link", name="Fix travel › seat"))
    write(page, page.get_by_label("What is right"), "front row")
    press(page, page.get_by_role("button", name="Everywhere it applies"))
    page.get_by_role("heading", name="Apply more widely").wait_for()
    write(page, page.get_by_label("To confirm"), "1")
    press(page, page.get_by_role("button", name="Change it everywhere"))
    page.get_by_role("heading", name="Done").wait_for()
    assert recalled(kit, trip_id="PUNE") == "front row"
    receipt = page.url
    press(page, page.get_by_role("button", name="Undo"))
    page.wait_for_url(lambda url: "/receipts/R-" in url and url != receipt)
    assert recalled(kit, trip_id="PUNE") == "window"


@pytest.mark.parametrize("scripts", one_in(2, [True, False], first=1), **NAMES_OF_WAYS)
def test_an_auditor_follows_causes_reveals_and_verifies(
    windows: Windows, kit: TenantKit, superuser_url: str, scripts: bool
) -> None:
    agent, cause = kit.client("agent", projects=["trips"]), None
    for number in range(5):
        entry = {"id": f"{kit.slug}-{number}", "kind": "tool-call", "scope": {"projectId": "trips"},
                 "payload": {"step": number}, **({"causedByLogId": cause} if cause else {})}  # fmt: skip
        body_of(agent.post("/v1/memory/runs/trip/log", entry), 201)
        cause = f"{kit.slug}-{number}"
    page = windows.of(person(kit, "auditor"), scripts=scripts).open("audit/runs/")
    press(page, page.get_by_role("link", name="trip", exact=True))
    press(page, page.get_by_role("link", name="By cause"))
    press(page, page.get_by_role("link", name="#3", exact=True))
    choose(page, page.get_by_label("Reason"), "An incident")
    press(page, page.get_by_role("button", name="Reveal"))
    page.get_by_text('"step": 3').wait_for()
    with psycopg.connect(superuser_url, autocommit=True) as attacker:
        attacker.execute("ALTER TABLE log_entry DISABLE TRIGGER USER")
        attacker.execute("UPDATE log_entry SET actor = 'x' WHERE id = %s", [f"{kit.slug}-2"])
        attacker.execute("ALTER TABLE log_entry ENABLE TRIGGER USER")
    page.reload()
    press(page, page.locator("main").get_by_role("link", name="trip", exact=True))
    press(page, page.get_by_role("link", name="Verify", exact=True))
    press(page, page.get_by_role("button", name="Verify now"))
    page.get_by_role("heading", name="Broken at entry #2").wait_for()


def test_a_swap_leaves_the_focus_where_it_was_or_takes_it_to_what_came(
    windows: Windows, kit: TenantKit
) -> None:
    agent = kit.client("agent", users=["ann"])
    for key in ("travel.seat", "travel.meal"):
        guess = an_inference("aisle", key=key, bindings={"trip_id": "PUNE"})
        body_of(agent.post("/v1/memory/records", guess), 201)
    page = windows.of(person(kit, "person", subject="ann")).open("memory/")
    press(page, page.get_by_role("button", name="That's right travel › seat"))
    page.get_by_text("Confirmed. Thank you.").wait_for()
    expect(page.get_by_role("link", name="travel › seat aisle")).to_be_focused()
    write(page, page.get_by_label("Search"), "meal")
    press(page, page.get_by_role("button", name="Filter"))
    page.wait_for_url("**q=meal**")
    assert has_focus(page.get_by_role("button", name="Filter"))
    auditor = person(kit, "auditor")
    asked = auditor.post("audit/verifications/tenant/", {"mode": "full"})["Location"]
    page = windows.of(auditor).open(asked)
    call_off = page.get_by_role("button", name="Call it off")
    tab_to(page, call_off)
    page.evaluate("document.querySelector('#job').dataset.before = '1'")
    page.evaluate("htmx.ajax('GET', location.pathname, {target: '#job', swap: 'outerHTML'})")
    page.locator("#job:not([data-before])").wait_for()
    expect(call_off).to_be_focused()
    page.evaluate("document.querySelector('#job').innerHTML = '<h2>What was found</h2>'")
    expect(page.get_by_role("heading", name="What was found")).to_be_focused()


def test_on_a_phone_the_pages_are_behind_one_button_without_scripts_too(
    windows: Windows, kit: TenantKit
) -> None:
    auditor = person(kit, "auditor")
    page = windows.of(auditor, width=360, scripts=False).open("audit/runs/")
    link = page.get_by_role("link", name="Access log")
    assert not link.is_visible()
    press(page, page.get_by_role("button", name="Menu"))
    press(page, link)
    page.get_by_role("heading", name="Access log").wait_for()
    page = windows.of(auditor).open("audit/runs/")
    assert page.get_by_role("link", name="Access log").is_visible()
    assert not page.get_by_role("button", name="Menu").is_visible()
