"""A history goes on over an undo: what was gone and what came back under another id have one."""

from typing import Any

import pytest

from tests.records.builders import body_of
from tests.records.conftest import RECORDS, Memory


def act(app: Memory, record_id: str, route: str, **form: Any) -> str:
    body = body_of(app.client.post(f"{RECORDS}/{record_id}/routes/{route}", form), 200)
    number: str = body["receipt"]["number"]
    return number


def undone(app: Memory, number: str) -> list[str]:
    """The ids of the records as they are after an undo."""
    body = body_of(app.client.post(f"/v1/memory/receipts/{number}/undo", {}), 200)
    return [one["id"] for one in body["records"]]


def acts(app: Memory, record_id: str) -> list[str]:
    return [one["act"] for one in app.history(record_id)]


@pytest.mark.parametrize(("route", "name"), [("forget", "forgotten"), ("out-of-date", "expired")])
def test_what_came_back_goes_on_with_the_history_of_what_was_gone(
    app: Memory, route: str, name: str
) -> None:
    old = app.remember("aisle")["id"]
    (new,) = undone(app, act(app, old, route))
    assert new != old
    app.confirm(new)
    whole = ["remembered", name, "undone", "confirmed"]
    assert acts(app, old) == acts(app, new) == whole
    again = undone(app, act(app, new, route))[0]
    assert acts(app, old) == acts(app, again) == [*whole, name, "undone"]


@pytest.mark.parametrize(
    ("route", "form", "name"),
    [
        ("wrong-person", {}, "withdrawn"),
        ("dispute", {"statement": "no"}, "disputed"),
        ("confirm", {}, "confirmed"),
    ],
)
def test_what_was_only_marked_has_the_undo_in_its_history(
    app: Memory, route: str, form: dict[str, Any], name: str
) -> None:
    record = app.remember("aisle")["id"]
    assert undone(app, act(app, record, route, **form)) == [record]
    assert acts(app, record) == ["remembered", name, "undone"]


def test_what_ended_along_has_the_undo_in_its_history(app: Memory) -> None:
    parent = app.remember("aisle")["id"]
    child = app.remember("x", key="k.child", derived_from=[parent])["id"]
    back = undone(app, act(app, parent, "forget"))
    assert acts(app, child) == ["remembered", "forgotten", "undone"]
    assert {tuple(acts(app, one)) for one in back} == {("remembered", "forgotten", "undone")}


def test_a_correction_and_all_that_it_replaced_have_the_undo_in_their_histories(
    app: Memory,
) -> None:
    of_trip = app.remember("aisle", level="task", bindings={"trip_id": "T1"})["id"]
    wide = app.remember("window")["id"]
    everywhere = {"user_id": "ann", "broaden_to": {"level": "user", "bindings": {}}}
    body = {"new_value": "middle", "context": everywhere, "broaden": True}
    answer = body_of(app.client.post(f"{RECORDS}/{of_trip}/correct", body), 201)
    corrected = answer["record"]
    assert sorted(corrected["correction"]["supersedes"]) == sorted([of_trip, wide])
    back = undone(app, answer["receipt"]["number"])
    for one in (of_trip, wide, corrected["id"], *back):
        assert acts(app, one)[-1] == "undone", one
