"""What an agent may not do with true words, real pointers and copies of what a person said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.records.builders import a_record, an_inference, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory

EVERYWHERE = {**ANN, "broaden_to": {"level": "user", "bindings": {}}}


def message(ref: str) -> dict[str, str]:
    return {"kind": "message", "ref": ref}


def corrected_everywhere(app: Memory, new_value: Any) -> dict[str, Any]:
    """What a correction answers that applies in every context."""
    return app.correct(new_value, context=EVERYWHERE, broaden=True)


def stated(value: Any, word: str) -> dict[str, Any]:
    return a_record(value, level="task", evidence=message(word))


def test_a_word_from_before_the_persons_correction_speaks_no_more(
    app: Memory, agent: Memory
) -> None:
    early = app.says(text="third, please")
    app.remember("old")
    corrected_everywhere(app, "new")
    refusal(agent.client.post(RECORDS, stated("third", early)), 422, "evidence-unresolved")
    assert app.recall()["value"] == "new"
    body_of(agent.client.post(RECORDS, stated("third", app.says(text="third now"))), 201)
    assert app.recall()["value"] == "third"


def test_a_word_from_before_a_confirmation_speaks_no_more(app: Memory, agent: Memory) -> None:
    guess = agent.remember("aisle", source_type="agent_inferred", level="task")
    early = app.says(text="window")
    app.confirm(guess["id"])
    refusal(
        agent.client.post(RECORDS, a_record("window", evidence=message(early))),
        422,
        "evidence-unresolved",
    )


def test_a_word_is_as_good_as_ever_where_nobody_spoke_since(app: Memory, agent: Memory) -> None:
    early = app.says(text="window")
    app.remember("vegan", key="travel.meal")
    agent.remember("aisle", source_type="agent_inferred", level="task")
    body_of(agent.client.post(RECORDS, a_record("window", evidence=message(early))), 201)
    assert {one["value"] for one in app.list(key="travel.seat")} == {"aisle", "window"}


@pytest.mark.parametrize("ahead", [timedelta(minutes=6), timedelta(days=30_000)])
def test_nothing_is_captured_in_the_future(app: Memory, ahead: timedelta) -> None:
    body = a_record("aisle", captured_at=(datetime.now(UTC) + ahead).isoformat())
    details = refusal(app.client.post(RECORDS, body), 400, "bad-input")
    assert [one["path"] for one in details["issues"]] == ["/source/captured_at"]
    assert app.list() == []


def test_a_clock_a_little_ahead_is_no_matter(app: Memory) -> None:
    ahead = datetime.now(UTC) + timedelta(minutes=4)
    app.remember("aisle", captured_at=ahead.isoformat())


OWN_RULE = {"key": "expense.limit", "authority": "policy"}
THEIRS = "https://policies.example.com/travel/meal"
ITS_OWN = "https://agent.example.com/anything"


def a_pointer(source_of_truth: str, **changes: Any) -> dict[str, Any]:
    """An agent's policy in the narrowest slot that it may guess in."""
    return an_inference(None, **OWN_RULE, source_of_truth=source_of_truth, **changes)


def test_an_agents_pointer_waits_where_there_is_a_policy(app: Memory, agent: Memory) -> None:
    rule = app.remember(None, **OWN_RULE, source_of_truth=THEIRS)
    for changes in ({}, {"bindings": {"trip_id": "T1"}}):
        body_of(agent.client.post(RECORDS, a_pointer(ITS_OWN, **changes)), 202)
    word = app.says(text="that one")
    body = a_pointer(ITS_OWN, source_type="user_stated", evidence=message(word))
    body_of(agent.client.post(RECORDS, body), 202)
    assert app.recall("expense.limit")["record_id"] == rule["id"]
    assert [one["id"] for one in app.list(key="expense.limit")] == [rule["id"]]


def test_an_agents_pointer_is_kept_where_only_agents_have_pointed(agent: Memory) -> None:
    body_of(agent.client.post(RECORDS, a_pointer(THEIRS)), 201)
    body_of(agent.client.post(RECORDS, a_pointer(ITS_OWN, bindings={"trip_id": "T1"})), 201)
    body_of(agent.client.post(RECORDS, a_pointer(ITS_OWN, subject="bob")), 201)


def infer(agent: Memory, value: Any, **changes: Any) -> str:
    """The id of what the agent infers in the narrowest slot that it may guess in."""
    record_id: str = body_of(agent.client.post(RECORDS, an_inference(value, **changes)), 201)["id"]
    return record_id


def ways_to_nothing_in_use(app: Memory, way: str) -> None:
    said = app.remember("aisle", level="instance", bindings={"t": 1})
    if way == "wrong-person":
        body_of(app.client.post(f"{RECORDS}/{said['id']}/routes/wrong-person", {}), 200)
        return
    new = app.correct("window", context={**ANN, "t": 1})["record"]
    body_of(app.client.post(f"{RECORDS}/{new['id']}/routes/out-of-date", {}), 200)


