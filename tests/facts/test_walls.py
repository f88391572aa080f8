"""Another tenant's fact, an unreadable one and one that never was answer the same bytes, on every route and for every role."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import ApiClient, TenantKit, make_tenant
from tests.facts.shapes import FACTS, PLAIN, at, refusal, written


@pytest.fixture
def acme(live_acme: TenantKit) -> TenantKit:
    """Committed, like the other one: a transaction belongs to one tenant."""
    return live_acme


@pytest.fixture
def globex(live_db: None) -> TenantKit:
    return make_tenant()


ROLES = ("agent", "app", "admin", "auditor")
NEVER = "00000000-0000-7000-8000-000000000000"
ROUTES: dict[str, Callable[[ApiClient, str], Any]] = {
    "get": lambda client, id: client.get(at(id), X_Request_Id="r"),
    "version": lambda client, id: client.get(at(id), {"version": 1}, X_Request_Id="r"),
    "as of": lambda client, id: client.get(
        at(id), {"asOf": "2999-01-01T00:00:00Z"}, X_Request_Id="r"
    ),
    "revisions": lambda client, id: client.get(at(id, "/revisions"), X_Request_Id="r"),
    "supersede": lambda client, id: client.post(
        at(id, "/supersede"), {"content": 1}, X_Request_Id="r"
    ),
    "supersede expecting": lambda client, id: client.post(
        at(id, "/supersede"), {"content": 1, "expectVersion": 5}, X_Request_Id="r"
    ),
    "verify": lambda client, id: client.post(at(id, "/verify"), X_Request_Id="r"),
    "refresh": lambda client, id: client.post(at(id, "/refresh"), X_Request_Id="r"),
    "delete": lambda client, id: client.delete(at(id), X_Request_Id="r"),
}


def _client(kit: TenantKit, role: str) -> ApiClient:
    return kit.client(role, **({"projects": ["p1"]} if role in ("agent", "app") else {}))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", ROUTES)
def test_a_fact_of_another_tenant_answers_as_one_that_never_was(
    acme: TenantKit, globex: TenantKit, route: str, role: str
) -> None:
    theirs = written(globex.client("app", projects=["p1"]), source=_SOURCE)
    client = _client(acme, role)
    there, nowhere = ROUTES[route](client, theirs["id"]), ROUTES[route](client, NEVER)
    assert there.status_code in (403, 404)
    assert (there.status_code, there.content) == (nowhere.status_code, nowhere.content)
    assert globex.client("auditor").get(at(theirs)).json()["version"] == 1


@pytest.mark.parametrize("route", ROUTES)
def test_a_fact_that_the_caller_may_not_see_answers_as_one_that_never_was(
    acme: TenantKit, route: str
) -> None:
    hidden = written(acme.client("app", projects=["p2"]), scope={"projectId": "p2"}, source=_SOURCE)
    client = acme.client("app", projects=["p1"])
    there, nowhere = ROUTES[route](client, hidden["id"]), ROUTES[route](client, NEVER)
    assert there.status_code == 404
    assert there.content == nowhere.content


_SOURCE = {"kind": "http-api", "freshness": {}, "refresh": {"strategy": "manual"}}


def test_the_same_id_lives_in_two_tenants_apart(acme: TenantKit, globex: TenantKit) -> None:
    here = acme.client("app", projects=["p1"])
    there = globex.client("app", projects=["p1"])
    mine, theirs = (
        written(here, id="same", content="mine"),
        written(there, id="same", content="theirs"),
    )
    assert here.get(at("same")).json() == mine
    assert there.get(at("same")).json() == theirs
    assert here.delete(at("same")).status_code == 200
    assert there.get(at("same")).json() == theirs


def test_lists_hold_no_row_and_no_word_of_another_tenant(
    acme: TenantKit, globex: TenantKit
) -> None:
    written(globex.client("app", projects=["p1"]), content="canary-7f3a", type="canary-type")
    for role in ROLES:
        client = _client(acme, role)
        for query in (
            {},
            {"asOf": "2999-01-01T00:00:00Z"},
            {"type": "canary-type"},
            {"scopeKind": "tenant"},
        ):
            answer = client.get(FACTS, query)
            assert answer.json()["data"] == []
            assert b"canary" not in answer.content


@pytest.mark.parametrize("token", [None, "", "nonsense"])
def test_without_a_key_there_is_nothing(acme: TenantKit, token: str | None) -> None:
    fact = written(acme.client("app", projects=["p1"]))
    nobody = ApiClient(token)
    for call in ROUTES.values():
        assert refusal(call(nobody, fact["id"])) == (401, "auth-missing")
    assert refusal(nobody.get(FACTS)) == (401, "auth-missing")
    assert refusal(nobody.post(FACTS, PLAIN)) == (401, "auth-missing")
    tenant = nobody.get(FACTS, Kindmem_Tenant=acme.slug)
    assert refusal(tenant) == (401, "auth-missing")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
def test_other_methods_are_not_allowed(app: ApiClient, method: str) -> None:
    fact = written(app)
    for path in (FACTS, at(fact), at(fact, "/supersede"), at(fact, "/revisions")):
        assert refusal(app.request(method, path, {})) == (405, "method-not-allowed")


def test_the_containers_of_a_scope_decide_who_reads(acme: TenantKit) -> None:
    writer = acme.client("app", everything=True)
    scopes = {
        "project": {"projectId": "p1"},
        "org": {"orgId": "o1"},
        "project in org": {"projectId": "p1", "orgId": "o1"},
        "user": {"userId": "ann"},
        "participant": {"projectId": "p1", "participantId": "u1"},
        "thread": {"projectId": "p1", "threadId": "t1"},
        "session": {"projectId": "p1", "sessionId": "s1"},
    }
    made = {written(writer, scope=scope)["id"]: name for name, scope in scopes.items()}

    def seen(**grants: Any) -> set[str]:
        data = acme.client("agent", **grants).get(FACTS).json()["data"]
        return {made[fact["id"]] for fact in data}

    assert seen() == set()
    assert seen(projects=["p1"]) == {"project", "project in org", "session"}
    assert seen(projects=["p10"], users=["an"], orgs=["o"]) == set()
    assert seen(orgs=["o1"]) == {"org"}
    assert seen(users=["ann"]) == {"user"}
    assert seen(projects=["p1"], participants=["u1"]) == {
        "project",
        "project in org",
        "session",
        "participant",
    }
    assert seen(on_behalf_of=["p1"]) == {
        "project",
        "project in org",
        "session",
        "participant",
        "thread",
    }
    assert seen(everything=True) == set(scopes)
