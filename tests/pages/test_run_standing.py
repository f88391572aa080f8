"""A run's page says up to where it was verified, what stands outside for it, and what does not yet; a part's finding is kept."""

import io

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.actions.erase_payloads import erase_payloads
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, seal, verified
from tests.integrity.test_receipts import judged
from tests.pages.people import Person, person, text_of


@pytest.fixture
def auditor(live_acme: TenantKit) -> Person:
    return person(live_acme, "auditor")


def test_the_page_of_a_run_says_what_covers_it(live_acme: TenantKit, auditor: Person) -> None:
    fill(live_acme, 5)
    text = text_of(auditor.get("audit/run/run-1/"))
    assert "Verified to no entry yet" in text
    assert "Under a checkpoint not yet" in text
    assert "Not under a checkpoint yet 5 entries" in text
    size = seal(live_acme).size
    verified(live_acme)
    fill(live_acme, 2)
    with CaptureQueriesContext(connection) as asked:
        text = text_of(auditor.get("audit/run/run-1/"))
    assert len([one for one in asked if not one["sql"].startswith(("SAVEPOINT", "RELEASE"))]) <= 12
    assert "Verified to #4" in text
    assert f"Under a checkpoint to #4, checkpoint {size}" in text
    assert "Anchored" in text
    assert "Not under a checkpoint yet 2 entries" in text
    seal(live_acme)
    assert "Not under a checkpoint yet 0 entries" in text_of(auditor.get("audit/run/run-1/"))


def test_what_a_part_was_found_to_be_is_kept_for_the_run(
    live_acme: TenantKit, auditor: Person, superuser_url: str
) -> None:
    fill(live_acme, 8)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET actor = 'user:eve' WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 4",
            [live_acme.id],
        )

    def state() -> str:
        listed = live_acme.client("auditor").get("/v1/memory/runs").json()["data"]
        return str(next(one for one in listed if one["runId"] == "run-1")["integrity"]["state"])

    verified(live_acme, first=0, last=2)
    assert state() == "unverified", "a part that holds says nothing of the whole"
    verified(live_acme, first=3, last=6)
    assert state() == "tampered"
    assert "at #4" in text_of(auditor.get("audit/run/run-1/"))
    verified(live_acme, first=0, last=2)
    assert state() == "tampered", "and takes nothing back"


def test_after_a_version_1_erasure_every_report_says_what_is_unprotected(
    live_acme: TenantKit, auditor: Person
) -> None:
    stored = fill(live_acme, 5)
    assert (
        "unprotected"
        not in live_acme.client("auditor").post("/v1/memory/runs/run-1/verify", {}).json()
    )
    with tenant_context(live_acme.id):
        erase_payloads(
            principal=live_acme.principal("admin"), entry_ids=[stored[1].id], reason_code="r"
        )
    report = live_acme.client("auditor").post("/v1/memory/runs/run-1/verify", {}).json()
    assert report["state"] == "linkage-only"
    assert report["unprotected"] == {
        "entries": 1,
        "columns": ["id", "kind", "scope", "actor", "timestamp", "contentHash"],
    }
    assert judged(live_acme, "--run", "run-1")[0] == 12
    answer = auditor.post("audit/run/run-1/verify/", {"once": "x"})
    assert answer.status_code == 302, answer.content
    page = text_of(auditor.get(answer["Location"].removeprefix(f"/t/{auditor.kit.slug}/")))
    assert "nothing vouches any more for its id, kind, scope, actor" in page


def test_the_last_line_of_verify_log_counts_what_it_speaks_of(live_acme: TenantKit) -> None:
    fill(live_acme, 5)
    fill(live_acme, 3, "other")

    def last(*options: str) -> str:
        out = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("verify_log", live_acme.slug, *options, stdout=out)
        return out.getvalue().strip().split("\n")[-1]

    assert last("--run", "other").endswith("3 entries")
    assert "this run alone" in last("--run", "other")
    assert "3 runs, " in last()


def listed(auditor: Person) -> str:
    return text_of(auditor.get("audit/runs/", {"kind": "tool-call"}))


def test_a_state_is_never_shown_for_entries_that_came_after_it_was_found(
    live_acme: TenantKit, auditor: Person
) -> None:
    fill(live_acme, 5)
    seal(live_acme)
    verified(live_acme)
    for page in (listed(auditor), text_of(auditor.get("audit/run/run-1/"))):
        assert "Intact up to" not in page
        assert "not verified yet" not in page
    fill(live_acme, 3)
    pages = [
        listed(auditor),
        *(text_of(auditor.get(f"audit/run/run-1/{page}")) for page in ("", "verify/", "evidence/")),
    ]
    for page in pages:
        assert "Intact up to #4" in page
        assert "#0 to #4 verified" in page
        assert "3 entries came since and are not verified yet" in page
    head = next(
        one
        for one in live_acme.client("auditor").get("/v1/memory/runs").json()["data"]
        if one["runId"] == "run-1"
    )
    assert head["integrity"]["verifiedTo"] == 4
    assert head["integrity"]["entriesSince"] == 3
    health = text_of(auditor.get("audit/health/"))
    assert "as far as it was verified" in health or "not verified yet" in health
    verified(live_acme)
    assert "came since" not in text_of(auditor.get("audit/run/run-1/"))


def test_a_run_that_lost_its_end_since_it_was_verified_does_not_read_as_intact(
    live_acme: TenantKit, auditor: Person, superuser_url: str
) -> None:
    fill(live_acme, 5)
    verified(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE run_head SET next_sequence = 3, entry_count = 3 WHERE tenant_id = %s AND run_id = 'run-1'",
            [live_acme.id],
        )
    for page in (listed(auditor), text_of(auditor.get("audit/run/run-1/"))):
        assert "Entries are gone since it was verified" in page