@pytest.mark.parametrize("way", ["wrong-person", "successor-expired"])
def test_no_guess_tells_which_value_was_retired(app: Memory, agent: Memory, way: str) -> None:
    ways_to_nothing_in_use(app, way)
    for bindings in ({}, {"t": 1}, {"t": 2}):
        for value in ("aisle", " AISLE", "window", "middle"):
            body = an_inference(value, bindings=bindings, level="instance")
            told = body_of(agent.client.post(RECORDS, body), 202)
            assert set(told) == {"review", "id"}
    assert app.list() == []
    word = app.says(text="the middle")
    body = a_record("middle", evidence=message(word))
    body_of(agent.client.post(RECORDS, body), 201)


def statuses(app: Memory, ids: list[str]) -> list[str]:
    return [app.get(one)["lifecycle"]["status"] for one in ids]


def a_value_and_its_copies(app: Memory, agent: Memory) -> tuple[str, list[str], list[str]]:
    """A person's record, agents' copies of what it says, and what is none."""
    early = infer(agent, " AISLE", bindings={"trip_id": "T1"})
    said = app.remember("aisle", level="user")["id"]
    copied = [early, infer(agent, "aisle")]
    others = [
        infer(agent, "aisle", key="travel.train_seat"),
        infer(agent, "aisle", subject="bob"),
    ]
    return said, copied, others


def act(app: Memory, record_id: str, route: str, **form: Any) -> str:
    """The receipt number of an act by a route that a person opens."""
    answer = app.client.post(f"{RECORDS}/{record_id}/routes/{route}", form)
    number: str = body_of(answer, 200)["receipt"]["number"]
    return number


def undo(app: Memory, number: str) -> None:
    body_of(app.client.post(f"/v1/memory/receipts/{number}/undo", {}), 200)


def values_of_ann(app: Memory) -> list[str]:
    return sorted(one["value"] for one in app.list(subject_id="ann", key="travel.seat"))


def test_copies_of_what_is_corrected_everywhere_end_with_it(app: Memory, agent: Memory) -> None:
    said, copied, others = a_value_and_its_copies(app, agent)
    number = act(app, said, "fix-value", new_value="window", context=EVERYWHERE, broaden=True)
    for context in (ANN, {**ANN, "trip_id": "T1"}):
        assert app.recall(context=context)["value"] == "window"
    assert "active" not in statuses(app, [said, *copied])
    assert statuses(app, others) == ["active", "active"]
    assert values_of_ann(app) == ["window"]
    undo(app, number)
    assert values_of_ann(app) == [" AISLE", "aisle", "aisle"]


def test_an_inference_of_another_value_outlives_a_correction(app: Memory, agent: Memory) -> None:
    guess = infer(agent, "middle", bindings={"trip_id": "T1"})
    said = app.remember("aisle")["id"]
    act(app, said, "fix-value", new_value="window", context=EVERYWHERE, broaden=True)
    assert statuses(app, [said, guess]) == ["superseded", "active"]


def test_copies_of_what_is_forgotten_are_forgotten_with_it(app: Memory, agent: Memory) -> None:
    said, copied, others = a_value_and_its_copies(app, agent)
    told = app.forget(said)
    assert sorted(told["tombstoned"]) == sorted([said, *copied])
    assert app.recall()["decision"] == "none"
    assert statuses(app, [said, *copied]) == ["deleted"] * 3
    assert statuses(app, others) == ["active", "active"]


def test_the_undo_of_a_forget_brings_the_copies_back(app: Memory, agent: Memory) -> None:
    said, copied, _ = a_value_and_its_copies(app, agent)
    number = act(app, said, "forget")
    assert statuses(app, [said, *copied]) == ["deleted"] * 3
    undo(app, number)
    assert values_of_ann(app) == [" AISLE", "aisle", "aisle"]


def test_what_was_said_to_be_about_somebody_else_is_not_written_back(
    app: Memory, agent: Memory
) -> None:
    said, _, others = a_value_and_its_copies(app, agent)
    act(app, said, "wrong-person")
    assert values_of_ann(app) == []
    proposed = [
        body_of(agent.client.post(RECORDS, an_inference(value, bindings=bindings)), 202)
        for value, bindings in (("aisle", {}), ("Aisle ", {"trip_id": "T2"}))
    ]
    assert {one["review"] for one in proposed} == {"pending"}
    assert app.recall()["decision"] == "none"
    assert statuses(app, others) == ["active", "active"]
    body_of(agent.client.post(RECORDS, an_inference("middle")), 202)


def test_it_may_be_written_again_when_that_is_undone(app: Memory, agent: Memory) -> None:
    said, copied, _ = a_value_and_its_copies(app, agent)
    undo(app, act(app, said, "wrong-person"))
    assert statuses(app, [said, *copied]) == ["active"] * 3
    infer(agent, "aisle", bindings={"trip_id": "T3"})


def test_a_newer_word_of_the_person_brings_it_back(app: Memory, agent: Memory) -> None:
    early = app.says(text="aisle")
    act(app, app.remember("aisle")["id"], "wrong-person")
    body_of(agent.client.post(RECORDS, stated("aisle", early)), 202)
    body_of(agent.client.post(RECORDS, stated("aisle", app.says(text="it is me"))), 201)
    assert app.recall()["value"] == "aisle"
