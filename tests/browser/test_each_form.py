"""Each form that acts, in Chromium: pressed twice, reloaded, gone back from, and sent from two tabs it acts once and says so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visitor, Windows
from tests.builders import ApiClient, TenantKit
from tests.pages.people import Person, person
from tests.records.builders import an_inference, body_of

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Form:
    """How one form is filled in and sent. ends: what the page that follows shows. entries: what is on record of it."""

    who: str
    path: str
    button: str
    ends: str
    fields: dict[str, str] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)
    entries: int = 1

    def fill(self, page: Page) -> None:
        for label, text in self.fields.items():
            page.get_by_label(label, exact=True).fill(text)
        for label, value in self.choices.items():
            page.get_by_label(label, exact=True).select_option(value)

    def button_on(self, page: Page) -> Any:
        return page.locator("main").get_by_role("button", name=self.button, exact=True).first


FORMS: dict[str, Form] = {
    "fix": Form("ann", "memory/{0}/correct/fix-value", "Save for this case", "Done",
                {"What is right": "window"}),
    "out of date": Form("ann", "memory/{1}/correct/out-of-date", "It used to be true", "Done"),
    "not about me": Form("ann", "memory/{2}/correct/wrong-person", "Not about me", "Done"),
    "disagree": Form("ann", "memory/{3}/correct/dispute", "I disagree", "Done",
                     {"What is wrong with it?": "I never said so"}),
    "forget": Form("ann", "memory/{4}/correct/forget", "Forget this", "Agents stopped using it"),
    "no more guessing": Form("ann", "memory/{5}/correct/never-infer", "Don't guess this about me", "Done"),
    "confirm": Form("ann", "memory/{6}/correct/confirm", "That's right", "Confirmed by you"),
    "check a fact": Form("ann", "facts/{fact}/", "That's right", "Checked. Thank you."),
    "remove a fact": Form("ann", "facts/{fact}/remove", "Remove it", "No agent reads it any more.", entries=0),
    "switch": Form("ann", "memory/", "Turn off", "Agents may not remember new guesses"),
    "reveal an entry": Form("auditor", "audit/e/trip/0/", "Reveal", "Your reveal is in the access log",
                            choices={"Reason": "complaint"}),
    "reveal a memory": Form("auditor", "audit/record/{0}/", "Reveal", "aisle",
                            choices={"Reason": "complaint"}),
    "reveal a fact": Form("auditor", "audit/fact/{fact}/", "Reveal", "Rome",
                          choices={"Reason": "complaint"}),
    "verify": Form("auditor", "audit/run/trip/verify/", "Verify now", "Intact"),
    "add a route": Form("admin", "admin/routes/new", "Save", "ask-finance",
                        {"Name": "ask-finance", "What people read": "Ask finance"}),
}  # fmt: skip


@dataclass
class Stage:
    """Things to act on, who acts, and how often something was done."""

    log: ApiClient
    people: dict[str, Person]
    ids: list[str]
    fact: str

    def path(self, form: Form) -> str:
        return form.path.format(*self.ids, fact=self.fact)

    def done(self) -> int:
        """How many acts are on record; each form makes one."""
        told = self.log.get("/v1/memory/runs/kindmem.governance/log", {"limit": 200})
        return len(body_of(told, 200)["data"])


def stage(kit: TenantKit) -> Stage:
    agent = kit.client("agent", users=["ann"], projects=["trips"])
    guesses = [
        an_inference("aisle", key=f"travel.choice_{number}", bindings={"trip_id": "PUNE"})
        for number in range(7)
    ]
    ids = [str(body_of(agent.post("/v1/memory/records", one), 201)["id"]) for one in guesses]
    app = kit.client("app", users=["ann"])
    fact = {"type": "home", "scope": {"userId": "ann"}, "content": {"city": "Rome"}}
    made = str(body_of(app.post("/v1/memory/facts", fact), 201)["id"])
    entry = {"kind": "tool-call", "scope": {"projectId": "trips"}, "payload": {"step": 1}}
    body_of(agent.post("/v1/memory/runs/trip/log", entry), 201)
    people = {
        "ann": person(kit, "person", subject="ann"),
        "auditor": person(kit, "auditor"),
        "admin": person(kit, "admin"),
    }
    return Stage(kit.client("admin"), people, ids, made)


def opened(windows: Windows, scene: Stage, *, scripts: bool) -> Callable[[Form], Visitor]:
    views: dict[str, Visitor] = {}

    def of(form: Form) -> Visitor:
        if form.who not in views:
            views[form.who] = windows.of(scene.people[form.who], scripts=scripts)
        return views[form.who]

    return of


def is_whole(page: Page) -> None:
    assert page.locator("header.bar").count() == 1
    assert page.locator("h1").count() == 1
    assert "Something went wrong" not in page.locator("main").inner_text()


# With every change half of the forms, with scripts others than without; all of them, both ways, before a release.
ONE_HALF, OTHER_HALF, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)
FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("scripts", "share"),
    [
        pytest.param(True, OTHER_HALF, id="with scripts-one half"),
        pytest.param(False, ONE_HALF, id="without scripts-other half"),
        pytest.param(True, ALL, marks=FULL, id="with scripts-all"),
        pytest.param(False, ALL, marks=FULL, id="without scripts-all"),
    ],
)
def test_pressed_twice_it_acts_once_and_neither_reload_nor_back_acts_again(
    windows: Windows, kit: TenantKit, scripts: bool, share: slice
) -> None:
    scene = stage(kit)
    of = opened(windows, scene, scripts=scripts)
    for name, form in list(FORMS.items())[share]:
        window = of(form)
        window.allowed = [
            "status of 404"
        ]  # what is not about the reader is nothing of theirs any more
        page = window.open(scene.path(form))
        form.fill(page)
        before = scene.done()
        form.button_on(page).dblclick()
        page.get_by_text(form.ends).first.wait_for()
        page.wait_for_load_state()
        assert scene.done() == before + form.entries, name
        is_whole(page)
        page.reload()
        is_whole(page)
        page.go_back()
        is_whole(page)
        assert scene.done() == before + form.entries, name


@pytest.mark.parametrize(
    "share",
    [pytest.param(ONE_HALF, id="one half"), pytest.param(ALL, marks=FULL, id="all")],
)
def test_from_two_tabs_the_second_is_told_or_led_to_what_the_first_did(
    windows: Windows, kit: TenantKit, share: slice
) -> None:
    scene = stage(kit)
    of = opened(windows, scene, scripts=True)
    repeatable = ("confirm", "switch", "reveal", "verify", "check")
    for name, form in list(FORMS.items())[share]:
        window = of(form)
        window.allowed = ["status of 409", "status of 422", "status of 404"]
        first, second = window.page, window.context.new_page()
        window.watch(second)
        for tab in (first, second):
            tab.goto(window.url(scene.path(form)))
            form.fill(tab)
        before = scene.done()
        form.button_on(first).click()
        first.get_by_text(form.ends).first.wait_for()
        form.button_on(second).click()
        second.wait_for_load_state("networkidle")
        is_whole(second)
        if not name.startswith(repeatable):
            assert scene.done() == before + form.entries, name
        second.close()


def test_two_who_govern_correct_the_same_and_the_second_sees_what_the_first_saved(
    windows: Windows, kit: TenantKit
) -> None:
    app = kit.client("app", everything=True)
    subject = {"type": "project", "id": "apollo"}
    given = an_inference("DE-1", subject=subject, level="project", bindings={"site_id": "s"})
    given["source"]["type"] = "user_stated"
    made = body_of(app.post("/v1/memory/records", given), 201)["id"]
    path = f"memory/{made}/correct/fix-value"
    one, other = windows.of(person(kit, "owner")), windows.of(person(kit, "admin"))
    other.allowed = ["status of 409"]
    for window, value in ((one, "DE-2"), (other, "DE-3")):
        window.open(path).get_by_label("What is right").fill(value)
    one.page.get_by_role("button", name="Save for this case").click()
    one.page.get_by_text("The receipt is").first.wait_for()
    other.page.get_by_role("button", name="Save for this case").click()
    other.page.get_by_role("heading", name="Somebody changed this meanwhile").wait_for()
    assert other.page.get_by_label("What is right").input_value() == "DE-3"
    assert other.page.locator("ins", has_text="DE-2").count() == 1
    body = {"key": "travel.seat", "context": {"site_id": "s"}, "subject": subject}
    assert body_of(app.post("/v1/memory/recall", body), 200)["value"] == "DE-2"
    other.page.get_by_role("button", name="Use mine").click()
    other.page.get_by_text("The receipt is").first.wait_for()
    assert body_of(app.post("/v1/memory/recall", body), 200)["value"] == "DE-3"
