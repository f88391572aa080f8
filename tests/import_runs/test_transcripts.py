"""What each message of a transcript becomes."""

import json
from typing import Any

import pytest

from memory.errors import BadInput
from memory.importers.openai_runs import RunDraft, run_of_transcript
from tests.import_runs.transcripts import agent, result, user

SCOPE = {"tenantId": "acme", "projectId": "p"}


def drafted(*messages: dict[str, Any], name: str = "messages") -> RunDraft:
    return run_of_transcript({name: list(messages)}, run_id="r", scope=SCOPE)


def refused(*messages: Any) -> list[dict[str, str]]:
    with pytest.raises(BadInput) as error:
        run_of_transcript({"messages": list(messages)}, run_id="r", scope=SCOPE)
    return error.value.issues


def test_each_message_becomes_an_entry_of_its_kind_with_its_actor_and_cause() -> None:
    run = drafted(
        {"role": "system", "content": "Be brief."},
        user("Hi"),
        agent("Hello, one moment.", ("c1", "look_up", '{"q": "x", "n": 1}')),
        result("c1", "found"),
        agent("It is x."),
        name="traj",
    )
    assert [(one.id, one.kind, one.actor, one.caused_by) for one in run.entries] == [
        ("r:0", "system-message", "system", None),
        ("r:1", "user-message", "user", None),
        ("r:2", "agent-message", "agent", "r:1"),
        ("r:3", "tool-call", "tool:look_up", "r:1"),
        ("r:4", "tool-result", "tool:look_up", "r:3"),
        ("r:5", "agent-message", "agent", "r:4"),
    ]
    assert [one.payload for one in run.entries] == [
        {"text": "Be brief."},
        {"text": "Hi"},
        {"text": "Hello, one moment."},
        {"name": "look_up", "arguments": {"q": "x", "n": 1}, "tool_call_id": "c1"},
        {"name": "look_up", "text": "found", "tool_call_id": "c1"},
        {"text": "It is x."},
    ]
    assert {tuple(one.scope.items()) for one in run.entries} == {tuple(SCOPE.items())}


def test_a_turn_of_calls_alone_makes_no_empty_message() -> None:
    run = drafted(
        user("Hi"), agent(None, ("a", "t", "{}"), ("b", "t", "{}")), agent("", ("c", "t", "{}"))
    )
    assert [one.kind for one in run.entries] == [
        "user-message",
        "tool-call",
        "tool-call",
        "tool-call",
    ]


def test_results_out_of_order_are_caused_by_their_own_calls() -> None:
    run = drafted(
        agent(None, ("a", "t", "{}"), ("b", "u", "{}")), result("b", "2"), result("a", "1")
    )
    assert [(one.payload["name"], one.caused_by) for one in run.entries[2:]] == [
        ("u", "r:1"),
        ("t", "r:0"),
    ]


def test_an_id_that_a_provider_gives_twice_means_the_latest_call() -> None:
    turns = [agent(None, ("call_0", "t", "{}")), result("call_0", "x")]
    run = drafted(*turns, *turns)
    assert [one.caused_by for one in run.entries] == [None, "r:0", "r:1", "r:2"]


def test_a_result_without_its_call_is_kept_without_a_cause_and_noted() -> None:
    run = drafted(user("Hi"), result("gone", "x"))
    assert (run.entries[1].kind, run.entries[1].caused_by) == ("tool-result", None)
    assert run.notes == ["/messages/1: no call in this transcript has this result's id"]


def test_function_calls_of_the_older_format_are_calls_too() -> None:
    run = drafted(
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "t", "arguments": '{"a": 1}'},
        },
        {"role": "function", "name": "t", "content": "x"},
    )
    assert run.entries[0].payload == {"name": "t", "arguments": {"a": 1}}
    assert (run.entries[1].kind, run.entries[1].caused_by) == ("tool-result", "r:0")


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("", ""),
        ("{not json", "{not json"),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"big": 9007199254740993}', '{"big": 9007199254740993}'),
        ('{"nul": "\\u0000"}', '{"nul": "\\u0000"}'),
        ("[" * 64 + "]" * 64, "[" * 64 + "]" * 64),
    ],
)
def test_arguments_are_a_value_where_they_are_json_that_can_be_kept(
    arguments: str, kept: Any
) -> None:
    assert drafted(agent(None, ("a", "t", arguments))).entries[0].payload["arguments"] == kept


def test_nothing_of_a_message_is_dropped() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://e.example/1.png"}},
    ]
    run = drafted(
        {"role": "user", "name": "zoë", "content": parts},
        {"role": "assistant", "content": None, "refusal": "No.", "audio": None, "annotations": []},
    )
    assert run.entries[0].payload == {"name": "zoë", "content": parts}
    assert run.entries[1].payload == {"refusal": "No."}


