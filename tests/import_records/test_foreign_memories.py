"""What mem0 and LangGraph stores export becomes an inference of one observation, with nobody's word in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import TenantKit
from tests.import_records.files import codes, file_of, imported
from tests.records.builders import valid
from tests.records.conftest import Memory

MEM0: dict[str, Any] = {
    "id": "4f1c2d9e-0b1a-4c55-9d3e-6a7b8c9d0e1f",
    "memory": "Prefers aisle seats",
    "hash": "bae2",
    "metadata": {"source": "chat"},
    "categories": ["travel"],
    "created_at": "2026-02-01T09:00:00.123456-08:00",
    "updated_at": None,
    "user_id": "ann",
    "agent_id": "booker",
    "run_id": "r-7",
}
ITEM: dict[str, Any] = {
    "namespace": ["memories", "ann"],
    "key": "Seat Choice",
    "value": {"seat": "aisle"},
    "created_at": "2026-02-01T09:00:00+00:00",
    "updated_at": "2026-02-02T09:00:00+00:00",
}


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=["ann", "bob"]))


def test_a_memory_of_mem0s_is_asked_about_before_it_is_used(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    assert imported(acme, file_of(tmp_path, MEM0))["added"] == 1
    (record,) = app.list()
    valid(record)
    assert record["id"] == f"mem0:{MEM0['id']}"
    assert record["subject"] == {"type": "user", "id": "ann"}
    assert record["value"] == "Prefers aisle seats"
    assert record["source"] == {
        "type": "agent_inferred",
        "evidence": {"kind": "record", "ref": record["id"]},
        "observations": 1,
        "captured_at": "2026-02-01T17:00:00.123456Z",
        "captured_by": "booker@mem0",
    }
    assert record["scope"]["level"] == "task"
    assert record["scope"]["bindings"] == {"run_id": "r-7"}
    told = app.recall(record["key"], context={"user_id": "ann", "run_id": "r-7"})
    assert (told["decision"], told["reason"]) == ("ask", "unconfirmed-inference")
    assert told["value"] == "Prefers aisle seats"


def test_mem0s_answers_are_read_as_lists_and_as_results(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    second = {**MEM0, "id": "b", "memory": "Vegan"}
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps([MEM0, second]))
    wrapped = file_of(tmp_path, {"results": [MEM0, second, {**MEM0, "user_id": None}]})
    assert imported(acme, str(listed))["added"] == 2
    again = imported(acme, wrapped, refused=1)
    assert again["present"] == 2
    assert codes(again) == [("line 1, result 2", "bad-input")]


def test_memories_that_read_alike_stay_apart(acme: TenantKit, app: Memory, tmp_path: Path) -> None:
    ids = ["a-b", "a_b", "A_B", "a b", "é", "è", "x" * 300]
    path = file_of(tmp_path, *({**MEM0, "id": one, "memory": one} for one in ids[:-1]))
    assert imported(acme, path)["added"] == 6
    assert len({one["key"] for one in app.list()}) == 6
    long = file_of(tmp_path, {**MEM0, "id": ids[-1]}, name="long.jsonl")
    assert codes(imported(acme, long, refused=1)) == [("line 1", "bad-input")]


@pytest.mark.parametrize(
    "changed",
    [
        {"user_id": None},
        {"user_id": ""},
        {"memory": ""},
        {"memory": 5},
        {"created_at": "2026-02-01T09:00:00"},
        {"created_at": None},
        {"id": None},
        {"expiration_date": "soon"},
    ],
    ids=str,
)
def test_a_memory_of_nobody_or_no_time_is_refused(
    acme: TenantKit, tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = file_of(tmp_path, {**MEM0, **changed})
    assert codes(imported(acme, path, refused=1)) == [("line 1", "bad-input")]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"user_id": None}, "user_id"),
        ({"created_at": "2026-02-01T09:00:00"}, "created_at"),
        ({"created_at": None}, "created_at"),
        ({"updated_at": "yesterday"}, "updated_at"),
    ],
    ids=str,
)
def test_a_refusal_names_the_member_as_the_file_does(
    acme: TenantKit, tmp_path: Path, changed: dict[str, Any], named: str
) -> None:
    (refusal,) = imported(acme, file_of(tmp_path, {**MEM0, **changed}), refused=1)["refusals"]
    assert refusal["message"].startswith(f"{named} must ")
    assert [one["path"] for one in refusal["details"]["issues"]] == [f"/{named}"]


def test_an_item_of_a_langgraph_store_needs_to_be_told_whose_it_is(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    path = file_of(tmp_path, ITEM, {**ITEM, "namespace": ["memories", "bob"]})
    assert codes(imported(acme, path, refused=2)) == [
        ("line 1", "bad-input"),
        ("line 2", "bad-input"),
    ]
    assert imported(acme, path, "--subject-at=-1")["added"] == 2
    mine = app.list(subject_id="ann")
    assert [one["value"] for one in mine] == [{"seat": "aisle"}]
    assert mine[0]["key"].startswith("langgraph.memories.seat_choice_")
    assert mine[0]["source"]["captured_at"] == "2026-02-02T09:00:00Z"
    assert mine[0]["source"]["type"] == "agent_inferred"
    assert imported(acme, path, "--subject-at=1")["present"] == 2


@pytest.mark.parametrize(
    "changed",
    [{"namespace": "ann"}, {"namespace": []}, {"namespace": [1]}, {"value": None}, {"key": ""}],
    ids=str,
)
def test_an_item_that_is_none_is_refused(
    acme: TenantKit, tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = file_of(tmp_path, {**ITEM, **changed})
    answer = imported(acme, path, "--subject-at=0", refused=1)
    assert codes(answer) == [("line 1", "bad-input")]


def test_what_the_person_forgot_is_not_learned_from_an_old_export(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    path = file_of(tmp_path, MEM0)
    imported(acme, path)
    (record,) = app.list()
    app.forget(record["id"])
    assert codes(imported(acme, path, refused=1)) == [("line 1", "id-reused")]
    renamed = file_of(tmp_path, {**MEM0, "run_id": "another"}, name="renamed.jsonl")
    imported(acme, renamed, refused=1)
    assert app.list() == []
