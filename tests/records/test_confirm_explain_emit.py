"""Confirming, widening by confirmation, explaining, history, and events."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders import TenantKit
from tests.records.builders import an_inference, body_of, refusal, valid
from tests.records.conftest import ANN, RECORDS, Memory, governance


def infer(memory: Memory, value: Any = "aisle", times: int = 1, **changes: Any) -> dict[str, Any]:
    for number in range(times):
        body = an_inference(value, evidence=memory.thinks(f"run-{number}"), **changes)
        record = body_of(memory.client.post(RECORDS, body), 201)
    return record


def test_inferred_three_times_and_then_confirmed_is_applied(app: Memory, agent: Memory) -> None:
    record = infer(agent, times=3)
    assert agent.recall()["decision"] == "ask"
    confirmed = valid(app.confirm(record["id"]))
    assert confirmed["usage"]["last_confirmed_at"] is not None
    assert agent.recall()["decision"] == "apply"


def test_confirming_may_widen(app: Memory, agent: Memory, admin: Memory) -> None:
    record = infer(agent, times=3, bindings={"task_id": "t1"})
    wide = valid(app.confirm(record["id"], broaden_to={"level": "user", "bindings": {}}))
    assert wide["id"] == record["id"]
    assert (wide["scope"]["level"], wide["scope"]["bindings"]) == ("user", {})
    assert wide["correction"]["broadened"] is True
    assert agent.recall()["decision"] == "apply"
    assert governance(admin)[-1]["type"] == "record.confirmed"
    before = agent.recall(as_of=record["source"]["captured_at"])
    assert before["decision"] == "none"


@pytest.mark.parametrize(
    ("to", "status", "code"),
    [
        ({"level": "instance", "bindings": {}}, 422, "invariant-violated"),
        ({"level": "user", "bindings": {"other": 1}}, 422, "invariant-violated"),
        ({"level": "org", "bindings": {}}, 403, "permission-denied"),
        ({"level": "galaxy", "bindings": {}}, 400, "bad-input"),
        ({"level": "user"}, 400, "bad-input"),
        ({"level": "user", "bindings": {"a": [1]}}, 400, "bad-input"),
    ],
)
def test_a_widening_that_is_none_or_too_far_is_refused(
    app: Memory, agent: Memory, to: Any, status: int, code: str
) -> None:
    record = infer(agent, bindings={"task_id": "t1"})
    path = f"{RECORDS}/{record['id']}/confirm"
    refusal(app.client.post(path, {"broaden_to": to}), status, code)


def test_widening_into_a_filled_slot_names_what_is_there(app: Memory, agent: Memory) -> None:
    record = infer(agent, bindings={"task_id": "t1"})
    there = app.remember("window")
    path = f"{RECORDS}/{record['id']}/confirm"
    details = refusal(
        app.client.post(path, {"broaden_to": {"level": "user", "bindings": {}}}),
        409,
        "record-changed",
    )
    assert details["activeId"] == there["id"]


def test_what_is_no_longer_active_is_not_confirmed(app: Memory) -> None:
    record = app.remember()
    app.forget(record["id"])
    details = refusal(
        app.client.post(f"{RECORDS}/{record['id']}/confirm", {}), 409, "record-changed"
    )
    assert details["status"] == "deleted"


def test_explain_answers_for_every_status_and_counts_no_use(
    app: Memory, agent: Memory, acme: TenantKit
) -> None:
    message = app.says(text="aisle please")
    stated = app.remember(evidence={"kind": "message", "ref": message})
    explained = app.explain(stated["id"])
    assert explained["record_id"] == stated["id"]
    assert explained["reason"] == "user-stated"
    assert explained["evidence"] == {"kind": "message", "ref": message}
    assert explained["log_refs"][0] == message
    assert explained["correction_url"].endswith("/correct/fix-value")
    assert explained["held"] is False
    assert app.get(stated["id"])["usage"] == {
        "last_used_at": None,
        "use_count": 0,
        "last_confirmed_at": None,
    }
    guess = infer(agent, key="k.guess")
    assert app.explain(guess["id"])["reason"] == "unconfirmed-inference"
    old = app.remember("x", key="k.old", valid_until="2026-01-01")
    assert (app.explain(old["id"])["reason"], app.explain(old["id"])["value"]) == ("expired", None)
    app.forget(stated["id"])
    assert (app.explain(stated["id"])["reason"], app.explain(stated["id"])["value"]) == (
        "forgotten",
        None,
    )
    auditors = body_of(acme.client("auditor").get(f"{RECORDS}/{guess['id']}/explain"), 200)
    assert "value" not in auditors
    assert "aisle" not in str(auditors)


def test_explain_of_a_past_moment_tells_what_was_known_then(app: Memory) -> None:
    first = app.remember("aisle", bindings={"trip_id": "T1"})
    then = datetime.now(UTC).isoformat()
    app.correct("window")
    assert app.explain(first["id"])["reason"] == "superseded"
    past = app.explain(first["id"], as_of=then)
    assert (past["reason"], past["value"]) == ("user-stated", "aisle")
    assert [one["act"] for one in past["history"]] == ["remembered"]
    early = {"as_of": "2026-01-01T00:00:00Z"}
    refusal(app.client.get(f"{RECORDS}/{first['id']}/explain", early), 404, "record-not-found")


def test_history_is_the_chain_oldest_first_with_who_when_why_and_scope(app: Memory) -> None:
    first = app.remember("aisle", bindings={"trip_id": "T1"})
    second = app.correct("window", reason="taller seat")["record"]
    for record_id in (first["id"], second["id"]):
        rows = app.history(record_id)
        assert [row["act"] for row in rows] == ["remembered", "corrected"]
        assert rows[0]["from"]["value"] is None
        assert rows[0]["to"]["value"] == "aisle"
        assert rows[1]["from"] == {"record_id": first["id"], "status": None, "value": "aisle"}
        assert rows[1]["to"] == {"record_id": second["id"], "status": "active", "value": "window"}
        assert rows[1]["who"].startswith("service:")
        assert rows[1]["why"] == "user_correction"
        assert rows[1]["reason"] == "taller seat"
        assert rows[1]["scope"] == {"level": "instance", "bindings": {"trip_id": "T1"}}
        assert rows[0]["when"] < rows[1]["when"]
    app.forget(second["id"])
    rows = app.history(second["id"])
    assert [row["act"] for row in rows] == ["remembered", "corrected", "forgotten"]
    assert rows[2]["to"]["status"] == "deleted"
    assert all(row["when"] for row in rows)


def test_an_event_expires_what_listens_in_its_case(
    app: Memory, agent: Memory, admin: Memory
) -> None:
    hit = app.remember(1, key="a", bindings={"project_id": "p1"}, revalidate_on=["project_closed"])
    both = app.remember(
        2,
        key="b",
        bindings={"project_id": "p1", "team": "x"},
        revalidate_on=["x", "project_closed"],
    )
    everywhere = app.remember(3, key="c", revalidate_on=["project_closed"])
    kept = [
        app.remember(4, key="d", bindings={"project_id": "p2"}, revalidate_on=["project_closed"]),
        app.remember(5, key="e", bindings={"project_id": "p1"}, revalidate_on=["project_opened"]),
        app.remember(6, key="f", bindings={"project_id": "p1"}),
        app.remember(
            7,
            key="g",
            subject={"type": "project", "id": "p2"},
            level="project",
            revalidate_on=["project_closed"],
        ),
        app.remember(
            8, key="h", bindings={"project_id": "p1", "team": "y"}, revalidate_on=["project_closed"]
        ),
    ]
    expired = agent.emit("project_closed", project_id="p1", team="x")
    assert set(expired) == {hit["id"], both["id"]}
    assert {one["id"] for one in app.list()} == {one["id"] for one in (everywhere, *kept)}
    stored = app.get(hit["id"])
    assert (stored["lifecycle"]["status"], stored["value"]) == ("expired", None)
    assert app.recall("a", context={**ANN, "project_id": "p1"})["decision"] == "none"
    entry = governance(admin)[-1]
    assert (entry["type"], entry["event"], entry["recordCount"]) == (
        "record.expired",
        "project_closed",
        2,
    )
    # What an application says of a case ends what applies everywhere, too.
    assert app.emit("project_closed", project_id="p1", team="x") == [everywhere["id"]]


def test_an_event_reaches_only_what_the_key_may_write_and_only_its_person(
    acme: TenantKit, app: Memory
) -> None:
    ann = app.remember(1, key="a", revalidate_on=["moved"])
    bob = app.remember(1, key="a", subject="bob", revalidate_on=["moved"])
    narrow = Memory(acme.client("agent", users=["bob"]))
    assert narrow.emit("moved", user_id="ann") == []
    assert narrow.emit("moved", user_id="bob") == [bob["id"]]
    assert app.emit("moved", user_id="bob") == []
    assert app.emit("moved", user_id="ann") == [ann["id"]]


def test_an_event_ends_what_was_derived_too(app: Memory) -> None:
    parent = app.remember(1, key="a", revalidate_on=["moved"])
    child = app.remember(2, key="b", derived_from=[parent["id"]])
    assert set(app.emit("moved", **ANN)) == {parent["id"], child["id"]}


def test_an_agents_event_names_a_case_and_takes_the_ability(
    acme: TenantKit, app: Memory, agent: Memory
) -> None:
    app.remember(1, key="a", revalidate_on=["moved"])
    path = "/v1/memory/events"
    details = refusal(agent.client.post(path, {"type": "moved"}), 422, "invariant-violated")
    assert details == {"invariant": "event-names-a-case"}
    reader = acme.client("agent", users=["ann"], may=["read", "write"])
    refusal(reader.post(path, {"type": "moved", **ANN}), 403, "permission-denied")
    refusal(agent.client.post(path, {"type": "moved", "where": {"city": 1}}), 400, "bad-input")
    refusal(agent.client.post(path, {"city": "Pune"}), 400, "bad-input")
    assert len(app.emit("moved")) == 1


def test_an_explanation_names_all_that_it_rests_on(app: Memory) -> None:
    record = app.remember("aisle")
    child = app.remember("x", key="k.child", derived_from=[record["id"]])
    told = app.explain(child["id"])
    assert set(told) >= {
        *(
            "record_id",
            "key",
            "value",
            "authority",
            "source",
            "evidence",
            "scope",
            "correction_route",
        ),
        *("lifecycle", "derived_from", "correction_url", "history", "log_refs", "held", "reason"),
    }
    assert told["derived_from"] == [record["id"]]
    (first,) = told["history"]
    assert first["log_ref"] in told["log_refs"]
