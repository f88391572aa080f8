"""What pages show besides the usual: an empty workspace, a proof asked for, a session that ended, a form that was refused, a
failure. Each is reached as a reader reaches it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.db import OperationalError
from playwright.sync_api import Page

from corrections.page_links import make_page_link
from corrections.views import me_receipts
from memory.access import system_principal
from memory.actions.create_member import create_member
from memory.tenancy import tenant_context
from tests.browser.conftest import Visitor
from tests.builders import TenantKit, make_tenant
from tests.lifecycle.test_holds import place
from tests.pages.people import PASSWORD, Person, person, stranger
from tests.records.builders import a_record, an_inference, body_of

SEND = "main form button.primary, main form button.danger"


@dataclass(frozen=True)
class State:
    """reach: from the page at the path to the state."""

    reader: Person
    path: str
    reach: Callable[[Page], None] = lambda page: None


def sent(**fields: str) -> Callable[[Page], None]:
    """The form filled in by its fields' names, and sent."""

    def reach(page: Page) -> None:
        for name, text in fields.items():
            page.locator(f"main [name='{name}']").first.fill(text)
        press(page)

    return reach


def press(page: Page) -> None:
    with page.expect_navigation():
        page.locator(SEND).first.click()


def states(kit: TenantKit, superuser_url: str) -> dict[str, State]:
    ann, admin, auditor = (
        person(kit, "person", subject="ann"),
        person(kit, "admin"),
        person(kit, "auditor"),
    )
    return {
        **_of_forms(kit, ann, admin),
        **_of_sessions(kit, ann, admin),
        **_of_refusals(kit, ann),
        **_of_evidence(kit, auditor, superuser_url),
        **_of_nothing(),
    }


def _guess(kit: TenantKit, key: str) -> str:
    agent = kit.client("agent", users=["ann"])
    guess = an_inference("aisle", key=key, bindings={"trip_id": "PUNE"})
    return str(body_of(agent.post("/v1/memory/records", guess), 201)["id"])


def _of_forms(kit: TenantKit, ann: Person, admin: Person) -> dict[str, State]:
    app = kit.client("app", users=["ann"])
    seat = body_of(app.post("/v1/memory/records", a_record("aisle", key="food.seat")), 201)["id"]
    changed, disputed = _guess(kit, "a.changed"), _guess(kit, "a.disputed")
    ann.post(f"memory/{disputed}/correct/dispute", {"statement": "I never said so."})

    def second(page: Page) -> None:
        page.locator("main [name='new_value']").fill("front row")
        ann.post(f"memory/{changed}/correct/fix-value", {"new_value": "window"})
        press(page)

    def widened(page: Page) -> None:
        page.locator("main [name='new_value']").fill("window")
        with page.expect_navigation():
            page.locator("main button[formaction]").click()

    def widened_wrongly(page: Page) -> None:
        widened(page)
        page.locator("main [name='count']").fill("7")
        press(page)

    sent_twice = _guess(kit, "a.twice")

    def another_text(page: Page) -> None:
        once = page.locator("main [name='once']").first.get_attribute("value") or ""
        fields = {"new_value": "window", "expect": sent_twice, "once": once}
        ann.post(f"memory/{sent_twice}/correct/fix-value", fields)
        sent(new_value="front row")(page)

    fix = f"memory/{seat}/correct/fix-value"
    return {
        "sent-already": State(ann, f"memory/{sent_twice}/correct/fix-value", another_text),
        "fix-refused": State(ann, fix, _without_checks(press)),
        "conflict": State(ann, f"memory/{changed}/correct/fix-value", second),
        "disputed-already": State(
            ann, f"memory/{disputed}/correct/dispute", sent(statement="Not at all.")
        ),
        "memory-disputed": State(ann, f"memory/{disputed}/"),
        "widen-preview": State(ann, fix, widened),
        "widen-again": State(ann, fix, widened_wrongly),
        "key-refused": State(admin, "admin/keys/new", _without_checks(sent(name="no spaces here"))),
        "key-once": State(admin, "admin/keys/new", sent(name="booker", users="ann")),
        "erasure-preview": State(admin, "admin/erasures/new", sent(selector="ann")),
        "hold-refused": State(admin, "admin/holds/new/", _without_checks(press)),
    }


