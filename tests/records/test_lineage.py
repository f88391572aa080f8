"""A derived record is never wider, more trusted or longer-lived than its parents, whichever comes first."""

from typing import Any

import pytest

from tests.records.builders import a_record, an_inference, body_of, refusal, valid
from tests.records.conftest import RECORDS, Memory


def scope(record: dict[str, Any]) -> tuple[Any, ...]:
    one = record["scope"]
    return one["level"], one["bindings"], one["valid_until"]


PARENT = {
    "level": "project",
    "bindings": {"project_id": "p1"},
    "valid_until": "2030-06-30",
}


def test_a_child_is_cut_to_its_parents(app: Memory) -> None:
    app.remember("p", key="k.p", id="p", **PARENT)
    child = valid(app.remember("c", key="k.c", derived_from=["p"], retain=True))
    assert scope(child) == ("project", {"project_id": "p1"}, "2030-06-30")
    assert child["lifecycle"]["retain_value_after_expiry"] is False
    within = app.remember(
        "c",
        key="k.d",
        derived_from=["p"],
        level="task",
        bindings={"t": 1},
        valid_until="2030-01-01",
    )
    assert scope(within) == ("task", {"t": 1, "project_id": "p1"}, "2030-01-01")


def test_a_child_of_several_is_cut_to_all_of_them(app: Memory) -> None:
    app.remember("p", key="k.p", id="p", **PARENT)
    app.remember(
        "q", key="k.q", id="q", level="session", bindings={"s": 1}, valid_until="2030-03-01"
    )
    child = app.remember("c", key="k.c", derived_from=["p", "q"])
    assert scope(child) == ("session", {"project_id": "p1", "s": 1}, "2030-03-01")


def test_a_child_that_could_apply_nowhere_is_refused(app: Memory) -> None:
    app.remember("p", key="k.p", id="p", **PARENT)
    body = a_record("c", key="k.c", derived_from=["p"], bindings={"project_id": "p2"})
    assert refusal(app.client.post(RECORDS, body), 422, "invariant-violated") == {
        "invariant": "I10"
    }
    body = a_record("c", key="k.c", derived_from=["p"], valid_from="2031-01-01")
    assert refusal(app.client.post(RECORDS, body), 422, "invariant-violated") == {
        "invariant": "I10"
    }


def test_a_child_is_no_more_trusted_than_its_parents(app: Memory, agent: Memory) -> None:
    body_of(agent.client.post(RECORDS, an_inference("p", key="k.p", id="p")), 201)
    child = app.remember("c", key="k.c", derived_from=["p"])
    assert app.explain(child["id"])["trust"] == "unverified"


@pytest.mark.parametrize("end", ["superseded", "expired"])
def test_nothing_is_derived_from_what_has_ended(app: Memory, end: str) -> None:
    app.remember("p", key="k.p", id="p", bindings={"trip_id": "T1"}, revalidate_on=["e"])
    if end == "superseded":
        app.correct("q", key="k.p")
    else:
        app.emit("e")
    body = a_record("c", key="k.c", derived_from=["p"])
    assert refusal(app.client.post(RECORDS, body), 422, "invariant-violated") == {
        "invariant": "I10"
    }


def test_a_parent_that_comes_later_cuts_what_was_derived_from_it_and_from_that(
    app: Memory, agent: Memory
) -> None:
    app.remember("c", key="k.c", id="c", derived_from=["p"])
    app.remember("g", key="k.g", id="g", derived_from=["c"], valid_until="2031-01-01")
    body = an_inference("p", key="k.p", id="p", bindings={"t": 1}, valid_until="2030-06-30")
    body_of(agent.client.post(RECORDS, body), 201)
    for one in ("c", "g"):
        record = valid(app.get(one))
        assert scope(record) == ("task", {"t": 1}, "2030-06-30")
        assert app.explain(one)["trust"] == "unverified"


def test_a_child_that_no_longer_fits_its_late_parent_waits_for_review(app: Memory) -> None:
    app.remember("c", key="k.c", id="c", derived_from=["p"], bindings={"project_id": "p2"})
    app.remember("p", key="k.p", id="p", **PARENT)
    refusal(app.client.get(f"{RECORDS}/c"), 404, "record-not-found")
    assert app.recall("k.c", context={"user_id": "ann", "project_id": "p2"})["decision"] == "none"


def test_a_child_that_would_fill_a_taken_slot_waits_for_review(app: Memory) -> None:
    app.remember("c", key="k.c", id="c", derived_from=["p"])
    app.remember("d", key="k.c", level="project", bindings={"project_id": "p1"})
    app.remember("p", key="k.p", id="p", **{**PARENT, "valid_until": None})
    assert [one["value"] for one in app.list(key="k.c")] == ["d"]


