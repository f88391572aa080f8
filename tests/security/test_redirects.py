"""No parameter and no header of a request leads anybody to another host."""

from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from django.test import Client

from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, an_operator, person

ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "////evil.example/",
    "/\\evil.example/",
    "\\\\evil.example/",
    "\\/evil.example/",
    "/\t/evil.example/",
    " //evil.example/",
    "https:evil.example",
    "https:///evil.example/",
    "http://testserver@evil.example/",
    "javascript:alert(1)",
    "JAVASCRIPT:alert(1)",
    "data:text/html,x",
    "/\r\nLocation: https://evil.example/",
]
HERE = "http://testserver/account/"


def leads_away(address: str) -> bool:
    """As a browser reads it: backslashes are slashes, controls are left out, spaces around are too."""
    seen = "".join(one for one in address if one >= " ").strip().replace("\\", "/")
    parts = urlsplit(urljoin(HERE, seen))
    return parts.scheme not in ("http", "https") or parts.netloc != "testserver"


def assert_stays(answer: Any) -> None:
    for name in ("Location", "HX-Redirect", "HX-Location", "HX-Push-Url", "Refresh"):
        assert not leads_away(answer.get(name, "/")), (name, answer[name])


def test_what_leads_away_is_known_when_it_is_seen() -> None:
    away = [one for one in ELSEWHERE if leads_away(one)]
    assert len(away) > len(ELSEWHERE) / 2
    assert not leads_away("/t/acme/memory/?next=https://evil.example/")


@pytest.fixture(autouse=True)
def fast_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", "ann")


@pytest.mark.parametrize("target", ELSEWHERE)
def test_signing_in_leads_to_no_other_host(ann: Person, target: str) -> None:
    browser = Client()
    led = dict.fromkeys(("next", "back", "redirect_to", "REDIRECT_URI"), target)
    query = urlencode(led)
    fields = {"login": ann.email, "password": PASSWORD, **led}
    answer = browser.post(f"/account/login/?{query}", fields)
    assert answer.status_code == 302
    assert_stays(answer)
    assert_stays(browser.get(f"/account/login/?{query}"))  # who is signed in is led on at once


@pytest.mark.parametrize("target", ELSEWHERE)
def test_proving_and_signing_out_lead_to_no_other_host(ann: Person, target: str) -> None:
    query = urlencode({"next": target})
    for path in ("/account/prove/", "/account/reauthenticate/", "/account/2fa/reauthenticate/"):
        assert_stays(ann.browser.get(f"{path}?{query}"))
    proved = ann.browser.post(
        f"/account/reauthenticate/?{query}", {"password": PASSWORD, "next": target}
    )
    assert proved.status_code == 302
    assert_stays(proved)
    gone = ann.browser.post(f"/account/logout/?{query}", {"next": target})
    assert gone.status_code == 302
    assert_stays(gone)


@pytest.mark.parametrize("target", ELSEWHERE)
def test_an_operators_sign_in_leads_to_no_other_host(acme: TenantKit, target: str) -> None:
    operator = an_operator(acme)
    for browser in (Client(), operator.browser):
        assert_stays(browser.get(f"/operator/login/?{urlencode({'next': target})}"))


@pytest.mark.parametrize("target", ELSEWHERE)
def test_going_back_to_a_list_and_coming_back_from_sign_in_stay_here(
    ann: Person, target: str
) -> None:
    confirmed = ann.post("memory/nosuch/confirm", {"back": target, "once": "x"})
    assert_stays(confirmed)
    given = {"HX-Request": "true", "HX-Current-URL": target.replace("\r\n", "")}
    answer = Client().get(ann.path("memory/"), headers=given)
    assert_stays(answer)
    lead = answer.get("HX-Redirect", "")
    assert "evil.example" not in urlsplit(lead).query
