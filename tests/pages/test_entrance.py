"""Signing in, choosing a workspace, page links, and what keeps strangers out."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from corrections import sign_in_limits
from corrections.page_links import make_page_link
from memory.errors import PermissionDenied
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.pages.people import PASSWORD, person, text_of


def test_a_member_signs_in_with_address_and_password_and_lands_in_their_workspace(
    acme: TenantKit,
) -> None:
    auditor = person(acme, "auditor")
    browser = Client()
    answer = browser.post(
        "/account/login/", {"login": auditor.email, "password": PASSWORD}, follow=True
    )
    assert answer.redirect_chain[-1][0] == f"/t/{acme.slug}/audit/runs/"
    log = acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    sign_ins = [one for one in log if one["payload"] == {"type": "member.signed-in"}]
    assert [one["actor"] for one in sign_ins] == [f"user:{auditor.user_id}"]


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000"])
def test_the_name_of_this_machine_and_its_numbers_lead_to_the_same_pages(
    acme: TenantKit, host: str
) -> None:
    ann = person(acme, "person", subject="ann")
    browser = Client(enforce_csrf_checks=True, headers={"host": host})
    token = re.search(
        r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/account/login/").content.decode()
    )
    assert token
    form = {"login": ann.email, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    answer = browser.post(
        "/account/login/", form, headers={"host": host, "origin": f"http://{host}"}
    )
    assert (answer.status_code, answer["Location"]) == (302, "/tenants/")
    assert "What is remembered about you" in text_of(browser.get(f"/t/{acme.slug}/memory/"))
    elsewhere = browser.post(
        "/account/login/", form, headers={"host": host, "origin": "http://evil.example"}
    )
    assert elsewhere.status_code == 403


def test_a_wrong_password_is_refused_without_saying_whether_the_account_exists(
    acme: TenantKit,
) -> None:
    known, browser = person(acme), Client()
    answers = [
        text_of(browser.post("/account/login/", {"login": login, "password": "not this one"}))
        for login in (known.email, "nobody@example.com")
    ]
    assert "not correct" in answers[0]
    assert answers[0].split("request")[0] == answers[1].split("request")[0]


def test_after_five_wrong_passwords_even_the_right_one_waits(acme: TenantKit) -> None:
    known, browser = person(acme), Client()
    for _ in range(5):
        browser.post("/account/login/", {"login": known.email, "password": "not this one"})
    answer = browser.post("/account/login/", {"login": known.email, "password": PASSWORD})
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 300
    assert re.search(r"Too many failed tries\. Try again in [1-5] minutes?\.", text_of(answer))


def failed(browser: Client, login: str, address: str, times: int = 5) -> HttpResponse:
    """The last of some wrong attempts from an address of the network."""
    for _ in range(times):
        answer = browser.post(
            "/account/login/", {"login": login, "password": "not this one"}, REMOTE_ADDR=address
        )
    return answer


def test_who_guesses_stops_neither_others_at_the_same_address_nor_the_owner_elsewhere(
    acme: TenantKit,
) -> None:
    ann, bob = person(acme), person(acme)
    failed(Client(), ann.email, "198.51.100.7", times=6)
    for who, address in ((bob, "198.51.100.7"), (ann, "203.0.113.9")):
        answer = Client().post(
            "/account/login/", {"login": who.email, "password": PASSWORD}, REMOTE_ADDR=address
        )
        assert answer.status_code == 302
    stopped = Client().post(
        "/account/login/", {"login": ann.email, "password": PASSWORD}, REMOTE_ADDR="198.51.100.7"
    )
    assert stopped.status_code == 429


def test_being_stopped_says_nothing_of_whether_the_account_exists(acme: TenantKit) -> None:
    known = failed(Client(), person(acme).email, "198.51.100.8", times=6)
    unknown = failed(Client(), "nobody@example.com", "198.51.100.9", times=6)
    assert known.status_code == unknown.status_code == 429
    told = [re.sub(r"in \d+ \w+", "", text_of(one)).split("request")[0] for one in (known, unknown)]
    assert told[0] == told[1]


def test_one_address_is_stopped_at_last_whatever_accounts_it_tries(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_place = replace(sign_in_limits._BOUNDS[1], rate="4/5m/key")
    monkeypatch.setattr(
        sign_in_limits, "_BOUNDS", (sign_in_limits._BOUNDS[0], of_place, sign_in_limits._BOUNDS[2])
    )
    browser = Client()
    for number in range(4):
        failed(browser, f"somebody{number}@example.com", "198.51.100.10", times=1)
    assert failed(browser, "last@example.com", "198.51.100.10", times=1).status_code == 429
    assert failed(browser, "last@example.com", "198.51.100.11", times=1).status_code == 200


def test_a_form_that_is_sent_too_often_is_answered_with_a_page_that_says_how_long_to_wait(
    acme: TenantKit, settings: Any
) -> None:
    settings.ACCOUNT_RATE_LIMITS = {**settings.ACCOUNT_RATE_LIMITS, "login": "1/m/ip"}
    browser = Client(headers={"Accept": "text/html"})
    failed(browser, "a@example.com", "198.51.100.12", times=1)
    answer = failed(browser, "a@example.com", "198.51.100.12", times=1)
    assert (answer.status_code, answer["Retry-After"]) == (429, "60")
    assert "Try again in 60 seconds." in text_of(answer)
    assert "Content-Security-Policy" in answer


def test_nobody_signs_up(db: None) -> None:
    assert "No account here" in text_of(Client().get("/account/signup/"))


def test_who_is_not_signed_in_comes_back_to_the_page_after_signing_in(acme: TenantKit) -> None:
    page = f"/t/{acme.slug}/audit/runs/?kind=tool-call"
    answer = Client().get(page)
    assert answer.status_code == 302
    assert (
        answer["Location"]
        == "/account/login/?next=%2Ft%2Facme%2Faudit%2Fruns%2F%3Fkind%3Dtool-call"
    )


def test_an_htmx_request_without_a_session_moves_the_whole_page_to_sign_in(acme: TenantKit) -> None:
    answer = Client().get(
        f"/t/{acme.slug}/audit/runs/",
        headers={
            "HX-Request": "true",
            "HX-Request-Type": "partial",
            "HX-Current-URL": f"http://testserver/t/{acme.slug}/audit/runs/?kind=tool-call",
        },
    )
    assert answer.status_code == 204
    assert answer["HX-Redirect"].endswith("kind%3Dtool-call")


def test_another_tenants_page_answers_as_one_that_does_not_exist(acme: TenantKit) -> None:
    other, stranger = make_tenant(), person(acme, "owner")
    answers = [stranger.get(f"/t/{slug}/audit/runs/") for slug in (other.slug, "no-such-tenant")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert (
        text_of(answers[0]).split("Request number")[0]
        == text_of(answers[1]).split("Request number")[0]
    )


def test_a_role_that_may_not_see_a_page_reads_which_may_and_who_grants_it(acme: TenantKit) -> None:
    answer = person(acme, "person").get("audit/runs/")
    assert answer.status_code == 403
    assert "Auditor" in text_of(answer)
    assert "An admin can give you the auditor's role" in answer.content.decode().replace(
        "&#x27;", "'"
    )


def test_a_person_with_two_workspaces_chooses_and_switches(acme: TenantKit) -> None:
    other, both = make_tenant(), person(acme, "auditor")
    from memory.access import system_principal
    from memory.actions.create_member import create_member

    create_member(principal=system_principal(other.id, other.slug), email=both.email, role="admin")
    choice = both.get("/tenants/")
    assert f"/t/{other.slug}/" in choice.content.decode()
    assert "Switch" in text_of(both.get("audit/runs/"))


def test_pages_carry_the_strict_policy_and_stay_in_no_cache(acme: TenantKit) -> None:
    answer = person(acme).get("audit/runs/")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer["Cache-Control"] == "no-store"
    assert "HX-Request" in answer["Vary"]


def test_an_address_that_is_only_for_a_form_says_so_to_whoever_opens_it(acme: TenantKit) -> None:
    ann = person(acme, "person", subject="ann")
    answer = ann.get("switch")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "This address is for a form" in text_of(answer)
    assert "Content-Security-Policy" in answer
    told = ann.get("switch", headers={"Accept": "application/json"})
    assert told.json()["error"]["code"] == "method-not-allowed"


def test_a_form_with_an_old_token_keeps_what_was_typed_and_never_a_password(
    acme: TenantKit,
) -> None:
    auditor = person(acme)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = auditor.browser.cookies
    answer = strict.post(
        f"/t/{acme.slug}/settings/",
        {"reason": "I typed this <b>", "password": "secret words"},
        headers={"Accept": "text/html"},
    )
    assert answer.status_code == 403
    body = answer.content.decode()
    assert "I typed this &lt;b&gt;" in body
    assert "secret words" not in body


def test_a_form_sent_after_the_session_ended_keeps_what_was_typed(acme: TenantKit) -> None:
    answer = Client().post(
        f"/t/{acme.slug}/settings/", {"reason": "typed"}, headers={"Accept": "text/html"}
    )
    assert answer.status_code == 401
    assert "typed" in answer.content.decode()
    assert "Sign in and go on" in text_of(answer)


def test_a_page_link_opens_one_persons_pages_for_fifteen_minutes(acme: TenantKit) -> None:
    app = acme.principal("app", users=["dana"])
    with tenant_context(acme.id):
        link = make_page_link(principal=app, subject="dana")
    browser = Client()
    asked = browser.get(link.path)
    assert "Open my pages" in text_of(asked)
    assert "sessionid" not in browser.cookies
    opened = browser.post(link.path, follow=True)
    assert opened.status_code == 200
    assert "your own pages" in text_of(opened)
    assert (
        browser.get(f"/t/{acme.slug}/audit/runs/", headers={"Accept": "text/html"}).status_code
        == 403
    )
    with time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False):
        assert browser.get(f"/t/{acme.slug}/").status_code == 302


def test_a_page_link_that_was_never_made_says_how_to_get_one(acme: TenantKit) -> None:
    answer = Client().post(f"/t/{acme.slug}/link/made-up/", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "Ask for a new one" in text_of(answer)


@pytest.mark.parametrize("role", ["agent", "admin", "auditor"])
def test_only_an_apps_key_makes_page_links(acme: TenantKit, role: str) -> None:
    with tenant_context(acme.id), pytest.raises(PermissionDenied):
        make_page_link(principal=acme.principal(role), subject="dana")


def test_operators_have_their_own_site_and_members_do_not_enter_it(acme: TenantKit) -> None:
    answer = person(acme, "owner").get("/operator/")
    assert answer.status_code in (302, 403)


@pytest.mark.parametrize("path", ["/tenants", "/account/login", "/operator", "/t/{slug}/settings"])
def test_a_page_without_its_last_slash_is_found_and_keeps_its_query(
    acme: TenantKit, path: str
) -> None:
    path = path.format(slug=acme.slug)
    answer = Client().get(f"{path}?kind=tool-call&x=%2F%2Fe", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Location"]) == (302, f"{path}/?kind=tool-call&x=%2F%2Fe")


def test_what_is_redirected_for_its_slash_says_nothing_of_what_exists(acme: TenantKit) -> None:
    other = make_tenant()
    for slug in (acme.slug, other.slug, "no-such-tenant"):
        answer = Client().get(f"/t/{slug}/audit/run/r1")
        assert (answer.status_code, answer["Location"]) == (302, f"/t/{slug}/audit/run/r1/")
    assert Client().get("/no-such-page").status_code == 404
    assert Client().get("/v1/memory/nothing").status_code == 404
    assert Client().post(f"/t/{acme.slug}/settings").status_code == 404


def test_the_sessions_page_shows_times_in_the_persons_zone(acme: TenantKit) -> None:
    auditor = person(acme, "auditor")
    auditor.browser.post("/account/login/", {"login": auditor.email, "password": PASSWORD})
    browser = Client()
    browser.post("/account/login/", {"login": auditor.email, "password": PASSWORD})
    assert "UTC" in text_of(browser.get("/account/sessions/"))
    auditor.post("settings/", {"time_zone": "Pacific/Kiritimati", "theme": "", "language": ""})
    shown = text_of(browser.get("/account/sessions/"))
    assert "+14" in shown
    assert "UTC" not in shown
