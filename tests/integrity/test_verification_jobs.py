"""Verifications by the worker: asked for over the API, watched, called off, taken up again, and begun from a checkpoint."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from memory.access import system_principal
from memory.actions import run_verifications as runner
from memory.actions.ask_verification import WAITING_AT_MOST
from memory.actions.erase_payloads import erase_payloads
from memory.actions.run_verifications import REPORTS_KEPT, run_verifications
from memory.actions.verify_run import keep_verification
from memory.integrity.states import ChainReport, State
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.integrity.logs import attacker, fill, seal

JOBS = "/v1/memory/verifications"


@pytest.fixture(autouse=True)
def forgets() -> Iterator[None]:
    """What this process has at work ends with the test."""
    yield
    runner._AT_WORK.clear()


@pytest.fixture
def auditor(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("auditor")


def ask(auditor: ApiClient, **body: Any) -> dict[str, Any]:
    answer = auditor.post(JOBS, body)
    assert answer.status_code == 202, answer.content
    told: dict[str, Any] = answer.json()
    return told


def work(tenant: TenantKit, *, seconds: float = 60.0) -> bool:
    return run_verifications(
        system_principal(tenant.id, tenant.slug, id="verifier"), seconds=seconds
    )


def done(tenant: TenantKit, auditor: ApiClient, **body: Any) -> dict[str, Any]:
    job = ask(auditor, **body)
    while work(tenant):
        pass
    told: dict[str, Any] = auditor.get(f"{JOBS}/{job['id']}").json()
    assert told["status"] == "done", told
    return told


def test_a_run_is_verified_by_the_worker_and_says_how_far_it_came(
    live_acme: TenantKit, auditor: ApiClient
) -> None:
    fill(live_acme)
    seal(live_acme)
    job = ask(auditor, runId="run-1")
    assert (job["status"], job["mode"], job["runId"]) == ("queued", "full", "run-1")
    assert "state" not in job
    assert work(live_acme)
    job = auditor.get(f"{JOBS}/{job['id']}").json()
    assert (job["status"], job["state"], job["states"]) == ("done", "verified", {"verified": 1})
    assert job["entries"] == {"done": 8, "total": 8}
    assert job["runs"] == {"done": 1, "total": 1}
    assert job["reports"][0]["headHash"].startswith("sha256:")
    assert not work(live_acme)
    heads = auditor.get("/v1/memory/runs", {"status": "verified"}).json()["data"]
    assert [(head["runId"], head["integrity"]["verifiedTo"]) for head in heads] == [("run-1", 7)]
    acts = auditor.get("/v1/memory/runs/kindmem.governance/log", {"limit": 200}).json()["data"]
    said = [act["payload"] for act in acts if act["payload"].get("verificationId") == job["id"]]
    assert [(act["type"], act["state"]) for act in said] == [("log.verified", "verified")]
    assert said[0]["requestedBy"] == job["requestedBy"]


def test_a_tenant_is_verified_whole_and_the_worst_comes_first(
    live_acme: TenantKit, auditor: ApiClient, superuser_url: str
) -> None:
    for number in range(5):
        fill(live_acme, 3, run=f"r{number}")
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET payload_text = '1' WHERE tenant_id = %s AND run_id = 'r3' AND sequence = 1",
            [live_acme.id],
        )
        session.execute(
            "DELETE FROM log_entry WHERE tenant_id = %s AND run_id = 'r4'", [live_acme.id]
        )
        session.execute(
            "DELETE FROM run_head WHERE tenant_id = %s AND run_id = 'r4'", [live_acme.id]
        )
    job = done(live_acme, auditor)
    assert job["state"] == "tampered"
    assert job["states"]["tampered"] == 2
    bad = {one["runId"]: one["firstBad"] for one in job["reports"][:2]}
    assert (bad["r3"]["sequence"], bad["r3"]["class"]) == (1, "content")
    assert (bad["r4"]["sequence"], bad["r4"]["class"]) == (0, "seal")
    assert job["runs"]["done"] == job["runs"]["total"]


def test_a_range_is_a_range(live_acme: TenantKit, auditor: ApiClient) -> None:
    fill(live_acme)
    job = done(live_acme, auditor, runId="run-1", **{"from": 2, "to": 5})
    assert (job["state"], job["from"], job["to"]) == ("not-complete", 2, 5)
    assert job["entries"] == {"done": 4, "total": 4}
    heads = auditor.get("/v1/memory/runs", {"status": "not-complete"}).json()["data"]
    assert heads == []


def test_incremental_reads_only_what_came_since_the_last_good_checkpoint(
    live_acme: TenantKit, auditor: ApiClient
) -> None:
    fill(live_acme, 8)
    fill(live_acme, 5, run="run-2")
    seal(live_acme)
    first = done(live_acme, auditor, mode="incremental")
    assert "sinceCheckpoint" not in first
    fill(live_acme, 3)
    seal(live_acme)
    fill(live_acme, 2)
    second = done(live_acme, auditor, runId="run-1", mode="incremental")
    assert second["sinceCheckpoint"] == first["checkpoint"]
    report = second["reports"][0]
    assert (report["state"], report["from"], report["to"]) == ("verified-unsealed-tail", 0, 12)
    assert (report["entries"], report["unsealed"]) == (13, 2)
    assert second["entries"] == {"done": 13, "total": 13}
    assert second["checkpoint"] > first["checkpoint"]


@pytest.mark.parametrize(
    ("change", "place", "tampering"),
    [
        # What was verified before and is rewritten now is for a full verification: it is taken on the checkpoint's signature.
        ("UPDATE log_entry SET actor = 'x' WHERE run_id = 'run-1' AND sequence = 2", None, None),
        ("UPDATE log_entry SET actor = 'x' WHERE run_id = 'run-1' AND sequence = 9", 9, "content"),
        ("DELETE FROM log_entry WHERE run_id = 'run-1' AND sequence = 7", 7, "gap"),
        (
            "UPDATE log_entry SET entry_hash = sha256('x') WHERE run_id = 'run-1' AND sequence = 7",
            7,
            "content",
        ),
        ("DELETE FROM log_entry WHERE run_id = 'run-1' AND sequence > 8", 9, "gap"),
        ("DELETE FROM log_entry WHERE run_id = 'run-1'", 7, "gap"),
    ],
)
def test_incremental_joins_what_is_new_to_the_signed_head(
    live_acme: TenantKit,
    auditor: ApiClient,
    superuser_url: str,
    change: str,
    place: int | None,
    tampering: str | None,
) -> None:
    fill(live_acme, 8)
    seal(live_acme)
    done(live_acme, auditor)
    fill(live_acme, 3)
    with attacker(superuser_url) as session:
        session.execute(change)
    report = done(live_acme, auditor, runId="run-1", mode="incremental")["reports"][0]
    bad = report.get("firstBad")
    assert (bad and bad["sequence"], bad and bad["class"]) == (place, tampering), report
    if place is None:
        whole = done(live_acme, auditor, runId="run-1")["reports"][0]
        assert (whole["firstBad"]["sequence"], whole["firstBad"]["class"]) == (2, "content")
        again = done(live_acme, auditor, runId="run-1", mode="incremental")
        assert "sinceCheckpoint" not in again
        assert again["reports"] == [whole]


@pytest.mark.parametrize("asked", [{"runId": "run-1"}, {}])
def test_incremental_does_not_take_back_the_tampering_that_was_found_before(
    live_acme: TenantKit, auditor: ApiClient, superuser_url: str, asked: dict[str, Any]
) -> None:
    fill(live_acme, 8)
    fill(live_acme, 3, run="run-2")
    seal(live_acme)
    done(live_acme, auditor)
    edit = "UPDATE log_entry SET actor = {} WHERE run_id = 'run-1' AND sequence = 2"
    with attacker(superuser_url) as session:
        [actor] = session.execute(
            "SELECT actor FROM log_entry WHERE run_id = 'run-1' AND sequence = 2"
        ).fetchone() or [None]
        session.execute(edit.format("'x'"))
    assert done(live_acme, auditor)["state"] == "tampered"
    again = done(live_acme, auditor, mode="incremental", **asked)
    assert again["state"] == "tampered"
    bad = next(one for one in again["reports"] if one["runId"] == "run-1")["firstBad"]
    assert (bad["sequence"], bad["class"]) == (2, "content")
    heads = auditor.get("/v1/memory/runs", {"status": "tampered"}).json()["data"]
    assert [head["runId"] for head in heads] == ["run-1"]
    with attacker(superuser_url) as session:
        session.execute(edit.format("%s"), [actor])
    done(live_acme, auditor, runId="run-1")
    assert auditor.get("/v1/memory/runs", {"status": "tampered"}).json()["data"] == []


def test_tampering_found_while_an_incremental_one_runs_is_not_taken_back_by_it(
    live_acme: TenantKit, auditor: ApiClient, superuser_url: str
) -> None:
    fill(live_acme, 8)
    seal(live_acme)
    done(live_acme, auditor)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        principal = live_acme.principal("admin", everything=True)
        cursor.execute(
            "UPDATE run_verification SET state = 'tampered', first_bad_sequence = 2, first_bad_class = 'content'"
            " WHERE run_id = 'run-1'"
        )
        good = ChainReport(
            state=State.VERIFIED, run_id="run-1", from_sequence=0, to_sequence=7, entries=8,
            head_hash=None, unsealed=0, erased=0, linkage_only=0, first_bad=None,
        )  # fmt: skip
        states = []
        for is_full in (False, True):
            keep_verification(cursor, principal, good, is_full=is_full)
            cursor.execute("SELECT state FROM run_verification WHERE run_id = 'run-1'")
            states.append(cursor.fetchone()[0])
    assert states == ["tampered", "verified"]


def test_incremental_after_an_erasure_still_says_that_something_was_erased(
    live_acme: TenantKit, auditor: ApiClient
) -> None:
    entries = fill(live_acme)
    seal(live_acme)
    with tenant_context(live_acme.id):
        erase_payloads(
            principal=live_acme.principal("admin", everything=True),
            entry_ids=[entries[0].id],
            reason_code="request",
        )
    seal(live_acme)
    full = done(live_acme, auditor, runId="run-1")["reports"][0]
    since = done(live_acme, auditor, runId="run-1", mode="incremental")["reports"][0]
    assert full["state"] == "linkage-only"
    assert since == full


def test_it_is_called_off_while_it_waits_and_while_it_runs(
    live_acme: TenantKit, auditor: ApiClient
) -> None:
    for number in range(4):
        fill(live_acme, 3, run=f"r{number}")
    waiting = ask(auditor)
    answer = auditor.post(f"{JOBS}/{waiting['id']}/cancel", {}).json()
    assert answer["status"] == "cancelled"
    assert not work(live_acme)

    running = ask(auditor)
    assert work(live_acme, seconds=0.0)
    seen = auditor.get(f"{JOBS}/{running['id']}").json()
    assert (seen["status"], seen["runs"]["total"] >= 4) == ("running", True)
    assert 0 < seen["runs"]["done"] < seen["runs"]["total"]
    assert auditor.post(f"{JOBS}/{running['id']}/cancel", {}).json()["status"] == "running"
    work(live_acme)
    ended = auditor.get(f"{JOBS}/{running['id']}").json()
    assert ended["status"] == "cancelled"
    assert "state" not in ended
    assert auditor.post(f"{JOBS}/{running['id']}/cancel", {}).json() == ended


def test_what_a_dead_worker_left_is_taken_up_by_the_next(
    live_acme: TenantKit, auditor: ApiClient, superuser_url: str
) -> None:
    fill(live_acme, 3)
    job = ask(auditor)
    assert work(live_acme, seconds=0.0)
    [left] = runner._AT_WORK.values()
    runner._AT_WORK.clear()
    assert not work(live_acme), "its lease has not run out"
    with attacker(superuser_url) as session:
        session.execute("UPDATE verification_job SET lease_until = now() - interval '1 second'")
    while work(live_acme):
        pass
    assert auditor.get(f"{JOBS}/{job['id']}").json()["status"] == "done"
    runner._AT_WORK[live_acme.id] = left
    assert work(live_acme)
    assert auditor.get(f"{JOBS}/{job['id']}").json()["status"] == "done", "the dead came back"


def test_one_that_ends_every_worker_is_given_up(
    live_acme: TenantKit, auditor: ApiClient, superuser_url: str
) -> None:
    fill(live_acme, 3)
    job = ask(auditor)
    with attacker(superuser_url) as session:
        session.execute("UPDATE verification_job SET attempts = 5")
    assert not work(live_acme)
    assert auditor.get(f"{JOBS}/{job['id']}").json()["status"] == "failed"


def test_who_may_ask_and_what(live_acme: TenantKit, auditor: ApiClient) -> None:
    fill(live_acme, 3)
    job = ask(auditor)
    for role in ("agent", "app"):
        client = live_acme.client(role, everything=True)
        for answer in (
            client.post(JOBS, {"runId": "run-1"}),
            client.get(JOBS),
            client.get(f"{JOBS}/{job['id']}"),
            client.post(f"{JOBS}/{job['id']}/cancel", {}),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                403,
                "permission-denied",
            )
    for body, status, code in (
        ({"runId": "nothing"}, 404, "log-not-found"),
        ({"from": 1}, 400, "bad-input"),
        ({"runId": "run-1", "from": 2, "to": 1}, 400, "bad-input"),
        ({"runId": "run-1", "from": 1, "mode": "incremental"}, 400, "bad-input"),
        ({"mode": "quick"}, 400, "bad-input"),
        ({"run": "run-1"}, 400, "unknown-field"),
    ):
        answer = auditor.post(JOBS, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), body
    for id in ("x", str(UUID(int=7))):
        answer = auditor.get(f"{JOBS}/{id}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            404,
            "verification-not-found",
        )


def test_not_too_many_wait_at_once(live_acme: TenantKit, auditor: ApiClient) -> None:
    for _ in range(WAITING_AT_MOST):
        ask(auditor)
    answer = auditor.post(JOBS, {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate-limited")
    assert answer["Retry-After"]
    pages = [auditor.get(JOBS, {"limit": 15}).json()]
    pages.append(auditor.get(JOBS, {"limit": 15, "cursor": pages[0]["nextCursor"]}).json())
    ids = [job["id"] for page in pages for job in page["data"]]
    assert len(set(ids)) == WAITING_AT_MOST
    assert ids == sorted(ids, reverse=True)


def test_a_large_tenant_keeps_a_bounded_number_of_reports(
    live_acme: TenantKit, auditor: ApiClient
) -> None:
    for number in range(REPORTS_KEPT + 3):
        fill(live_acme, 1, run=f"r{number:03}")
    job = done(live_acme, auditor)
    assert len(job["reports"]) == REPORTS_KEPT
    assert sum(job["states"].values()) == job["runs"]["done"] >= REPORTS_KEPT + 3


def test_a_job_is_of_one_tenant(
    live_acme: TenantKit, auditor: ApiClient, superuser_url: str
) -> None:
    job = ask(auditor)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM verification_job")
        assert cursor.fetchone() == (1,)
    other = system_principal(UUID(int=9), "other", id="verifier")
    assert not run_verifications(other)
    assert auditor.get(f"{JOBS}/{job['id']}").json()["status"] == "queued"
