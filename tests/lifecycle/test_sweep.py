"""Sweeps: what is due goes whole and leaves evidence, what is kept or held stays, and a cut-off sweep is taken up."""

import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from memory.access import system_principal
from memory.actions import sweep_retention as module
from memory.actions.run_erasure import run_due_erasures
from memory.actions.sweep_retention import SweepResult, sweep_retention
from memory.errors import SweepOff, SweepRefused, SweepRunning
from memory.fact_shape import Retention
from memory.hold_items import insert_hold
from memory.holds import HoldScope, NewHold
from memory.housekeeping import JOBS
from memory.instants import instant_text
from memory.retention import retention_basis
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.lifecycle.facts import age, count, delete, value, write

PARTS = (
    "fact_content",
    "fact_revision",
    "fact_subject",
    "fact_cause",
    "fact_document",
    "fact_embedding",
    "posting",
)


def sweep(kit: TenantKit, **more: Any) -> SweepResult:
    return sweep_retention(principal=system_principal(kit.id, kit.slug, id="sweeper"), **more)


def settings(kit: TenantKit, **retention: Any) -> None:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenant SET settings = jsonb_set(settings, '{retention}', %s::jsonb) WHERE id = %s::uuid",
            [json.dumps(retention), kit.id],
        )


def test_what_is_due_goes_whole_and_leaves_only_evidence(acme: TenantKit) -> None:
    due, kept = write(acme, content="secret word"), write(acme, content="other")
    age(acme, due.id)
    result = sweep(acme)
    assert (result.destroyed, result.held, result.counts) == (1, 0, {"delete-after-days": 1})
    for table in PARTS[:2]:
        assert count(acme, table, f"fact_id = '{due.id}'") == 0
        assert count(acme, table, f"fact_id = '{kept.id}'") == 1
    assert count(acme, "fact") == 1
    assert count(acme, "posting", "starts_with(lexeme, 'secret')") == 0
    assert count(acme, "destroyed_fact", f"fact_id = '{due.id}' AND revision_count = 1") == 1
    payload = json.loads(
        value(
            acme,
            "SELECT payload_text FROM log_entry WHERE position('sweep.batch' IN payload_text) > 0",
        )
    )
    assert payload["factIds"] == [due.id]
    assert "secret" not in json.dumps(payload)


def test_a_dry_run_counts_what_a_run_then_destroys(acme: TenantKit) -> None:
    ids = [write(acme).id for _ in range(7)]
    age(acme, *ids[:3])
    for one in ids[3:5]:
        delete(acme, one)
    counted = sweep(acme, dry_run=True, batch_size=2)
    assert count(acme, "fact") == 7
    done = sweep(acme, batch_size=2)
    assert (counted.due, counted.counts, counted.held) == (5, done.counts, done.held)
    assert done.destroyed == 5
    assert done.counts == {"delete-after-days": 3, "deleted": 2}
    assert count(acme, "sweep", "is_dry_run AND due_count = 5 AND destroyed_count = 0") == 1


def test_a_keep_window_outlives_the_end_of_an_unverified_one(acme: TenantKit) -> None:
    fact = write(acme, retention=Retention(keep_days=300))
    age(acme, fact.id)
    assert sweep(acme).destroyed == 0
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("UPDATE fact SET keep_ends_at = now() - interval '1 minute'")
    assert sweep(acme).destroyed == 1


def test_a_deleted_fact_stays_for_its_days_of_grace(acme: TenantKit) -> None:
    settings(acme, graceDays=2)
    fact = write(acme)
    delete(acme, fact.id)
    assert sweep(acme).destroyed == 0
    settings(acme, graceDays=0)
    assert sweep(acme).destroyed == 1


def test_a_hold_keeps_what_is_expired_or_deleted_already_whatever_its_state(
    acme: TenantKit,
) -> None:
    """M34."""
    expired, deleted, both = (write(acme) for _ in range(3))
    delete(acme, deleted.id)
    delete(acme, both.id)
    age(acme, expired.id, both.id)
    ids = (expired.id, deleted.id, both.id)
    with tenant_context(acme.id):
        scope = HoldScope(fact_ids=ids)
        insert_hold(acme.principal("admin"), NewHold("m", "r", scope, date(2090, 1, 1)))
    for result in (sweep(acme, dry_run=True), sweep(acme)):
        assert (result.due, result.held) == (0, 3)
    assert count(acme, "fact_content") == 3


def test_a_held_fact_is_left_and_counted(acme: TenantKit) -> None:
    """M31, M34."""
    fact = write(acme, retention=Retention(legal_hold=True))
    age(acme, fact.id)
    assert (sweep(acme, dry_run=True).held, sweep(acme).held) == (1, 1)
    assert count(acme, "fact_content") == 1


