"""An agent that lies changes nothing that is served."""

from typing import Any

import pytest

from tests.builders import TenantKit
from tests.records.builders import a_record, an_inference, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory

CORRECT = "/v1/memory/correct"


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=["ann", "bob"], projects=["p1"]))


@pytest.fixture
def agent(acme: TenantKit) -> Memory:
    return Memory(acme.client("agent", users=["ann", "bob"], projects=["p1"]))


def message(ref: str) -> dict[str, str]:
    return {"kind": "message", "ref": ref}


def served(app: Memory) -> Any:
    """What everybody gets: lists, recall in and out of the instance."""
    return (
        app.list(),
        [
            {**app.recall(context=context), "checked_at": ""}
            for context in (ANN, {**ANN, "trip_id": "T1"}, {"user_id": "bob"}, {})
        ],
    )


def served_without_usage(app: Memory) -> Any:
    records, answers = served(app)
    return [{**record, "usage": ""} for record in records], answers


@pytest.mark.parametrize("source_type", ["user_stated", "user_correction", "system_record"])
def test_a_word_that_nobody_gave(app: Memory, agent: Memory, source_type: str) -> None:
    body = a_record(source_type=source_type, level="instance", bindings={"trip_id": "T1"})
    for ref in ("made-up", "msg-1"):
        body["source"]["evidence"]["ref"] = ref
        refusal(agent.client.post(RECORDS, body), 422, "evidence-unresolved")
    assert app.list() == []


def test_a_user_message_that_the_agent_wrote_itself(app: Memory, agent: Memory) -> None:
    forged = agent.says(text="I prefer the window")
    refusal(
        agent.client.post(RECORDS, a_record("window", evidence=message(forged))),
        422,
        "evidence-unresolved",
    )
    app.remember("aisle")
    before = served_without_usage(app)
    asked = {
        "key": "travel.seat",
        "new_value": "window",
        "context": {**ANN, "trip_id": "T1"},
        "evidence": message(agent.says()),
    }
    body_of(agent.client.post(CORRECT, asked), 202)
    assert served_without_usage(app) == before


def test_a_message_of_another_kind_or_person(app: Memory, agent: Memory) -> None:
    of_bob = app.says("bob")
    of_tool = body_of(
        app.client.post(
            "/v1/memory/runs/chat/log", {"kind": "agent-message", "scope": {"userId": "ann"}}
        ),
        201,
    )["id"]
    nobodys = body_of(
        app.client.post("/v1/memory/runs/chat/log", {"kind": "user-message", "scope": {}}), 201
    )["id"]
    for ref in (of_bob, of_tool, nobodys):
        refusal(
            agent.client.post(RECORDS, a_record(evidence=message(ref))), 422, "evidence-unresolved"
        )
    assert app.list() == []


def test_a_word_used_twice(app: Memory, agent: Memory) -> None:
    word = app.says()
    body_of(agent.client.post(RECORDS, a_record("aisle", evidence=message(word))), 201)
    refusal(
        agent.client.post(RECORDS, a_record("vegan", key="travel.meal", evidence=message(word))),
        422,
        "evidence-unresolved",
    )
    record = app.remember("x", key="k.x")
    path = f"{RECORDS}/{record['id']}/confirm"
    body_of(agent.client.post(path, {"evidence": message(word)}), 202)
    assert app.get(record["id"])["usage"]["last_confirmed_at"] is None


def test_a_word_older_than_the_record(app: Memory, agent: Memory) -> None:
    old = app.says(text="yes")
    guess = body_of(agent.client.post(RECORDS, an_inference()), 201)
    for number in (2, 3):
        body = an_inference(evidence=agent.thinks(f"run-{number}"))
        body_of(agent.client.post(RECORDS, body), 201)
    body_of(agent.client.post(f"{RECORDS}/{guess['id']}/confirm", {"evidence": message(old)}), 202)
    assert app.recall()["decision"] == "ask"
    fresh = app.says(text="yes, aisle")
    body_of(
        agent.client.post(f"{RECORDS}/{guess['id']}/confirm", {"evidence": message(fresh)}), 200
    )
    assert app.recall()["decision"] == "apply"


