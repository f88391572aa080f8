"""Keyword search over records: every word must be there, under the same guard, and nothing that ended is found."""

from typing import Any

import pytest

from memory.models import RecordDocument, RecordPosting
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.records.builders import an_inference, body_of, refusal
from tests.records.conftest import RECORDS, Memory


def found(memory: Memory, q: str, **more: Any) -> list[str]:
    return [one["id"] for one in memory.list(q=q, **more)]


def test_a_record_is_found_by_the_words_of_its_key_and_value(app: Memory) -> None:
    app.remember("aisle seats near the front", key="travel.seat_kind", id="a")
    app.remember(
        {"city": "Pune", "since": "2024-05-20", "mail": "ann@example.com"}, key="home", id="b"
    )
    app.remember("今日は成語しりとりをした", key="game", id="c")
    app.remember("Zoë's running shoes", key="shoes", id="d")
    for q, ids in {
        "aisle": ["a"],
        "seat front": ["a"],
        "seating": ["a"],
        "travel": ["a"],
        "travel.seat_kind": ["a"],
        "kind of seat": ["a"],
        "pune": ["b"],
        "2024-05-20": ["b"],
        "2024-05": ["b"],
        "ann@example.com": ["b"],
        "しりとり": ["c"],
        "成語": ["c"],
        "zoe run": ["d"],
        "aisle pune": [],
        "100%": [],
        "a_b": [],
        "!!!": [],
    }.items():
        assert found(app, q) == ids, q


def test_search_keeps_to_the_guard_and_the_other_filters(acme: TenantKit, app: Memory) -> None:
    app.remember("aisle", id="a")
    app.remember("aisle", id="b", subject="bob")
    assert found(app, "aisle") == ["b", "a"]
    assert found(app, "aisle", subject_id="ann") == ["a"]
    assert found(app, "aisle", key="other") == []
    assert found(Memory(acme.client("agent", users=["bob"])), "aisle") == ["b"]
    assert found(Memory(acme.client("agent")), "aisle") == []


def test_search_pages_like_the_list(app: Memory) -> None:
    for number in range(5):
        app.remember("aisle", key=f"k{number}")
    first = body_of(app.client.get(RECORDS, {"q": "aisle", "limit": 3}), 200)
    query = {"q": "aisle", "limit": 3, "cursor": first["nextCursor"]}
    second = body_of(app.client.get(RECORDS, query), 200)
    keys = [one["key"] for one in first["data"] + second["data"]]
    assert keys == ["k4", "k3", "k2", "k1", "k0"]
    refusal(app.client.get(RECORDS, {**query, "q": "other"}), 400, "bad-input")
    refusal(app.client.get(RECORDS, {"q": "aisle", "status": "superseded"}), 400, "bad-input")


def test_nothing_that_ended_or_waits_is_found_and_its_words_are_gone(
    acme: TenantKit, app: Memory, agent: Memory
) -> None:
    forgotten = app.remember("quokka", key="k.forgotten")
    app.remember("quokka", key="k.expired", revalidate_on=["moved"])
    app.remember("quokka", key="travel.seat", bindings={"trip_id": "T1"})
    app.remember("quokka", key="k.overdue", valid_until="2026-01-01")
    withdrawn = app.remember("quokka", key="k.withdrawn")
    assert len(found(app, "quokka")) == 4
    app.forget(forgotten["id"])
    app.emit("moved")
    app.correct("window")
    path = f"{RECORDS}/{withdrawn['id']}/routes/wrong-person"
    receipt = body_of(app.client.post(path, {}), 200)["receipt"]
    body_of(agent.client.post(RECORDS, an_inference("quokka", level="task")), 202)
    app.recall("k.overdue")
    assert found(app, "quokka") == []
    assert found(app, "window") != []
    with tenant_context(acme.id):
        assert not RecordPosting.objects.filter(lexeme="quokka").exists()
    body_of(app.client.post(f"/v1/memory/receipts/{receipt['number']}/undo", {}), 200)
    assert found(app, "quokka") == [withdrawn["id"]]


@pytest.mark.parametrize(
    "value", ["x" * 60_000, "w " * 30_000, "\u202e right to left", "=HYPERLINK(1)", "🦘" * 50]
)
def test_any_text_can_be_remembered_and_the_key_still_finds_it(app: Memory, value: str) -> None:
    record = app.remember(value, key="odd.text")
    assert found(app, "odd") == [record["id"]]


def test_postings_equal_documents(acme: TenantKit, app: Memory) -> None:
    for number in range(3):
        app.remember(f"word{number} common", key=f"k{number}", id=f"r{number}")
    app.forget("r1")
    with tenant_context(acme.id):
        documents = {
            (one.record_id, w) for one in RecordDocument.objects.all() for w in one.lexemes
        }
        postings = set(RecordPosting.objects.values_list("record_id", "lexeme"))
    assert documents == postings
    assert {record_id for record_id, _ in postings} == {"r0", "r2"}