def test_sweeping_switched_off_refuses_and_a_dry_run_still_counts(acme: TenantKit) -> None:
    age(acme, write(acme).id)
    settings(acme, sweepIsOff=True)
    with pytest.raises(SweepOff):
        sweep(acme)
    assert sweep(acme, dry_run=True).due == 1


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ("now() + interval '1 hour'", "clock-went-back"),
        ("now() - interval '60 days'", "clock-jumped-ahead"),
    ],
)
def test_a_sweep_refuses_when_the_clock_jumped(acme: TenantKit, seen: str, reason: str) -> None:
    age(acme, write(acme).id)
    sweep(acme, dry_run=True)
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO sweep_clock SELECT id, {seen} FROM tenant")
    with pytest.raises(SweepRefused) as refused:
        sweep(acme)
    assert refused.value.reason == reason
    assert sweep(acme, accept_clock=True).destroyed == 1


def test_a_sweep_refuses_when_server_and_database_differ(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = datetime.now(UTC) + timedelta(hours=2)
    monkeypatch.setattr(module.time, "time", later.timestamp)
    with pytest.raises(SweepRefused) as refused:
        sweep(acme)
    assert refused.value.reason == "clocks-differ"


class Killed(BaseException):
    """Stands for a process that ends between two batches."""


@pytest.mark.parametrize("killed_at", range(1, 5))
def test_a_sweep_cut_off_after_any_batch_is_taken_up_and_its_evidence_is_exact(
    live_acme: TenantKit, killed_at: int
) -> None:
    ids = [write(live_acme).id for _ in range(8)]
    age(live_acme, *ids)

    def kill(result: SweepResult) -> None:
        if result.batches == killed_at:
            raise Killed

    with pytest.raises(Killed):
        sweep(live_acme, batch_size=2, on_batch=kill)
    assert count(live_acme, "destroyed_fact") == 8 - count(live_acme, "fact") == 2 * killed_at
    again = sweep(live_acme, batch_size=2)
    assert (again.destroyed, count(live_acme, "fact")) == (8, 0)
    assert count(live_acme, "destroyed_fact") == 8
    assert count(live_acme, "sweep") == 1


@pytest.mark.parametrize("killed_in", range(1, 5))
def test_a_sweep_cut_off_within_any_batch_leaves_nothing_of_it(
    live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch, killed_in: int
) -> None:
    ids = [write(live_acme).id for _ in range(8)]
    age(live_acme, *ids)
    told, log = [], module.append_governance

    def killing(**entry: Any) -> Any:
        told.append(entry)
        if len(told) == killed_in:
            raise Killed
        return log(**entry)

    monkeypatch.setattr(module, "append_governance", killing)
    with pytest.raises(Killed):
        sweep(live_acme, batch_size=2)
    left = set(ids) - evidenced(live_acme)
    assert len(left) == 8 - 2 * (killed_in - 1)
    assert left == set(value(live_acme, "SELECT array_agg(id) FROM fact"))
    assert sweep(live_acme, batch_size=2).destroyed == 8
    assert evidenced(live_acme) == set(ids)
    assert count(live_acme, "destroyed_fact") == 8
    entries = "SELECT count(*) FROM log_entry WHERE position('sweep.batch' IN payload_text) > 0"
    assert value(live_acme, entries) == 4


def evidenced(kit: TenantKit) -> set[str]:
    """The facts that evidence says were destroyed."""
    return set(value(kit, "SELECT array_agg(fact_id) FROM destroyed_fact") or ())


def test_one_sweep_a_tenant_runs_and_a_dead_one_is_taken_up_when_its_lease_ends(
    live_acme: TenantKit,
) -> None:
    age(live_acme, *[write(live_acme).id for _ in range(4)])

    def meet_another(result: SweepResult) -> None:
        with pytest.raises(SweepRunning):
            sweep(live_acme)

    assert sweep(live_acme, batch_size=2, on_batch=meet_another).destroyed == 4


def test_a_runner_whose_sweep_was_taken_up_keeps_nothing_of_its_batch(live_acme: TenantKit) -> None:
    age(live_acme, *[write(live_acme).id for _ in range(6)])

    def overtake(result: SweepResult) -> None:
        if result.batches == 1:
            with tenant_context(live_acme.id), connection.cursor() as cursor:
                cursor.execute("UPDATE sweep SET lease_until = now() - interval '1 second'")
            assert sweep(live_acme, batch_size=2).destroyed == 6

    with pytest.raises(SweepRunning):
        sweep(live_acme, batch_size=2, on_batch=overtake)
    assert count(live_acme, "destroyed_fact") == 6


def test_the_command_sweeps_one_tenant_or_all_and_says_what_it_did(acme: TenantKit) -> None:
    age(acme, write(acme).id)

    def said(*arguments: str) -> Any:
        out = StringIO()
        call_command("sweep_retention", *arguments, "--json", stdout=out)
        return json.loads(out.getvalue())

    assert said("acme", "--dry-run")["due"] == 1
    everything = said()["tenants"]
    assert [one["destroyed"] for one in everything if one["tenant"] == "acme"] == [1]


def test_the_worker_sweeps_every_tenant(live_acme: TenantKit) -> None:
    age(live_acme, write(live_acme).id)
    job = {name: call for name, _, call in JOBS}["sweep-retention"]
    job()
    assert count(live_acme, "fact") == 0


@pytest.mark.parametrize(
    ("retention", "tenant", "rule", "phrase"),
    [
        (
            Retention(keep_until=datetime(2090, 1, 1, tzinfo=UTC)),
            {},
            "fact-keep-until",
            "keepUntil, until 2090",
        ),
        (Retention(keep_days=30), {}, "fact-keep-days", "keepDays, until"),
        (Retention(), {"keepDays": 9}, "tenant-default", "tenant's default"),
        (Retention(), {}, "none", "no rule ends it."),
        (Retention(legal_hold=True), {}, "none", "a legal hold keeps it"),
    ],
)
def test_the_ladder_is_explained_for_each_fact(
    acme: TenantKit, retention: Retention, tenant: dict[str, int], rule: str, phrase: str
) -> None:
    settings(acme, **tenant)
    fact = write(acme, retention=retention)
    with tenant_context(acme.id):
        basis = retention_basis(acme.principal("admin"), fact.id)
    assert basis.rule == rule
    assert phrase in basis.sentence


def test_two_windows_are_told_with_what_happens_when(acme: TenantKit) -> None:
    settings(acme, keepDays=30, deleteAfterDays=60)
    fact = write(acme)
    with tenant_context(acme.id):
        basis = retention_basis(acme.principal("admin"), fact.id)
    kept, read = (instant_text(fact.created_at + timedelta(days=days)) for days in (30, 60))
    assert basis.sentence == (
        f"Kept because the tenant's default says so, until {read}. Until {kept} nobody can delete it; it is read "
        f"until {read}, and the next sweep then destroys it."
    )
    assert (basis.wire()["keptUntil"], basis.wire()["readUntil"]) == (kept, read)


def test_what_a_sweep_did_is_read_over_http_with_its_evidence(acme: TenantKit) -> None:
    admin, fact = acme.client("admin"), write(acme, type="mail")
    age(acme, fact.id)
    base = "/v1/memory/retention/sweeps"
    asked = admin.post(base).json()
    assert (asked["dryRun"], asked["due"], asked["types"]) == (True, 1, {"mail": 1})
    assert admin.get(f"{base}/{asked['id']}").json() == asked
    assert admin.get(f"{base}/{asked['id']}/evidence").json()["data"] == []
    done = sweep(acme)
    (row,) = admin.get(f"{base}/{done.id}/evidence").json()["data"]
    assert (row["factId"], row["type"], row["rule"]) == (fact.id, "mail", "delete-after-days")
    assert len(row["contentDigest"]) == 64
    for path in ("nothing", "0190a3a0-0000-7000-8000-000000000000"):
        assert admin.get(f"{base}/{path}").json()["error"]["code"] == "not-found"
    for role in ("agent", "app"):
        assert acme.client(role).get(f"{base}/{done.id}").status_code == 403
    assert acme.client("auditor").post(base).status_code == 403


@pytest.mark.parametrize("named_by", ["scope", "participant", "subject", "thread", "fact"])
def test_what_an_open_erasure_is_about_is_left_to_it_and_counted(
    acme: TenantKit, named_by: str
) -> None:
    """M35."""
    scopes = {
        "scope": {"userId": "ann"},
        "participant": {"projectId": "p1", "participantId": "ann"},
        "thread": {"projectId": "p1", "threadId": "chat"},
    }
    about: dict[str, Any] = {
        "id": "about",
        "type": "note",
        "scope": {"projectId": "p1"},
        "content": "x",
    }
    about["scope"] = scopes.get(named_by, about["scope"])
    if named_by == "subject":
        about["subjects"] = [{"kind": "external", "id": "ann"}]
    admin = acme.client("admin")
    assert admin.post("/v1/memory/facts", about).status_code == 201
    other = write(acme)
    age(acme, "about", other.id)
    selector = {"fact": {"factId": "about"}, "thread": {"conversationId": "chat"}}.get(
        named_by, {"subject": {"kind": "user", "id": "ann"}}
    )
    assert admin.post("/v1/memory/erasures", selector).status_code == 202
    dry = sweep(acme, dry_run=True)
    done = sweep(acme)
    for result in (dry, done):
        assert (result.due, result.erasing, result.held) == (1, 1, 0)
    assert value(acme, "SELECT array_agg(erasing_count) FROM sweep") == [1, 1]
    assert count(acme, "fact", "id = 'about'") == 1
    assert count(acme, "fact", f"id = '{other.id}'") == 0
    run_due_erasures(system_principal(acme.id, acme.slug, id="eraser"))
    assert count(acme, "fact", "id = 'about'") == 0
    assert sweep(acme).erasing == 0


def test_the_ladder_says_that_an_erasure_takes_it(acme: TenantKit) -> None:
    admin = acme.client("admin")
    fact = write(acme)
    assert admin.post("/v1/memory/erasures", {"factId": fact.id}).status_code == 202
    told = admin.get(f"/v1/memory/retention/facts/{fact.id}").json()
    assert told["rule"] == "erasure"
    assert told["sentence"] == "Kept because an erasure is taking it away."
