"""Chain health: a cell a day, each a link, with the finding in words."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import formats

from memory.actions.verify_tenant import verify_tenant
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, seal, verified
from tests.pages.people import Person, person, text_of


@pytest.fixture
def auditor(live_acme: TenantKit) -> Person:
    return person(live_acme, "auditor")


def begin_at(superuser_url: str, run: str, at: str) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE run_head SET first_at = %s, last_at = greatest(last_at, %s) WHERE run_id = %s",
            [at, at, run],
        )


def cells(auditor: Person) -> list[str]:
    """The words of each cell that is a link."""
    return re.findall(
        r'<a href="[^"]+" aria-label="([^"]+)"', auditor.get("audit/health/").content.decode()
    )


def test_before_the_first_seal_it_says_what_speaks_for_the_log(auditor: Person) -> None:
    assert "Nothing is sealed yet" in text_of(auditor.get("audit/health/"))


def test_each_day_says_what_was_found_and_leads_to_its_runs(
    live_acme: TenantKit, auditor: Person, superuser_url: str
) -> None:
    today = datetime.now(UTC).date()
    for run in ("good", "bad", "new"):
        fill(live_acme, 2, run=run)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute("UPDATE log_entry SET actor = 'x' WHERE run_id = 'bad' AND sequence = 1")
    for run in ("good", "bad"):
        verified(live_acme, run)
    page = auditor.get("audit/health/")
    shown = text_of(page)
    assert "1 run is broken." in shown
    assert "checkpoint" in shown
    [words] = cells(auditor)
    assert "1 broken" in words
    assert "1 intact" in words
    assert f"since={today}&amp;until={today}" in page.content.decode()
    listed = auditor.get("audit/runs/", {"since": str(today), "until": str(today)}).content.decode()
    for run in ("good", "bad", "new"):
        assert f"<bdi>{run}</bdi>" in listed


def test_days_are_the_readers_and_old_ones_fall_off(
    live_acme: TenantKit, auditor: Person, superuser_url: str
) -> None:
    fill(live_acme, 1, run="late")
    fill(live_acme, 1, run="old")
    today = datetime.now(UTC).date()
    begin_at(superuser_url, "old", "2020-01-01T00:00:00Z")
    begin_at(superuser_url, "late", f"{today}T00:30:00Z")
    assert len(cells(auditor)) == 1, "what began years ago is not shown"
    auditor.post("settings/", {"time_zone": "America/Los_Angeles", "theme": "", "language": ""})
    yesterday = formats.date_format(today - timedelta(days=1))
    assert any(words.startswith(yesterday) for words in cells(auditor)), "half past midnight in UTC"


def test_a_run_that_was_removed_is_missed(
    live_acme: TenantKit, auditor: Person, superuser_url: str
) -> None:
    fill(live_acme, 2, run="gone")
    seal(live_acme)
    verified(live_acme, "gone")
    with attacker(superuser_url) as session:
        session.execute("DELETE FROM log_entry WHERE run_id = 'gone'")
        session.execute("DELETE FROM run_head WHERE run_id = 'gone'")
    verify_tenant(principal=live_acme.principal("auditor"))
    assert "Runs are gone" in text_of(auditor.get("audit/health/"))


def test_it_asks_little_of_the_database(live_acme: TenantKit, auditor: Person) -> None:
    with CaptureQueriesContext(connection) as queries:
        body = auditor.get("audit/health/").content
    assert len(queries) <= 12
    assert len(body) < 100_000
