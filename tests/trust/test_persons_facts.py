"""What a person said or checked: an agent neither changes nor deletes it before somebody decided, and others do as ever."""

from typing import Any

import pytest

from memory.access import DEFAULT_ABILITIES, Containers, Principal
from memory.actions.supersede_fact import supersede_fact
from memory.actions.write_fact import write_fact
from memory.fact_shape import FactChange, FactDraft, FactView
from memory.tenancy import tenant_context
from memory.trust.facts import Waiting
from tests.builders import ApiClient, TenantKit
from tests.pages.people import person, text_of
from tests.records.builders import body_of, refusal
from tests.trust.conftest import REVIEWS, Memory, Reviewer

FACTS = "/v1/memory/facts"
SAID = {"seat": "aisle"}
OTHER = {"seat": "window"}


def written(client: ApiClient, **more: Any) -> str:
    body = {"type": "note", "scope": {"projectId": "p1"}, "content": SAID, **more}
    return str(body_of(client.post(FACTS, body), 201)["id"])


def verified(app: Memory, **more: Any) -> str:
    fact_id = written(app.client, **more)
    body_of(app.client.post(f"{FACTS}/{fact_id}/verify", {}), 200)
    return fact_id


def by_a_person(kit: TenantKit) -> str:
    """A fact that a signed-in person wrote about themselves; nobody verified it."""
    ann = Principal(
        tenant_id=kit.id,
        tenant_slug=kit.slug,
        kind="member",
        role="person",
        id="17",
        name="member.17",
        abilities=DEFAULT_ABILITIES["person"],
        containers=Containers(users=frozenset({"ann"})),
        subject="ann",
    )
    draft = FactDraft(type="note", scope={"userId": "ann"}, content=SAID)
    with tenant_context(kit.id):
        fact = write_fact(principal=ann, draft=draft)
    assert isinstance(fact, FactView)
    return fact.id


def now(client: ApiClient, fact_id: str) -> dict[str, Any]:
    return body_of(client.get(f"{FACTS}/{fact_id}"), 200)


