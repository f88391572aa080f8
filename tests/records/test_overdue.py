"""What the worker does about records: past their last day they end, past its deadline an undo's copy is destroyed."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from memory.actions import expire_overdue as expiring
from memory.housekeeping import destroy_undo_copies, expire
from memory.models import RecordValue, SealedCopy
from memory.records import clock
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.commands.governance import governance
from tests.records.builders import a_record, body_of, refusal
from tests.records.conftest import RECORDS, Memory
from tests.records.conftest import governance as record_acts

SECRET = "a sensitive thing"


@pytest.fixture
def kit(live_acme: TenantKit) -> TenantKit:
    return live_acme


def keys_kept(kit: TenantKit) -> set[str]:
    """Ids of records whose values are still there."""
    with tenant_context(kit.id):
        return set(RecordValue.objects.values_list("record_id", flat=True))


def app_of(kit: TenantKit) -> Memory:
    return Memory(kit.client("app", users=["ann"]))


def test_nobody_has_to_ask_for_what_is_over_to_lose_its_value(kit: TenantKit) -> None:
    app = app_of(kit)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    today = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    given = {"sensitivity": "sensitive", "valid_until": yesterday}
    over = app.remember(SECRET, id="over", **given)
    app.remember("of it", id="child", key="k.child", derived_from=["over"], valid_until=yesterday)
    app.remember("kept", id="kept", key="k.kept", valid_until=yesterday, retain=True)
    app.remember("still", id="still", key="k.still", valid_until=today)
    app.remember("always", id="always", key="k.always")
    expire()
    assert keys_kept(kit) == {"kept", "still", "always"}
    assert app.get(over["id"])["lifecycle"]["status"] == "expired"
    assert {one["id"] for one in app.list(status="expired")} == {"over", "child", "kept"}
    log = [one for one in governance(kit) if one["type"] == "record.expired"]
    assert [(sorted(one["recordIds"]), one["reason"]) for one in log] == [
        (["child", "kept", "over"], "valid-until")
    ]
    expire()
    assert len([one for one in governance(kit) if one["type"] == "record.expired"]) == 1


def test_many_go_in_batches_that_stand_alone(
    kit: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "AT_ONCE", 2)
    app = app_of(kit)
    for n in range(5):
        app.remember(n, key=f"k.n{n}", valid_until="2026-01-01")
    expire()
    assert keys_kept(kit) == set()
    log = [one for one in governance(kit) if one["type"] == "record.expired"]
    assert [len(one["recordIds"]) for one in log] == [2, 2, 1]


def test_the_last_day_is_one_of_the_tenants_zone(live_db: None) -> None:
    kits = {zone: make_tenant(time_zone=zone) for zone in ("Pacific/Kiritimati", "Etc/GMT+12")}
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for kit in kits.values():
        app_of(kit).remember("x", id="x", valid_until=tomorrow.date().isoformat())
    # At eleven it is the day after in the one zone, and still the day before in the other.
    with clock.fixed_at(tomorrow.replace(hour=11)):
        expire()
    assert keys_kept(kits["Pacific/Kiritimati"]) == set()
    assert keys_kept(kits["Etc/GMT+12"]) == {"x"}


def test_what_is_held_is_sealed_when_its_last_day_is_over(kit: TenantKit) -> None:
    app = app_of(kit)
    app.remember(SECRET, id="held", valid_until="2026-01-01")
    scope = {"scope": {"records": ["held"]}, "matter": "m", "reason": "r"}
    body_of(kit.client("admin").post("/v1/memory/legal-holds", scope), 201)
    expire()
    with tenant_context(kit.id):
        assert [(one.record_id, one.purpose) for one in SealedCopy.objects.all()] == [
            ("held", "hold")
        ]
    assert keys_kept(kit) == set()


LONG_AGO = (datetime.now(UTC) - timedelta(days=3)).date().isoformat()


@pytest.mark.parametrize(
    ("act", "form"),
    [
        ("confirm", {}),
        ("correct", {"new_value": "other", "context": {"user_id": "ann", "t": 1}}),
        ("routes/confirm", {}),
        ("routes/fix-value", {"new_value": "other", "context": {"user_id": "ann", "t": 1}}),
        ("routes/dispute", {"statement": "no"}),
        ("routes/never-infer", {}),
        ("routes/out-of-date", {}),
        ("routes/wrong-person", {}),
    ],
)
def test_an_act_on_what_is_over_and_not_yet_expired_is_one_on_what_has_expired(
    app: Memory, act: str, form: dict[str, object]
) -> None:
    app.remember(SECRET, id="over", sensitivity="sensitive", valid_until=LONG_AGO)
    answer = app.client.post(f"{RECORDS}/over/{act}", form)
    assert SECRET not in answer.content.decode()
    details = refusal(answer, 409, "record-changed")
    assert details["status"] == "expired"
    assert app.list() == []


@pytest.mark.parametrize("bindings", [{}, {"t": 1}])
def test_a_correction_by_key_of_what_is_over_lives(app: Memory, bindings: dict[str, int]) -> None:
    level = "instance" if bindings else "user"
    app.remember("aisle", id="over", level=level, bindings=bindings, valid_until=LONG_AGO)
    context = {"user_id": "ann", "t": 1}
    record = app.correct("window", context=context)["record"]
    assert record["scope"]["valid_until"] is None
    assert record["correction"]["supersedes"] == []
    assert app.recall(context=context)["value"] == "window"
    assert app.get("over")["lifecycle"]["status"] == "expired"


def test_a_write_beside_what_is_over_expires_it_and_says_so(app: Memory, admin: Memory) -> None:
    app.remember(SECRET, id="over", sensitivity="sensitive", valid_until=LONG_AGO)
    new = app.remember("something else")
    assert new["correction"]["supersedes"] == []
    with_reason = [one for one in record_acts(admin) if one["type"] == "record.expired"]
    assert [(one["recordIds"], one["reason"]) for one in with_reason] == [(["over"], "valid-until")]


def test_the_value_of_what_is_over_is_in_no_history_and_no_explanation(app: Memory) -> None:
    first = app.remember("before", id="first", valid_until="2099-01-01", retain=True)
    given = {"sensitivity": "sensitive", "valid_until": LONG_AGO, "retain": True}
    app.remember(SECRET, id="over", supersedes=[first["id"]], **given)
    app.remember("kept", id="kept", key="k.kept", valid_until=LONG_AGO, retain=True)
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    for about in ("first", "over"):
        for what, query in (("history", {}), ("explain", {}), ("explain", {"as_of": now})):
            answer = app.client.get(f"{RECORDS}/{about}/{what}", query)
            assert SECRET not in answer.content.decode(), (about, what, query)
    assert app.history("kept")[0]["to"]["value"] == "kept"
    assert app.explain("kept", as_of=now)["value"] == "kept"


def test_what_is_over_is_forgotten_with_its_value(app: Memory) -> None:
    app.remember("aisle", id="over", valid_until=LONG_AGO)
    app.forget("over")
    earlier = "2026-01-01T00:00:00Z"
    again = app.client.post(RECORDS, a_record("aisle", captured_at=earlier))
    refusal(again, 409, "forgotten")


def test_a_copy_for_an_undo_is_destroyed_at_its_deadline_and_not_before(kit: TenantKit) -> None:
    app = app_of(kit)
    record = app.remember(SECRET)
    acted = body_of(app.client.post(f"{RECORDS}/{record['id']}/routes/forget", {}), 200)
    number = acted["receipt"]["number"]

    def copies() -> int:
        with tenant_context(kit.id):
            return SealedCopy.objects.count()

    with time_machine.travel(datetime.now(UTC) + timedelta(hours=23), tick=False):
        destroy_undo_copies()
        assert copies() == 1
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=25), tick=False):
        destroy_undo_copies()
        assert copies() == 0
        refusal(app.client.post(f"/v1/memory/receipts/{number}/undo", {}), 409, "undo-closed")
    assert app.list() == []
