"""Verifications by the worker, on the pages: asked for, watched, called off, read."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from corrections.views import audit_verify
from memory.access import system_principal
from memory.actions import run_verifications as runner
from memory.actions.run_verifications import run_verifications
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, seal
from tests.pages.people import Person, person, text_of

PARTIAL = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def forgets() -> Iterator[None]:
    yield
    runner._AT_WORK.clear()


@pytest.fixture
def auditor(live_acme: TenantKit) -> Person:
    return person(live_acme, "auditor")


def work(kit: TenantKit, *, seconds: float = 60.0) -> bool:
    return run_verifications(system_principal(kit.id, kit.slug, id="verifier"), seconds=seconds)


def asked(auditor: Person, mode: str = "full") -> str:
    """The page of the verification, without the tenant's part of its address."""
    answer = auditor.post("audit/verifications/tenant/", {"mode": mode})
    assert answer.status_code == 302, answer.content
    return answer["Location"].removeprefix(f"/t/{auditor.kit.slug}/")


def test_the_whole_workspace_is_verified_while_the_page_says_how_far_it_is(
    live_acme: TenantKit, auditor: Person, superuser_url: str
) -> None:
    for number in range(3):
        fill(live_acme, 3, run=f"r{number}")
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute("UPDATE log_entry SET actor = 'x' WHERE run_id = 'r1' AND sequence = 1")
        session.execute("DELETE FROM log_entry WHERE run_id = 'r2'")
        session.execute("DELETE FROM run_head WHERE run_id = 'r2'")
    page = asked(auditor)
    assert "Waiting its turn" in text_of(auditor.get(page))
    assert work(live_acme, seconds=0.0)
    shown = auditor.get(page, headers=PARTIAL).content.decode()
    assert "<html" not in shown
    assert "<progress" in shown
    assert 'hx-trigger="every 2s"' in shown
    while work(live_acme):
        pass
    shown = auditor.get(page).content.decode()
    assert "hx-trigger" not in shown
    assert "<progress" not in shown
    words = text_of(auditor.get(page))
    assert "#1 Content or hash changed" in words
    assert "#0 Seal broken" in words
    assert shown.index("r1</bdi>") < shown.index("r0</bdi>"), "what needs to be looked at first"
    for link in ("r0", "r1"):
        assert auditor.get(f"audit/run/{link}/verify/").status_code == 200
    assert "/audit/run/r2/verify/" not in shown, "nothing is left that could be opened"
    assert "Broken" in text_of(auditor.get("audit/verifications/"))


def test_it_is_called_off(live_acme: TenantKit, auditor: Person) -> None:
    page = asked(auditor)
    answer = auditor.post(f"{page}cancel", {}, follow=True)
    assert "Called off" in text_of(answer)
    assert not work(live_acme)


def test_one_form_asks_once(auditor: Person) -> None:
    form = {"mode": "full", "once": "k" * 20}
    first = auditor.post("audit/verifications/tenant/", form)["Location"]
    assert auditor.post("audit/verifications/tenant/", form)["Location"] == first


def test_what_is_new_says_what_it_takes_on_trust(live_acme: TenantKit, auditor: Person) -> None:
    fill(live_acme)
    seal(live_acme)
    for _ in range(2):
        page = asked(auditor, "incremental")
        while work(live_acme):
            pass
    words = text_of(auditor.get(page))
    assert "Taken on its signature" in words
    assert "Intact" in words


def test_a_long_run_is_left_to_the_worker_and_read_like_a_short_one(
    live_acme: TenantKit, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(live_acme)
    monkeypatch.setattr(audit_verify, "ENTRIES_AT_ONCE_MAX", 4)
    answer = auditor.post("audit/run/run-1/verify/", {"first": "1", "last": "3"})
    assert "/jobs/" not in answer["Location"], "a short range is read at once"
    page = auditor.post("audit/run/run-1/verify/", {})["Location"]
    page = page.removeprefix(f"/t/{live_acme.slug}/")
    assert "Waiting its turn" in text_of(auditor.get(page))
    while work(live_acme):
        pass
    assert auditor.get(page, headers=PARTIAL)["HX-Redirect"].endswith(page)
    words = text_of(auditor.get(page))
    assert "8 entries checked" in words
    assert "What this does and doesn" in words


def test_only_who_governs_sees_and_asks(live_acme: TenantKit, auditor: Person) -> None:
    page = asked(auditor)
    ann = person(live_acme, "person", subject="ann")
    for answer in (
        ann.get(page),
        ann.post("audit/verifications/tenant/", {"mode": "full"}),
        ann.post(f"{page}cancel", {}),
    ):
        assert answer.status_code == 403
    assert (
        auditor.get("audit/verifications/jobs/00000000-0000-0000-0000-000000000007/").status_code
        == 404
    )


def test_the_page_asks_the_database_little(live_acme: TenantKit, auditor: Person) -> None:
    for number in range(20):
        fill(live_acme, 1, run=f"r{number}")
    page = asked(auditor)
    while work(live_acme):
        pass
    with CaptureQueriesContext(connection) as queries:
        body = auditor.get(page).content
    assert len(queries) <= 12
    assert len(body) < 100_000
