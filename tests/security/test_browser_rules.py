"""What a browser is told to refuse, and what it reports; cookies; plain http; how long a session lasts."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest
import structlog
from django.test import Client

from kindmem import csp_reports, session_limits
from tests.builders import TenantKit
from tests.completeness.sources import ROOT
from tests.pages.people import Person, person

NONE_BUT_OURS = {
    "default-src": "'none'",
    "script-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "form-action": "'self'",
    "report-uri": "/csp-reports",
}


def policy_of(answer: Any) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in answer["Content-Security-Policy"].split(";"))
    return {name: value for name, _, value in parts if name}


# -- the policy, and what browsers report of it --------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/account/login/", "/v1/memory/me", "/v1/docs", "/v1/openapi.json", "/livez", "/nosuch"],
)
def test_every_kind_of_answer_carries_a_policy_that_lets_nothing_foreign_in(
    path: str, db: None
) -> None:
    policy = policy_of(Client().get(path))
    assert policy.items() >= NONE_BUT_OURS.items()
    assert "unsafe-eval" not in str(policy)
    assert ("unsafe-inline" in policy["style-src"]) is (path == "/v1/docs")


def test_the_page_of_the_description_holds_no_script_of_its_own(db: None) -> None:
    page = Client().get("/v1/docs").content.decode()
    sources = [part.split('"')[1] for part in page.split("<script src=")[1:]]
    assert page.count("<script") == len(sources) == 3
    assert all(source.startswith("/") and source[1] != "/" for source in sources)
    script = Client().get(sources[-1])
    assert script.status_code == 200
    assert script["Content-Type"].startswith("application/javascript")
    assert b"SwaggerUIBundle" in script.content


def report(**fields: Any) -> dict[str, Any]:
    return {"csp-report": {"document-uri": "https://k.example/t/acme/memory/", **fields}}


def sent(body: Any, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Client(enforce_csrf_checks=True).generic(
        "POST", csp_reports.PATH, data, content_type="application/csp-report", headers=headers
    )


def counted(directive: str) -> float:
    found = csp_reports._REPORTS.labels(directive)._value.get()
    return float(found)


def test_a_report_is_counted_and_logged_by_rule_and_route_and_by_nothing_else(db: None) -> None:
    before = counted("script-src-elem")
    with structlog.testing.capture_logs() as said:
        answer = sent(
            report(
                **{
                    "effective-directive": "script-src-elem",
                    "blocked-uri": "https://evil.example/canary.js",
                    "script-sample": "canary",
                }
            )
        )
    assert (answer.status_code, answer.content) == (204, b"")
    assert counted("script-src-elem") == before + 1
    (line,) = said
    assert line["directive"] == "script-src-elem"
    assert line["route"] == "t/<slug:tenant>/memory/"
    assert "canary" not in json.dumps(said)
    assert "acme" not in json.dumps(said)


def test_a_report_of_an_unknown_rule_or_page_has_no_words_of_its_own(db: None) -> None:
    before = counted(csp_reports.OTHER)
    with structlog.testing.capture_logs() as said:
        assert sent(report(**{"violated-directive": "canary 'self'"})).status_code == 204
        assert sent({"csp-report": {"document-uri": "https://x/canary"}}).status_code == 204
        assert sent({"csp-report": {"document-uri": ["canary"]}}).status_code == 204
    assert counted(csp_reports.OTHER) == before + 3
    assert "canary" not in json.dumps(said)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"csp-report": 1}', b'{"a": 1, "a": 2}', b"\xff", b'{"x": NaN}']
)
def test_what_is_no_report_is_refused(body: bytes, db: None) -> None:
    assert sent(body).json()["error"]["code"] == "bad-input"


def test_a_long_report_is_not_read(db: None) -> None:
    answer = sent(report(x="y" * csp_reports.MOST_BYTES))
    assert answer.json()["error"]["code"] == "content-too-large"
    assert Client().get(csp_reports.PATH).status_code == 405


# -- cookies and plain http ----------------------------------------------------------------------

_SAY = """
import django, json
django.setup()
from django.conf import settings
from django.test import Client
told = {name: getattr(settings, name) for name in %r}
if settings.SECURE_SSL_REDIRECT:
    api, page = (Client().get(path, headers={"Host": "k.example"}) for path in ("/v1/memory/me", "/account/login/"))
    told["api"] = [api.status_code, api.json()["error"]["code"], api.get("Location")]
    told["page"] = [page.status_code, page.get("Location")]
