"""A session changes its name when its person proves anew who they are, and signing other browsers out asks for that proof."""

import time

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, person, text_of

LIST = "/account/sessions/"


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme)


def name_of(browser: Client) -> str:
    return browser.cookies[settings.SESSION_COOKIE_NAME].value


def prove(made: Person) -> None:
    answer = made.post("/account/reauthenticate/", {"password": PASSWORD})
    assert answer.status_code == 302


def let_the_proof_grow_old(made: Person) -> None:
    session = made.browser.session
    for proof in session[AUTHENTICATION_METHODS_SESSION_KEY]:
        proof["at"] = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT - 1
    session.save()


def another_browser(made: Person) -> Client:
    browser = Client()
    answer = browser.post("/account/login/", {"login": made.email, "password": PASSWORD})
    assert answer.status_code == 302
    assert browser.get(made.path("settings/")).status_code == 200
    return browser


def is_in(browser: Client, made: Person) -> bool:
    return browser.get(made.path("settings/")).status_code == 200


def test_a_proof_gives_the_session_another_name_and_the_old_one_ends(ann: Person) -> None:
    ann.browser = another_browser(ann)
    before, copy = name_of(ann.browser), Client()
    copy.cookies[settings.SESSION_COOKIE_NAME] = before
    assert is_in(copy, ann)
    listed = UserSession.objects.get(session_key=before)
    prove(ann)
    after = name_of(ann.browser)
    assert after != before
    assert is_in(ann.browser, ann)
    assert not is_in(copy, ann)
    assert not Session.objects.filter(session_key=before).exists()
    assert UserSession.objects.get(pk=listed.pk).session_key == after


def test_a_proof_that_failed_and_any_other_request_leave_the_name(ann: Person) -> None:
    before = name_of(ann.browser)
    ann.post("/account/reauthenticate/", {"password": "not this one"})
    ann.get("settings/")
    assert name_of(ann.browser) == before
    assert is_in(ann.browser, ann)


@pytest.mark.parametrize("which", ["one", "all others"])
def test_signing_another_browser_out_asks_for_a_proof_first(ann: Person, which: str) -> None:
    other = another_browser(ann)
    found = UserSession.objects.get(session_key=name_of(other))
    path = f"/account/sessions/{found.pk}/end" if which == "one" else LIST
    let_the_proof_grow_old(ann)
    asked = ann.post(path)
    assert asked["Location"] == f"/account/reauthenticate/?next={LIST.replace('/', '%2F')}"
    assert is_in(other, ann)
    assert "Prove that it is you" in text_of(ann.get(asked["Location"]))
    prove(ann)
    assert ann.post(path)["Location"] == LIST
    assert not is_in(other, ann)
    assert is_in(ann.browser, ann)


def test_looking_at_the_list_asks_for_no_proof(ann: Person) -> None:
    let_the_proof_grow_old(ann)
    assert ann.get(LIST).status_code == 200
