"""Lists: filters by equality, pages that neither skip nor repeat, and nothing the caller may not see."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, PLAIN, at, refusal, written


def ids(client: ApiClient, **query: Any) -> list[str]:
    if "scope" in query:
        query["scope"] = json.dumps(query["scope"])
    answer = client.get(FACTS, query)
    assert answer.status_code == 200, answer.content
    return [fact["id"] for fact in answer.json()["data"]]


@pytest.fixture
def everyone(acme: TenantKit) -> ApiClient:
    return acme.client("app", everything=True, may=["read", "write", "tenant-wide"])


HOSTILE = ["p1", "p10", "a_b", "axb", "a%", "acme", "acme-corp", "acme:x", "a\\b", "'--", "%", "_"]


def test_ids_in_filters_are_compared_for_equality_alone(everyone: ApiClient) -> None:
    made = {name: written(everyone, scope={"projectId": name}, type=name)["id"] for name in HOSTILE}
    for name in HOSTILE:
        assert ids(everyone, scope={"projectId": name}) == [made[name]]
        assert ids(everyone, type=name) == [made[name]]
        assert ids(everyone, scopeKind="project", scopeId=name) == [made[name]]


def test_a_partial_scope_fits_facts_that_name_more(everyone: ApiClient) -> None:
    wide = written(everyone, scope={})["id"]
    project = written(everyone, scope={"projectId": "p1"})["id"]
    thread = written(everyone, scope={"projectId": "p1", "threadId": "t1", "sessionId": "s1"})["id"]
    assert ids(everyone) == [thread, project, wide]
    assert ids(everyone, scope={"projectId": "p1"}) == [thread, project]
    assert ids(everyone, scope={"sessionId": "s1"}) == [thread]
    assert ids(everyone, scope={"tenantId": "acme"}) == [thread, project, wide]
    assert ids(everyone, scope={"threadId": "t1", "projectId": "p2"}) == []


def test_an_org_shows_its_facts_and_those_of_projects_named_beside_it(everyone: ApiClient) -> None:
    org = written(everyone, scope={"orgId": "o1"})["id"]
    link = written(everyone, scope={"orgId": "o1", "projectId": "p1"})["id"]
    beside = written(everyone, scope={"projectId": "p1"})["id"]
    written(everyone, scope={"projectId": "p2"})
    written(everyone, scope={"orgId": "o2"})
    assert ids(everyone, scopeKind="org", scopeId="o1") == [beside, link, org]
    assert len(ids(everyone, scopeKind="tenant", inherit="true")) == 5


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"topk": "3"}, (400, "unknown-field")),
        ({"_connector": "OR"}, (400, "unknown-field")),
        ({"type__contains": "n"}, (400, "unknown-field")),
        ({"limit": "0"}, (400, "bad-input")),
        ({"limit": "201"}, (400, "bad-input")),
        ({"limit": "-1"}, (400, "bad-input")),
        ({"limit": "1e2"}, (400, "bad-input")),
        ({"cursor": "nonsense"}, (400, "bad-input")),
        ({"cursor": ""}, (400, "bad-input")),
        ({"type": ""}, (400, "bad-input")),
        ({"scope": "{"}, (400, "bad-input")),
        ({"scope": "[]"}, (400, "bad-input")),
        ({"scope": '{"project":"p1"}'}, (400, "unknown-field")),
        ({"scope": '{"projectId":null}'}, (400, "bad-input")),
        ({"scope": '{"tenantId":"globex"}'}, (403, "scope-mismatch")),
        ({"scopeKind": "galaxy"}, (400, "bad-input")),
        ({"scopeKind": "project"}, (400, "bad-input")),
        ({"scopeId": "p1"}, (400, "bad-input")),
        ({"scopeKind": "tenant", "scopeId": "globex"}, (403, "scope-mismatch")),
        ({"asOf": "2026-01-01T00:00:00"}, (400, "bad-input")),
        ({"inherit": "yes"}, (400, "bad-input")),
    ],
)
def test_a_parameter_that_is_unknown_or_malformed_is_refused(
    app: ApiClient, query: dict[str, str], expected: tuple[int, str]
) -> None:
    assert refusal(app.get(FACTS, query)) == expected


def test_a_limit_is_met_exactly(app: ApiClient) -> None:
    for _ in range(8):
        written(app)
    for limit in (1, 2, 7, 8, 100):
        assert len(ids(app, limit=limit)) == min(limit, 8)


def _pages(client: ApiClient, limit: int, **query: Any) -> list[str]:
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        body = client.get(FACTS, {"limit": limit, **query, **cursor}).json()
        found += [fact["id"] for fact in body["data"]]
        if not body["hasMore"]:
            assert "nextCursor" not in body
            return found
        cursor = {"cursor": body["nextCursor"]}


def test_pages_over_equal_times_show_each_fact_once(acme: TenantKit, app: ApiClient) -> None:
    made = [written(app, type="tied")["id"] for _ in range(3)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(acme.id)])
        cursor.execute(
            """
            WITH heads AS (
              INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)
              SELECT tenant_id, 'tied-' || n, type, scope_text, 1, created_at
              FROM fact, generate_series(1, 497) n WHERE id = %s RETURNING tenant_id, id, created_at)
            INSERT INTO fact_revision (tenant_id, fact_id, version, revision_id, recorded_at, content_hash, size_bytes,
              trust, attributed_kind, attributed_id, written_by, written_by_role)
            SELECT tenant_id, id, 1, id, created_at, sha256(''), 0, 'asserted', 'service', 's', 's', 'app' FROM heads
            """,
            [made[0]],
        )
    first = _pages(app, 50)
    assert len(first) == len(set(first)) == 500
    assert _pages(app, 50) == first
    assert _pages(app, 200, type="tied") == first


def test_facts_written_while_paging_neither_repeat_nor_hide_a_row(app: ApiClient) -> None:
    made = [written(app)["id"] for _ in range(6)]
    first = app.get(FACTS, {"limit": 3}).json()
    written(app)
    rest = app.get(FACTS, {"limit": 10, "cursor": first["nextCursor"]}).json()
    assert [one["id"] for one in first["data"] + rest["data"]] == made[::-1]


def test_a_cursor_is_bound_to_its_caller_and_its_filters(acme: TenantKit, app: ApiClient) -> None:
    for _ in range(3):
        written(app)
    cursor = app.get(FACTS, {"limit": 1}).json()["nextCursor"]
    other = acme.client("app", projects=["p1"])
    assert refusal(other.get(FACTS, {"cursor": cursor})) == (400, "bad-input")
    assert refusal(app.get(FACTS, {"cursor": cursor, "type": "note"})) == (400, "bad-input")
    assert refusal(app.get(FACTS, {"cursor": cursor[:-2] + "xx"})) == (400, "bad-input")
    assert app.get(FACTS, {"cursor": cursor, "limit": 2}).status_code == 200


def test_a_fact_awaiting_review_is_nowhere(acme: TenantKit, app: ApiClient) -> None:
    fact = written(app)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(acme.id)])
        cursor.execute("UPDATE fact SET review = 'pending' WHERE id = %s", [fact["id"]])
    admin = acme.client("admin")
    for client in (app, admin):
        assert ids(client) == []
        assert ids(client, asOf=fact["updatedAt"]) == []
        for path, query in (
            (at(fact), {}),
            (at(fact), {"version": 1}),
            (at(fact), {"asOf": fact["updatedAt"]}),
            (at(fact, "/revisions"), {}),
        ):
            assert client.get(path, query).status_code == 404
    assert refusal(app.post(at(fact, "/supersede"), {"content": 1})) == (404, "fact-not-found")
    assert refusal(app.delete(at(fact))) == (404, "fact-not-found")


def _statements(client: ApiClient, call: Any) -> int:
    client.get("/v1/memory/me")  # the key's last use is noted once in a while
    with CaptureQueriesContext(connection) as captured:
        assert call().status_code < 300
    texts = [query["sql"] for query in captured.captured_queries]
    # Inside a test's transaction the request's BEGIN and COMMIT are a savepoint and its release.
    return len(texts)


def test_each_request_stays_within_its_statements(app: ApiClient) -> None:
    fact = written(app)
    assert _statements(app, lambda: app.get(at(fact))) <= 4
    assert _statements(app, lambda: app.get(at(fact), {"version": 1})) <= 4
    assert _statements(app, lambda: app.get(at(fact, "/revisions"))) <= 4
    write = _statements(app, lambda: app.post(FACTS, PLAIN, Idempotency_Key="w"))
    assert write - 1 <= 8  # the index is one statement
    change = _statements(
        app, lambda: app.post(at(fact, "/supersede"), {"content": 1}, Idempotency_Key="s")
    )
    assert change - 1 <= 8
    counts = []
    for size in (2, 12):
        while len(ids(app)) < size:
            written(app, subjects=[{"kind": "user", "id": "a"}], causedByLogId=["x", "y"])
        counts.append(_statements(app, lambda: app.get(FACTS)))
    assert counts[0] == counts[1] <= 5