def test_a_word_that_resolves_speaks_for_the_person_and_no_further(
    app: Memory, agent: Memory
) -> None:
    app.remember("aisle")
    context = {**ANN, "trip_id": "T1", "message_ref": app.says(text="window this time")}
    answer = agent.correct("window", context=context)
    assert answer["record"]["scope"]["level"] == "instance"
    assert answer["record"]["source"]["evidence"]["ref"] == context["message_ref"]
    before = served_without_usage(app)
    wide = {
        **ANN,
        "trip_id": "T2",
        "message_ref": app.says(text="window again"),
        "broaden_to": {"level": "user", "bindings": {}},
    }
    for confirmation in ({}, {"confirmation_ref": "made-up"}, {"confirmation_ref": agent.says()}):
        agent.correct("window", 202, context={**wide, **confirmation}, broaden=True)
    assert served_without_usage(app) == before
    confirmed = {**wide, "confirmation_ref": app.says(text="yes, always")}
    agent.correct("window", context=confirmed, broaden=True)
    assert app.recall()["value"] == "window"


def test_ninety_nine_observations_and_a_confirmation_of_its_own(app: Memory, agent: Memory) -> None:
    usage = {
        "last_used_at": "2026-01-01T00:00:00Z",
        "use_count": 500,
        "last_confirmed_at": "2026-01-01T00:00:00Z",
    }
    record = body_of(agent.client.post(RECORDS, an_inference(observations=99, usage=usage)), 201)
    assert record["source"]["observations"] == 1
    assert record["usage"]["last_confirmed_at"] is None
    assert app.recall()["decision"] == "ask"
    wide = an_inference(observations=99, usage=usage, level="user", key="k.wide")
    refusal(agent.client.post(RECORDS, wide), 422, "invariant-violated")


def test_runs_that_there_are_not(acme: TenantKit, app: Memory, agent: Memory) -> None:
    """Nor runs that it can't read, and one run in many messages."""
    others = Memory(acme.client("agent", users=["carl"]))
    known = agent.thinks("run-1")
    refs = ["made-up-1", "made-up-2", others.thinks("run-of-carl", "carl")["ref"], "run-of-carl"]
    refs += ["kindmem.governance", known["ref"], agent.thinks("run-1")["ref"], "run-1"]
    for ref in refs:
        body = an_inference(evidence={"kind": "trace", "ref": ref})
        record = body_of(agent.client.post(RECORDS, body), 201)
    # The first one, whatever it named, and the one run that there is.
    assert record["source"]["observations"] == 2
    app.confirm(record["id"])
    assert app.recall()["decision"] == "ask"


def test_a_policy_of_its_own_about_a_person_beside_an_orgs(
    acme: TenantKit, app: Memory, agent: Memory
) -> None:
    rule = {"key": "expense.limit", "authority": "policy"}
    own = an_inference(None, **rule, source_of_truth="https://evil.example.com/x")
    early = body_of(agent.client.post(RECORDS, own), 201)["id"]
    admin = Memory(acme.client("admin"))
    org = {"type": "org", "id": "acme"}
    theirs = admin.remember(
        None, **rule, subject=org, level="org", source_of_truth="https://acme.example.com/limit"
    )["id"]
    # The narrower pointer was there first: still it is no policy beside one that somebody else set.
    reader = Memory(acme.client("agent", users=["ann"], orgs=["acme"]))
    context = {**ANN, "org_id": "acme", "trip_id": "T1"}
    assert reader.recall("expense.limit", context=context)["record_id"] == theirs
    late = an_inference(
        None, **rule, source_of_truth="https://evil.example.com/y", bindings={"trip_id": "T1"}
    )
    body_of(reader.client.post(RECORDS, late), 202)
    assert reader.recall("expense.limit", context=context)["record_id"] == theirs
    # A person who confirmed it stands for it.
    app.confirm(early)
    assert reader.recall("expense.limit", context=context)["record_id"] == early


def test_an_event_that_names_somebody_elses_case(app: Memory, agent: Memory) -> None:
    """It ends nothing of everybody's: only what shares a binding with it, or is about whom it names."""
    app.remember("aisle", revalidate_on=["moved"])
    app.remember("x", key="k.x", bindings={"trip_id": "T1"}, revalidate_on=["moved"])
    before = served_without_usage(app)
    for bindings in ({"made_up": 1}, {"trip_id": "T2"}, {"user_id": "bob"}, {"project_id": "p1"}):
        assert agent.emit("moved", **bindings) == []
    assert served_without_usage(app) == before
    assert len(agent.emit("moved", **ANN)) == 2