print(json.dumps(told))
"""
_NAMES = ["SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"]
_NAMES += ["SESSION_COOKIE_HTTPONLY", "CSRF_COOKIE_HTTPONLY", "SECURE_HSTS_INCLUDE_SUBDOMAINS"]


def said_with(base_url: str) -> dict[str, Any]:
    environ = {**os.environ, "KINDMEM_BASE_URL": base_url, "KINDMEM_ALLOWED_HOSTS": "k.example"}
    done = subprocess.run(
        [sys.executable, "-c", _SAY % (_NAMES,)],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_with_https_cookies_are_of_this_host_alone_and_the_api_leads_nobody_on() -> None:
    told = said_with("https://k.example")
    assert told.pop("SESSION_COOKIE_NAME") == "__Host-sessionid"
    assert told.pop("CSRF_COOKIE_NAME") == "__Host-csrftoken"
    assert told.pop("api") == [400, "bad-input", None]
    assert told.pop("page") == [301, "https://k.example/account/login/"]
    assert set(told.values()) == {True}


def test_without_https_nothing_is_promised_of_cookies() -> None:
    told = said_with("http://k.example")
    assert told["SESSION_COOKIE_NAME"] == "sessionid"
    assert told["SESSION_COOKIE_SECURE"] is False
    assert told["SESSION_COOKIE_HTTPONLY"] is True


# -- how long a session lasts --------------------------------------------------------------------


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    made = person(acme, "auditor")
    assert is_signed_in(made)
    return made


def is_signed_in(made: Person, path: str = "audit/runs/") -> bool:
    return made.get(path).status_code == 200


def move(made: Person, **seconds_ago: float) -> None:
    """As if the session's times were that long ago."""
    session = made.browser.session
    for name, ago in seconds_ago.items():
        session[name] = time.time() - ago
    session.save()


def test_a_session_ends_an_hour_after_its_last_use(ann: Person) -> None:
    move(ann, used_at=session_limits.IDLE_SECONDS - 60)
    assert is_signed_in(ann)
    move(ann, used_at=session_limits.IDLE_SECONDS + 1)
    answer = ann.get("audit/runs/")
    assert answer["Location"].startswith("/account/login/?next=")
    assert ann.browser.session.get("_auth_user_id") is None


def test_a_session_ends_twelve_hours_after_signing_in_however_much_it_is_used(ann: Person) -> None:
    move(ann, signed_in_at=session_limits.LONGEST_SECONDS - 60, used_at=1)
    assert is_signed_in(ann)
    move(ann, signed_in_at=session_limits.LONGEST_SECONDS + 1, used_at=1)
    assert not is_signed_in(ann)


def test_the_last_use_is_noted_and_not_on_every_request(ann: Person) -> None:
    session = ann.browser.session
    noted = session[session_limits.USED_AT]
    assert is_signed_in(ann)
    assert ann.browser.session[session_limits.USED_AT] == noted
    move(ann, used_at=session_limits.NOTED_SECONDS + 1)
    assert is_signed_in(ann)
    assert time.time() - ann.browser.session[session_limits.USED_AT] < 60


def asked_for_newer(made: Person) -> Any:
    return made.get("audit/run/r1/newer/", {"after": "0"}, headers={"HX-Request": "true"})


def test_a_page_that_asks_by_itself_does_not_keep_a_session(ann: Person) -> None:
    ann.kit.client("admin", may=["append", "tenant-wide"]).post(
        "/v1/memory/runs/r1/log", {"kind": "tool-call", "scope": {}}
    )
    move(ann, used_at=session_limits.NOTED_SECONDS + 60)
    before = ann.browser.session[session_limits.USED_AT]
    assert asked_for_newer(ann).status_code in (200, 204)
    assert ann.browser.session[session_limits.USED_AT] == before


def test_the_api_ends_a_browsers_session_as_pages_do(ann: Person) -> None:
    headers = {"Kindmem-Tenant": ann.kit.slug}
    assert ann.browser.get("/v1/memory/me", headers=headers).status_code == 200
    move(ann, used_at=session_limits.IDLE_SECONDS + 1)
    answer = ann.browser.get("/v1/memory/me", headers=headers)
    assert answer.json()["error"]["code"] == "auth-missing"


def test_an_attempt_to_sign_in_that_failed_is_logged_without_what_was_typed(
    acme: TenantKit, ann: Person
) -> None:
    with structlog.testing.capture_logs() as said:
        Client().post("/account/login/", {"login": ann.email, "password": "canary password"})
    assert [line["event"] for line in said if line["log_level"] == "warning"] == ["sign_in_failed"]
    assert "canary" not in json.dumps(said)
    assert ann.email not in json.dumps(said)
