"""A form whose session ended: it is kept sealed, comes back after the sign-in, and goes through with one press."""

import re

from django.db import connection
from django.http import HttpResponse
from django.test import Client

from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, person, text_of


def expired(made: Person, path: str, fields: dict[str, str]) -> tuple[Client, HttpResponse]:
    """A browser whose session has ended, and the answer to the form that it sends."""
    browser = Client(enforce_csrf_checks=True)
    browser.get("/account/login/")
    token = browser.cookies["csrftoken"].value
    return browser, browser.post(
        made.path(path),
        {**fields, "csrfmiddlewaretoken": token},
        headers={"Accept": "text/html"},
    )


def after_sign_in(browser: Client, made: Person, answer: HttpResponse) -> HttpResponse:
    """Where the page's own link to sign in leads in the end."""
    link = re.search(r'class="button primary" href="([^"]+)"', answer.content.decode())
    assert link
    url = link[1].replace("&amp;", "&")
    page = browser.get(url).content.decode()
    hidden = dict(re.findall(r'name="(next|csrfmiddlewaretoken)" value="([^"]*)"', page))
    return browser.post(url, {"login": made.email, "password": PASSWORD, **hidden}, follow=True)


def test_a_form_whose_session_ended_comes_back_after_sign_in_and_goes_through_with_one_press(
    acme: TenantKit,
) -> None:
    auditor = person(acme)
    zone = {"time_zone": "Pacific/Kiritimati", "theme": "", "language": "", "password": "secret"}
    browser, answer = expired(auditor, "settings/", zone)
    assert answer.status_code == 401
    back = after_sign_in(browser, auditor, answer)
    body = back.content.decode()
    assert "Your text is back" in text_of(back)
    assert "secret" not in body
    form = re.search(r'<form method="post" action="([^"]+)" class="stack">(.*?)</form>', body, re.S)
    assert form
    fields = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', form[2]))
    sent = browser.post(form[1], fields, headers={"Accept": "text/html"})
    assert sent.status_code == 302, text_of(sent)
    assert "times in Pacific/Kiritimati" in text_of(auditor.get("audit/runs/"))


def test_what_is_kept_opens_with_the_browsers_cookie_alone(acme: TenantKit) -> None:
    auditor = person(acme)
    _browser, answer = expired(auditor, "settings/", {"reason": "an unforgettable reason"})
    cookie = answer.cookies["kept_form"]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 1800)
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(value, ' ') FROM account_cache")
        stored = cursor.fetchone()[0]
    assert "unforgettable" not in stored
    name, _dot, key = cookie.value.partition(".")
    assert key not in stored
    for value in (f"{name}.{'A' * len(key)}", f"{name}.", "made-up.key", ""):
        auditor.browser.cookies["kept_form"] = value
        assert auditor.get("/account/kept/")["Location"] == "/tenants/"
    auditor.browser.cookies["kept_form"] = cookie.value
    assert "an unforgettable reason" in text_of(auditor.get("/account/kept/"))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM expires_at - now()) FROM account_cache WHERE key LIKE %s",
            [f"%kept_form:{name}"],
        )
        assert 0 < cursor.fetchone()[0] <= 1800


def test_what_is_too_long_to_keep_stays_on_the_page(acme: TenantKit) -> None:
    _browser, answer = expired(person(acme), "settings/", {"reason": "w" * 40_000})
    assert answer.status_code == 401
    assert "kept_form" not in answer.cookies
    assert "Sign in in a new tab" in text_of(answer)
    assert "w" * 40_000 in answer.content.decode()
