"""The seven ways in which agent memory fails people, each with variations: none of them happens here."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.records import clock
from tests.builders import TenantKit
from tests.records.builders import an_inference, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"]))


@pytest.fixture
def agent(acme: TenantKit) -> Memory:
    return Memory(acme.client("agent", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"]))


# ---- 1. scope bleed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "context"),
    [
        ({"project_id": "p1"}, {"project_id": "p2"}),
        ({"project_id": "p1"}, {}),
        ({"project_id": "p1", "phase": 2}, {"project_id": "p1"}),
        ({"project_id": "p1", "phase": 2}, {"project_id": "p1", "phase": "2"}),
        ({"trip_id": "T1"}, {"TRIP_ID": "T1"}),
        ({"trip_id": "T1"}, {"trip_id": "T10"}),
    ],
)
def test_scope_bleed_a_value_of_one_case_is_not_applied_in_another(
    agent: Memory, app: Memory, bound: dict[str, Any], context: dict[str, Any]
) -> None:
    app.remember("DE-1", key="expense.code", bindings=bound, level="project")
    named = agent.recall("expense.code", context={**ANN, **context})
    assert (named["decision"], named["reason"]) == ("ask", "out-of-context")
    unnamed = agent.recall("expense.code", context=context)
    assert (unnamed["decision"], unnamed["value"]) == ("ask", None)


def test_scope_bleed_nor_from_one_person_to_another(agent: Memory, app: Memory) -> None:
    app.remember("vegan", key="meal")
    assert agent.recall("meal", context={"user_id": "bob"})["decision"] == "none"
    app.remember("halal", key="meal", subject="bob")
    assert agent.recall("meal", context={"user_id": "bob"})["value"] == "halal"
    assert agent.recall("meal", context={})["reason"] == "subject-unnamed"


# ---- 2. stale fact ----------------------------------------------------------------------------------------------------------


def test_stale_fact_an_expired_value_does_not_win_by_being_there(
    agent: Memory, app: Memory
) -> None:
    yesterday = (datetime.now(UTC).date() - timedelta(days=1)).isoformat()
    old = app.remember(
        2022, key="ssh.port", level="task", bindings={"host": "h1"}, valid_until=yesterday
    )
    app.remember(45022, key="ssh.port")
    answer = agent.recall("ssh.port", context={**ANN, "host": "h1"})
    assert (answer["value"], answer["decision"]) == (45022, "apply")
    assert app.get(old["id"])["value"] is None


def test_stale_fact_it_ends_the_moment_its_day_does(agent: Memory, app: Memory) -> None:
    day = datetime(2027, 1, 31, tzinfo=UTC)
    app.remember("x", key="k", valid_until="2027-01-31")
    with clock.fixed_at(day + timedelta(hours=23, minutes=59)):
        assert agent.recall("k")["decision"] == "apply"
        assert len(agent.list()) == 1
    with clock.fixed_at(day + timedelta(days=1)):
        assert agent.list() == []
        assert agent.list(status="expired")[0]["value"] is None
        assert agent.recall("k")["decision"] == "none"


def test_stale_fact_an_event_ends_it(agent: Memory, app: Memory) -> None:
    app.remember("x", key="k", revalidate_on=["project_closed"], bindings={"project_id": "p1"})
    agent.emit("project_closed", project_id="p1")
    assert agent.recall("k", context={**ANN, "project_id": "p1"})["decision"] == "none"


def test_stale_fact_a_copy_of_a_system_is_checked_there(agent: Memory, app: Memory) -> None:
    app.remember("gold", key="loyalty.tier", source_type="system_record")
    assert agent.recall("loyalty.tier")["decision"] == "revalidate"


# ---- 3. inferred as explicit ------------------------------------------------------------------------------------------------


def test_inferred_as_explicit_a_guess_is_asked_however_often_until_confirmed(
    agent: Memory, app: Memory
) -> None:
    for number in range(6):
        body = an_inference("vegan", key="meal", evidence=agent.thinks(f"run-{number}"))
        record = body_of(agent.client.post(RECORDS, body), 201)
        answer = agent.recall("meal")
        assert (answer["decision"], answer["source_type"]) == ("ask", "agent_inferred")
    assert record["source"]["observations"] == 6
    app.confirm(record["id"])
    assert agent.recall("meal")["reason"] == "confirmed-inference"


def test_inferred_as_explicit_a_derived_record_is_no_more_than_what_it_rests_on(
    agent: Memory, app: Memory
) -> None:
    guess = body_of(
        agent.client.post(RECORDS, an_inference("vegan", key="meal", bindings={"trip_id": "T1"})),
        201,
    )
    summary = app.remember(
        "eats vegan", key="summary", derived_from=[guess["id"]], source_type="system_record"
    )
    assert summary["scope"]["level"] == "task"
    assert summary["scope"]["bindings"] == {"trip_id": "T1"}
    assert agent.recall("summary", context={**ANN, "trip_id": "T1"})["trust"] == "unverified"


# ---- 4. correction bleed ----------------------------------------------------------------------------------------------------


def test_correction_bleed_a_fix_of_one_case_stays_there(agent: Memory, app: Memory) -> None:
    app.remember("aisle")
    app.correct("window", context={**ANN, "trip_id": "T1"})
    assert agent.recall(context={**ANN, "trip_id": "T1"})["value"] == "window"
    for context in (ANN, {**ANN, "trip_id": "T2"}, {**ANN, "trip_id": 1}):
        assert agent.recall(context=context)["value"] == "aisle"


def test_correction_bleed_nor_does_it_reach_another_person_or_key(
    agent: Memory, app: Memory
) -> None:
    app.remember("aisle")
    app.remember("aisle", subject="bob")
    app.remember("aisle", key="travel.seat.long_haul")
    app.correct("window", context={**ANN, "trip_id": "T1"})
    assert agent.recall(context={"user_id": "bob", "trip_id": "T1"})["value"] == "aisle"
    assert (
        agent.recall("travel.seat.long_haul", context={**ANN, "trip_id": "T1"})["value"] == "aisle"
    )


def test_correction_bleed_and_the_agent_does_not_talk_it_back(agent: Memory, app: Memory) -> None:
    app.remember("aisle", bindings={"trip_id": "T1"})
    app.correct("window")
    for _ in range(5):
        agent.client.post(
            RECORDS, an_inference("aisle", bindings={"trip_id": "T1"}, level="instance")
        )
    assert agent.recall(context={**ANN, "trip_id": "T1"})["value"] == "window"


# ---- 5. policy shadowing ----------------------------------------------------------------------------------------------------


def test_policy_shadowing_a_preference_never_stands_in_for_a_rule(
    agent: Memory, app: Memory
) -> None:
    app.remember(
        None,
        key="expense.limit",
        subject={"type": "org", "id": "acme"},
        level="org",
        authority="policy",
        source_of_truth="https://policies.example.com/x",
    )
    app.remember(900, key="expense.limit")
    app.remember(950, key="expense.limit", level="instance", bindings={"trip_id": "T1"})
    for context in (ANN, {**ANN, "trip_id": "T1"}):
        answer = agent.recall("expense.limit", context=context)
        assert (answer["decision"], answer["value"]) == ("revalidate", None)
    body = {"key": "expense.limit", "new_value": 1, "context": {**ANN, "trip_id": "T1"}}
    refusal(app.client.post("/v1/memory/correct", body), 422, "policy-not-correctable")


# ---- 6. zombie memory -------------------------------------------------------------------------------------------------------


def test_zombie_memory_what_was_forgotten_stays_so_at_every_door(
    agent: Memory, app: Memory
) -> None:
    secret = "0170 5550199"
    record = app.remember(secret, key="contact.phone", id="phone")
    summary = app.remember(f"call {secret}", key="summary", id="summary", derived_from=["phone"])
    pattern = app.remember(f"likes {secret}", key="pattern", id="pattern", derived_from=["summary"])
    moment = datetime.now(UTC).isoformat()
    app.forget(record["id"])
    doors = [
        agent.recall("contact.phone"),
        agent.recall("summary"),
        agent.recall("contact.phone", as_of=moment),
        agent.list(),
        agent.list(as_of=moment),
        *(agent.list(status=status) for status in ("expired", "superseded", "deleted")),
        *(agent.get(one["id"]) for one in (record, summary, pattern)),
        *(agent.explain(one["id"]) for one in (record, summary, pattern)),
        *(agent.history(one["id"]) for one in (record, summary, pattern)),
    ]
    assert secret not in str(doors)
    assert agent.explain("pattern")["dead_ancestors"] == ["phone", "summary"]
    for wave in (secret, f" {secret}", f"phone: {secret}"):
        body = an_inference(wave, key="contact.phone")
        assert agent.client.post(RECORDS, body).status_code == 202
    assert agent.recall("contact.phone")["decision"] == "none"


# ---- 7. unexplainable recall ------------------------------------------------------------------------------------------------


def test_unexplainable_recall_every_answer_names_its_record_which_explains_itself(
    agent: Memory, app: Memory
) -> None:
    app.remember("a", key="k.stated", evidence={"kind": "message", "ref": app.says()})
    app.remember("b", key="k.copied", source_type="system_record")
    body_of(agent.client.post(RECORDS, an_inference("c", key="k.guessed")), 201)
    app.remember(None, key="k.ruled", authority="policy", source_of_truth="https://p.example.com/")
    app.correct("e", key="k.corrected")
    for key in ("k.stated", "k.copied", "k.guessed", "k.ruled", "k.corrected"):
        answer = agent.recall(key, context={**ANN, "trip_id": "T1"})
        explained = agent.explain(answer["record_id"])
        assert explained["source"]["type"] == answer["source_type"]
        assert explained["evidence"]["ref"] == answer["evidence_ref"]
        assert explained["correction_route"] == answer["correction_route"]
        assert explained["correction_url"] == answer["correction_url"]
        assert explained["history"][0]["act"] in ("remembered", "corrected")
        assert explained["log_refs"]
