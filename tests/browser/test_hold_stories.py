"""A legal hold from its placing to its release by two admins, in Chromium, with scripts and without; and what a person reads."""

import pytest

from tests.browser.conftest import Visitor, Windows
from tests.browser.test_stories import recalled
from tests.builders import TenantKit
from tests.lifecycle.facts import age, count, write
from tests.lifecycle.test_holds import place
from tests.lifecycle.test_sweep import sweep
from tests.pages.people import person, settled
from tests.records.builders import a_record, body_of

pytestmark = pytest.mark.browser
BOTH_WAYS = pytest.mark.parametrize(
    "scripts", [True, False], ids=["with scripts", "without scripts"]
)


def placed(admin: Visitor) -> str:
    """Matter, scope, preview, and the press; the hold's address."""
    page = admin.open("admin/holds/")
    page.get_by_role("link", name="Place a hold").click()
    page.get_by_label("Matter").fill("Ann v. Acme")
    page.get_by_role("button", name="On to what is held").click()
    page.get_by_label("People, projects").fill("ann")
    page.get_by_label("Also what is written later").check()
    page.get_by_role("button", name="See what that keeps").click()
    page.get_by_role("heading", name="1 fact, 1 memory").wait_for()
    page.go_back()
    assert page.get_by_label("People, projects").input_value() == "ann"
    page.go_forward()
    page.get_by_label("Reason").fill("A letter from counsel.")
    page.get_by_role("button", name="Place the hold").click()
    page.get_by_text("The hold is in force. It keeps 2 facts and memories.").wait_for()
    return page.url


@BOTH_WAYS
def test_an_admin_places_a_hold_and_releases_it_with_a_second_admin(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    app = kit.client("app", users=["ann"], projects=["p1"])
    body_of(app.post("/v1/memory/records", a_record("aisle")), 201)
    about = {"type": "note", "scope": {"userId": "ann"}, "content": "x", "id": "due"}
    body_of(app.post("/v1/memory/facts", about), 201)
    admin = windows.of(settled(person(kit, "admin")), scripts=scripts)
    second = windows.of(settled(person(kit, "admin")), scripts=scripts)
    where = placed(admin)
    age(kit, "due")
    assert sweep(kit).held == 1
    admin.page.get_by_role("link", name="Ask for its release").click()
    admin.page.get_by_label("Why can it be released?").fill("The case is settled.")
    admin.page.get_by_role("button", name="Ask for the release").click()
    admin.page.get_by_text("another admin decides").wait_for()
    page = second.page
    page.goto(second.url("admin/holds/?state=release-requested"))
    page.get_by_role("link", name="Ann v. Acme").click()
    page.get_by_role("link", name="See what a release does").click()
    page.get_by_role("heading", name="It keeps 1 fact and 1 memory").wait_for()
    assert "Facts that the next sweep destroys\n1" in page.locator("main").inner_text()
    page.get_by_text("The case is settled.").wait_for()
    page.get_by_role("button", name="Release the hold").click()
    page.get_by_text("The hold is released.").wait_for()
    assert page.url == where
    assert sweep(kit).destroyed == 1
    assert count(kit, "legal_hold", "released_at IS NOT NULL") == 1


@BOTH_WAYS
def test_a_person_who_forgets_what_is_held_reads_that_a_sealed_copy_stays(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    app = kit.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records", a_record("aisle")), 201)
    place(kit, subject_ids=("ann",))
    ann = windows.of(person(kit, "person", subject="ann"), scripts=scripts)
    page = ann.open("memory/")
    page.get_by_role("link", name="Forget travel › seat").click()
    page.get_by_text("must be kept for a legal reason").wait_for()
    page.get_by_role("button", name="Forget this").click()
    page.get_by_text("No agent uses it any more. A sealed copy").wait_for()
    assert recalled(kit)["decision"] == "none"
    page.goto(ann.url("memory/?state=sealed"))
    page.get_by_role("link", name="travel › seat").first.click()
    page.get_by_text(
        "A sealed copy is kept for a legal reason, and is erased when that ends"
    ).wait_for()


@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(False, id="without scripts"),
        pytest.param(True, id="with scripts", marks=pytest.mark.full),
    ],
)
def test_a_rule_is_seen_before_it_is_saved_and_a_sweep_is_read_afterwards(
    windows: Windows, kit: TenantKit, scripts: bool
) -> None:
    admin = windows.of(person(kit, "admin"), scripts=scripts)
    age(kit, write(kit, type="mail").id)
    page = admin.open("admin/retention/")
    page.get_by_label("Type of facts").fill("mail")
    page.get_by_role("button", name="Set its rule").click()
    page.get_by_label("Destroy after, in days").fill("30")
    page.get_by_role("button", name="See what that does").click()
    page.get_by_text("destroyed after 30 days").wait_for()
    assert count(kit, "fact_type", "delete_after_days = 30") == 0
    page.get_by_role("button", name="Save this rule").click()
    page.get_by_text("Saved. It is in force").wait_for()
    age(kit, *[write(kit, type="mail").id])
    page.get_by_role("link", name="Sweeps").first.click()
    page.get_by_role("button", name="Dry run now").dblclick()
    page.get_by_role("heading", name="A sweep would destroy").wait_for()
    assert count(kit, "sweep") == 1
    sweep(kit)
    page.goto(admin.url("admin/sweeps/"))
    page.get_by_role("row", name="Done").get_by_role("link").click()
    page.get_by_role("heading", name="destroyed").wait_for()
    page.get_by_role("heading", name="Evidence").wait_for()
