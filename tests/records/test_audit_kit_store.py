"""The audit kit's six methods over the product: its seven failure modes, each in a store of its own, as a harness would ask."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.adapters import audit_kit_store
from memory.adapters.audit_kit import AuditKitStore
from memory.errors import BadInput, IdReused, InstanceUnnamed, InvariantViolated, RecordNotFound
from tests.records.builders import VALIDATOR, a_record

pytestmark = pytest.mark.usefixtures("live_db")

ROOT = Path(__file__).resolve().parents[2]
LIMIT = "https://policies.example.com/meals#limit"
LUNCH = {"trip_id": "PUNE", "expense_id": "E-1", "with": "client"}
DINNER = {"trip_id": "PUNE", "expense_id": "E-2", "with": "team"}


def whole(value: Any, **changes: Any) -> dict[str, Any]:
    """A record with every member of the schema, as the kit hands it over."""
    confirmed = changes.pop("confirmed", None)
    body = {"id": "m-1", **a_record(value, **changes)}
    body.setdefault("lineage", {"derived_from": []})
    body["correction"]["superseded_by"] = None
    body["lifecycle"]["status"] = "active"
    body["usage"] = {"last_used_at": None, "use_count": 0, "last_confirmed_at": confirmed}
    if body["authority"] != "policy":
        VALIDATOR.validate(body)
    return body


class Source:
    """A source of truth whose values a test changes, or which it takes down."""

    def __init__(self, **values: Any) -> None:
        self.values, self.asked, self.is_down = values, 0, False

    def __call__(self, key: str, context: dict[str, Any]) -> Any:
        self.asked += 1
        if self.is_down:
            raise ConnectionRefusedError
        context.clear()
        return self.values.get(key)


def a_policy(value: Any = 75) -> dict[str, Any]:
    return whole(
        value,
        key="meal_limit",
        authority="policy",
        source_type="system_record",
        source_of_truth=LIMIT,
        level="org",
        bindings={"org_id": "acme"},
    )


def test_scope_does_not_bleed() -> None:
    store = audit_kit_store()
    store.remember(whole("AA-1", level="task", bindings={"trip_id": "PUNE"}))
    told = store.recall("travel.seat", {"trip_id": "OSLO"})
    assert told["decision"] == "ask"
    assert (told["value"], told["reason"]) == (None, "out-of-context")


def test_a_fact_does_not_go_stale() -> None:
    store = audit_kit_store()
    given = {"level": "project", "bindings": {"project_id": "P"}, "revalidate_on": ["closed"]}
    kept = store.remember(whole("AA-1", **given))
    store.emit({"type": "closed", "project_id": "Q"})
    assert store.recall("travel.seat", {"project_id": "P"})["decision"] == "apply"
    store.emit({"type": "closed", "project_id": "P"})
    assert store.recall("travel.seat", {"project_id": "P"})["decision"] == "none"
    assert store.explain(kept)["lifecycle"]["status"] == "expired"


def test_an_inference_does_not_pass_as_a_word() -> None:
    store = audit_kit_store()
    store.remember(whole("economy", source_type="agent_inferred", level="task"))
    told = store.recall("travel.seat", {})
    assert (told["decision"], told["source_type"]) == ("ask", "agent_inferred")
    assert told["reason"] == "unconfirmed-inference"


def test_a_correction_does_not_bleed() -> None:
    store = audit_kit_store()
    store.remember(whole("AA-1", level="task", bindings={"trip_id": "PUNE"}))
    corrected = store.correct("travel.seat", "BB-2", LUNCH)
    assert store.recall("travel.seat", LUNCH)["record_id"] == corrected
    assert store.recall("travel.seat", LUNCH)["decision"] == "apply"
    there = store.recall("travel.seat", DINNER)
    assert (there["decision"], there["value"]) == ("apply", "AA-1")


def test_a_correction_is_broadened_only_to_a_scope_that_is_named() -> None:
    store = audit_kit_store()
    store.remember(whole("AA-1", level="task", bindings={"trip_id": "PUNE"}))
    with pytest.raises(InvariantViolated):
        store.correct("travel.seat", "BB-2", LUNCH, broaden=True)
    wider = {"level": "task", "bindings": {"trip_id": "PUNE"}}
    context = {**LUNCH, "broaden_to": wider, "confirmation_ref": "msg-2"}
    store.correct("travel.seat", "BB-2", context, broaden=True)
    assert store.recall("travel.seat", DINNER)["value"] == "BB-2"


def test_memory_does_not_shadow_a_policy() -> None:
    source = Source(meal_limit=75)
    store = audit_kit_store(source)
    kept = store.remember(a_policy(75))
    assert store.explain(kept)["value"] is None
    for limit in (60, {"lunch": 20}, False):
        source.values["meal_limit"] = limit
        told = store.recall("meal_limit", {"org_id": "acme"})
        assert (told["decision"], told["value"]) == ("revalidate", limit)
    assert source.asked == 3
    assert store.explain(kept)["value"] is None


@pytest.mark.parametrize("how", ["down", "says nothing", "not given"])
def test_a_policy_whose_source_says_nothing_has_no_value(how: str) -> None:
    source = Source()
    source.is_down = how == "down"
    store = audit_kit_store(None if how == "not given" else source)
    store.remember(a_policy())
    told = store.recall("meal_limit", {"org_id": "acme"})
    assert (told["decision"], told["value"]) == ("revalidate", None)
    assert told["reason"] == "source-unavailable"


def test_what_was_derived_from_the_forgotten_is_no_zombie() -> None:
    store = audit_kit_store()
    store.remember(whole("CC-1", id="x", key="cost_centre"))
    store.remember(whole("ravi", id="y", key="approver", derived_from=["x"]))
    assert store.recall("approver", {"user_id": "ann"})["decision"] == "apply"
    store.forget("x")
    assert store.recall("approver", {"user_id": "ann"})["decision"] == "none"
    for gone in ("x", "y"):
        told = store.explain(gone)
        assert (told["lifecycle"]["status"], told["value"]) == ("deleted", None)


def test_a_recall_can_be_explained() -> None:
    store = audit_kit_store()
    kept = store.remember(whole("aisle", evidence={"kind": "message", "ref": "msg-9"}))
    told = store.recall("travel.seat", {"user_id": "ann"})
    assert (told["decision"], told["record_id"]) == ("apply", kept)
    assert (told["source_type"], told["evidence_ref"]) == ("user_stated", "msg-9")
    why = store.explain(kept)
    assert all(why[name] for name in ("source", "evidence", "scope", "correction_route"))
    assert why["correction_url"] == told["correction_url"]


def test_each_store_is_empty_and_apart() -> None:
    one, other = audit_kit_store(), audit_kit_store()
    one.remember(whole("aisle"))
    assert other.recall("travel.seat", {"user_id": "ann"})["decision"] == "none"
    with pytest.raises(RecordNotFound):
        other.explain("m-1")
    assert isinstance(one, AuditKitStore)
    assert one.principal.role == "app"
    assert one.tenant_id != other.tenant_id


def test_it_is_the_fixed_instant_for_every_act() -> None:
    def store_at(*day: int) -> AuditKitStore:
        return audit_kit_store(now=datetime(*day, 12, tzinfo=UTC))

    for now, decision in (((2026, 3, 1), "none"), ((2026, 3, 15), "apply"), ((2026, 4, 2), "none")):
        store = store_at(*now)
        kept = store.remember(
            whole(
                "aisle",
                captured_at="2026-02-01T00:00:00Z",
                valid_from="2026-03-10",
                valid_until="2026-04-01",
            )
        )
        told = store.recall("travel.seat", {"user_id": "ann"})
        assert told["decision"] == decision, now
        assert told["checked_at"] == "{}-{:02}-{:02}T12:00:00Z".format(*now)
        assert store.explain(kept)["recorded_at"] == told["checked_at"]


def test_what_the_product_refuses_is_raised() -> None:
    store = audit_kit_store()
    store.remember(whole("aisle"))
    with pytest.raises(IdReused):
        store.remember(whole("window"))
    with pytest.raises(InvariantViolated):
        store.remember(whole("guess", id="g", source_type="agent_inferred", level="user"))
    with pytest.raises(InstanceUnnamed):
        store.correct("travel.seat", "window", {"user_id": "ann"})
    for broken in ({"a": [1]}, {"a": None}, {"a": "\x00"}, {"a": float("nan")}):
        with pytest.raises(BadInput):
            store.recall("travel.seat", broken)
    with pytest.raises(BadInput):
        store.remember({**whole("aisle", id="b"), "value": 2**60})


def test_one_line_is_enough_outside_of_django(app_conninfo: str) -> None:
    program = (
        "from memory.adapters import audit_kit_store\n"
        "store = audit_kit_store(policy_source=lambda key, context: 60)\n"
        "print(store.recall('travel.seat', {'user_id': 'ann'})['decision'])\n"
    )
    environment = {**os.environ, "DATABASE_URL": app_conninfo, "PYTHONPATH": str(ROOT)}
    del environment["DJANGO_SETTINGS_MODULE"]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("none\n", 0), done.stderr
