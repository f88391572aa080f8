"""Superseding, verifying and deleting: each is a revision or a closing, and history keeps all of it."""

from typing import Any

import pytest
from django.db import connection

from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, PLAIN, at, refusal, written


def changed(client: ApiClient, fact: dict[str, Any], **body: Any) -> dict[str, Any]:
    answer = client.post(at(fact, "/supersede"), {"content": {"n": 1}, **body})
    assert answer.status_code == 200, answer.content
    revision: dict[str, Any] = answer.json()
    return revision


def test_a_change_is_the_next_revision_and_closes_the_one_before(app: ApiClient) -> None:
    first = written(app)
    second = changed(app, first, content={"text": "likes the aisle"})
    third = changed(app, first, content=None)
    assert (second["id"], second["version"], second["supersedes"]) == (first["id"], 2, first["id"])
    assert (third["version"], third["supersedes"]) == (3, second["revisionId"])
    assert first["createdAt"] == second["createdAt"] == third["createdAt"]
    assert first["updatedAt"] < second["updatedAt"] < third["updatedAt"]
    assert app.get(at(first)).json() == third
    newest, middle, oldest = app.get(at(first, "/revisions")).json()["data"]
    assert newest == third
    assert middle["invalidatedAt"] == third["updatedAt"]
    assert oldest["invalidatedAt"] == second["updatedAt"]
    assert oldest["invalidationReason"] == "superseded"
    assert oldest["invalidatedBy"] == f"service:{first['attributedTo']['id']}"
    assert app.get(at(first), {"version": 2}).json() == middle
    assert len(app.get(FACTS).json()["data"]) == 1


def test_what_a_change_leaves_out_keeps_its_value_but_causes_are_its_own(app: ApiClient) -> None:
    times = {
        "validFrom": "2026-01-01T00:00:00Z",
        "validUntil": "2027-01-01T00:00:00Z",
        "observedAt": "2025-12-01T00:00:00Z",
    }
    subjects = [{"kind": "external", "id": "p-1"}]
    first = written(
        app, **times, subjects=subjects, retention={"keepDays": 9}, causedByLogId="le-1"
    )
    second = changed(app, first)
    assert {name: second[name] for name in times} == times
    assert second["subjects"] == subjects
    assert second["retention"] == {"keepDays": 9}
    assert second["expiresAt"] == first["expiresAt"]
    assert "causedByLogId" not in second
    third = changed(
        app, first, subjects=[], validUntil="2028-01-01T00:00:00Z", causedByLogId=["a", "b"]
    )
    assert "subjects" not in third
    assert (third["validFrom"], third["validUntil"]) == (times["validFrom"], "2028-01-01T00:00:00Z")
    assert third["causedByLogId"] == ["a", "b"]


def test_a_change_keeps_type_and_scope_and_takes_nothing_else(app: ApiClient) -> None:
    fact = written(app)
    for field in ("type", "scope", "id", "contentRef", "trust", "version"):
        answer = app.post(at(fact, "/supersede"), {"content": 1, field: "x"})
        assert refusal(answer) == (400, "unknown-field")
    assert refusal(app.post(at(fact, "/supersede"), {})) == (400, "bad-input")


def test_expect_version_refuses_when_someone_was_first_and_says_the_current_one(
    app: ApiClient,
) -> None:
    fact = written(app)
    changed(app, fact, expectVersion=1)
    for answer in (
        app.post(at(fact, "/supersede"), {"content": 2, "expectVersion": 1}),
        app.post(at(fact, "/verify"), {"expectVersion": 1}),
        app.delete(at(fact), {"expectVersion": 1}),
    ):
        assert refusal(answer) == (409, "fact-changed")
        assert answer.json()["error"]["details"] == {"factId": fact["id"], "currentVersion": 2}
    assert app.delete(at(fact), {"expectVersion": 2}).status_code == 200


def test_writing_an_older_content_again_leaves_that_the_current_one(app: ApiClient) -> None:
    first = written(app)
    changed(app, first, content={"text": "aisle"})
    third = changed(app, first, content=PLAIN["content"])
    assert third["contentHash"] == first["contentHash"]
    assert app.get(at(first)).json() == third


def test_verifying_is_a_revision_with_the_same_content_and_ends_the_unverified_window(
    app: ApiClient, agent: ApiClient
) -> None:
    first = written(agent, causedByLogId="le-1", subjects=[{"kind": "user", "id": "ann"}])
    assert first["expiresAt"]
    answer = app.post(at(first, "/verify"))
    assert answer.status_code == 200
    verified = answer.json()
    same = (
        "content",
        "contentHash",
        "size",
        "attributedTo",
        "causedByLogId",
        "subjects",
        "embeddingModel",
    )
    assert {name: verified.get(name) for name in same} == {name: first.get(name) for name in same}
    assert (verified["trust"], verified["version"]) == ("verified", 2)
    assert verified["verifiedBy"].startswith("service:")
    assert verified["verifiedAt"] == verified["updatedAt"]
    assert "expiresAt" not in verified
    assert app.get(at(first)).json() == verified


def test_an_agent_or_an_auditor_verifies_nothing(
    acme: TenantKit, app: ApiClient, agent: ApiClient
) -> None:
    fact = written(app)
    for client in (agent, acme.client("auditor")):
        assert refusal(client.post(at(fact, "/verify"))) == (403, "permission-denied")
    assert app.get(at(fact)).json() == fact


def test_an_agents_change_of_an_asserted_fact_is_unverified(
    app: ApiClient, agent: ApiClient
) -> None:
    second = changed(agent, written(app))
    assert second["trust"] == "unverified"
    assert second["expiresAt"]