def change(client: ApiClient, fact_id: str, status: int, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{FACTS}/{fact_id}/supersede", {"content": OTHER, **body})
    return body_of(answer, status)


@pytest.fixture(params=["verified", "a person's"])
def fact_id(request: pytest.FixtureRequest, acme: TenantKit, app: Memory) -> str:
    return verified(app) if request.param == "verified" else by_a_person(acme)


def test_an_agents_change_waits_and_is_made_when_it_is_approved(
    app: Memory, agent: Memory, admin: Memory, reviewer: Reviewer, fact_id: str
) -> None:
    before = now(app.client, fact_id)
    waits = change(agent.client, fact_id, 202)
    assert waits == {"review": "pending", "id": waits["id"]}
    assert change(agent.client, fact_id, 202) == waits
    assert now(app.client, fact_id) == before
    (item,) = reviewer.waiting()
    told = (item["kind"], item["act"], item["reason"], item["factId"])
    assert told == ("act", "supersede", "contradicts-a-person", fact_id)
    item = reviewer.one("act", waits["id"])
    assert item["says"]["content"] == OTHER
    assert item["effect"]["fact"]["content"] == SAID
    reviewer.approve("act", waits["id"], expect=item["effect"]["expect"])
    assert now(app.client, fact_id)["content"] == OTHER
    log = body_of(admin.client.get("/v1/memory/runs/kindmem.governance/log"), 200)["data"]
    types = [one["payload"]["type"] for one in log]
    assert types[-2:] == ["fact.proposed", "review.approved"]


def test_an_agents_deletion_waits_and_is_done_when_it_is_approved(
    app: Memory, agent: Memory, reviewer: Reviewer, fact_id: str
) -> None:
    before = now(app.client, fact_id)
    waits = body_of(agent.client.delete(f"{FACTS}/{fact_id}"), 202)
    assert waits == {"review": "pending", "id": waits["id"]}
    assert now(app.client, fact_id) == before
    item = reviewer.one("act", waits["id"])
    assert (item["act"], item["reason"]) == ("delete", "contradicts-a-person")
    assert item["effect"]["fact"]["content"] == SAID
    reviewer.approve("act", waits["id"], expect=item["effect"]["expect"])
    refusal(app.client.get(f"{FACTS}/{fact_id}"), 404, "fact-not-found")


def test_what_is_rejected_leaves_the_fact_as_it_was(
    app: Memory, agent: Memory, reviewer: Reviewer, fact_id: str
) -> None:
    before = now(app.client, fact_id)
    reviewer.reject("act", change(agent.client, fact_id, 202)["id"])
    reviewer.reject("act", body_of(agent.client.delete(f"{FACTS}/{fact_id}"), 202)["id"])
    assert now(app.client, fact_id) == before
    assert reviewer.waiting() == []


def test_a_deletion_of_what_changed_meanwhile_is_told(
    app: Memory, agent: Memory, reviewer: Reviewer
) -> None:
    fact_id = verified(app)
    waits = body_of(agent.client.delete(f"{FACTS}/{fact_id}"), 202)["id"]
    change(app.client, fact_id, 200)
    answer = reviewer.client.post(f"{REVIEWS}/act/{waits}/approve", {})
    assert refusal(answer, 409, "fact-changed")["currentVersion"] == 3
    assert now(app.client, fact_id)["content"] == OTHER


def test_an_agent_that_saw_another_version_is_told_so(app: Memory, agent: Memory) -> None:
    fact_id = verified(app)
    path = f"{FACTS}/{fact_id}"
    answer = agent.client.post(f"{path}/supersede", {"content": OTHER, "expectVersion": 1})
    refusal(answer, 409, "fact-changed")
    refusal(agent.client.delete(f"{path}?expectVersion=1"), 409, "fact-changed")


@pytest.mark.parametrize(
    "more",
    [
        {"validUntil": "2026-01-01T00:00:00Z"},
        {"subjects": [{"kind": "external", "id": "someone"}]},
        {"retention": {"keepDays": 1}},
        {"observedAt": "2026-01-01T00:00:00Z"},
    ],
    ids=str,
)
def test_the_same_content_with_another_bound_is_a_change_too(
    app: Memory, agent: Memory, more: dict[str, Any]
) -> None:
    fact_id = verified(app)
    change(agent.client, fact_id, 202, content=SAID, **more)
    assert now(app.client, fact_id)["version"] == 2


def test_saying_the_same_first_opens_no_way_around(
    app: Memory, agent: Memory, fact_id: str
) -> None:
    before = now(app.client, fact_id)
    again = change(agent.client, fact_id, 200, content=SAID)
    assert (again["trust"], again["attributedTo"]) == (before["trust"], before["attributedTo"])
    change(agent.client, fact_id, 202)
    body_of(agent.client.delete(f"{FACTS}/{fact_id}"), 202)


def test_what_is_verified_while_an_agent_changes_it_waits(
    acme: TenantKit, app: Memory, agent: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory.actions import supersede_fact as action

    fact_id = written(app.client)
    lock = action.lock_fact

    def verified_first(*given: Any, **named: Any) -> FactView:
        body_of(app.client.post(f"{FACTS}/{fact_id}/verify", {}), 200)
        return lock(*given, **named)

    monkeypatch.setattr(action, "lock_fact", verified_first)
    principal = acme.principal("agent", projects=["p1"])
    with tenant_context(acme.id):
        done = supersede_fact(
            principal=principal, fact_id=fact_id, change=FactChange(content=OTHER)
        )
    assert isinstance(done, Waiting)
    assert now(app.client, fact_id)["content"] == SAID


def test_an_app_and_an_admin_go_on_as_ever(
    acme: TenantKit, app: Memory, reviewer: Reviewer, fact_id: str
) -> None:
    change(app.client, fact_id, 200)
    body_of(app.client.post(f"{FACTS}/{fact_id}/verify", {}), 200)
    body_of(reviewer.client.delete(f"{FACTS}/{fact_id}"), 200)
    assert reviewer.waiting() == []


def test_an_agent_changes_and_deletes_what_only_programs_said(app: Memory, agent: Memory) -> None:
    for client in (app.client, agent.client):
        fact_id = written(client)
        change(agent.client, fact_id, 200)
        body_of(agent.client.delete(f"{FACTS}/{fact_id}"), 200)


def test_an_agent_learns_nothing_of_what_it_may_not_read(acme: TenantKit, app: Memory) -> None:
    fact_id = verified(app)
    outsider = acme.client("agent", projects=["elsewhere"])
    refusal(outsider.delete(f"{FACTS}/{fact_id}"), 404, "fact-not-found")
    answer = outsider.post(f"{FACTS}/{fact_id}/supersede", {"content": OTHER})
    refusal(answer, 404, "fact-not-found")


def test_the_page_shows_what_a_change_and_a_deletion_would_take_away(
    acme: TenantKit, app: Memory, agent: Memory
) -> None:
    fact_id = verified(app)
    changes = change(agent.client, fact_id, 202)["id"]
    deletes = body_of(agent.client.delete(f"{FACTS}/{fact_id}"), 202)["id"]
    admin = person(acme, "admin")
    page = admin.get(f"admin/reviews/act/{changes}/").content.decode()
    assert "What it said before stays in its history." in page
    assert "receipt" not in page
    assert "aisle" in page.split("<del>", 1)[1]
    assert "window" in page.split("<ins>", 1)[1]
    page = admin.get(f"admin/reviews/act/{deletes}/").content.decode()
    assert "aisle" in page.split("<del>", 1)[1]
    assert "<ins>" not in page
    assert "no read finds it any more" in page
    assert "receipt" not in page
    assert f"/admin/reviews/act/{deletes}/" in admin.get("admin/reviews/").content.decode()
    words = text_of(admin.get("admin/reviews/"))
    assert "Delete a fact" in words
    assert "Contradicts a person" in words
