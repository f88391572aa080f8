"""Appending to a run and reading it back, over HTTP."""

import hashlib
import itertools
from typing import Any

import pytest
import rfc8785
from django.db import connection

from tests.builders import TenantKit

RUN = "/v1/memory/runs/run-1/log"
ENTRY = {"kind": "user-message", "scope": {"projectId": "p1"}}


def recomputed(entry: dict[str, Any]) -> str:
    hashed = (
        "id",
        "kind",
        "scope",
        "runId",
        "actor",
        "timestamp",
        "sequence",
        "payload",
        "prevHash",
    )
    return (
        "sha256:"
        + hashlib.sha256(rfc8785.dumps({k: entry[k] for k in hashed if k in entry})).hexdigest()
    )


@pytest.fixture
def agent(acme: TenantKit) -> Any:
    return acme.client("agent", projects=["p1"])


def test_an_entry_is_stored_with_what_the_server_assigns(agent: Any) -> None:
    body = {
        **ENTRY,
        "actor": "user:zoë",
        "payload": {"text": "café", "n": 1.0, "z": None},
        "causedByLogId": "le-0",
    }
    answer = agent.post(RUN, body)
    assert answer.status_code == 201, answer.content
    entry = answer.json()
    assert entry["sequence"] == 0
    assert entry["scope"] == {"projectId": "p1", "tenantId": "acme"}
    assert entry["prevHash"] == "sha256:" + "0" * 64
    assert entry["entryHash"] == recomputed(entry)
    assert (
        entry["contentHash"]
        == "sha256:" + hashlib.sha256(rfc8785.dumps(body["payload"])).hexdigest()
    )
    assert entry["causedByLogId"] == "le-0"
    assert agent.get(RUN).json()["data"] == [entry]
    assert agent.get(f"/v1/memory/log/{entry['id']}").json() == entry


def test_entries_chain_and_stay_in_order(agent: Any) -> None:
    for number in range(5):
        agent.post(RUN, {**ENTRY, "payload": {"n": number}})
    entries = agent.get(RUN).json()["data"]
    assert [entry["sequence"] for entry in entries] == list(range(5))
    for before, after in itertools.pairwise(entries):
        assert after["prevHash"] == before["entryHash"] == recomputed(before)
        assert after["timestamp"] >= before["timestamp"]


def test_a_batch_continues_a_run_and_a_single_entry_continues_a_batch(agent: Any) -> None:
    first = agent.post(f"{RUN}/batch", {"entries": [{**ENTRY, "payload": n} for n in range(3)]})
    assert first.status_code == 201, first.content
    agent.post(RUN, {**ENTRY, "payload": 3})
    agent.post(f"{RUN}/batch", {"entries": [{**ENTRY, "payload": n} for n in (4, 5)]})
    entries = agent.get(RUN).json()["data"]
    assert [entry["payload"] for entry in entries] == list(range(6))
    assert [entry["entryHash"] for entry in entries] == [recomputed(entry) for entry in entries]
    assert entries[:3] == first.json()["data"]


def test_a_batch_is_all_or_none(agent: Any) -> None:
    agent.post(RUN, {**ENTRY, "id": "taken", "payload": 1})
    bodies = [{**ENTRY, "id": "new"}, {**ENTRY, "id": "taken"}]
    answer = agent.post(f"{RUN}/batch", {"entries": bodies})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "id-taken"
    assert len(agent.get(RUN).json()["data"]) == 1


def test_a_retry_with_the_same_id_and_content_answers_the_stored_entry(agent: Any) -> None:
    body = {**ENTRY, "id": "le-7", "payload": {"a": 1}}
    first = agent.post(RUN, body)
    again = agent.post(RUN, body)
    assert (again.status_code, again.json()) == (201, first.json())
    assert len(agent.get(RUN).json()["data"]) == 1


def test_the_same_id_with_other_content_run_or_writer_is_taken(acme: TenantKit, agent: Any) -> None:
    agent.post(RUN, {**ENTRY, "id": "le-7", "payload": {"a": 1}})
    other = acme.client("agent", projects=["p1"])
    for client, path, payload in (
        (agent, RUN, {"a": 2}),
        (agent, "/v1/memory/runs/run-2/log", {"a": 1}),
        (other, RUN, {"a": 1}),
    ):
        answer = client.post(path, {**ENTRY, "id": "le-7", "payload": payload})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "id-taken")