def test_an_apps_change_of_a_verified_fact_is_asserted_again(app: ApiClient) -> None:
    fact = written(app)
    app.post(at(fact, "/verify"))
    second = changed(app, fact)
    assert second["trust"] == "asserted"
    assert not {"verifiedBy", "verifiedAt"} & second.keys()


def test_an_agent_that_says_the_same_again_leaves_a_verified_fact_verified(
    app: ApiClient, agent: ApiClient
) -> None:
    fact = written(app)
    verified = app.post(at(fact, "/verify")).json()
    second = changed(agent, fact, content=fact["content"])
    same = ("trust", "verifiedBy", "verifiedAt", "attributedTo", "content")
    assert {name: second[name] for name in same} == {name: verified[name] for name in same}
    assert second["version"] == 3
    assert "expiresAt" not in second
    assert app.get(at(fact)).json() == second


def test_an_agent_that_goes_on_changing_its_fact_does_not_prolong_its_window(
    agent: ApiClient,
) -> None:
    fact = written(agent)
    assert changed(agent, fact)["expiresAt"] == fact["expiresAt"]


def test_verifying_is_a_governance_act_and_its_entry_holds_no_content(
    acme: TenantKit, app: ApiClient
) -> None:
    fact = written(app)
    app.post(at(fact, "/verify"))
    entries = acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    payload = {"type": "fact.verified", "factId": fact["id"], "version": 2}
    assert payload in [entry["payload"] for entry in entries]


def test_a_deleted_fact_is_gone_for_reads_and_there_for_history(app: ApiClient) -> None:
    fact = written(app)
    other = written(app)
    second = changed(app, fact)
    answer = app.delete(at(fact))
    assert answer.status_code == 200
    closed = answer.json()
    assert closed["invalidationReason"] == "deleted"
    assert closed["invalidatedBy"].startswith("service:")
    assert closed["version"] == 2
    assert refusal(app.get(at(fact))) == (404, "fact-not-found")
    assert app.get(FACTS).json()["data"] == [other]
    for again in (
        app.delete(at(fact)),
        app.post(at(fact, "/verify")),
        app.post(at(fact, "/supersede"), {"content": 1}),
    ):
        assert refusal(again) == (404, "fact-not-found")
    revisions = app.get(at(fact, "/revisions")).json()["data"]
    assert [one["version"] for one in revisions] == [2, 1]
    assert revisions[0] == closed
    assert app.get(at(fact), {"version": 2}).json() == closed
    assert app.get(at(fact), {"asOf": second["updatedAt"]}).json() == closed
    assert refusal(app.get(at(fact), {"asOf": closed["invalidatedAt"]})) == (404, "fact-not-found")


def test_a_deleted_fact_leaves_nothing_in_the_index(acme: TenantKit, app: ApiClient) -> None:
    fact = written(app)
    assert app.delete(at(fact)).status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(acme.id)])
        for table in ("fact_document", "fact_embedding", "embedding_task"):
            cursor.execute(f"SELECT count(*) FROM {table} WHERE fact_id = %s", [fact["id"]])
            assert cursor.fetchone() == (0,)


def test_a_fact_that_may_be_read_but_not_written_answers_403_and_an_unreadable_one_404(
    acme: TenantKit,
) -> None:
    wide = acme.client("app", may=["read", "write", "tenant-wide"])
    fact = written(wide, scope={})
    reader = acme.client("app", projects=["p1"])
    assert reader.get(at(fact)).status_code == 200
    in_org = written(
        acme.client("app", projects=["p1"], orgs=["o1"]), scope={"projectId": "p1", "orgId": "o1"}
    )
    hidden = written(acme.client("app", projects=["p2"]), scope={"projectId": "p2"})
    for one, expected in ((fact, 403), (in_org, 403), (hidden, 404)):
        for answer in (
            reader.post(at(one, "/supersede"), {"content": 1}),
            reader.post(at(one, "/verify")),
            reader.delete(at(one)),
        ):
            assert answer.status_code == expected


def test_as_of_reads_the_revision_that_was_current(app: ApiClient) -> None:
    first = written(app)
    second = changed(app, first)
    third = changed(app, first)
    for fact in (first, second, third):
        found = app.get(at(first), {"asOf": fact["updatedAt"]}).json()
        assert (found["version"], found["content"]) == (fact["version"], fact["content"])
    assert refusal(app.get(at(first), {"asOf": "2020-01-01T00:00:00Z"})) == (404, "fact-not-found")
    assert app.get(at(first), {"asOf": "2999-01-01T00:00:00Z"}).json() == third
    listed = app.get(FACTS, {"asOf": first["updatedAt"]}).json()["data"]
    assert [one["version"] for one in listed] == [1]
    assert app.get(FACTS, {"asOf": "2020-01-01T00:00:00Z"}).json()["data"] == []


@pytest.mark.parametrize(
    "query",
    [
        {"version": "0"},
        {"version": "x"},
        {"version": "99999999999"},
        {"asOf": "2026-01-01"},
        {"asOf": "2026-01-01T00:00:00"},
        {"version": "1", "asOf": "2026-01-01T00:00:00Z"},
    ],
)
def test_a_malformed_version_or_time_is_refused(app: ApiClient, query: dict[str, str]) -> None:
    assert refusal(app.get(at(written(app)), query)) == (400, "bad-input")


def test_a_version_that_is_not_there_answers_404(app: ApiClient) -> None:
    assert refusal(app.get(at(written(app)), {"version": 2})) == (404, "fact-not-found")


def test_a_retried_change_is_made_once(app: ApiClient) -> None:
    fact = written(app)
    first = app.post(at(fact, "/supersede"), {"content": 1}, Idempotency_Key="k")
    again = app.post(at(fact, "/supersede"), {"content": 1}, Idempotency_Key="k")
    assert first.content == again.content
    assert app.get(at(fact)).json()["version"] == 2