def _without_checks(act: Callable[[Page], None]) -> Callable[[Page], None]:
    """As from a browser that checks nothing itself."""

    def reach(page: Page) -> None:
        page.locator("main form").evaluate_all(
            "forms => forms.forEach(one => one.noValidate = true)"
        )
        act(page)

    return reach


def _of_sessions(kit: TenantKit, ann: Person, admin: Person) -> dict[str, State]:
    record = _guess(kit, "a.session")
    fix = f"memory/{record}/correct/fix-value"
    late = person(kit, "admin")
    session = late.browser.session
    del session["account_authentication_methods"]
    session.save()
    two, codes = person(kit, "person", subject="bo"), person(kit, "auditor")
    other = make_tenant()
    with tenant_context(other.id):
        operator = system_principal(other.id, other.slug, id="tests")
        create_member(principal=operator, email=two.email, role="auditor")
    with tenant_context(kit.id):
        link = make_page_link(principal=kit.principal("app", users=["ann"]), subject="ann")

    def signed_out(page: Page) -> None:
        page.locator("main [name='new_value']").fill("window")
        page.context.clear_cookies(name="sessionid")
        press(page)

    def kept(page: Page) -> None:
        signed_out(page)
        page.locator("main a.button.primary").click()
        page.locator("[name='login']").fill(ann.email)
        page.locator("[name='password']").fill(PASSWORD)
        press(page)

    def stale(page: Page) -> None:
        page.locator("main [name='new_value']").fill("window")
        page.locator("main [name='csrfmiddlewaretoken']").first.evaluate(
            "one => one.value = 'x'.repeat(64)"
        )
        press(page)

    def with_codes(page: Page) -> None:
        secret = page.locator("#secret").input_value()
        code = format_hotp_value(hotp_value(secret, int(time.time()) // 30))
        page.locator("main [name='code']").fill(code)
        press(page)

    def wrong(page: Page) -> None:
        page.locator("[name='login']").fill(ann.email)
        page.locator("[name='password']").fill("not this one at all")
        press(page)

    def asked_for_a_code(page: Page) -> None:
        page.locator("[name='login']").fill(codes.email)
        page.locator("[name='password']").fill(PASSWORD)
        press(page)

    return {
        "prove-first": State(late, "admin/members/new", sent(email="a@example.com", subject="zoe")),
        "proved": State(admin, "proved/"),
        "signed-out": State(ann, fix, signed_out),
        "kept-form": State(ann, fix, kept),
        "stale-form": State(ann, fix, stale),
        "sign-in-wrong": State(stranger(kit), "/account/login/", wrong),
        "page-link-valid": State(stranger(kit), link.path),
        "sign-out": State(two, "/account/logout/"),
        "workspaces": State(two, "/tenants/"),
        "recovery-codes": State(codes, "/account/2fa/totp/activate/", with_codes),
        "second-factor-on": State(codes, "/account/2fa/"),
        "second-factor-asked": State(stranger(kit), "/account/login/", asked_for_a_code),
        "prove-by-code": State(codes, "/account/2fa/reauthenticate/"),
    }


def _of_refusals(kit: TenantKit, ann: Person) -> dict[str, State]:
    owner = person(kit, "owner")
    aside = _guess(kit, "a.aside")
    ann.post(f"memory/{aside}/correct/wrong-person")
    cat, app = person(kit, "person", subject="cat"), kit.client("app", users=["cat"])
    held, sealed = (
        body_of(app.post("/v1/memory/records", a_record("aisle", subject="cat", key=key)), 201)[
            "id"
        ]
        for key in ("food.held", "food.sealed")
    )
    place(kit, subject_ids=("cat",))
    receipt = cat.post(f"memory/{sealed}/correct/forget")["Location"]
    members = owner.get("admin/members/?role=owner").content.decode()
    own = (
        members.split(f'href="{owner.path("admin/members/")}')[-1]
        .split('"')[0]
        .split("?")[0]
        .strip("/")
    )

    @contextmanager
    def broken(error: Exception) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(me_receipts, "my_receipts", _raising(error))
            yield

    def fails(error: Exception) -> Callable[[Page], None]:
        def reach(page: Page) -> None:
            with broken(error):
                page.reload()

        return reach

    return {
        "memory-set-aside": State(ann, f"memory/{aside}/"),
        "memory-held": State(cat, f"memory/{held}/"),
        "forget-held": State(cat, f"memory/{held}/correct/forget"),
        "fix-held": State(cat, f"memory/{held}/correct/out-of-date", press),
        "memory-sealed": State(cat, f"memory/{sealed}/"),
        "receipt-sealed": State(cat, receipt),
        "close-refused": State(owner, "admin/workspace/close", sent(slug=kit.slug)),
        "last-owner": State(owner, f"admin/members/{own}/end", press),
        "not-available": State(ann, "receipts/", fails(OperationalError("gone"))),
        "failed": State(ann, "receipts/", fails(RuntimeError("no"))),
        "takes-no-get": State(ann, "switch"),
    }


def _raising(error: Exception) -> Callable[..., None]:
    def fail(*given: object, **named: object) -> None:
        raise error

    return fail


def _of_evidence(kit: TenantKit, auditor: Person, superuser_url: str) -> dict[str, State]:
    agent = kit.client("agent", projects=["trips"])
    entries = [
        {"id": f"{kit.slug}-{number}", "kind": "tool-call", "scope": {"projectId": "trips"}, "payload": {"step": number}}
        for number in range(6)
    ]  # fmt: skip
    body_of(agent.post("/v1/memory/runs/broken/log/batch", {"entries": entries}), 201)
    body_of(agent.post("/v1/memory/runs/live/log", {**entries[0], "id": None} | {"id": f"{kit.slug}-live"}), 201)  # fmt: skip
    with psycopg.connect(superuser_url, autocommit=True) as attacker:
        attacker.execute("ALTER TABLE log_entry DISABLE TRIGGER USER")
        attacker.execute(
            "UPDATE log_entry SET payload_text = '{\"step\":99}' WHERE id = %s", [f"{kit.slug}-4"]
        )
        attacker.execute("ALTER TABLE log_entry ENABLE TRIGGER USER")

    def news(page: Page) -> None:
        entry = {"kind": "tool-call", "scope": {"projectId": "trips"}}
        body_of(agent.post("/v1/memory/runs/live/log/batch", {"entries": [entry] * 7}), 201)
        page.evaluate(
            "htmx.ajax('GET', document.querySelector('#live').getAttribute('hx-get'), '#live')"
        )
        page.locator("#live a").wait_for()

    return {
        "result-broken": State(auditor, "audit/run/broken/verify/", press),
        "run-news": State(auditor, "audit/run/live/", news),
    }


def _of_nothing() -> dict[str, State]:
    """A workspace in which nothing has happened yet."""
    empty = make_tenant()
    ann, admin = person(empty, "person", subject="ann"), person(empty, "admin")
    of_ann = ("memory", "facts", "receipts", "register", "downloads")
    of_admin = (
        *("keys", "holds", "retention", "sweeps", "erasures", "types", "sources", "reviews"),
        *("quarantines", "webhooks", "routes"),
    )
    of_audit = ("health", "runs", "verifications", "evidence", "facts", "access")
    return {
        **{f"empty-{one}": State(ann, f"{one}/") for one in of_ann},
        "empty-admin": State(admin, "admin/"),
        **{f"empty-admin-{one}": State(admin, f"admin/{one}/") for one in of_admin},
        **{f"empty-audit-{one}": State(admin, f"audit/{one}/") for one in of_audit},
    }


def reached(view: Visitor, state: State) -> Page:
    page = view.open(state.path)
    state.reach(page)
    page.wait_for_load_state()
    return page
