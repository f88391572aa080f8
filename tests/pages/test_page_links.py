"""An app's key makes a link over the API; the person opens it and corrects, without an account."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.utils import timezone

from memory.access import system_principal
from memory.actions.run_erasure import run_due_erasures
from memory.tenancy import tenant_context
from tests.api.makers import Place, record_body
from tests.builders import ApiClient, TenantKit
from tests.lifecycle.test_erasure import rows_that_say
from tests.pages.people import text_of


def made(client: ApiClient, subject: str = "dana", **headers: str) -> dict[str, Any]:
    answer = client.request("POST", "/v1/memory/page-links", {"subject": subject}, **headers)
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def opened(link: dict[str, Any]) -> Client:
    """A browser without an account that followed the link."""
    browser = Client()
    path = link["url"].removeprefix("http://localhost:8000")
    assert "Open my pages" in text_of(browser.get(path))
    assert browser.post(path, follow=True).status_code == 200
    return browser


def links_kept(acme: TenantKit) -> int:
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM page_link WHERE tenant_id = %s::uuid", [acme.id])
        return int(cursor.fetchone()[0])


def test_a_link_opens_the_correction_page_of_what_the_app_wrote(acme: TenantKit) -> None:
    app = acme.client("app", users=["dana"])
    body = record_body(Place(app, user="dana", canary="aisle"))
    record = app.post("/v1/memory/records", body).json()
    link = made(app)
    assert link["subject"] == "dana"
    assert link["expires_at"].endswith("Z")
    browser = opened(link)
    told = app.get(f"/v1/memory/records/{record['id']}/explain").json()
    page = browser.get(told["correction_url"].removeprefix("http://localhost:8000"))
    assert page.status_code == 200
    assert "aisle" in text_of(page)


def test_a_link_shows_nothing_of_anybody_else(acme: TenantKit) -> None:
    app = acme.client("app", users=["dana", "eve"])
    body = record_body(Place(app, user="eve", canary="a secret of eve"))
    record = app.post("/v1/memory/records", body).json()
    browser = opened(made(app))
    page = browser.get(f"/t/{acme.slug}/memory/{record['id']}/", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "a secret of eve" not in text_of(browser.get(f"/t/{acme.slug}/memory/"))


def test_a_link_ends_after_fifteen_minutes_and_its_row_goes_with_the_next_one(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["dana"])
    browser = opened(made(app))
    with time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False):
        assert browser.get(f"/t/{acme.slug}/memory/").status_code == 302
        made(app)
        assert links_kept(acme) == 1


@pytest.mark.parametrize("role", ["agent", "admin", "auditor"])
def test_only_an_apps_key_gets_a_link(acme: TenantKit, role: str) -> None:
    answer = acme.client(role).post("/v1/memory/page-links", {"subject": "dana"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "permission-denied"
    assert links_kept(acme) == 0


def test_an_app_without_the_person_gets_what_it_gets_for_nobody(acme: TenantKit) -> None:
    app = acme.client("app", users=["dana"])
    answers = [app.post("/v1/memory/page-links", {"subject": who}) for who in ("eve", "nobody")]
    assert [one.status_code for one in answers] == [404, 404]
    assert len({one.json()["error"]["message"] for one in answers}) == 1


def test_a_retried_request_gets_the_same_link(acme: TenantKit) -> None:
    app = acme.client("app", users=["dana"])
    first = made(app, Idempotency_Key="once")
    assert made(app, Idempotency_Key="once") == first
    assert links_kept(acme) == 1


def test_making_a_link_is_an_entry_of_governance_without_the_person_or_the_token(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["dana"])
    link = made(app)
    log = acme.client("admin").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    (entry,) = [one for one in log if one["payload"]["type"] == "page-link.made"]
    assert set(entry["payload"]) == {"type", "pageLinkId"}
    assert link["url"].rsplit("/", 2)[-2] not in str(log)


def test_an_erasure_of_the_person_ends_their_links(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["dana"])
    place = Place(app, user="dana", canary="aisle")
    record = app.post("/v1/memory/records", record_body(place)).json()
    browser = opened(made(app))
    confirm = f"/t/{acme.slug}/memory/{record['id']}/correct/confirm"
    page = browser.get(confirm).content.decode()
    once = page.split('name="once" value="', 1)[1].split('"', 1)[0]
    assert browser.post(confirm, {"once": once, "expect": record["id"]}).status_code == 302
    assert rows_that_say(acme, "dana").keys() >= {"page_link", "page_form"}
    subject = {"subject": {"kind": "user", "id": "dana"}}
    assert acme.client("admin").post("/v1/memory/erasures", subject).status_code == 202
    run_due_erasures(system_principal(acme.id, acme.slug, id="eraser"))
    # Who confirmed it is in a hashed field of the log, which stays.
    assert rows_that_say(acme, "dana") == {"log_entry": 1}
    assert browser.get(f"/t/{acme.slug}/memory/").status_code == 302
