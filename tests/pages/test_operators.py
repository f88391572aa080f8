"""The operator's own site: accounts, second factors, workspaces and members; no memory, no log, nobody but operators."""

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from corrections.operators import operators
from memory.tenancy import tenant_context, tenant_id_of
from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, an_operator, person, text_of


@pytest.fixture
def operator(acme: TenantKit) -> Person:
    """Somebody who is an operator and belongs to no workspace, and proved who they are a moment ago."""
    return an_operator(acme)


def signed_in(browser: Client, email: str) -> None:
    browser.post("/account/login/", {"login": email, "password": PASSWORD})


def test_no_model_of_memory_or_of_a_tenant_is_here() -> None:
    shown: set[type[Model]] = set(operators._registry)
    assert {model._meta.label for model in shown} == {"auth.User", "mfa.Authenticator"}
    ours = {
        model
        for app in ("memory", "corrections")
        for model in apps.get_app_config(app).get_models()
    }
    assert len(ours) > 20
    assert not shown & ours


@pytest.mark.parametrize("role", ["owner", "admin", "auditor", "person"])
def test_members_of_workspaces_do_not_come_here(acme: TenantKit, role: str) -> None:
    member = person(acme, role)
    for path in (
        "",
        "workspaces/",
        "workspaces/acme/",
        "workspaces/new/",
        "auth/user/",
        "mfa/authenticator/",
    ):
        for answer in (member.get(f"/operator/{path}"), member.post(f"/operator/{path}")):
            assert answer.status_code in (302, 403), path
            assert "acme" not in text_of(answer).replace(member.email, "")


def test_an_operator_belongs_to_no_workspace_and_sees_no_page_of_one(operator: Person) -> None:
    for path in ("memory/", "audit/runs/", "register/", "admin/routes/"):
        assert operator.get(path).status_code == 404


def test_workspaces_are_found_and_one_shows_its_members(acme: TenantKit, operator: Person) -> None:
    ann, auditor = person(acme, "person", subject="ann"), person(acme, "auditor")
    assert "Workspaces and members" in text_of(operator.get("/operator/"))
    listed = operator.get("/operator/workspaces/", {"q": "acm"}).content.decode()
    assert "/operator/workspaces/acme/" in listed
    assert "No workspace has that in its name" in text_of(
        operator.get("/operator/workspaces/", {"q": "zebra"})
    )
    shown = text_of(operator.get("/operator/workspaces/acme/"))
    assert re.search(rf"{ann.email} Person since \d+ \w+ \d+ ann", shown)
    assert re.search(rf"{auditor.email} Auditor since \d+ \w+ \d+ –", shown)
    account = operator.get(f"/operator/auth/user/{ann.user_id}/change/").content.decode()
    assert 'href="/operator/workspaces/acme/"' in account


def test_a_workspace_is_made_and_its_owner_appointed_which_is_on_record(operator: Person) -> None:
    form = {"slug": "new-one", "name": "New one", "time_zone": "Europe/Berlin"}
    assert operator.post("/operator/workspaces/new/", form)["Location"].endswith("/new-one/")
    page = "/operator/workspaces/new-one/"
    member = {"email": "Olga@example.com", "role": "owner", "subject": ""}
    assert operator.post(page, member).status_code == 302
    assert "olga@example.com Owner" in text_of(operator.get(page))
    owner = get_user_model().objects.get(email="olga@example.com")
    assert not owner.has_usable_password()
    kit = TenantKit(tenant_id_of("new-one"), "new-one")
    log = kit.client("admin").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    made = [one for one in log if one["payload"]["type"] == "member.created"]
    assert [one["actor"] for one in made] == [f"service:operator-{operator.user_id}"]


@pytest.mark.parametrize(
    ("path", "form", "says"),
    [
        ("new/", {"slug": "acme", "time_zone": "UTC"}, "is taken"),
        ("new/", {"slug": "Not A Slug", "time_zone": "UTC"}, "Enter a valid value"),
        ("acme/", {"email": "zoe@example.com", "role": "person"}, "is required for a person"),
        ("acme/", {"email": "no address", "role": "admin"}, "Enter a valid email address"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_in_the_form_with_the_text_kept(
    operator: Person, path: str, form: dict[str, str], says: str
) -> None:
    answer = operator.post(f"/operator/workspaces/{path}", form)
    assert answer.status_code == 422
    assert says in text_of(answer)
    assert next(iter(form.values())) in answer.content.decode()


def test_a_member_with_another_role_is_refused(acme: TenantKit, operator: Person) -> None:
    ann = person(acme, "person", subject="ann")
    form = {"email": ann.email, "role": "admin"}
    answer = operator.post("/operator/workspaces/acme/", form)
    assert answer.status_code == 422
    with tenant_context(acme.id):
        assert ann.principal.role == "person"


def test_appointing_asks_once_more_who_it_is(acme: TenantKit, operator: Person) -> None:
    other = Client()
    signed_in(other, operator.email)
    form = {"email": "zoe@example.com", "role": "auditor"}
    asked = other.post("/operator/workspaces/acme/", form)
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert not get_user_model().objects.filter(email="zoe@example.com").exists()
    other.post(asked["Location"], {"password": PASSWORD, "next": "/operator/workspaces/acme/"})
    assert get_user_model().objects.filter(email="zoe@example.com").exists()


def test_a_lost_second_factor_is_taken_away_and_its_secret_is_not_shown(
    acme: TenantKit, operator: Person
) -> None:
    ann = person(acme, "person", subject="ann")
    made = Authenticator.objects.create(
        user_id=ann.user_id, type=Authenticator.Type.TOTP, data={"secret": "JBSWY3DPEHPK3PXP"}
    )
    page: Any = operator.get(f"/operator/mfa/authenticator/{made.pk}/change/")
    assert ann.email in text_of(operator.get("/operator/mfa/authenticator/"))
    assert "JBSWY3DPEHPK3PXP" not in page.content.decode()
    operator.post(f"/operator/mfa/authenticator/{made.pk}/delete/", {"post": "yes"})
    assert not Authenticator.objects.filter(pk=made.pk).exists()


def test_accounts_are_switched_off_and_neither_made_nor_removed_here(
    acme: TenantKit, operator: Person
) -> None:
    ann = person(acme, "person", subject="ann")
    assert operator.get("/operator/auth/user/add/").status_code == 403
    assert operator.get(f"/operator/auth/user/{ann.user_id}/delete/").status_code == 403
    page = f"/operator/auth/user/{ann.user_id}/change/"
    assert operator.post(page, {"is_staff": "", "is_superuser": ""}).status_code == 302
    assert ann.get("memory/").status_code == 302
