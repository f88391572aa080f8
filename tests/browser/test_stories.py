"""People's stories end to end in Chromium, with scripts and without."""

from typing import Any

import psycopg
import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import Windows
from tests.builders import TenantKit
from tests.pages.people import person
from tests.records.builders import a_record, an_inference, body_of

pytestmark = pytest.mark.browser


def recalled(kit: TenantKit, **context: Any) -> dict[str, Any]:
    agent = kit.client("agent", users=["ann"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", **context}}
    return body_of(agent.post("/v1/memory/recall", body), 200)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_person_finds_a_wrong_guess_fixes_it_for_one_case_and_undoes(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    agent = kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    body_of(agent.post("/v1/memory/records", guess), 201)
    ann = windows.of(person(kit, "person", subject="ann"), scripts=scripts)
    page = ann.open("memory/")
    page.get_by_label("Search").fill("aisle")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**q=aisle**")
    page.get_by_role("link", name="Fix travel › seat").click()
    page.get_by_label("What is right").fill("window")
    page.get_by_role("button", name="Save for this case").click()
    page.get_by_text("only in this case (trip PUNE)").first.wait_for()
    assert recalled(kit, trip_id="PUNE")["value"] == "window"
    receipt = page.url
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(lambda url: "/receipts/R-" in url and url != receipt)
    assert recalled(kit, trip_id="PUNE")["value"] == "aisle"


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_person_widens_after_seeing_the_exact_set_and_undoes(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    app = kit.client("app", users=["ann"])
    record = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    ann = windows.of(person(kit, "person", subject="ann"), scripts=scripts)
    page = ann.open(f"memory/{record}/correct/fix-value")
    page.get_by_label("What is right").fill("window")
    page.get_by_role("button", name="Everywhere it applies").click()
    page.get_by_text("1 memory will stop being used").wait_for()
    assert recalled(kit)["value"] == "aisle"
    page.get_by_label("To confirm").fill("1")
    page.get_by_role("button", name="Change it everywhere").click()
    page.get_by_text("everywhere for you").first.wait_for()
    assert recalled(kit)["value"] == "window"
    receipt = page.url
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(lambda url: "/receipts/R-" in url and url != receipt)
    assert recalled(kit)["value"] == "aisle"


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_what_is_forgotten_on_the_page_is_gone_for_agents_at_once(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    app = kit.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records", a_record("aisle")), 201)
    ann = windows.of(person(kit, "person", subject="ann"), scripts=scripts)
    page = ann.open("memory/")
    page.get_by_role("link", name="Forget travel › seat").click()
    page.get_by_role("button", name="Forget this").dblclick()
    page.get_by_role("heading", name="Agents stopped using it").wait_for()
    assert recalled(kit)["decision"] == "none"
    page.goto(ann.url("receipts/"))
    assert page.get_by_role("link", name="R-").count() == 1


def test_confirming_by_keyboard_swaps_the_row_and_keeps_the_focus_there(
    windows: Windows, kit: TenantKit
) -> None:
    agent = kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    body_of(agent.post("/v1/memory/records", guess), 201)
    ann = windows.of(person(kit, "person", subject="ann"))
    page = ann.open("memory/?state=guessed")
    page.get_by_role("button", name="That's right").focus()
    page.keyboard.press("Enter")
    page.locator(".memory .badge", has_text="Confirmed by you").wait_for()
    assert page.locator("#status").inner_text() == "Confirmed. Thank you."
    assert "seat" in page.evaluate("document.activeElement.textContent")
    assert page.url.endswith("state=guessed")


def test_a_form_that_lost_its_session_keeps_the_text_and_is_sent_after_signing_in(
    windows: Windows, kit: TenantKit
) -> None:
    agent = kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    record = body_of(agent.post("/v1/memory/records", guess), 201)["id"]
    ann = windows.of(person(kit, "person", subject="ann"))
    ann.allowed = ["status of 401", "status of 403"]
    page = ann.open(f"memory/{record}/correct/fix-value")
    page.get_by_label("What is right").fill("window")
    session = ann.context.cookies()
    ann.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Save for this case").click()
    page.get_by_role("heading", name="Your session has ended").wait_for()
    ann.context.add_cookies([one for one in session if one["name"] == "sessionid"])
    page.get_by_role("button", name="Send it again").click()
    page.get_by_text("only in this case (trip PUNE)").first.wait_for()
    assert recalled(kit, trip_id="PUNE")["value"] == "window"


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_auditor_follows_causes_reveals_and_is_shown_where_a_run_was_tampered_with(
    windows: Windows, kit: TenantKit, superuser_url: str, scripts: bool
) -> None:
    agent = kit.client("agent", projects=["trips"])
    cause = None
    for number in range(6):
        entry = {"id": f"{kit.slug}-{number}", "kind": "tool-call", "scope": {"projectId": "trips"},
                 "payload": {"step": number}, **({"causedByLogId": cause} if cause else {})}  # fmt: skip
        body_of(agent.post("/v1/memory/runs/trip/log", entry), 201)
        cause = f"{kit.slug}-{number}"
    auditor = windows.of(person(kit, "auditor"), scripts=scripts)
    page = auditor.open("audit/runs/")
    page.get_by_role("link", name="trip", exact=True).click()
    page.get_by_role("link", name="By cause").click()
    page.get_by_role("link", name="#3", exact=True).click()
    page.get_by_label("Reason").select_option("incident")
    page.get_by_role("button", name="Reveal").click()
    page.get_by_text('"step": 3').wait_for()
    with psycopg.connect(superuser_url, autocommit=True) as attacker:
        attacker.execute("ALTER TABLE log_entry DISABLE TRIGGER USER")
        attacker.execute(
            "UPDATE log_entry SET payload_text = '{\"step\":99}' WHERE id = %s", [f"{kit.slug}-4"]
        )
        attacker.execute("ALTER TABLE log_entry ENABLE TRIGGER USER")
    page.goto(auditor.url("audit/run/trip/verify/"))
    page.get_by_role("button", name="Verify now").click()
    page.get_by_role("heading", name="Broken at entry #4").wait_for()
    assert page.locator(".compare mark").count() >= 2
    assert "Content or hash changed" in page.locator("#break").inner_text()


def test_filters_survive_back_and_an_expired_session_never_lands_in_a_panel(
    windows: Windows, kit: TenantKit
) -> None:
    agent = kit.client("agent", projects=["trips"])
    entry = {"kind": "tool-call", "scope": {"projectId": "trips"}}
    body_of(agent.post("/v1/memory/runs/trip/log", entry), 201)
    auditor = windows.of(person(kit, "auditor"))
    page = auditor.open("audit/runs/")
    page.get_by_label("Holds a").select_option("wait-resumed")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("Nothing matches").wait_for()
    page.go_back()
    page.get_by_role("link", name="trip", exact=True).wait_for()
    assert page.locator("header.bar").count() == 1
    auditor.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    assert page.locator("#results").count() == 0


def test_shortcuts_move_through_rows_and_can_be_turned_off(
    windows: Windows, kit: TenantKit
) -> None:
    agent = kit.client("agent", projects=["trips"])
    entries = [{"kind": "tool-call", "scope": {"projectId": "trips"}}] * 3
    body_of(agent.post("/v1/memory/runs/trip/log/batch", {"entries": entries}), 201)
    auditor = windows.of(person(kit, "auditor"))
    page = auditor.open("audit/run/trip/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.get_by_role("heading", name="Entry #1").wait_for()
    auditor.person.post("settings/", {"time_zone": "", "theme": ""})
    page = auditor.open("audit/run/trip/")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.body")


def test_what_takes_long_says_so_and_takes_the_word_back(windows: Windows, kit: TenantKit) -> None:
    auditor = windows.of(person(kit, "auditor"))
    page = auditor.open("audit/runs/")
    held: list[Route] = []
    page.route("**/audit/runs/?**", lambda route: held.append(route))
    page.get_by_role("button", name="Filter").click()
    status = page.locator("#status")
    expect(status).to_have_text("Still working…")
    held[0].continue_()
    expect(status).to_have_text("")


def test_next_and_previous_keys_stay_inside_the_filter(windows: Windows, kit: TenantKit) -> None:
    """U20."""
    agent = kit.client("agent", projects=["trips"])
    entries = [
        {"kind": "tool-call", "scope": {"projectId": "trips"}, "actor": actor}
        for actor in ("a", "b", "a", "b", "a")
    ]
    body_of(agent.post("/v1/memory/runs/trip/log/batch", {"entries": entries}), 201)
    page = windows.of(person(kit, "auditor")).open("audit/run/trip/?actor=a")
    page.keyboard.press("j")
    page.keyboard.press("o")
    for number in (0, 2, 4):
        page.get_by_role("heading", name=f"Entry #{number}").wait_for()
        assert page.url.endswith("actor=a")
        page.keyboard.press("]")
    page.keyboard.press("[")
    page.get_by_role("heading", name="Entry #2").wait_for()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_two_taps_on_a_phone_forget_once_and_undo_brings_it_back(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    """U11."""
    app = kit.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records", a_record("aisle")), 201)
    ann = windows.of(person(kit, "person", subject="ann"), width=360, scripts=scripts, touch=True)
    page = ann.open("memory/")
    page.get_by_role("link", name="Forget travel › seat").tap()
    assert recalled(kit)["value"] == "aisle"  # the first tap only asks
    button = page.get_by_role("button", name="Forget this")
    place = button.bounding_box()
    assert place is not None
    for _tap in range(2):
        page.touchscreen.tap(place["x"] + 10, place["y"] + 10)
    page.get_by_role("heading", name="Agents stopped using it").wait_for()
    assert recalled(kit)["decision"] == "none"
    page.get_by_role("button", name="Undo").tap()
    page.get_by_role("heading", name="Done").wait_for()
    assert recalled(kit)["value"] == "aisle"
