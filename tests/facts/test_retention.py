"""How long a fact is kept and read, and the hold that is stronger than all of it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection

from memory.errors import constraint_of
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, PLAIN, at, refusal, written


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ago(**amount: float) -> str:
    return (datetime.now(UTC) - timedelta(**amount)).isoformat()


def ahead(**amount: float) -> str:
    return (datetime.now(UTC) + timedelta(**amount)).isoformat()


def sql(kit: TenantKit, statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(kit.id)])
        cursor.execute(statement, values)


def set_tenant_default(kit: TenantKit, **windows: int) -> None:
    sql(kit, "UPDATE tenant SET settings = %s::jsonb", json.dumps({"retention": windows}))


def windows(fact: dict[str, Any]) -> int | None:
    """Whole days from the first write to the end of reading; None without an end."""
    if "expiresAt" not in fact:
        return None
    return (moment(fact["expiresAt"]) - moment(fact["createdAt"])).days


def test_a_keep_until_of_any_zone_is_the_instant_it_names(app: ApiClient) -> None:
    fact = written(app, retention={"keepUntil": "2030-03-01T00:30:00+09:00"})
    assert fact["retention"] == {"keepUntil": "2030-02-28T15:30:00Z"}
    assert fact["expiresAt"] == "2030-02-28T15:30:00Z"


def test_a_kept_fact_is_not_deleted_and_says_why_and_until_when(app: ApiClient) -> None:
    until = written(app, retention={"keepUntil": "2030-01-01T00:00:00Z"})
    answer = app.delete(at(until))
    assert refusal(answer) == (409, "retention-violation")
    details = answer.json()["error"]["details"]
    assert details == {
        "factId": until["id"],
        "reason": "keep-until",
        "until": "2030-01-01T00:00:00Z",
    }
    days = written(app, retention={"keepDays": 10})
    answer = app.delete(at(days))
    assert answer.json()["error"]["details"]["reason"] == "keep-days"
    assert answer.json()["error"]["details"]["until"] == days["expiresAt"]
    assert windows(days) == 10
    assert app.get(at(days)).json() == days


def test_keep_until_wins_over_keep_days(app: ApiClient) -> None:
    fact = written(app, retention={"keepUntil": "2030-01-01T00:00:00Z", "keepDays": 1})
    assert fact["expiresAt"] == "2030-01-01T00:00:00Z"


def test_keep_days_count_from_the_first_write(acme: TenantKit, app: ApiClient) -> None:
    fact = written(app)
    second = app.post(at(fact, "/supersede"), {"content": 1, "retention": {"keepDays": 3}}).json()
    assert second["expiresAt"] == (
        moment(fact["createdAt"]) + timedelta(days=3)
    ).isoformat().replace("+00:00", "Z")


def test_after_its_window_no_read_returns_a_fact(acme: TenantKit, app: ApiClient) -> None:
    fact = written(app)
    second = app.post(
        at(fact, "/supersede"), {"content": 1, "retention": {"keepUntil": ago(seconds=1)}}
    ).json()
    assert second["version"] == 2
    admin = acme.client("admin")
    for client in (app, admin):
        assert client.get(FACTS).json()["data"] == []
        assert client.get(FACTS, {"asOf": fact["updatedAt"]}).json()["data"] == []
        for path, query in (
            (at(fact), {}),
            (at(fact), {"version": 1}),
            (at(fact), {"asOf": fact["updatedAt"]}),
            (at(fact, "/revisions"), {}),
        ):
            assert refusal(client.get(path, query)) == (404, "fact-not-found")
    assert refusal(app.post(at(fact, "/supersede"), {"content": 2})) == (404, "fact-not-found")
    assert refusal(app.delete(at(fact))) == (404, "fact-not-found")


@pytest.mark.parametrize(
    ("retention", "of_type", "of_tenant", "days"),
    [
        ({}, {}, {}, None),
        ({}, {}, {"keepDays": 5}, 5),
        ({}, {}, {"deleteAfterDays": 6}, 6),
        ({}, {"keepDays": 7}, {"keepDays": 5, "deleteAfterDays": 9}, 7),
        ({}, {"deleteAfterDays": 8}, {"keepDays": 50}, 8),
        ({}, {"keepDays": 7, "deleteAfterDays": 20}, {}, 20),
        ({"keepDays": 2}, {"keepDays": 7, "deleteAfterDays": 20}, {"keepDays": 5}, 2),
    ],
)
def test_the_fact_comes_before_its_type_and_the_type_before_the_tenant(
    acme: TenantKit,
    app: ApiClient,
    admin: ApiClient,
    retention: dict[str, int],
    of_type: dict[str, int],
    of_tenant: dict[str, int],
    days: int | None,
) -> None:
    set_tenant_default(acme, **of_tenant)
    assert admin.put("/v1/memory/types/note", {"retention": of_type}).status_code == 200
    assert windows(written(app, retention=retention)) == days


def test_a_delete_after_without_a_keep_window_lets_a_fact_be_deleted(
    app: ApiClient, admin: ApiClient
) -> None:
    admin.put("/v1/memory/types/note", {"retention": {"deleteAfterDays": 8}})
    assert app.delete(at(written(app))).status_code == 200


def test_a_new_type_policy_holds_for_the_facts_that_are_there(
    app: ApiClient, agent: ApiClient, admin: ApiClient
) -> None:
    plain, own = written(app), written(app, retention={"keepDays": 3})
    unverified, other = written(agent), written(app, type="other")
    admin.put("/v1/memory/types/note", {"retention": {"keepDays": 90}})
    assert [windows(app.get(at(one)).json()) for one in (plain, own, unverified, other)] == [
        90,
        3,
        30,
        None,
    ]
    assert refusal(app.delete(at(plain))) == (409, "retention-violation")
    admin.put("/v1/memory/types/note", {"keyword": False})
    assert windows(app.get(at(plain)).json()) == 90
    admin.put("/v1/memory/types/note", {"retention": {}})
    assert windows(app.get(at(plain)).json()) is None
    assert app.delete(at(plain)).status_code == 200


def test_an_agents_fact_is_read_for_its_unverified_window_and_not_longer_whatever_it_says(
    agent: ApiClient, settings: Any
) -> None:
    assert windows(written(agent)) == 30
    assert windows(written(agent, retention={"keepDays": 300})) == 30
    assert windows(written(agent, retention={"keepDays": 3})) == 3
    settings.KINDMEM_UNVERIFIED_DAYS = 7
    assert windows(written(agent)) == 7


def test_an_agent_does_not_shorten_a_keep_window_that_runs(
    app: ApiClient, agent: ApiClient
) -> None:
    fact = written(app, retention={"keepDays": 90})
    shorter = {"content": 1, "retention": {"keepUntil": ago(days=1)}}
    answer = agent.post(at(fact, "/supersede"), shorter)
    assert refusal(answer) == (409, "retention-violation")
    assert app.get(at(fact)).json() == fact
    assert agent.post(at(fact, "/supersede"), {"content": 1}).status_code == 200
    assert (
        app.post(at(fact, "/supersede"), {"content": 1, "retention": {"keepDays": 1}}).status_code
        == 200
    )


def test_an_agents_word_keeps_nothing_longer_than_it_is_read_unchecked_or_policy_keeps_it(
    app: ApiClient, agent: ApiClient, admin: ApiClient
) -> None:
    fact = written(agent, retention={"keepUntil": "2100-01-01T00:00:00Z"})
    in_all = moment(fact["retention"]["keepUntil"]) - datetime.now(UTC)
    assert timedelta(days=29) < in_all <= timedelta(days=30)
    assert written(agent, retention={"keepDays": 36_500})["retention"] == {"keepDays": 30}
    assert written(agent, retention={"keepDays": 3})["retention"] == {"keepDays": 3}
    longer = {"content": 1, "retention": {"keepUntil": "2100-01-01T00:00:00Z"}}
    changed = agent.post(at(fact, "/supersede"), longer).json()
    later = moment(changed["retention"]["keepUntil"]) - moment(fact["expiresAt"])
    assert later < timedelta(seconds=5)
    admin.put("/v1/memory/types/note", {"retention": {"keepDays": 90}})
    kept = written(agent, retention={"keepDays": 300})
    assert kept["retention"] == {"keepDays": 90}
    # What a program says stands, also when an agent says it once more.
    theirs = written(app, retention={"keepUntil": "2100-01-01T00:00:00Z"})
    same = agent.post(at(theirs, "/supersede"), longer).json()
    assert same["retention"] == theirs["retention"]


def test_a_hold_opened_on_a_fact_refuses_what_would_change_or_remove_it(
    app: ApiClient, agent: ApiClient
) -> None:
    fact = written(app, retention={"legalHold": True})
    assert fact["retention"] == {"legalHold": True}
    for client in (app, agent):
        for answer in (
            client.delete(at(fact)),
            client.post(at(fact, "/supersede"), {"content": 1}),
            client.post(at(fact, "/supersede"), {"content": 1, "retention": {"legalHold": False}}),
        ):
            assert refusal(answer) == (409, "legal-hold")
            assert answer.json()["error"]["details"] == {"ids": [fact["id"]]}
    assert app.get(at(fact)).json() == fact
    verified = app.post(at(fact, "/verify")).json()
    assert verified["retention"] == {"legalHold": True}


def test_a_hold_comes_with_a_change_and_keeps_the_window_that_was_said(app: ApiClient) -> None:
    fact = written(app, retention={"keepDays": 9})
    held = app.post(at(fact, "/supersede"), {"content": 1, "retention": {"legalHold": True}}).json()
    assert held["retention"] == {"keepDays": 9, "legalHold": True}
    assert held["expiresAt"] == fact["expiresAt"]
    assert app.get(at(fact)).json() == held
    assert refusal(app.delete(at(fact))) == (409, "legal-hold")


def test_who_opens_a_hold(acme: TenantKit, agent: ApiClient, admin: ApiClient) -> None:
    held = {**PLAIN, "retention": {"legalHold": True}}
    assert refusal(agent.post(FACTS, held)) == (403, "permission-denied")
    assert agent.get(FACTS).json()["data"] == []
    assert agent.post(FACTS, {**PLAIN, "retention": {"legalHold": False}}).status_code == 201
    assert admin.post(FACTS, held).status_code == 201


def test_placing_a_hold_is_a_governance_act(acme: TenantKit, app: ApiClient) -> None:
    fact = written(app, retention={"legalHold": True})
    entries = acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    placed = [entry["payload"] for entry in entries if entry["payload"]["type"] == "hold.placed"]
    assert [one["factIds"] for one in placed] == [[fact["id"]]]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM fact_content WHERE fact_id = %s",
        "DELETE FROM fact_subject WHERE fact_id = %s",
        "DELETE FROM fact_cause WHERE fact_id = %s",
        "UPDATE fact SET deleted_at = now() WHERE id = %s",
    ],
)
def test_the_database_lets_nothing_of_a_held_fact_go(
    acme: TenantKit, app: ApiClient, statement: str
) -> None:
    fact = written(
        app,
        retention={"legalHold": True},
        subjects=[{"kind": "user", "id": "ann"}],
        causedByLogId="le-1",
    )
    with pytest.raises(DatabaseError) as refused:
        sql(acme, statement, fact["id"])
    assert constraint_of(refused.value) in ("fact_is_not_held",)
