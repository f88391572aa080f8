"""Signing in, end to end in Chromium: password, passkey, app codes, recovery codes, single sign-on, sessions, workspaces."""

import re
import time
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.cache import cache
from django.utils import timezone
from playwright.sync_api import Page, expect

from kindmem import single_sign_on
from memory.access import system_principal
from memory.actions.create_member import create_member
from memory.tenancy import tenant_context
from tests.browser.conftest import Visitor, Windows
from tests.browser.issuer import CLIENT_ID, CLIENT_SECRET, Issuer, an_issuer
from tests.builders import TenantKit, make_tenant
from tests.pages.people import PASSWORD, Person, person
from tests.rotation import one_in

pytestmark = pytest.mark.browser

NAMES_OF_WAYS = {"ids": ["with scripts", "without scripts"]}

_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture(autouse=True)
def no_attempts_yet(live_db: None) -> None:
    cache.clear()


@pytest.fixture
def ann(kit: TenantKit) -> Person:
    return person(kit, "person", subject="ann")


def at_the_door(windows: Windows, who: Person, *, scripts: bool = True) -> Visitor:
    """A window of somebody who is not signed in."""
    visitor = windows.of(who, scripts=scripts)
    visitor.context.clear_cookies()
    return visitor


def give_password(page: Page, who: Person, password: str = PASSWORD) -> None:
    page.get_by_label("Email").fill(who.email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def is_in(page: Page) -> None:
    page.get_by_role("heading", name="What is remembered about you").wait_for()


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    page.get_by_role("heading", name="Sign in").wait_for()


def sign_ins(kit: TenantKit) -> int:
    log = kit.client("admin").get("/v1/memory/runs/kindmem.governance/log", {"limit": 200}).json()
    return sum(one["payload"] == {"type": "member.signed-in"} for one in log["data"])


def prove(page: Page) -> None:
    """What sets up a factor asks once more for the password."""
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def with_an_app(page: Page, visitor: Visitor) -> str:
    """Set up codes of an app; the secret that the app would hold."""
    page.goto(visitor.url("settings/"))
    page.get_by_role("link", name="Passkeys and second factor").click()
    page.get_by_role("link", name="Set up an app").click()
    prove(page)
    secret = page.get_by_label("Secret").input_value()
    page.get_by_label("Code").fill(code_of(secret))
    page.get_by_role("button", name="Turn on").click()
    page.get_by_role("heading", name="Recovery codes").wait_for()
    return secret


def test_a_passkey_opens_the_account_without_a_password_until_it_is_taken_away(
    windows: Windows, ann: Person
) -> None:
    window = at_the_door(windows, ann)
    page = window.page
    cdp = window.context.new_cdp_session(page)
    cdp.send("WebAuthn.enable")
    cdp.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
    give_password(window.open("memory/"), ann)
    is_in(page)
    page.goto(window.url("settings/"))
    page.get_by_role("link", name="Passkeys and second factor").click()
    page.get_by_role("link", name="Add a passkey").click()
    prove(page)
    page.get_by_label("Name").fill("My laptop")
    page.get_by_role("button", name="Add the passkey").click()
    page.get_by_role("heading", name="Recovery codes").wait_for()
    sign_out(page)
    before = sign_ins(ann.kit)
    page.get_by_role("button", name="Sign in with a passkey").click()
    is_in(page)
    assert sign_ins(ann.kit) == before + 1
    page.goto(window.url("/account/2fa/webauthn/"))
    page.get_by_role("rowheader", name="My laptop").wait_for()
    page.get_by_role("link", name="Remove").click()
    page.get_by_role("link", name="Use a passkey").click()
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_text("No passkey").wait_for()
    sign_out(page)
    window.allowed = ["status of 4"]
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator("main")).to_contain_text("passkey")
    page.wait_for_timeout(300)
    assert page.get_by_role("heading", name="What is remembered about you").count() == 0


