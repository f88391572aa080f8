"""Legal holds: what one names is kept, later items too, until two people release the last one."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import Error, connection, transaction

from memory.access import Principal
from memory.actions.place_hold import place_hold
from memory.actions.release_hold import approve_release, request_release, withdraw_release
from memory.errors import BadInput, PermissionDenied, ReleaseRefused
from memory.fact_shape import Subject
from memory.holds import Hold, HoldScope, find_hold
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.lifecycle.facts import SCOPE, age, count, delete, value, write
from tests.lifecycle.people import just_now, member
from tests.lifecycle.test_sweep import sweep
from tests.records.builders import a_record, body_of, refusal

RECORDS, FACTS, HOLDS = "/v1/memory/records", "/v1/memory/facts", "/v1/memory/legal-holds"
NEXT_YEAR = (datetime.now(UTC) + timedelta(days=365)).date()


def place(kit: TenantKit, by: Principal | None = None, **scope: Any) -> Hold:
    with tenant_context(kit.id):
        return place_hold(
            principal=by or kit.principal("admin"),
            matter="Ann v. Acme",
            reason="litigation",
            scope=HoldScope(**scope),
            review_on=NEXT_YEAR,
        )


def release(kit: TenantKit, hold: Hold, first: Principal, second: Principal) -> Hold:
    with tenant_context(kit.id):
        request_release(
            principal=first, hold_id=str(hold.id), reason="closed", reauthenticated_at=just_now()
        )
        return approve_release(
            principal=second, hold_id=str(hold.id), reauthenticated_at=just_now()
        )


@pytest.fixture
def app(acme: TenantKit) -> ApiClient:
    return acme.client("app", projects=["p1"], users=["ann", "bob"])


def remember(app: ApiClient, subject: str = "ann", **changes: Any) -> str:
    return str(body_of(app.post(RECORDS, a_record(subject=subject, **changes)), 201)["id"])


@pytest.mark.parametrize(
    "scope",
    [
        {"subject_ids": ("ann",)},
        {"fact_types": ("held-type",)},
        {"run_ids": ("run-held",)},
        {"written_from": datetime(2020, 1, 1, tzinfo=UTC), "fact_types": ("held-type",)},
        {"written_until": datetime(2090, 1, 1, tzinfo=UTC), "subject_ids": ("ann",)},
        {"subject_ids": ("ann", "bob"), "fact_types": ("held-type",), "run_ids": ("run-held",)},
    ],
)
def test_a_hold_keeps_the_facts_its_scope_names_and_no_other(
    acme: TenantKit, scope: dict[str, Any]
) -> None:
    writer = acme.client("app", projects=["p1"])
    body_of(
        writer.post(
            "/v1/memory/runs/run-held/log",
            {"id": "e1", "kind": "tool-call", "scope": SCOPE, "payload": {}},
        ),
        201,
    )
    held = write(acme, type="held-type", subjects=(Subject("external", "ann"),), causes=("e1",))
    free = write(acme, subjects=(Subject("external", "bob"),))
    hold = place(acme, **scope)
    assert (hold.fact_count, hold.record_count) == (1, 0)
    assert count(acme, "fact_hold", f"fact_id = '{held.id}'") == 1
    age(acme, held.id, free.id)
    assert sweep(acme).destroyed == 1
    assert count(acme, "fact", f"id = '{held.id}'") == 1


@pytest.mark.parametrize(
    ("scope", "kept"),
    [
        ({"subject_ids": ("ann",)}, {"hers", "told"}),
        ({"subject_ids": ("ann",), "run_ids": ("chat",)}, {"told"}),
        ({"run_ids": ("chat",)}, {"told"}),
        ({"written_until": datetime(2020, 1, 1, tzinfo=UTC)}, set()),
        ({"written_from": datetime(2020, 1, 1, tzinfo=UTC)}, {"hers", "told", "his"}),
        ({"fact_types": ("held-type",)}, set()),
        ({"record_ids": ("his",)}, {"his"}),
    ],
)
def test_a_hold_keeps_the_records_its_scope_names_and_no_other(
    acme: TenantKit, app: ApiClient, scope: dict[str, Any], kept: set[str]
) -> None:
    entry = {"id": "e1", "kind": "user-message", "scope": {"userId": "ann"}, "payload": {}}
    body_of(app.post("/v1/memory/runs/chat/log", entry), 201)
    remember(app, id="hers", key="k.hers")
    remember(app, id="told", key="k.told", evidence={"kind": "message", "ref": "e1"})
    remember(app, "bob", id="his", key="k.his")
    hold = place(acme, **scope)
    assert hold.record_count == len(kept)
    assert set(value(acme, "SELECT array_agg(record_id) FROM record_hold") or ()) == kept


def test_later_facts_and_records_are_caught_at_write(acme: TenantKit, app: ApiClient) -> None:
    hold = place(acme, subject_ids=("ann",), covers_future=True)
    fact = write(acme, subjects=(Subject("user", "ann"),))
    other = write(acme)
    record = remember(app)
    remember(app, "bob")
    refusal(app.delete(f"{FACTS}/{fact.id}"), 409, "legal-hold")
    body_of(app.delete(f"{FACTS}/{other.id}"), 200)
    kept = find(acme, hold)
    assert (kept.fact_count, kept.record_count) == (1, 1)
    assert value(acme, "SELECT hold_count FROM memory_record WHERE id = %s", record) == 1
    assert count(acme, "hold_item", "is_later") == 2


def find(kit: TenantKit, hold: Hold) -> Hold:
    with tenant_context(kit.id):
        return find_hold(kit.id, str(hold.id))


def test_a_change_that_brings_a_fact_under_a_hold_is_caught(
    acme: TenantKit, app: ApiClient
) -> None:
    place(acme, subject_ids=("ann",), covers_future=True)
    fact = write(acme)
    body_of(
        app.post(
            f"{FACTS}/{fact.id}/supersede",
            {"content": 2, "subjects": [{"kind": "user", "id": "ann"}]},
        ),
        200,
    )
    refusal(app.post(f"{FACTS}/{fact.id}/supersede", {"content": 3}), 409, "legal-hold")


def test_an_item_stays_until_every_hold_on_it_is_released(acme: TenantKit) -> None:
    fact = write(acme, subjects=(Subject("user", "ann"),))
    first, second = member(acme), member(acme)
    holds = [place(acme, subject_ids=("ann",)), place(acme, fact_ids=(fact.id,))]
    age(acme, fact.id)
    release(acme, holds[0], first, second)
    assert sweep(acme).held == 1
    released = release(acme, holds[1], second, first)
    assert released.status == "released"
    assert sweep(acme).destroyed == 1
    assert count(acme, "legal_hold") == 2


def test_a_held_record_that_is_forgotten_is_sealed_and_purged_on_release(
    acme: TenantKit, app: ApiClient
) -> None:
    record = remember(app)
    hold = place(acme, subject_ids=("ann",))
    body_of(app.post(f"{RECORDS}/{record}/forget"), 200)
    assert count(acme, "sealed_copy", "purpose = 'hold'") == 1
    release(acme, hold, member(acme), member(acme))
    assert count(acme, "sealed_copy") == 0
    assert value(acme, "SELECT hold_count FROM memory_record WHERE id = %s", record) == 0


def test_releasing_takes_two_signed_in_admins_who_just_proved_who_they_are(acme: TenantKit) -> None:
    hold = place(acme, fact_ids=(write(acme).id,))
    first, fresh = member(acme), member(acme, hours_ago=1)
    reference = str(hold.id)

    def refused(act: Any, by: Principal, reauthenticated_at: datetime | None, **more: Any) -> str:
        with tenant_context(acme.id), pytest.raises(ReleaseRefused) as error:
            act(principal=by, hold_id=reference, reauthenticated_at=reauthenticated_at, **more)
        return error.value.reason

    assert refused(approve_release, first, just_now()) == "not-requested"
    assert refused(request_release, first, None, reason="x") == "reauthenticate"
    long_ago = just_now() - timedelta(hours=1)
    assert refused(request_release, first, long_ago, reason="x") == "reauthenticate"
    assert refused(request_release, fresh, just_now(), reason="x") == "cooling-off"
    with tenant_context(acme.id):
        request_release(
            principal=first, hold_id=reference, reason="x", reauthenticated_at=just_now()
        )
    assert refused(approve_release, first, just_now()) == "same-person"
    assert refused(approve_release, fresh, just_now()) == "cooling-off"
    assert refused(request_release, member(acme), just_now(), reason="x") == "already-requested"
    for by in (acme.principal("admin"), acme.principal("app"), member(acme, "auditor")):
        with tenant_context(acme.id), pytest.raises(PermissionDenied):
            approve_release(principal=by, hold_id=reference, reauthenticated_at=just_now())
    with tenant_context(acme.id):
        withdraw_release(principal=first, hold_id=reference)
    assert refused(approve_release, member(acme), just_now()) == "not-requested"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("role = 'auditor'", "not-requested"),
        ("left_at = now()", "not-requested"),
        ("role_granted_at = now()", "cooling-off"),
    ],
    ids=["is-no-admin-any-more", "has-left", "was-one-anew"],
)
def test_a_request_counts_no_more_than_the_one_who_made_it(
    acme: TenantKit, change: str, reason: str
) -> None:
    hold = place(acme, fact_ids=(write(acme).id,))
    first, second = member(acme), member(acme)
    with tenant_context(acme.id):
        request_release(
            principal=first, hold_id=str(hold.id), reason="x", reauthenticated_at=just_now()
        )
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE member SET {change} WHERE user_id = %s::int", [first.id])
    with tenant_context(acme.id), pytest.raises(ReleaseRefused) as refused:
        approve_release(principal=second, hold_id=str(hold.id), reauthenticated_at=just_now())
    assert refused.value.reason == reason
    assert find(acme, hold).status == "release-requested"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE legal_hold SET released_at = now()",
        "UPDATE legal_hold SET matter = 'another'",
        "DELETE FROM fact_hold",
        "UPDATE hold_item SET is_later = true",
        "DELETE FROM legal_hold",
        "DELETE FROM hold_item",
        "DELETE FROM hold_release",
        "DELETE FROM hold_refusal",
    ],
)
def test_the_database_lets_no_hold_go_without_two_people(acme: TenantKit, statement: str) -> None:
    place(acme, fact_ids=(write(acme).id,))
    with (
        tenant_context(acme.id),
        pytest.raises(Error),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_a_hold_names_something_and_only_admins_place_one(acme: TenantKit) -> None:
    with pytest.raises(BadInput):
        place(acme)
    with pytest.raises(BadInput):
        place(acme, fact_ids=("f",), covers_future=True)
    for role in ("agent", "app", "auditor"):
        with pytest.raises(PermissionDenied):
            place(acme, acme.principal(role), subject_ids=("ann",))


def test_a_refusal_is_logged_after_the_rollback_and_counted(
    acme: TenantKit, app: ApiClient
) -> None:
    fact = write(acme)
    hold = place(acme, fact_ids=(fact.id,))
    refusal(app.delete(f"{FACTS}/{fact.id}"), 409, "legal-hold")
    assert find(acme, hold).refusal_count == 1
    payload = json.loads(
        value(
            acme,
            "SELECT payload_text FROM log_entry WHERE position('hold.refused' IN payload_text) > 0",
        )
    )
    assert payload == {"type": "hold.refused", "act": "memory.deleteFact", "ids": [fact.id]}


def test_holds_over_http(acme: TenantKit) -> None:
    write(acme, subjects=(Subject("user", "ann"),))
    admin = acme.client("admin")
    scope = {"subjects": ["ann"], "futureItems": True}
    assert body_of(admin.post(f"{HOLDS}/preview", {"scope": scope}), 200) == {
        "facts": 1,
        "records": 0,
    }
    placed = body_of(
        admin.post(HOLDS, {"matter": "A", "reason": "B", "scope": scope, "reviewOn": "2090-01-01"}),
        201,
    )
    assert placed["status"] == "active"
    assert body_of(admin.get(f"{HOLDS}/{placed['id']}"), 200) == placed
    assert body_of(admin.get(HOLDS, {"status": "active"}), 200)["data"] == [placed]
    assert body_of(admin.get(HOLDS, {"status": "release-requested"}), 200)["data"] == []
    reviewed = admin.post(f"{HOLDS}/{placed['id']}/review", {"reviewOn": "2091-01-01"})
    assert body_of(reviewed, 200) == {**placed, "reviewOn": "2091-01-01"}
    refusal(
        admin.post(f"{HOLDS}/{placed['id']}/review", {"reviewOn": "2020-01-01"}), 400, "bad-input"
    )
    refusal(admin.get(f"{HOLDS}/nothing"), 404, "hold-not-found")
    refusal(
        admin.post(f"{HOLDS}/{placed['id']}/request-release", {"reason": "x"}),
        403,
        "permission-denied",
    )
    refusal(acme.client("agent").get(HOLDS), 403, "permission-denied")


def test_what_a_change_of_retention_leaves_out_stays_as_it_is(acme: TenantKit) -> None:
    admin, base = acme.client("admin"), "/v1/memory/retention"
    whole = {"keepDays": 5, "deleteAfterDays": 9, "graceDays": 2, "sweepIsOff": True}
    assert body_of(admin.put(base, whole), 200) == whole
    assert body_of(admin.put(base, {}), 200) == whole
    for change in ({"keepDays": 6}, {"graceDays": 3}, {"deleteAfterDays": 20}):
        whole |= change
        assert body_of(admin.put(base, change), 200) == whole
    refusal(admin.put(base, {"deleteAfterDays": 4}), 400, "bad-input")
    write(acme)
    unchanged = body_of(admin.post(f"{base}/simulate", {}), 200)
    assert (unchanged["facts"], unchanged["changed"]) == (1, 0)
    assert body_of(admin.post(f"{base}/simulate", {"keepDays": None}), 200)["changed"] == 1
    without = body_of(admin.put(base, {"keepDays": None, "deleteAfterDays": None}), 200)
    assert without == {"graceDays": 3, "sweepIsOff": True}
    assert body_of(admin.put(base, {"sweepIsOff": False}), 200) == {
        "graceDays": 3,
        "sweepIsOff": False,
    }


def test_retention_over_http_is_simulated_set_explained_and_listed(acme: TenantKit) -> None:
    admin = acme.client("admin")
    fact = write(acme)
    base = "/v1/memory/retention"
    simulated = body_of(admin.post(f"{base}/simulate", {"keepDays": 5}), 200)
    assert simulated == {"facts": 1, "changed": 1, "due": 0, "dueNow": 0, "held": 0}
    body_of(admin.put(base, {"keepDays": 5}), 200)
    basis = body_of(admin.get(f"{base}/facts/{fact.id}"), 200)
    assert basis["rule"] == "tenant-default"
    assert basis["until"] == basis["readUntil"]
    refusal(
        acme.client("app", projects=["p1"]).delete(f"{FACTS}/{fact.id}"), 409, "retention-violation"
    )
    sweep(acme, dry_run=True)
    assert body_of(admin.get(f"{base}/sweeps"), 200)["data"][0]["dryRun"] is True
    body_of(admin.put(base, {"keepDays": None}), 200)
    delete(acme, fact.id)
    refusal(acme.client("app", projects=["p1"]).put(base, {}), 403, "permission-denied")