def test_the_idempotency_key_replays_the_first_answer(agent: Any) -> None:
    body = {**ENTRY, "payload": {"n": 1}}
    first = agent.post(RUN, body, Idempotency_Key="k1")
    again = agent.post(RUN, body, Idempotency_Key="k1")
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(agent.get(RUN).json()["data"]) == 1
    mismatch = agent.post(RUN, {**ENTRY, "payload": {"n": 2}}, Idempotency_Key="k1")
    assert mismatch.json()["error"]["code"] == "idempotency-key-body-mismatch"


def test_a_replay_checks_the_grants_again(acme: TenantKit) -> None:
    token = acme.token("agent", projects=["p1"])
    from tests.builders import ApiClient

    client = ApiClient(token)
    client.post(RUN, ENTRY, Idempotency_Key="k1")
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(acme.id)])
        cursor.execute("UPDATE api_key SET projects = '{}' WHERE prefix = %s", [token[4:14]])
    answer = client.post(RUN, ENTRY, Idempotency_Key="k1")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission-denied")


@pytest.mark.parametrize(
    "name", ["sequence", "timestamp", "prevHash", "entryHash", "contentHash", "runId", "writer"]
)
def test_what_the_server_assigns_is_refused(agent: Any, name: str) -> None:
    answer = agent.post(RUN, {**ENTRY, name: 1})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown-field")
    assert answer.json()["error"]["details"]["issues"][0]["path"] == f"/{name}"