@pytest.mark.parametrize("scripts", one_in(2, [True, False]), **NAMES_OF_WAYS)
def test_a_code_of_an_app_is_asked_after_the_password_and_opens_once(
    windows: Windows, ann: Person, scripts: bool
) -> None:
    window = at_the_door(windows, ann, scripts=scripts)
    page = window.page
    give_password(window.open("memory/"), ann)
    is_in(page)
    secret = with_an_app(page, window)
    sign_out(page)
    with time_machine.travel(timezone.now() + timedelta(minutes=2), tick=True):
        give_password(page, ann)
        page.get_by_role("heading", name="Second factor").wait_for()
        page.goto(window.url("memory/"))  # the password alone opens nothing
        page.get_by_role("heading", name="Second factor").wait_for()
        page.get_by_label("Code").fill("000000")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Incorrect code").first.wait_for()
        used = code_of(secret)
        page.get_by_label("Code").fill(used)
        page.get_by_role("button", name="Sign in").click()
        is_in(page)
        sign_out(page)
        give_password(page, ann)
        page.get_by_label("Code").fill(used)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Incorrect code").first.wait_for()


@pytest.mark.full
def test_a_recovery_code_opens_once_in_place_of_the_app(windows: Windows, ann: Person) -> None:
    window = at_the_door(windows, ann)
    page = window.page
    give_password(window.open("memory/"), ann)
    is_in(page)
    with_an_app(page, window)
    codes = page.get_by_label("Unused codes").input_value().split()
    assert len(codes) == len(set(codes)) == 10
    for attempt, expected in (("first", True), ("second", False)):
        sign_out(page) if attempt == "first" else None
        give_password(page, ann)
        page.get_by_label("Code").fill(codes[0])
        page.get_by_role("button", name="Sign in").click()
        if expected:
            is_in(page)
            sign_out(page)
        else:
            page.get_by_text("Incorrect code").first.wait_for()


def by_single_sign_on(page: Page, visitor: Visitor) -> None:
    page.goto(visitor.url("/account/login/"))
    page.get_by_role("link", name="Sign in with Acme ID").click()
    page.get_by_role("button", name="Go on").click()


def trust(settings: Any, issuer: Issuer) -> None:
    """The issuer as an operator configures it."""
    settings.SOCIALACCOUNT_PROVIDERS = single_sign_on.providers(
        issuer.url + "/", name="Acme ID", client_id=CLIENT_ID, secret=CLIENT_SECRET
    )
    policy = settings.CONTENT_SECURITY_POLICY
    targets = ["'self'", *single_sign_on.origins(issuer.url)]
    directives = {**policy["DIRECTIVES"], "form-action": targets}
    settings.CONTENT_SECURITY_POLICY = {**policy, "DIRECTIVES": directives}


@pytest.mark.parametrize("scripts", one_in(2, [True, False], first=1), **NAMES_OF_WAYS)
def test_single_sign_on_opens_the_account_of_the_address_and_leaves_its_password(
    windows: Windows, ann: Person, settings: Any, scripts: bool
) -> None:
    window = at_the_door(windows, ann, scripts=scripts)
    with an_issuer(sub=ann.email, email=ann.email.upper(), email_verified=True) as issuer:
        trust(settings, issuer)
        before = sign_ins(ann.kit)
        for _again in range(2):
            by_single_sign_on(window.page, window)
            is_in(window.page)
            sign_out(window.page)
        assert sign_ins(ann.kit) == before + 2
        assert issuer.refusals == []
    give_password(window.open("memory/"), ann)
    is_in(window.page)


@pytest.mark.parametrize(
    ("whose", "is_vouched_for"), [("ann", False), ("a stranger", True)], ids=str
)
def test_single_sign_on_opens_nothing_without_the_issuers_word_and_makes_no_account(
    windows: Windows, ann: Person, settings: Any, whose: str, is_vouched_for: bool
) -> None:
    window = at_the_door(windows, ann)
    email = ann.email if whose == "ann" else f"stranger-{ann.email}"
    with an_issuer(sub=f"x-{ann.email}", email=email, email_verified=is_vouched_for) as issuer:
        trust(settings, issuer)
        by_single_sign_on(window.page, window)
        window.page.get_by_role("heading", name="No account here").wait_for()
    window.open("memory/").get_by_role("heading", name="Sign in").wait_for()