def test_an_empty_text_is_a_text_and_a_tool_may_answer_nothing() -> None:
    run = drafted(user(""), agent(None, ("a", "t", "{}")), {**result("a", ""), "content": None})
    assert run.entries[0].payload == {"text": ""}
    assert run.entries[2].payload == {"name": "t", "text": "", "tool_call_id": "a"}


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("text", "/messages/1"),
        ({"content": "x"}, "/messages/1/role"),
        ({"role": "narrator", "content": "x"}, "/messages/1/role"),
        ({"role": ["user"], "content": "x"}, "/messages/1/role"),
        ({"role": "user", "content": 5}, "/messages/1/content"),
        ({"role": "user"}, "/messages/1/content"),
        ({"role": "system", "content": None}, "/messages/1/content"),
        ({"role": "developer", "name": "d"}, "/messages/1/content"),
        ({"role": "assistant", "content": None, "tool_calls": {}}, "/messages/1/tool_calls"),
        ({"role": "assistant", "content": None, "tool_calls": [5]}, "/messages/1/tool_calls/0"),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]},
            "/messages/1/tool_calls/0",
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": 5, "function": {"name": "t"}}]},
            "/messages/1/tool_calls/0/id",
        ),
        ({"role": "tool", "tool_call_id": 5, "content": "x"}, "/messages/1/tool_call_id"),
        (agent(None, ("a", "t" * 252, "{}")), "/messages/1/tool_calls/0"),
    ],
)
def test_a_message_of_another_shape_is_named(message: Any, path: str) -> None:
    assert [issue["path"] for issue in refused(user("Hi"), message)] == [path]


def test_every_misshapen_message_is_named_at_once() -> None:
    assert [issue["path"] for issue in refused({"role": "x"}, user("Hi"), 5)] == [
        "/messages/0/role",
        "/messages/2",
    ]


@pytest.mark.parametrize(
    "value", [[], "x", None, {}, {"messages": "x"}, {"messages": []}, {"traj": []}]
)
def test_what_is_no_transcript_is_refused(value: Any) -> None:
    with pytest.raises(BadInput):
        run_of_transcript(value, run_id="r", scope=SCOPE)


def details(
    call_id: str, tool: str, arguments: dict[str, Any], content: Any
) -> list[dict[str, Any]]:
    return [
        agent(None, (call_id, tool, json.dumps(arguments))),
        result(call_id, json.dumps(content)),
    ]


def test_what_a_tool_tells_of_a_customer_becomes_a_fact_about_them() -> None:
    run = drafted(
        *details("a", "get_user_details", {"user_id": "u1"}, {"name": "Zoë", "tier": "gold"}),
        *details(
            "b",
            "get_reservation_details",
            {"reservation_id": "R1"},
            {"reservation_id": "R1", "user_id": "u1", "to": "X"},
        ),
    )
    told = [
        (one.id, one.revision, one.cause, one.fact.type, one.fact.customer, one.fact.content)
        for one in run.facts
    ]
    assert told == [
        (
            "r:customer-profile:u1",
            1,
            1,
            "customer-profile",
            "u1",
            {"user_id": "u1", "name": "Zoë", "tier": "gold"},
        ),
        (
            "r:reservation:R1",
            1,
            3,
            "reservation",
            "u1",
            {"reservation_id": "R1", "user_id": "u1", "to": "X"},
        ),
    ]


def test_a_change_of_the_thing_is_its_next_revision_and_the_same_again_is_none() -> None:
    before = {"reservation_id": "R1", "user_id": "u1", "cabin": "economy"}
    run = drafted(
        *details("a", "get_reservation_details", {"reservation_id": "R1"}, before),
        *details(
            "b", "get_reservation_details", {"reservation_id": "R1"}, dict(reversed(before.items()))
        ),
        *details(
            "c",
            "update_reservation_flights",
            {"reservation_id": "R1"},
            {**before, "cabin": "business"},
        ),
        *details("d", "cancel_reservation", {"reservation_id": "R1"}, before),
    )
    assert [(one.revision, one.cause, one.fact.content["cabin"]) for one in run.facts] == [
        (1, 1, "economy"),
        (2, 5, "business"),
        (3, 7, "economy"),
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("get_user_details", {"user_id": "u1"}, "Error: user not found"),
        ("get_user_details", {"user_id": "u1"}, "{broken"),
        ("get_user_details", {"user_id": "u1"}, '{"a": 1, "a": 2}'),
        ("get_user_details", {}, '{"name": "who?"}'),
        ("search_flights", {"user_id": "u1"}, '[{"flight_id": "f"}]'),
        ("get_reservation_details", {"reservation_id": "R1"}, '{"reservation_id": "R1"}'),
        ("calculate", {"user_id": "u1"}, '{"sum": 5}'),
        ("get_user_details", {"user_id": ["u1"]}, '{"name": "x"}'),
        ("get_user_details", {"user_id": True}, '{"name": "x"}'),
    ],
)
def test_what_tells_nothing_of_a_customer_makes_no_fact(
    tool: str, arguments: dict[str, Any], text: str
) -> None:
    assert drafted(agent(None, ("a", tool, json.dumps(arguments))), result("a", text)).facts == []


def test_a_fact_that_would_be_too_large_is_noted_and_left_out() -> None:
    run = drafted(*details("a", "get_user_details", {"user_id": "u1"}, {"notes": "x" * 70_000}))
    assert run.facts == []
    assert run.notes == ["/messages/1: makes no fact, since its ids or its content are too long"]
