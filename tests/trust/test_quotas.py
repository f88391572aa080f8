"""How much one key may write in a window: counted exactly, also by many at once; told with the time to wait; shown to the key."""

import time
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.records.builders import a_record, body_of, refusal

RECORDS = "/v1/memory/records"
FACTS = "/v1/memory/facts"
ME = "/v1/memory/me"


def bounded(kit: TenantKit, role: str = "agent", **quota: int) -> ApiClient:
    """A key with a quota, for everybody and project p1."""
    client = kit.client(role, users=["ann", "bob", "cat"], projects=["p1"])
    prefix = str(client.token).split("_")[1]
    told = body_of(kit.client("admin").put(f"/v1/memory/keys/{prefix}/quota", quota), 200)
    assert told.get("quota", {"windowSeconds": 3600}) == {"windowSeconds": 3600, **quota}
    return client


def a_fact(user: str = "ann", content: Any = 1) -> dict[str, Any]:
    return {"type": "note", "scope": {"userId": user}, "content": content}


def test_a_key_writes_as_often_as_its_quota_says_and_is_told_how_long_to_wait(
    acme: TenantKit,
) -> None:
    client = bounded(acme, writes=2)
    for _ in range(2):
        body_of(client.post(FACTS, a_fact()), 201)
    answer = client.post(FACTS, a_fact())
    wait = refusal(answer, 429, "rate-limited")["retryAfterSeconds"]
    assert 1 <= wait <= 3600
    assert answer["Retry-After"] == str(wait)
    assert len(body_of(client.get(FACTS), 200)["data"]) == 2
    # Reads and appends go on.
    entry = {"kind": "agent-message", "scope": {"projectId": "p1"}}
    body_of(client.post("/v1/memory/runs/r/log", entry), 201)


def test_what_is_refused_counts_for_nothing(acme: TenantKit) -> None:
    client = bounded(acme, writes=1)
    assert client.post(FACTS, {**a_fact(), "scope": {"userId": "dora"}}).status_code == 403
    assert client.post(FACTS, {"type": "note"}).status_code == 400
    body_of(client.post(FACTS, a_fact()), 201)
    for _ in range(3):
        refusal(client.post(FACTS, a_fact()), 429, "rate-limited")
    used = body_of(client.get(ME), 200)["limits"]["quota"]["used"]
    assert used["writes"] == 1


def test_a_retried_write_counts_once(acme: TenantKit) -> None:
    client = bounded(acme, writes=1)
    first = client.post(FACTS, a_fact(), Idempotency_Key="k")
    again = client.post(FACTS, a_fact(), Idempotency_Key="k")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content


def test_bytes_are_those_of_the_bodies(acme: TenantKit) -> None:
    client = bounded(acme, bytes=2000)
    body_of(client.post(FACTS, a_fact(content="x" * 1500)), 201)
    refusal(client.post(FACTS, a_fact(content="x" * 1500)), 429, "rate-limited")
    body_of(client.post(FACTS, a_fact(content="x")), 201)


def test_subjects_are_counted_once_each_wherever_they_are_named(acme: TenantKit) -> None:
    client = bounded(acme, "app", subjects=2)
    for n in range(3):
        body_of(client.post(RECORDS, a_record(n, key=f"k.n{n}")), 201)
    body_of(client.post(FACTS, a_fact("bob")), 201)
    body_of(client.post(FACTS, a_fact("ann")), 201)
    named = {**a_fact("ann"), "subjects": [{"kind": "user", "id": "cat"}]}
    for path, body in (
        (FACTS, a_fact("cat")),
        (FACTS, named),
        (RECORDS, a_record(1, subject="cat")),
    ):
        refusal(client.post(path, body), 429, "rate-limited")
    shown = body_of(client.get(ME), 200)["limits"]["quota"]
    assert shown["used"]["subjects"] == 2
    assert shown["subjects"] == 2


def test_a_new_window_begins_at_nothing(acme: TenantKit) -> None:
    client = bounded(acme, writes=1, subjects=1, windowSeconds=1)
    seen = set()
    deadline = time.monotonic() + 20
    user = iter(["ann", "bob"] * 1000)
    while len(seen) < 3 and time.monotonic() < deadline:
        answer = client.post(FACTS, a_fact(next(user)))
        if answer.status_code == 201:
            seen.add(body_of(client.get(ME), 200)["limits"]["quota"]["windowStart"])
            continue
        assert answer["Retry-After"] == "1"
    assert len(seen) == 3


def test_a_key_without_a_quota_costs_no_statement_and_one_with_it_one_or_two(
    acme: TenantKit,
) -> None:
    asked = {}
    clients = {
        "none": acme.client("agent", users=["ann"]),
        "writes": bounded(acme, writes=100),
        "subjects": bounded(acme, subjects=100),
    }
    for name, client in clients.items():
        body_of(client.post(FACTS, a_fact()), 201)  # what is asked once only
        with CaptureQueriesContext(connection) as captured:
            body_of(client.post(FACTS, a_fact()), 201)
        asked[name] = len(captured)
    assert asked["writes"] == asked["none"] + 1
    assert asked["subjects"] == asked["none"] + 2


def test_a_quota_goes_along_when_a_key_is_rotated_and_is_taken_away(acme: TenantKit) -> None:
    client, admin = bounded(acme, writes=1), acme.client("admin")
    prefix = str(client.token).split("_")[1]
    made = body_of(admin.post(f"/v1/memory/keys/{prefix}/rotate", {}), 201)
    assert made["key"]["quota"]["writes"] == 1
    body_of(client.post(FACTS, a_fact()), 201)
    refusal(client.post(FACTS, a_fact()), 429, "rate-limited")
    body_of(admin.put(f"/v1/memory/keys/{prefix}/quota", {}), 200)
    body_of(client.post(FACTS, a_fact()), 201)
    assert "quota" not in body_of(client.get(ME), 200)["limits"]


def test_nobody_but_an_admin_sets_a_quota(acme: TenantKit) -> None:
    client = acme.client("app", users=["ann"])
    prefix = str(client.token).split("_")[1]
    answer = client.put(f"/v1/memory/keys/{prefix}/quota", {"writes": 10**9})
    refusal(answer, 403, "permission-denied")
    nosuch = acme.client("admin").put("/v1/memory/keys/nosuch/quota", {})
    refusal(nosuch, 404, "key-not-found")


@pytest.mark.races
def test_writers_at_once_are_counted_exactly(live_acme: TenantKit) -> None:
    token = bounded(live_acme, "app", writes=7, subjects=2).token

    def write(number: int) -> int:
        user = ("ann", "bob")[number % 2]
        return ApiClient(token).post(FACTS, a_fact(user, number)).status_code

    assert sorted(at_once(12, write)) == [201] * 7 + [429] * 5
    used = body_of(ApiClient(token).get(ME), 200)["limits"]["quota"]["used"]
    assert (used["writes"], used["subjects"]) == (7, 2)


@pytest.mark.races
def test_subjects_named_at_once_are_counted_exactly(live_acme: TenantKit) -> None:
    token = bounded(live_acme, "app", subjects=2).token

    def write(number: int) -> int:
        user = ("ann", "bob", "cat")[number % 3]
        return ApiClient(token).post(FACTS, a_fact(user, number)).status_code

    assert sorted(at_once(9, write)) == [201] * 6 + [429] * 3
