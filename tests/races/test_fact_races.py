"""Changes of one fact at once: none is lost, versions have no gap, one wins where one must, a hold is never raced past."""

import itertools
import json
import uuid
from typing import Any

import pytest

from memory.actions.delete_fact import delete_fact
from memory.actions.place_fact_hold import place_fact_hold
from memory.errors import FactNotFound, LegalHoldActive
from memory.fact_head import lock_fact
from memory.tenancy import tenant_context
from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, PLAIN, at, written

pytestmark = pytest.mark.races


def revisions(kit: TenantKit, fact: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kit.client("auditor").get(at(fact, "/revisions")).json()["data"]
    return found


def test_of_changes_that_expect_the_same_version_one_wins(live_acme: TenantKit) -> None:
    token = live_acme.token("app", projects=["p1"])
    fact = written(ApiClient(token))

    def change(number: int) -> Any:
        return ApiClient(token).post(
            at(fact, "/supersede"), {"content": number, "expectVersion": 1}
        )

    answers = at_once(4, change)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    won = next(answer.json() for answer in answers if answer.status_code == 200)
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["error"]["details"]["currentVersion"] == 2
    assert revisions(live_acme, fact)[0]["content"] == won["content"]


def test_changes_that_expect_nothing_are_all_there_one_after_the_other(
    live_acme: TenantKit,
) -> None:
    token = live_acme.token("app", projects=["p1"])
    fact = written(ApiClient(token))

    def change(number: int) -> int:
        return ApiClient(token).post(at(fact, "/supersede"), {"content": number}).status_code

    assert at_once(6, change) == [200] * 6
    found = revisions(live_acme, fact)
    assert [one["version"] for one in found] == [7, 6, 5, 4, 3, 2, 1]
    assert sorted(one["content"] for one in found[:6]) == list(range(6))
    for newer, older in itertools.pairwise(found):
        assert newer["supersedes"] == older.get("revisionId", older["id"])
        assert newer["updatedAt"] == older["invalidatedAt"] > older["updatedAt"]


def test_of_writes_with_one_id_one_is_written(live_acme: TenantKit) -> None:
    token = live_acme.token("app", projects=["p1"])

    def write(number: int) -> int:
        return ApiClient(token).post(FACTS, {**PLAIN, "id": "one", "content": number}).status_code

    assert sorted(at_once(5, write)) == [201, 409, 409, 409, 409]


def test_a_change_and_a_delete_at_once_leave_one_history(live_acme: TenantKit) -> None:
    token = live_acme.token("app", projects=["p1"])
    for _ in range(5):
        fact = written(ApiClient(token))

        def act(number: int, fact: dict[str, Any] = fact) -> int:
            client = ApiClient(token)
            if number:
                return client.delete(at(fact)).status_code
            return client.post(at(fact, "/supersede"), {"content": 1}).status_code

        changed, deleted = at_once(2, act)
        assert (changed, deleted) in ((200, 200), (404, 200))
        newest = revisions(live_acme, fact)[0]
        assert (newest["version"], newest["invalidationReason"]) == (
            2 if changed == 200 else 1,
            "deleted",
        )


def test_retries_at_once_make_one_fact(live_acme: TenantKit) -> None:
    token = live_acme.token("app", projects=["p1"])

    def write(number: int) -> Any:
        return ApiClient(token).post(FACTS, PLAIN, Idempotency_Key="k")

    answers = at_once(4, write)
    codes = {answer.status_code for answer in answers}
    assert codes <= {201, 409}
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["error"]["code"] == "idempotency-key-in-flight"
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1
    assert len(ApiClient(token).get(FACTS).json()["data"]) == 1


def test_a_hold_placed_beside_a_delete_is_never_raced_past(live_acme: TenantKit) -> None:
    principal = live_acme.principal("app", projects=["p1"])
    token = live_acme.token("app", projects=["p1"])
    held, gone = 0, 0
    for _ in range(10):
        fact = written(ApiClient(token), id=str(uuid.uuid4()))

        def act(number: int, fact: dict[str, Any] = fact) -> str:
            with tenant_context(principal.tenant_id):
                if number:
                    delete_fact(principal=principal, fact_id=fact["id"])
                    return "deleted"
                seen = lock_fact(principal, fact["id"], expect_version=None)
                place_fact_hold(principal=principal, fact=seen)
                return "held"

        hold, delete = at_once(2, act)
        now = ApiClient(token).get(at(fact))
        if hold == "held":
            assert isinstance(delete, LegalHoldActive)
            assert now.json()["retention"] == {"legalHold": True}
            held += 1
        else:
            assert isinstance(hold, FactNotFound)
            assert delete == "deleted"
            assert now.status_code == 404
            gone += 1
    assert held + gone == 10


def test_a_list_read_while_facts_are_written_never_shows_half_a_fact(live_acme: TenantKit) -> None:
    token = live_acme.token("app", projects=["p1"])
    fact = written(ApiClient(token), content=0)

    def act(number: int) -> list[str]:
        client = ApiClient(token)
        if number == 0:
            for value in range(1, 8):
                client.post(at(fact, "/supersede"), {"content": value})
            return []
        pages = [client.get(FACTS).json()["data"] for _ in range(15)]
        return [json.dumps([len(data), data[0]["version"] - data[0]["content"]]) for data in pages]

    for seen in at_once(3, act)[1:]:
        assert set(seen) == {json.dumps([1, 1])}
