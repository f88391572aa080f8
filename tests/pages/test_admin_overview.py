"""The admin's overview: what waits is counted, led to, and gone when it is done."""

import re
import secrets
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corrections.admin_pages import PAGES
from corrections.waiting import WAITS
from memory.ids import new_id
from memory.models import ApiKey
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.records.builders import a_record, body_of


@pytest.fixture
def admin(acme: TenantKit) -> Person:
    return person(acme, "admin")


def hold(kit: TenantKit, *, review_in_days: int = 30) -> str:
    body = {
        "matter": "Ann v. Acme",
        "reason": "a case",
        "scope": {"facts": [f"fact-{secrets.token_hex(4)}"]},
        "reviewOn": (timezone.now() + timedelta(days=review_in_days)).date().isoformat(),
    }
    return str(body_of(kit.client("admin").post("/v1/memory/legal-holds", body), 201)["id"])


def ask_for_release(kit: TenantKit, hold_id: str, by: Person) -> None:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO hold_release (tenant_id, id, hold_id, reason, requested_by) VALUES (%s, %s, %s, 'over', %s)",
            [kit.id, new_id(), hold_id, f"user:{by.user_id}"],
        )


def test_an_admin_lands_on_the_overview_and_nothing_waits_in_a_new_workspace(admin: Person) -> None:
    assert admin.get("")["Location"] == admin.path("admin/")
    shown = text_of(admin.get("admin/"))
    assert "Nothing waits for you" in shown
    assert "Correction routes" in shown


def test_a_release_waits_for_the_other_admin_and_is_told_apart_from_ones_own(
    acme: TenantKit, admin: Person
) -> None:
    ask_for_release(acme, hold(acme), admin)
    assert "1 release that you asked for waits" in text_of(admin.get("admin/"))
    other = person(acme, "owner")
    assert "1 release of a hold waits for a second admin" in text_of(other.get("admin/"))


def test_a_hold_past_its_review_date_waits(acme: TenantKit, admin: Person) -> None:
    held = hold(acme)
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE legal_hold SET review_on = current_date - 1 WHERE tenant_id = %s AND id = %s",
            [acme.id, held],
        )
    assert "1 hold is past its review date" in text_of(admin.get("admin/"))


def test_an_erasure_that_runs_and_one_that_stopped_wait_apart(
    acme: TenantKit, admin: Person
) -> None:
    asked = acme.client("admin")
    for number in range(3):
        body_of(asked.post("/v1/memory/erasures", {"factId": f"no-{number}"}), 202)
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE erasure SET last_error = 'legal-hold' WHERE tenant_id = %s AND selector_id = 'no-0'",
            [acme.id],
        )
    shown = text_of(admin.get("admin/"))
    assert "1 erasure stopped" in shown
    assert "2 erasures are running" in shown


def test_a_route_waits_until_it_is_configured(acme: TenantKit, admin: Person) -> None:
    app = acme.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records", a_record(route="seat-form")), 201)
    assert "1 correction route is named by memories" in text_of(admin.get("admin/"))
    admin.post("admin/routes/seat-form/", {"label": "Seats", "audience": "person"})
    assert "Nothing waits" in text_of(admin.get("admin/"))


def test_a_key_in_use_waits_when_it_ends_soon_and_one_that_nobody_uses_does_not(
    acme: TenantKit, admin: Person
) -> None:
    acme.client("app").get("/v1/memory/me")
    acme.client("agent")
    keys = ApiKey.objects.filter(tenant_id=acme.id)
    with tenant_context(acme.id):
        keys.update(expires_at=timezone.now() + timedelta(days=10))
    assert "1 key in use ends within two weeks" in text_of(admin.get("admin/"))
    with tenant_context(acme.id):
        keys.update(expires_at=timezone.now() + timedelta(days=20))
    assert "Nothing waits" in text_of(admin.get("admin/"))


def test_a_sweep_that_stopped_waits_for_a_week(acme: TenantKit, admin: Person) -> None:
    with tenant_context(acme.id), connection.cursor() as cursor:
        for days in (1, 8):
            cursor.execute(
                "INSERT INTO sweep (tenant_id, id, is_dry_run, status, started_by, started_at, finished_at, stopped_because) "
                "VALUES (%s, %s, false, 'stopped', 'service:sweeper', now() - make_interval(days => %s), now(), 'clocks-differ')",
                [acme.id, new_id(), days],
            )
    assert "1 sweep of this week stopped" in text_of(admin.get("admin/"))


def test_the_overview_costs_one_statement_for_all_that_waits(admin: Person) -> None:
    admin.get("admin/")
    with CaptureQueriesContext(connection) as asked:
        assert admin.get("admin/").status_code == 200
    statements = [one["sql"] for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12
    assert sum("hold_release" in one for one in statements) == 1


def test_each_admin_page_lists_the_others_and_says_which_it_is(admin: Person) -> None:
    body = admin.get("admin/routes/").content.decode()
    assert f'href="{admin.path("admin/workspace/")}"' in body
    assert f'<a href="{admin.path("admin/routes/")}" aria-current="page">Correction routes' in body
    assert 'class="side"' not in admin.get("settings/").content.decode()


def test_what_waits_leads_to_a_page_of_admins() -> None:
    assert {one.page for one in WAITS} <= {one.page for one in PAGES}


def test_auditors_and_people_have_no_overview(acme: TenantKit) -> None:
    for role in ("auditor", "person"):
        reader = person(acme, role)
        assert reader.get("admin/").status_code == 403
        linked = set(
            re.findall(r'href="[^"]*/admin/(\w*)/?"', reader.get("settings/").content.decode())
        )
        assert linked == ({"holds", "retention", "sweeps"} if reader.role == "auditor" else set())
