"""All that one key or one run wrote goes out of use at once, comes back as it was, or ends with what it superseded restored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from memory.actions.release_hold import approve_release, request_release
from memory.actions.roll_back_quarantine import roll_back_quarantine
from memory.housekeeping import finish_large_holds
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.lifecycle.people import just_now, member
from tests.records.builders import a_record, an_inference, body_of, refusal
from tests.records.conftest import RECORDS, Memory
from tests.trust.conftest import Reviewer

QUARANTINES = "/v1/memory/quarantines"
FACTS = "/v1/memory/facts"


def prefix_of(client: ApiClient) -> str:
    """The prefix of a client's key."""
    return str(client.token).split("_")[1][:10]


def inferred(memory: Memory, value: Any, **changes: Any) -> str:
    return str(body_of(memory.client.post(RECORDS, an_inference(value, **changes)), 201)["id"])


def a_fact(client: ApiClient, content: Any, **more: Any) -> str:
    body = {"type": "note", "scope": {"projectId": "p1"}, "content": content, **more}
    return str(body_of(client.post(FACTS, body), 201)["id"])


def placed(reviewer: Reviewer, **selector: Any) -> dict[str, Any]:
    body = {"reason": "it was fed orders", **selector}
    answer: dict[str, Any] = body_of(reviewer.client.post(QUARANTINES, body), 201)
    return answer


def found(client: ApiClient, query: str) -> list[str]:
    asked = {"mode": "keyword", "query": query}
    results = body_of(client.post("/v1/memory/retrieve", asked), 200)["results"]
    return [one["fact"]["id"] for one in results]