def test_who_has_no_password_proves_who_they_are_with_the_issuer(
    windows: Windows, kit: TenantKit, settings: Any
) -> None:
    email = f"zoe@{kit.slug}.example"
    with tenant_context(kit.id):
        operator = system_principal(kit.id, kit.slug, id="tests")
        made = create_member(principal=operator, email=email, role="person", subject="zoe")
    zoe = Person(kit, "person", made.user_id, email, "zoe")
    window = at_the_door(windows, person(kit, "auditor"))
    window.person, window.allowed = zoe, ["status of 403"]
    page = window.page
    with an_issuer(sub=email, email=email, email_verified=True) as issuer:
        trust(settings, issuer)
        by_single_sign_on(page, window)
        is_in(page)
        with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=True):
            page.goto(window.url("downloads/"))
            page.get_by_role("button", name="Download").click()
            page.get_by_role("heading", name="Is it you?").wait_for()
            with window.context.expect_page() as opened:
                page.get_by_role("link", name="Prove it in a new tab").click()
            proof = opened.value
            window.watch(proof)
            proof.get_by_role("button", name="Go on").click()
            proof.get_by_role("heading", name="It is you").wait_for()
            page.goto(window.url("downloads/"))
            with page.expect_download() as taken:
                page.get_by_role("button", name="Download").click()
            assert taken.value.suggested_filename.endswith(".jsonl")


def test_after_five_wrong_passwords_the_right_one_waits_too(windows: Windows, ann: Person) -> None:
    window = at_the_door(windows, ann)
    page = window.open("memory/")
    for _attempt in range(5):
        give_password(page, ann, "not this one at all")
        page.get_by_text("not correct").first.wait_for()
    window.allowed = ["status of 429"]
    give_password(page, ann)
    page.get_by_text("Too many failed tries. Try again in 5 minutes.").first.wait_for()
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=True):
        cache.clear()  # the database's own clock stands still meanwhile
        give_password(page, ann)
        is_in(page)


@pytest.mark.full
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_one_other_browser_is_signed_out_and_this_one_and_the_third_go_on(
    windows: Windows, ann: Person, scripts: bool
) -> None:
    here, there, third = (at_the_door(windows, ann, scripts=scripts) for _ in range(3))
    for window in (there, here, third):
        give_password(window.open("memory/"), ann)
        is_in(window.page)
    page = here.page
    page.goto(here.url("/account/sessions/"))
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(3)
    rows.nth(0).get_by_role("button", name="Sign out").click()
    page.get_by_text("That browser is signed out").wait_for()
    expect(rows).to_have_count(2)
    there.open("memory/").get_by_role("heading", name="Sign in").wait_for()
    is_in(here.open("memory/"))
    is_in(third.open("memory/"))


@pytest.mark.full
def test_a_new_password_ends_every_other_session(windows: Windows, ann: Person) -> None:
    here, there = at_the_door(windows, ann), at_the_door(windows, ann)
    for window in (here, there):
        give_password(window.open("memory/"), ann)
        is_in(window.page)
    page = here.page
    page.goto(here.url("settings/"))
    page.get_by_role("link", name="Change the password").click()
    page.get_by_label("Current Password").fill(PASSWORD)
    page.get_by_label("New Password", exact=True).fill("quite another one 7")
    page.get_by_label("New Password (again)").fill("quite another one 7")
    page.get_by_role("button", name="Change the password").click()
    page.get_by_text("Password successfully changed").wait_for()
    is_in(here.open("memory/"))
    there.open("memory/").get_by_role("heading", name="Sign in").wait_for()
    give_password(there.page, ann)
    there.page.get_by_text("not correct").first.wait_for()
    give_password(there.page, ann, "quite another one 7")
    is_in(there.page)


@pytest.mark.full
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_member_of_two_workspaces_switches_and_each_shows_its_own(
    windows: Windows, ann: Person, scripts: bool
) -> None:
    other = make_tenant()
    with tenant_context(other.id):
        operator = system_principal(other.id, other.slug, id="tests")
        create_member(principal=operator, email=ann.email, role="auditor")
    window = at_the_door(windows, ann, scripts=scripts)
    page = window.open("/account/login/")
    give_password(page, ann)
    page.get_by_role("heading", name="Your workspaces").wait_for()
    page.get_by_role("link", name=re.compile(other.slug, re.I)).click()
    page.get_by_role("heading", name="Runs").wait_for()
    assert page.locator("#tenant").inner_text().startswith(other.slug.title())
    page.get_by_role("link", name="Switch").click()
    page.get_by_role("link", name=re.compile(ann.kit.slug, re.I)).click()
    is_in(page)
    assert f"/t/{ann.kit.slug}/" in page.url
