"""What admins do, end to end in Chromium: decide what waits, keep a key, tell a webhook again, take a key's writes out of use.

Each with scripts or without with every change, and both ways before a release.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Windows
from tests.builders import ApiClient, TenantKit
from tests.pages.people import person
from tests.pages.test_webhook_pages import added
from tests.records.builders import a_record, an_inference, body_of
from tests.webhooks.receiver import Receiver, tell

pytestmark = pytest.mark.browser

Asks = Callable[[], Any]


def by_turns(first: int) -> pytest.MarkDecorator:
    ways = [pytest.param(True, id="with scripts"), pytest.param(False, id="without scripts")]
    chosen = [
        way if at == first else pytest.param(*way.values, marks=pytest.mark.full, id=way.id)
        for at, way in enumerate(ways)
    ]
    return pytest.mark.parametrize("scripts", chosen)


def press(page: Page, name: str) -> None:
    page.locator("main").get_by_role("button", name=name, exact=True).click()


def asks(kit: TenantKit) -> Asks:
    """What an agent is told of Ann's seat."""
    agent = kit.client("agent", users=["ann"])
    asked = {"key": "travel.seat", "context": {"user_id": "ann"}}
    return lambda: body_of(agent.post("/v1/memory/recall", asked), 200)["value"]


@by_turns(0)
def test_what_an_agent_wrote_against_a_persons_word_is_rejected_and_the_next_approved(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    app, agent = kit.client("app", users=["ann"]), kit.client("agent", users=["ann"])
    body_of(app.post("/v1/memory/records", a_record("aisle", level="task")), 201)
    told = asks(kit)
    visitor = windows.of(person(kit, "admin"), scripts=scripts)
    page = visitor.page
    for value, button, then in (
        ("window", "Reject it", "aisle"),
        ("front", "Let it be used", "front"),
    ):
        body_of(agent.post("/v1/memory/records", an_inference(value)), 202)
        page.goto(visitor.url("admin/"))
        page.locator("main").get_by_role("link", name="waits").first.click()
        page.get_by_role("link", name="travel").first.click()
        page.get_by_role("heading", name="What it would change").wait_for()
        assert told() == "aisle"
        page.get_by_role("button", name=button).click()
        page.get_by_text("Nothing waits").wait_for()
        assert told() == then


def token_of(page: Page) -> str:
    page.get_by_role("heading", name="The token, once").wait_for()
    return page.get_by_label("Token of").input_value()


@by_turns(1)
def test_a_key_is_made_bounded_rotated_and_revoked(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    page = windows.of(person(kit, "admin"), scripts=scripts).open("admin/keys/")
    page.get_by_role("link", name="Make a key").click()
    page.get_by_label("Name", exact=True).fill("booker")
    page.get_by_role("textbox", name="Users").fill("ann")
    press(page, "Make the key")
    made = ApiClient(token_of(page))
    note = {"type": "note", "scope": {"userId": "ann"}, "content": "early flights"}
    body_of(made.post("/v1/memory/facts", note), 201)
    page.get_by_role("link", name="I have it").click()
    page.get_by_role("link", name="Set a quota").click()
    page.get_by_label("Writes", exact=True).fill("1")
    page.get_by_label("In each").select_option(label="week")
    press(page, "Save the quota")
    page.get_by_text("0 of 1").wait_for()
    assert [made.post("/v1/memory/facts", note).status_code for _ in range(2)] == [201, 429]
    page.reload()
    page.get_by_text("1 of 1").wait_for()
    page.get_by_role("link", name="Rotate").click()
    page.get_by_label("Hours for which").fill("0")
    press(page, "Rotate the key")
    newer = ApiClient(token_of(page))
    assert made.get("/v1/memory/me").status_code == 401
    assert newer.get("/v1/memory/me").status_code == 200
    page.get_by_role("link", name="I have it").click()
    page.get_by_role("link", name="Revoke").click()
    press(page, "Revoke the key")
    page.get_by_text("Its next request is refused").first.wait_for()
    assert newer.get("/v1/memory/me").status_code == 401


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.KINDMEM_DEVELOPMENT = True
    with Receiver() as listening:
        yield listening


@by_turns(0)
def test_a_webhook_is_told_again_what_it_refused(
    windows: Windows, kit: TenantKit, receiver: Receiver, scripts: bool
) -> None:
    admin = person(kit, "admin")
    path, _secret = added(admin, receiver)
    receiver.answer = lambda heard: (500, {})
    kit.token("auditor")
    tell(kit)
    page = windows.of(admin, scripts=scripts).open(path)
    row = page.get_by_role("row", name="HTTP 500")
    row.wait_for()
    receiver.answer = lambda heard: (200, {})
    row.get_by_role("button", name="Tell again").click()
    page.locator("main").get_by_role("status").or_(page.locator("#status")).first.wait_for()
    tell(kit)
    first, again = receiver.heard
    assert (first.id, first.body) == (again.id, again.body)
    page.reload()
    page.get_by_role("row", name="HTTP 200").wait_for()


@by_turns(1)
def test_what_a_key_wrote_is_taken_out_of_use_and_rolled_back(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    app, bad = kit.client("app", users=["ann"]), kit.client("app", users=["ann"])
    seat = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    wrong = {"new_value": "middle", "context": {"user_id": "ann"}, "broaden": True}
    wrong["context"]["broaden_to"] = {"level": "user", "bindings": {}}  # type: ignore[index]  # a dict
    body_of(bad.post(f"/v1/memory/records/{seat}/correct", {"key": "travel.seat", **wrong}), 201)
    told = asks(kit)
    assert told() == "middle"
    page = windows.of(person(kit, "admin"), scripts=scripts).open("admin/quarantines/")
    page.get_by_role("link", name="Take something out of use").click()
    page.get_by_label("A key").select_option(str(bad.token).split("_")[1])
    press(page, "Show what it is")
    page.get_by_label("Why").fill("It answered a page that gave it orders.")
    press(page, "Take it out of use")
    page.get_by_text("It is out of use").first.wait_for()
    assert told() is None
    page.get_by_role("button", name="Roll it back").click()
    page.get_by_text("Rolled back").first.wait_for()
    assert told() == "aisle"