def test_a_widening_that_it_claims_was_confirmed(app: Memory, agent: Memory) -> None:
    word = app.says()
    body = a_record(
        source_type="user_correction", level="user", broadened=True, evidence=message(word)
    )
    assert refusal(agent.client.post(RECORDS, body), 422, "invariant-violated") == {
        "invariant": "I4"
    }
    assert app.list() == []


def test_a_retired_or_forgotten_value_again(app: Memory, agent: Memory) -> None:
    app.remember("aisle", bindings={"trip_id": "T1"})
    app.correct("window")
    phone = app.remember("0815", key="contact.phone")
    app.forget(phone["id"])
    before = served_without_usage(app)
    for value in ("aisle", "AISLE ", "aisle"):
        for bindings in ({}, {"trip_id": "T1"}, {"trip_id": "T1", "leg": 1}):
            body = an_inference(value, bindings=bindings, level="instance")
            assert agent.client.post(RECORDS, body).status_code == 202
    for value in ("0815", "0816"):
        body = an_inference(value, key="contact.phone")
        assert agent.client.post(RECORDS, body).status_code == 202
    assert served_without_usage(app) == before
    assert app.recall("contact.phone")["decision"] == "none"


def test_a_narrower_guess_against_a_persons_word(app: Memory, agent: Memory) -> None:
    app.remember("aisle")
    before = served_without_usage(app)
    for level, bindings in (
        ("task", {}),
        ("instance", {"trip_id": "T1"}),
        ("task", {"trip_id": "T1"}),
    ):
        body = an_inference("window", level=level, bindings=bindings)
        assert body_of(agent.client.post(RECORDS, body), 202)["review"] == "pending"
    assert served_without_usage(app) == before


def test_a_policy_that_would_shadow_a_persons_word(app: Memory, agent: Memory) -> None:
    app.remember("aisle")
    before = served_without_usage(app)
    body = an_inference(
        None, level="task", authority="policy", source_of_truth="https://evil.example.com/x"
    )
    body_of(agent.client.post(RECORDS, body), 202)
    assert served_without_usage(app) == before


def test_org_wide_truths(acme: TenantKit, app: Memory) -> None:
    agent = acme.client("agent", users=["ann"], orgs=["acme"])
    org = {"type": "org", "id": "acme"}
    body_of(agent.post(RECORDS, an_inference("pay in advance", subject=org)), 202)
    word = app.says()
    body_of(agent.post(RECORDS, a_record("x", level="org", evidence=message(word))), 202)
    assert acme.client("admin").get(RECORDS).json()["data"] == []


def test_that_it_supersedes_what_a_person_said(app: Memory, agent: Memory) -> None:
    said = app.remember("aisle")
    before = served_without_usage(app)
    body = an_inference("window", level="task", supersedes=[said["id"]])
    body_of(agent.client.post(RECORDS, body), 202)
    refusal(
        agent.client.post(RECORDS, an_inference("window", supersedes=["nothing"])),
        422,
        "invariant-violated",
    )
    assert served_without_usage(app) == before


def test_what_another_agent_waits_with_does_not_show(
    app: Memory, agent: Memory, acme: TenantKit
) -> None:
    app.remember("aisle")
    waits = body_of(agent.client.post(RECORDS, an_inference("window")), 202)["id"]
    child = an_inference("x", key="k.child", derived_from=[waits])
    assert body_of(agent.client.post(RECORDS, child), 202)["review"] == "pending"
    assert [one["key"] for one in app.list()] == ["travel.seat"]
    other = acme.client("agent", users=["ann"])
    refusal(other.get(f"{RECORDS}/{waits}"), 404, "record-not-found")


def test_confirm_forget_and_correct_of_its_own_accord(app: Memory, agent: Memory) -> None:
    record = app.remember("aisle")
    before = served_without_usage(app)
    agent.confirm(record["id"], 202)
    agent.forget(record["id"], 202)
    agent.correct("window", 202)
    assert agent.forget(record["id"], 202) == agent.forget(record["id"], 202)
    assert served_without_usage(app) == before


def test_the_same_word_for_two_acts_at_once_counts_for_one(live_acme: TenantKit) -> None:
    from tests.at_once import at_once
    from tests.builders import ApiClient

    app = Memory(live_acme.client("app", users=["ann"]))
    token = live_acme.token("agent", users=["ann"])
    word = app.says()

    def claim(number: int) -> int:
        body = a_record(number, key=f"k{number}", evidence=message(word))
        return ApiClient(token).post(RECORDS, body).status_code

    assert sorted(at_once(8, claim)) == [201] + [422] * 7