def test_a_mistyped_scope_key_is_refused(agent: Any) -> None:
    answer = agent.post(RUN, {**ENTRY, "scope": {"projectId": "p1", "projectid": "p2"}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown-field")


def test_another_tenants_id_in_the_scope_is_a_mismatch(agent: Any) -> None:
    answer = agent.post(RUN, {**ENTRY, "scope": {"tenantId": "globex"}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "scope-mismatch")


def test_a_container_that_the_key_does_not_hold_is_denied(agent: Any) -> None:
    answer = agent.post(RUN, {**ENTRY, "scope": {"projectId": "p2"}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission-denied")


def test_the_servers_own_runs_take_no_entries(agent: Any) -> None:
    answer = agent.post("/v1/memory/runs/kindmem.governance/log", ENTRY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "run-reserved")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", [RUN, "/v1/memory/log/x"])
def test_entries_are_never_changed_over_http(agent: Any, method: str, path: str) -> None:
    answer = agent.request(method, path, {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method-not-allowed")
    assert answer.headers["Allow"]


def test_reading_pages_through_a_run_without_skip_or_repeat(agent: Any) -> None:
    agent.post(f"{RUN}/batch", {"entries": [{**ENTRY, "payload": n} for n in range(23)]})
    seen: list[int] = []
    cursor = None
    while True:
        page = agent.get(RUN, {"limit": 5, **({"cursor": cursor} if cursor else {})}).json()
        seen += [entry["sequence"] for entry in page["data"]]
        cursor = page.get("nextCursor")
        agent.post(RUN, {**ENTRY, "payload": "added while paging"}) if len(seen) == 5 else None
        if not page["hasMore"]:
            break
    assert seen == list(range(24))


def test_since_sequence_kind_and_actor_narrow_the_page(agent: Any) -> None:
    for number in range(6):
        kind = "tool-call" if number % 2 else "user-message"
        agent.post(RUN, {**ENTRY, "kind": kind, "actor": f"a{number % 3}"})
    assert [e["sequence"] for e in agent.get(RUN, {"sinceSequence": 4}).json()["data"]] == [4, 5]
    assert [e["sequence"] for e in agent.get(RUN, {"kind": "tool-call"}).json()["data"]] == [
        1,
        3,
        5,
    ]
    assert [e["sequence"] for e in agent.get(RUN, {"actor": "a1"}).json()["data"]] == [1, 4]


def test_what_the_caller_may_not_read_does_not_exist(acme: TenantKit, agent: Any) -> None:
    entry = agent.post(RUN, ENTRY).json()
    stranger = acme.client("agent", projects=["p2"])
    for path in (RUN, f"/v1/memory/log/{entry['id']}"):
        hidden = stranger.get(path, X_Request_Id="r").content
        path_of_none = path.replace("run-1", "run-none").replace(entry["id"], "none")
        assert hidden == stranger.get(path_of_none, X_Request_Id="r").content
        assert b"log-not-found" in hidden
    assert stranger.get("/v1/memory/runs").json()["data"] == []


def test_runs_list_the_latest_begun_first_with_their_heads(agent: Any) -> None:
    for number in range(4):
        agent.post(f"/v1/memory/runs/r{number}/log", {**ENTRY, "actor": f"a{number}"})
    last = agent.post("/v1/memory/runs/r0/log", ENTRY).json()
    runs = agent.get("/v1/memory/runs").json()["data"]
    assert [run["runId"] for run in runs][-1] == "r0"
    assert runs[-1]["entries"] == 2
    assert runs[-1]["headHash"] == last["entryHash"]
    assert runs[-1]["integrity"] == {"state": "unverified"}
    assert [
        run["runId"] for run in agent.get("/v1/memory/runs", {"actor": "a2"}).json()["data"]
    ] == ["r2"]
    first = agent.get("/v1/memory/runs", {"limit": 3}).json()
    rest = agent.get("/v1/memory/runs", {"limit": 3, "cursor": first["nextCursor"]}).json()
    assert [r["runId"] for r in first["data"] + rest["data"]] == [r["runId"] for r in runs]


def test_runs_are_narrowed_by_state_time_actor_and_kind_and_nothing_outside_comes(
    acme: TenantKit, agent: Any
) -> None:
    for run, kind in (("old", "tool-call"), ("new", "user-message"), ("checked", "tool-call")):
        agent.post(f"/v1/memory/runs/{run}/log", {**ENTRY, "kind": kind, "actor": f"of-{run}"})
    agent.post("/v1/memory/runs/checked/verify", {})
    other = acme.client("agent", projects=["p9"])
    other.post("/v1/memory/runs/hidden/log", {**ENTRY, "scope": {"projectId": "p9"}})

    def found(**query: str) -> set[str]:
        told = agent.get("/v1/memory/runs", query).json()["data"]
        return {run["runId"] for run in told}

    heads = {run["runId"]: run for run in agent.get("/v1/memory/runs").json()["data"]}
    assert set(heads) == {"old", "new", "checked"}
    assert found(kind="user-message") == {"new"}
    assert found(actor="of-old") == {"old"}
    assert found(actor="of-old", kind="user-message") == set()
    assert found(status="unverified") == {"old", "new"}
    assert found(status=heads["checked"]["integrity"]["state"]) == {"checked"}
    assert found(since="2099-01-01T00:00:00Z") == found(until="2020-01-01T00:00:00Z") == set()
    assert found(since=heads["new"]["firstAt"]) >= {"new", "checked"}
    assert found(until=heads["old"]["lastAt"]) >= {"old"}
    assert "checked" not in found(until=heads["old"]["lastAt"]) or (
        heads["checked"]["firstAt"] == heads["old"]["lastAt"]
    )


def test_a_cursor_is_bound_to_its_list_filter_and_caller(acme: TenantKit, agent: Any) -> None:
    agent.post(f"{RUN}/batch", {"entries": [ENTRY] * 3})
    cursor = agent.get(RUN, {"limit": 1}).json()["nextCursor"]
    twin = acme.client("agent", projects=["p1"])
    for client, query in ((agent, {"kind": "user-message"}), (twin, {}), (agent, {"actor": "x"})):
        answer = client.get(RUN, {**query, "cursor": cursor})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad-input")


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 201},
        {"limit": "x"},
        {"limit": "1.0"},
        {"cursor": "x"},
        {"topk": 1},
        {"kind": "x"},
    ],
)
def test_bad_query_parameters_are_refused(agent: Any, query: dict[str, Any]) -> None:
    agent.post(RUN, ENTRY)
    assert agent.get(RUN, query).status_code == 400


def test_a_payload_may_be_any_json_value(agent: Any) -> None:
    payloads: list[Any] = [None, True, 0, -1.5, "", "x" * 1_000_000, [], {}, [[{}]]]
    for payload in payloads:
        assert agent.post(RUN, {**ENTRY, "payload": payload}).status_code == 201
    assert [entry["payload"] for entry in agent.get(RUN).json()["data"]] == payloads
    assert "payload" not in agent.post(RUN, ENTRY).json()


def test_an_id_with_a_slash_is_found_again(agent: Any) -> None:
    entry = agent.post("/v1/memory/runs/a%2Fb/log", {**ENTRY, "id": "x/y"}).json()
    assert entry["runId"] == "a/b"
    assert agent.get("/v1/memory/log/x%2Fy").json() == entry
