"""A run that the caller can't read: nobody adds to it, nothing tells of it but that its name is taken, and whoever began a run
can verify it whatever others added.
"""

from typing import Any

import pytest

from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.records.builders import a_record, body_of, refusal

P1, P2 = {"projectId": "p1"}, {"projectId": "p2"}


def append(client: ApiClient, scope: dict[str, str], run: str = "run-1", **more: Any) -> Any:
    body = {"kind": "tool-call", "scope": scope, "payload": {"n": 1}, **more}
    return client.post(f"/v1/memory/runs/{run}/log", body)


@pytest.fixture
def owner(acme: TenantKit) -> ApiClient:
    client = acme.client("agent", projects=["p1"])
    for _ in range(3):
        body_of(append(client, P1), 201)
    return client


@pytest.fixture
def stranger(acme: TenantKit) -> ApiClient:
    return acme.client("agent", projects=["p2"])


def shapes(answer: Any) -> dict[str, Any]:
    error = dict(answer.json()["error"])
    del error["requestId"]
    return error


def test_an_append_to_a_run_that_the_caller_cannot_read_is_answered_like_one_of_a_scope_it_lacks(
    owner: ApiClient, stranger: ApiClient
) -> None:
    lacking = append(stranger, P1, run="run-2")
    assert lacking.status_code == 403
    entries = {"entries": [{"kind": "tool-call", "scope": P2} for _ in range(2)]}
    told = [
        append(stranger, P2),
        append(stranger, {}),
        append(stranger, P2, id="mine"),
        stranger.post("/v1/memory/runs/run-1/log/batch", entries),
        stranger.post("/v1/memory/runs/run-1/log/batch", {"entries": entries["entries"][:1]}),
    ]
    for answer in told:
        assert answer.status_code == 403
        assert shapes(answer) == shapes(lacking)
    assert "run-1" not in stranger.get("/v1/memory/runs").content.decode()
    log = body_of(owner.get("/v1/memory/runs/run-1/log"), 200)["data"]
    assert [one["sequence"] for one in log] == [0, 1, 2]
    assert body_of(owner.post("/v1/memory/runs/run-1/verify", {}), 200)["entries"] == 3


def test_nor_does_a_recall_write_into_it(
    acme: TenantKit, owner: ApiClient, stranger: ApiClient
) -> None:
    body_of(acme.client("app", users=["ann"]).post("/v1/memory/records", a_record("x")), 201)
    asked = {"key": "travel.seat", "context": {"user_id": "ann"}, "run_id": "run-1"}
    refusal(stranger.post("/v1/memory/recall", asked), 403, "permission-denied")
    body_of(stranger.post("/v1/memory/recall", {**asked, "run_id": "run-9"}), 200)


def test_who_reads_some_of_a_run_or_wrote_in_it_goes_on_with_it(
    acme: TenantKit, owner: ApiClient
) -> None:
    both = acme.client("agent", projects=["p1", "p2"])
    body_of(append(both, P2), 201)
    # Of the second project alone: what is there is readable to it now.
    body_of(append(acme.client("agent", projects=["p2"]), P2), 201)
    body_of(append(acme.client("admin"), {"projectId": "p3"}), 201)
    body_of(append(owner, P1), 201)


def test_whoever_began_a_run_verifies_it_whatever_others_added(
    acme: TenantKit, owner: ApiClient
) -> None:
    body_of(append(acme.client("admin"), {"projectId": "p3"}), 201)
    report = body_of(owner.post("/v1/memory/runs/run-1/verify", {}), 200)
    assert (report["state"], report["entries"]) == ("verified-unsealed-tail", 4)
    assert len(body_of(owner.get("/v1/memory/runs/run-1/log"), 200)["data"]) == 3
    other = acme.client("agent", projects=["p1"])
    refusal(other.post("/v1/memory/runs/run-1/verify", {}), 403, "permission-denied")


def test_many_begin_a_run_at_once(live_acme: TenantKit) -> None:
    clients = [live_acme.client("agent", projects=["p1"]) for _ in range(12)]
    statuses = at_once(12, lambda n: append(clients[n], P1, run="new").status_code)
    assert statuses == [201] * 12