def test_late_parents_in_a_circle_end(app: Memory) -> None:
    app.remember("a", key="k.a", id="a", derived_from=["b"], level="project", bindings={"x": 1})
    app.remember("b", key="k.b", id="b", derived_from=["a"], level="session", bindings={"y": 2})
    for one in ("a", "b"):
        assert scope(app.get(one))[:2] == ("session", {"x": 1, "y": 2})


def test_a_confirmation_does_not_widen_beyond_a_parent(app: Memory) -> None:
    app.remember("p", key="k.p", id="p", **PARENT)
    child = app.remember("c", key="k.c", derived_from=["p"], level="task", bindings={"t": 1})
    path = f"{RECORDS}/{child['id']}/confirm"
    body = {"broaden_to": {"level": "user", "bindings": {}}}
    assert refusal(app.client.post(path, body), 422, "invariant-violated") == {"invariant": "I10"}
    body = {"broaden_to": {"level": "project", "bindings": {"project_id": "p1"}}}
    assert body_of(app.client.post(path, body), 200)["scope"]["level"] == "project"


def test_a_record_is_not_derived_from_itself(app: Memory) -> None:
    body = a_record(id="r", derived_from=["r"])
    assert refusal(app.client.post(RECORDS, body), 422, "invariant-violated") == {"invariant": "I7"}


def test_a_record_does_not_take_the_place_of_what_it_is_derived_from(app: Memory) -> None:
    app.remember("p", id="p")
    body = a_record("c", derived_from=["p"])
    assert refusal(app.client.post(RECORDS, body), 422, "invariant-violated") == {
        "invariant": "I10"
    }
    app.remember("between", key="k.between", id="b", derived_from=["p"])
    body = a_record("c", derived_from=["b"])
    assert refusal(app.client.post(RECORDS, body), 422, "invariant-violated") == {
        "invariant": "I10"
    }
    assert {one["id"] for one in app.list()} == {"p", "b"}


def test_an_undo_brings_nothing_back_whose_parent_has_ended_since(app: Memory) -> None:
    app.remember("p", key="k.p", id="p", revalidate_on=["moved"])
    app.remember("c", key="k.c", id="c", derived_from=["p"])
    path = f"{RECORDS}/c/routes/out-of-date"
    number = body_of(app.client.post(path, {}), 200)["receipt"]["number"]
    app.emit("moved")
    answer = app.client.post(f"/v1/memory/receipts/{number}/undo", {})
    assert refusal(answer, 409, "undo-closed") == {"reason": "changed"}
    assert app.list() == []


def test_an_undo_of_a_confirmation_stays_within_a_parent_that_came_since(app: Memory) -> None:
    app.remember("c", key="k.c", id="c", derived_from=["p"])
    path = f"{RECORDS}/c/routes/confirm"
    number = body_of(app.client.post(path, {}), 200)["receipt"]["number"]
    app.remember("p", key="k.p", id="p", level="task", bindings={"t": 1})
    body_of(app.client.post(f"/v1/memory/receipts/{number}/undo", {}), 200)
    assert scope(app.get("c"))[:2] == ("task", {"t": 1})


def test_a_late_parent_cuts_along_every_way_down(app: Memory) -> None:
    """Twice through the same record, by a shorter and by a longer way: what comes second goes on down, too."""
    app.remember("b", key="k.b", id="b", derived_from=["a"])
    app.remember("c", key="k.c", id="c", derived_from=["a", "b"])
    app.remember("d", key="k.d", id="d", derived_from=["c"])
    app.remember("x", key="k.b", level="task", bindings={"t": 1})
    app.remember("a", key="k.a", id="a", level="task", bindings={"t": 1})
    for one in ("b", "c", "d"):
        refusal(app.client.get(f"{RECORDS}/{one}"), 404, "record-not-found")


def test_an_undo_of_a_widening_narrows_what_was_derived_from_it_meanwhile(app: Memory) -> None:
    app.remember("p", key="k.p", id="p", level="task", bindings={})
    wider = {"broaden_to": {"level": "user", "bindings": {}}}
    answer = app.client.post(f"{RECORDS}/p/routes/confirm", wider)
    number = body_of(answer, 200)["receipt"]["number"]
    app.remember("c", key="k.c", id="c", derived_from=["p"])
    app.remember("g", key="k.g", id="g", derived_from=["c"])
    app.remember("s", key="k.s", id="s", derived_from=["p"], subject="bob", level="task")
    assert scope(app.get("c"))[0] == "user"
    body_of(app.client.post(f"/v1/memory/receipts/{number}/undo", {}), 200)
    assert [scope(app.get(one))[0] for one in ("p", "c", "g", "s")] == ["task"] * 4