def test_all_that_a_key_wrote_stops_being_served_at_once_and_comes_back_when_lifted(
    app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    mine = app.remember("vegan", key="travel.meal")
    bad = inferred(agent, "aisle")
    child = app.remember("front", key="travel.row", level="task", derived_from=[bad])
    fact = a_fact(agent.client, {"text": "zebra crossing"})
    key = prefix_of(agent.client)
    preview = body_of(reviewer.client.post(f"{QUARANTINES}/preview", {"key": key}), 200)
    assert (preview["records"], preview["facts"], preview["held"]) == (2, 1, 0)
    assert {one["id"] for one in preview["first"]} == {bad, child["id"], fact}
    view = placed(reviewer, key=key)
    assert (view["records"], view["facts"], view["left"]) == (2, 1, 3)
    assert app.recall()["decision"] == "none"
    assert [one["id"] for one in app.list()] == [mine["id"]]
    assert app.list(q="aisle") == []
    refusal(app.client.get(f"{RECORDS}/{bad}"), 404, "record-not-found")
    refusal(app.client.get(f"{FACTS}/{fact}"), 404, "fact-not-found")
    refusal(app.client.get(f"{FACTS}/{fact}/revisions"), 404, "fact-not-found")
    assert found(app.client, "zebra") == []
    ended = body_of(reviewer.client.post(f"{QUARANTINES}/{view['id']}/lift", {}), 200)
    assert (ended["status"], ended["outcomes"]) == ("lifted", {"lifted": 3})
    assert {one["id"] for one in app.list()} == {mine["id"], bad, child["id"]}
    assert [one["id"] for one in app.list(q="aisle")] == [bad]
    assert found(app.client, "zebra") == [fact]
    again = reviewer.client.post(f"{QUARANTINES}/{view['id']}/lift", {})
    refusal(again, 409, "quarantine-closed")


def test_rolling_back_ends_it_and_brings_back_what_it_superseded(
    app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    good = app.remember("aisle")
    word = {"kind": "message", "ref": app.says(text="window please")}
    bad = body_of(agent.client.post(RECORDS, a_record("window", evidence=word)), 201)["id"]
    word = {"kind": "message", "ref": app.says(text="middle please")}
    worse = body_of(agent.client.post(RECORDS, a_record("middle", evidence=word)), 201)["id"]
    assert app.recall()["value"] == "middle"
    lone = inferred(agent, "nuts", key="food.allergy")
    fact = a_fact(app.client, {"text": "good words"})
    for text in ("bad words", "worse words"):
        path = f"{FACTS}/{fact}/supersede"
        body_of(agent.client.post(path, {"content": {"text": text}}), 200)
    made = a_fact(agent.client, {"text": "zebra crossing"})
    view = placed(reviewer, key=prefix_of(agent.client))
    assert app.recall()["decision"] == "none"
    done = body_of(reviewer.client.post(f"{QUARANTINES}/{view['id']}/roll-back", {}), 200)
    assert (done["status"], done["left"]) == ("rolled-back", 0)
    assert done["outcomes"] == {"restored": 2, "removed": 2}
    assert app.recall()["value"] == "aisle"
    (restored,) = app.list(key="travel.seat")
    assert restored["id"] not in (good["id"], bad, worse)
    assert restored["source"]["type"] == "user_stated"
    for gone in (worse, lone):
        for reader in (app.client, reviewer.client):
            tombstone = body_of(reader.get(f"{RECORDS}/{gone}"), 200)
            assert (tombstone["lifecycle"]["status"], tombstone["value"]) == ("deleted", None)
            assert tombstone["lifecycle"]["deleted_reason"] == "rolled-back"
            acts = body_of(reader.get(f"{RECORDS}/{gone}/history"), 200)["data"]
            assert acts[-1]["act"] == "rolled-back"
    now = body_of(app.client.get(f"{FACTS}/{fact}"), 200)
    assert (now["content"], now["version"], now["trust"]) == ({"text": "good words"}, 4, "asserted")
    assert found(app.client, "good words")[:1] == [fact]
    assert found(app.client, "zebra") == []
    refusal(app.client.get(f"{FACTS}/{made}"), 404, "fact-not-found")
    # What the person said is no longer counted as taken back.
    body_of(agent.client.post(RECORDS, an_inference("aisle", key="travel.seat")), 201)


def test_a_run_is_found_by_the_evidence_and_the_causes(
    acme: TenantKit, app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    entry = {"kind": "tool-result", "scope": {"projectId": "p1"}, "payload": {"page": "x"}}
    cause = body_of(agent.client.post("/v1/memory/runs/bad-run/log", entry), 201)["id"]
    by_entry = inferred(agent, "aisle", evidence={"kind": "trace", "ref": cause})
    by_run = inferred(agent, "nuts", key="food.a", evidence={"kind": "trace", "ref": "bad-run"})
    other = inferred(agent, "tea", key="food.b", evidence={"kind": "trace", "ref": "good-run"})
    fact = a_fact(agent.client, {"text": "zebra"}, causedByLogId=[cause])
    kept = a_fact(agent.client, {"text": "zebra too"})
    view = placed(reviewer, run="bad-run")
    assert {one["id"] for one in view["first"]} == {by_entry, by_run, fact}
    assert [one["id"] for one in app.list()] == [other]
    assert found(app.client, "zebra") == [kept]


def test_since_narrows_and_what_others_superseded_is_theirs(
    app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    fact = a_fact(agent.client, {"text": "first"})
    body_of(app.client.post(f"{FACTS}/{fact}/supersede", {"content": {"text": "mine"}}), 200)
    inferred(agent, "aisle")
    key = prefix_of(agent.client)
    later = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    body = {"key": key, "since": later}
    preview = body_of(reviewer.client.post(f"{QUARANTINES}/preview", body), 200)
    assert (preview["records"], preview["facts"]) == (0, 0)
    refused = reviewer.client.post(QUARANTINES, {**body, "reason": "r"})
    refusal(refused, 422, "nothing-to-quarantine")
    assert placed(reviewer, key=key)["facts"] == 0
    assert body_of(app.client.get(f"{FACTS}/{fact}"), 200)["content"] == {"text": "mine"}


def test_what_was_filled_meanwhile_stays_filled_when_it_is_lifted(
    app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    bad = inferred(agent, "aisle")
    view = placed(reviewer, key=prefix_of(agent.client))
    newer = app.remember("window", level="task")
    ended = body_of(reviewer.client.post(f"{QUARANTINES}/{view['id']}/lift", {}), 200)
    assert ended["outcomes"] == {"replaced": 1}
    assert app.recall()["value"] == "window"
    assert app.get(bad)["correction"]["superseded_by"] == newer["id"]


def test_what_is_held_is_taken_out_of_use_and_not_destroyed(
    acme: TenantKit, app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    bad = inferred(agent, "aisle")
    fact = a_fact(agent.client, {"text": "zebra"})
    hold = {"scope": {"records": [bad], "facts": [fact]}, "matter": "m", "reason": "r"}
    body_of(reviewer.client.post("/v1/memory/legal-holds", hold), 201)
    view = placed(reviewer, key=prefix_of(agent.client))
    assert all(one["held"] for one in view["first"])
    done = body_of(reviewer.client.post(f"{QUARANTINES}/{view['id']}/roll-back", {}), 200)
    assert done["outcomes"] == {"removed": 1, "held": 1}
    refusal(app.client.get(f"{FACTS}/{fact}"), 404, "fact-not-found")
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sealed_copy WHERE record_id = %s", [bad])
        assert cursor.fetchone() == (1,)
        cursor.execute("SELECT count(*) FROM fact_content WHERE fact_id = %s", [fact])
        assert cursor.fetchone() == (1,)


def test_what_a_hold_kept_from_being_rolled_back_is_rolled_back_when_the_hold_ends(
    acme: TenantKit, app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    changed = a_fact(app.client, {"text": "good words"})
    made = a_fact(agent.client, {"text": "zebra crossing"})
    path = f"{FACTS}/{changed}/supersede"
    body_of(agent.client.post(path, {"content": {"text": "bad words"}}), 200)
    scope = {"scope": {"facts": [changed, made]}, "matter": "m", "reason": "r"}
    hold = body_of(reviewer.client.post("/v1/memory/legal-holds", scope), 201)["id"]
    view = placed(reviewer, key=prefix_of(agent.client))
    one = f"{QUARANTINES}/{view['id']}"
    assert body_of(reviewer.client.post(f"{one}/roll-back", {}), 200)["outcomes"] == {"held": 2}
    finish_large_holds.turn(acme.id, acme.slug)
    assert body_of(reviewer.client.get(one), 200)["outcomes"] == {"held": 2}
    first, second = member(acme), member(acme)
    with tenant_context(acme.id):
        request_release(principal=first, hold_id=hold, reason="over", reauthenticated_at=just_now())
        approve_release(principal=second, hold_id=hold, reauthenticated_at=just_now())
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM procrastinate_jobs WHERE lock = %s AND status = 'todo'",
                [f"finish-holds:{acme.id}"],
            )
            assert cursor.fetchone() == (1,)
    finish_large_holds.turn(acme.id, acme.slug)
    assert body_of(reviewer.client.get(one), 200)["outcomes"] == {"restored": 1, "removed": 1}
    now = body_of(app.client.get(f"{FACTS}/{changed}"), 200)
    assert (now["content"], now["version"]) == ({"text": "good words"}, 3)
    assert found(app.client, "good words") == [changed]
    refusal(app.client.get(f"{FACTS}/{made}"), 404, "fact-not-found")
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT deleted_at IS NOT NULL FROM fact WHERE id = %s", [made])
        assert cursor.fetchone() == (True,)


def test_a_roll_back_goes_on_where_it_stopped(
    acme: TenantKit, app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    for n in range(5):
        inferred(agent, f"v{n}", key=f"k.n{n}")
    view = placed(reviewer, key=prefix_of(agent.client))
    admin = acme.principal("admin")
    first = roll_back_quarantine(principal=admin, quarantine_id=view["id"], most=2)
    assert (first.status, first.left) == ("rolling-back", 3)
    lifted = reviewer.client.post(f"{QUARANTINES}/{view['id']}/lift", {})
    refusal(lifted, 409, "quarantine-closed")
    last = body_of(reviewer.client.post(f"{QUARANTINES}/{view['id']}/roll-back", {}), 200)
    assert (last["status"], last["outcomes"]) == ("rolled-back", {"removed": 5})


def test_the_log_of_governance_tells_and_names_nobody(
    agent: Memory, admin: Memory, reviewer: Reviewer
) -> None:
    inferred(agent, "aisle")
    view = placed(reviewer, key=prefix_of(agent.client))
    body_of(reviewer.client.post(f"{QUARANTINES}/{view['id']}/roll-back", {}), 200)
    path = "/v1/memory/runs/kindmem.governance/log"
    log = body_of(admin.client.get(path, {"limit": 200}), 200)["data"]
    told = [one["payload"] for one in log]
    types = [one["type"] for one in told]
    for one in ("quarantine.placed", "record.rolled-back", "quarantine.rolled-back"):
        assert one in types
    assert "ann" not in str(told)
    assert "orders" not in str(told)


@pytest.mark.parametrize("role", ["agent", "app"])
def test_no_agent_and_no_app_quarantines(acme: TenantKit, role: str) -> None:
    client = acme.client(role)
    body = {"key": "x", "reason": "r"}
    refusal(client.post(QUARANTINES, body), 403, "permission-denied")
    refusal(client.post(f"{QUARANTINES}/preview", {"key": "x"}), 403, "permission-denied")
    refusal(client.get(QUARANTINES), 403, "permission-denied")


@pytest.mark.parametrize("body", [{}, {"key": "x", "run": "y"}])
def test_a_quarantine_names_a_key_or_a_run(reviewer: Reviewer, body: dict[str, Any]) -> None:
    refusal(reviewer.client.post(f"{QUARANTINES}/preview", body), 400, "bad-input")
