"""Recall's mechanics: one key, several, a prefix, a past moment; what it counts, logs and costs."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.records import clock
from memory.records.decision import Reason
from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.records.builders import a_record, an_inference, body_of, refusal

RECORDS = "/v1/memory/records"
RECALL = "/v1/memory/recall"
ANN = {"user_id": "ann"}


def remember(client: ApiClient, value: Any = "aisle", **changes: Any) -> dict[str, Any]:
    return body_of(client.post(RECORDS, a_record(value, **changes)), 201)


def test_several_keys_and_a_prefix_answer_by_key(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    for key in ("travel", "travel.seat", "travel.meal", "travels.seat", "travel_x", "meal"):
        remember(app, key, key=key)
    several = body_of(
        app.post(RECALL, {"keys": ["travel.seat", "none.such"], "context": ANN}), 200
    )["results"]
    assert {key: one["value"] for key, one in several.items()} == {
        "travel.seat": "travel.seat",
        "none.such": None,
    }
    for prefix, found in (
        ("travel", {"travel", "travel.seat", "travel.meal"}),
        ("travel.", {"travel.seat", "travel.meal"}),
        ("none", set()),
    ):
        answer = body_of(app.post(RECALL, {"key_prefix": prefix, "context": ANN}), 200)
        assert set(answer["results"]) == found


@pytest.mark.parametrize(
    "body",
    [
        {"key": "a"},
        {"context": {}},
        {"key": "a", "keys": ["b"], "context": {}},
        {"keys": [], "context": {}},
        {"keys": ["a"] * 51, "context": {}},
        {"key": "A", "context": {}},
        {"key": "a", "context": {"x": {"y": 1}}},
        {"key": "a", "context": {"x": [1]}},
        {"key": "a", "context": {"x": None}},
        {"key": "a", "context": {"user_id": 7}},
        {"key": "a", "context": {"user_id": ""}},
        {"key": "a", "context": {"user_id": None}},
        {"key": "a", "context": [], "subject": {"type": "user", "id": "a"}},
        {"key": "a", "context": {}, "subject": {"type": "team", "id": "a"}},
        {"key": "a", "context": {}, "as_of": "2026-01-01T00:00:00"},
    ],
)
def test_a_malformed_question_is_refused(acme: TenantKit, body: dict[str, Any]) -> None:
    refusal(acme.client("agent").post(RECALL, body), 400, "bad-input")


def test_recall_counts_its_use_and_explains_when_it_was_last(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    record = remember(app)
    for _ in range(3):
        body_of(app.post(RECALL, {"key": "travel.seat", "context": ANN}), 200)
    body_of(app.post(RECALL, {"keys": ["travel.seat", "x"], "context": ANN}), 200)
    used = body_of(app.get(f"{RECORDS}/{record['id']}"), 200)["usage"]
    assert used["use_count"] == 4
    assert used["last_used_at"] is not None
    body_of(acme.client("auditor").post(RECALL, {"key": "travel.seat", "context": ANN}), 200)
    assert body_of(app.get(f"{RECORDS}/{record['id']}"), 200)["usage"] == used


def test_fifty_recalls_at_once_count_fifty(live_acme: TenantKit) -> None:
    app = live_acme.client("app", users=["ann"])
    record = remember(app)
    other = remember(app, key="travel.meal")
    agent = live_acme.token("agent", users=["ann"])
    bodies = [
        {"key": "travel.seat", "context": ANN},
        {"keys": ["travel.seat", "travel.meal"], "context": ANN},
        {"keys": ["travel.meal", "travel.seat"], "context": ANN},
    ]

    def ask(number: int) -> int:
        # Who waited too long for its turn is told so, with nothing counted, and asks again.
        for _ in range(10):
            status = ApiClient(agent).post(RECALL, bodies[number % 3]).status_code
            if status != 503:
                break
        return status

    answers = at_once(50, ask)
    assert answers == [200] * 50
    assert body_of(app.get(f"{RECORDS}/{record['id']}"), 200)["usage"]["use_count"] == 50
    assert body_of(app.get(f"{RECORDS}/{other['id']}"), 200)["usage"]["use_count"] == 33


def test_a_recall_costs_five_statements_with_begin_and_commit(live_acme: TenantKit) -> None:
    app = live_acme.client("app", users=["ann"])
    remember(app)
    body = {"key": "travel.seat", "context": ANN}
    body_of(app.post(RECALL, body), 200)
    with CaptureQueriesContext(connection) as queries:
        body_of(app.post(RECALL, body), 200)
    said = [query["sql"].split(None, 1)[0] for query in queries.captured_queries]
    assert len(said) <= 5, said
    with CaptureQueriesContext(connection) as queries:
        body_of(app.post(RECALL, {"key_prefix": "travel", "context": ANN}), 200)
    assert len(queries.captured_queries) <= 5


def test_with_a_run_the_recall_is_an_entry_that_holds_ids_and_no_values(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    record = remember(app, "aisle-9")
    agent = acme.client("agent", users=["ann"], projects=["p1"])
    body = {
        "keys": ["travel.seat", "x.y"],
        "context": {**ANN, "project_id": "p1"},
        "run_id": "run-7",
    }
    body_of(agent.post(RECALL, body), 200)
    (entry,) = body_of(agent.get("/v1/memory/runs/run-7/log"), 200)["data"]
    assert entry["kind"] == "retrieval"
    assert entry["scope"] == {"tenantId": "acme", "userId": "ann", "projectId": "p1"}
    assert entry["payload"]["results"] == [
        {"recordId": record["id"], "decision": "apply", "reason": "user-stated"},
        {"recordId": None, "decision": "none", "reason": "nothing-remembered"},
    ]
    assert "aisle-9" not in str(entry)
    refusal(agent.post(RECALL, {**body, "run_id": "kindmem.governance"}), 403, "run-reserved")


def test_a_past_moment_is_answered_as_it_was_then_and_counts_nothing(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    start = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def at(hours: int) -> str:
        return (start + timedelta(hours=hours)).isoformat()

    with clock.fixed_at(start):
        old = remember(app, "aisle", captured_at="2026-05-01T00:00:00Z")
    with clock.fixed_at(start + timedelta(hours=4)):
        remember(app, "window", captured_at="2026-05-01T01:00:00Z")

    def answer(moment: str) -> tuple[str, Any]:
        body = {"key": "travel.seat", "context": ANN, "as_of": moment}
        found = body_of(app.post(RECALL, body), 200)
        return found["decision"], found["value"]

    assert answer(at(-1)) == ("none", None)
    assert answer(at(0)) == ("apply", "aisle")
    assert answer(at(3)) == ("apply", "aisle")
    assert answer(at(4)) == ("apply", "window")
    assert answer(at(5)) == ("apply", "window")
    assert body_of(app.get(f"{RECORDS}/{old['id']}"), 200)["usage"]["use_count"] == 0


def test_what_held_before_it_was_written_answers_for_then(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    remember(app, "2025 value", valid_from="2025-01-01")
    remember(app, "2024 value", valid_from="2024-01-01")

    def answer(moment: str | None) -> Any:
        body = {"key": "travel.seat", "context": ANN}
        return body_of(app.post(RECALL, body | ({"as_of": moment} if moment else {})), 200)["value"]

    assert answer(None) == "2025 value"
    assert answer("2024-06-01T00:00:00Z") == "2024 value"
    assert answer("2025-06-01T00:00:00Z") == "2025 value"
    assert answer("2023-06-01T00:00:00Z") is None


def test_a_policy_of_a_past_moment_is_not_made_up(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    remember(app, None, authority="policy", source_of_truth="https://p.example.com/x")
    moment = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    body = {"key": "travel.seat", "context": ANN, "as_of": moment}
    answer = body_of(app.post(RECALL, body), 200)
    assert (answer["decision"], answer["reason"], answer["value"]) == (
        "revalidate",
        "policy-as-of",
        None,
    )


def test_a_key_recalls_only_what_it_may_read(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    remember(app)
    for stranger in (acme.client("agent"), acme.client("agent", users=["bob"], projects=["p1"])):
        for context in (ANN, {}):
            answer = body_of(stranger.post(RECALL, {"key": "travel.seat", "context": context}), 200)
            assert (answer["decision"], answer["value"]) == ("none", None)


def test_an_auditor_recalls_without_values(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    remember(app, "secret-1", bindings={"a": 1})
    remember(app, "secret-2", bindings={"b": 1})
    auditor = acme.client("auditor")
    for context in ({**ANN, "a": 1}, {**ANN, "a": 1, "b": 1}):
        answer = body_of(auditor.post(RECALL, {"key": "travel.seat", "context": context}), 200)
        assert "secret" not in str(answer)
        assert answer["meta"] == {"masked": True}


def test_what_waits_for_review_is_not_recalled_listed_or_read(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    said = remember(app, "aisle")
    agent = acme.client("agent", users=["ann"])
    waits = body_of(agent.post(RECORDS, an_inference("window", level="task")), 202)
    assert waits["review"] == "pending"
    answer = body_of(agent.post(RECALL, {"key": "travel.seat", "context": ANN}), 200)
    assert (answer["decision"], answer["value"]) == ("apply", "aisle")
    assert [one["id"] for one in body_of(app.get(RECORDS), 200)["data"]] == [said["id"]]
    refusal(app.get(f"{RECORDS}/{waits['id']}"), 404, "record-not-found")
    refusal(acme.client("admin").get(f"{RECORDS}/{waits['id']}"), 404, "record-not-found")


def test_what_steers_a_recall_is_matched_like_everything_else(acme: TenantKit) -> None:
    """A correction leaves control keys out of what it binds to; recall never does."""
    app = acme.client("app", users=["ann"])
    for name, value in (
        ("agent", "booker@1"),
        ("route", "fix-value"),
        ("message_ref", "m1"),
        ("confirmation_ref", "c1"),
        ("consequential", False),
        ("user_id", "ann"),
    ):
        key = f"bound.{name}"
        remember(app, "here", key=key, bindings={name: value})
        here = {"key": key, "context": {"user_id": "ann", name: value}}
        assert body_of(app.post(RECALL, here), 200)["decision"] == "apply", name
        without = {"key": key, "context": {}, "subject": {"type": "user", "id": "ann"}}
        assert body_of(app.post(RECALL, without), 200)["reason"] == "out-of-context", name


@pytest.mark.parametrize("given", ["true", "yes", 1, 0, ""])
def test_whether_much_hangs_on_it_is_said_with_true_or_false(acme: TenantKit, given: Any) -> None:
    app = acme.client("app", users=["ann"])
    remember(app, "here")
    context = {**ANN, "t": 1, "consequential": given}
    for path, more in ((RECALL, {}), ("/v1/memory/correct", {"new_value": "there"})):
        answer = app.post(path, {"key": "travel.seat", "context": context, **more})
        details = refusal(answer, 400, "bad-input")
        assert [one["path"] for one in details["issues"]] == ["/context/consequential"]


def test_the_reasons_are_those_that_the_page_lists() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/records.md").read_text()
    table = page.split("| reason | decision | when |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall("`(.*?)`", "".join(rows))) == sorted(get_args(Reason))


MEMBERS = {
    "value",
    "decision",
    "record_id",
    "source_type",
    "evidence_ref",
    "reason",
    "correction_route",
    "correction_url",
    "checked_at",
}


def test_every_answer_has_the_members_of_a_recall_result(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"], projects=["p1"])
    remember(app)
    remember(app, "bound", key="k.bound", bindings={"trip_id": "T9"})
    remember(app, "x", key="k.tied", level="task", bindings={"a": 1})
    remember(app, "y", key="k.tied", level="task", bindings={"b": 1})
    source = "https://p.example.com/x"
    remember(app, None, key="k.rule", authority="policy", source_of_truth=source)
    seen = {}
    for key, context in (
        ("travel.seat", ANN),
        ("k.bound", ANN),
        ("k.bound", {}),
        ("k.tied", {**ANN, "a": 1, "b": 1}),
        ("k.rule", ANN),
        ("k.nothing", ANN),
    ):
        answer = body_of(app.post(RECALL, {"key": key, "context": context}), 200)
        assert set(answer) >= MEMBERS
        assert set(answer) - MEMBERS <= {"candidates", "trust", "captured_at"}
        assert ("trust" in answer) == (answer["record_id"] is not None)
        seen[answer["reason"]] = answer
    assert set(seen) == {
        *("user-stated", "out-of-context", "conflict", "source-not-allowed", "nothing-remembered")
    }
    assert [seen["nothing-remembered"][name] for name in ("value", "record_id")] == [None, None]
    for one in seen["conflict"]["candidates"]:
        assert set(one) >= (MEMBERS - {"decision", "reason", "checked_at"})
