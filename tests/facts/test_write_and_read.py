"""Writing a fact and reading it back, over HTTP."""

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import rfc8785
from django.db import connection

import memory
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, PLAIN, at, refusal, written

SCHEMA = json.loads((Path(memory.__file__).parent / "schemas/fact.schema.json").read_text("utf-8"))
SERVER_SET = {
    "version": 7,
    "createdAt": "2020-01-01T00:00:00Z",
    "updatedAt": "2020-01-01T00:00:00Z",
    "revisionId": "r",
    "trust": "verified",
    "verifiedBy": "user:1",
    "verifiedAt": "2020-01-01T00:00:00Z",
    "attributedTo": {"kind": "user", "id": "1"},
    "generatedBy": {"runId": "r"},
    "supersedes": "x",
    "invalidatedAt": "2020-01-01T00:00:00Z",
    "invalidatedBy": "user:1",
    "invalidationReason": "deleted",
    "review": "pending",
    "expiresAt": "2999-01-01T00:00:00Z",
    "embeddingModel": "m",
    "meta": {},
    "tenantId": "acme",
}


def test_a_fact_is_stored_with_what_the_server_says(app: ApiClient) -> None:
    fact = written(app, content={"b": 1.0, "a": "café"})
    text = rfc8785.dumps({"b": 1.0, "a": "café"})
    assert fact["version"] == 1
    assert fact["scope"] == {"projectId": "p1", "tenantId": "acme"}
    assert fact["contentHash"] == "sha256:" + hashlib.sha256(text).hexdigest()
    assert fact["size"] == len(text)
    assert fact["createdAt"] == fact["updatedAt"]
    assert fact["createdAt"].endswith("Z")
    assert fact["trust"] == "asserted"
    assert fact["attributedTo"]["kind"] == "service"
    assert not {"revisionId", "supersedes", "expiresAt", "review"} & fact.keys()
    assert app.get(at(fact)).json() == fact
    assert app.get(FACTS).json() == {"data": [fact], "hasMore": False}


def test_answers_validate_against_the_fact_schema(app: ApiClient, agent: ApiClient) -> None:
    validator = jsonschema.Draft202012Validator(
        SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    source = {
        "kind": "http-api",
        "uri": "https://crm.example/c/1",
        "freshness": {"ttlSeconds": 60},
        "refresh": {"strategy": "manual"},
    }
    for fact in (
        written(app),
        written(agent, retention={"keepDays": 3}, causedByLogId="le-1"),
        written(app, source=source),
        app.post(at(written(app), "/supersede"), {"content": 1}).json(),
    ):
        validator.validate(fact)


def test_an_agents_fact_is_unverified_and_says_which_run_made_it(agent: ApiClient) -> None:
    entry = agent.post(
        "/v1/memory/runs/run-7/log", {"kind": "tool-result", "scope": {"projectId": "p1"}}
    ).json()
    fact = written(agent, causedByLogId=["le-earlier", entry["id"]])
    assert fact["trust"] == "unverified"
    assert fact["attributedTo"]["kind"] == "agent"
    assert fact["generatedBy"] == {"runId": "run-7"}
    assert fact["causedByLogId"] == ["le-earlier", entry["id"]]


def test_the_run_of_a_cause_that_the_writer_may_not_read_is_not_told(acme: TenantKit) -> None:
    other = acme.client("agent", projects=["p2"])
    entry = other.post(
        "/v1/memory/runs/run-9/log", {"kind": "tool-result", "scope": {"projectId": "p2"}}
    ).json()
    fact = written(acme.client("agent", projects=["p1"]), causedByLogId=entry["id"])
    assert "generatedBy" not in fact
    assert fact["causedByLogId"] == [entry["id"]]


@pytest.mark.parametrize("field", sorted(SERVER_SET))
def test_what_the_server_says_can_not_be_sent(app: ApiClient, field: str) -> None:
    answer = app.post(FACTS, {**PLAIN, field: SERVER_SET[field]})
    assert refusal(answer) == (400, "unknown-field")
    assert answer.json()["error"]["details"]["issues"][0]["path"] == f"/{field}"


@pytest.mark.parametrize(
    "content", [None, True, 0, -1.5, "", "text", [], {}, [1, {"a": [None]}], "\u202eabc\u200b😀"]
)
def test_content_is_any_json_value(app: ApiClient, content: Any) -> None:
    fact = written(app, content=content)
    assert "content" in fact
    assert app.get(at(fact)).json()["content"] == content


def test_content_comes_back_as_its_canonical_text(app: ApiClient) -> None:
    raw = b'{"type":"n","scope":{"projectId":"p1"},"content":{"z":1e2,"a":1.10}}'
    answer = app.request("POST", FACTS, raw=raw)
    assert b'"content":{"a":1.1,"z":100}' in answer.content


def test_content_is_required_unless_a_blob_is_named(app: ApiClient) -> None:
    body = {key: PLAIN[key] for key in ("type", "scope")}
    assert refusal(app.post(FACTS, body)) == (400, "bad-input")
    big = {
        "contentRef": "blob://s3/bucket/a/key.pdf",
        "size": 9_000_000,
        "contentHash": "sha256:" + "a" * 64,
    }
    fact = app.post(FACTS, {**body, **big}).json()
    assert {key: fact[key] for key in big} == big
    assert "content" not in fact
    summary = app.post(
        FACTS, {**body, "contentRef": "blob://s3/b/k", "content": {"pages": 3}}
    ).json()
    assert summary["content"] == {"pages": 3}
    assert not {"size", "contentHash"} & summary.keys()
    assert app.get(at(summary)).json() == summary


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "s3://b/k",
        "blob://",
        "blob://s3",
        "blob://s3/b",
        "blob://s3/b/",
        "blob:///b/k",
        "blob://s3/b/../x",
        "blob://s3/b/a b",
    ],
)
def test_a_content_ref_of_another_shape_is_refused(app: ApiClient, ref: str) -> None:
    assert refusal(app.post(FACTS, {**PLAIN, "contentRef": ref})) == (400, "bad-input")


def test_a_hash_or_size_that_is_not_the_contents_is_refused(app: ApiClient) -> None:
    fact = written(app)
    said = {"contentHash": fact["contentHash"], "size": fact["size"]}
    assert app.post(FACTS, {**PLAIN, **said}).status_code == 201
    wrong_hash = app.post(FACTS, {**PLAIN, "contentHash": "sha256:" + "0" * 64})
    assert refusal(wrong_hash) == (422, "content-hash-mismatch")
    assert wrong_hash.json()["error"]["details"] == {"field": "contentHash"}
    assert refusal(app.post(FACTS, {**PLAIN, "size": fact["size"] + 1})) == (
        422,
        "content-hash-mismatch",
    )


def test_content_of_more_than_64_kib_is_told_of_content_ref(app: ApiClient) -> None:
    fits = app.post(FACTS, {**PLAIN, "content": "x" * (65_536 - 2)})
    assert fits.status_code == 201
    answer = app.post(FACTS, {**PLAIN, "content": "x" * (65_536 - 1)})
    assert refusal(answer) == (413, "content-too-large")
    assert "contentRef" in answer.json()["error"]["message"]
    # canonical bytes count, not the bytes that were sent
    spaced = b'{"type":"n","scope":{"projectId":"p1"},"content":[' + b" " * 70_000 + b"1]}"
    assert app.request("POST", FACTS, raw=spaced).status_code == 201


def test_a_taken_id_answers_the_same_whoever_has_it(acme: TenantKit, app: ApiClient) -> None:
    hidden = acme.client("app", projects=["p2"])
    assert written(app, id="mine")["id"] == "mine"
    hidden.post(FACTS, {**PLAIN, "scope": {"projectId": "p2"}, "id": "hidden"})
    mine = app.post(FACTS, {**PLAIN, "id": "mine"})
    theirs = app.post(FACTS, {**PLAIN, "id": "hidden"})
    assert refusal(mine) == refusal(theirs) == (409, "id-taken")
    assert _without_ids(mine, "mine") == _without_ids(theirs, "hidden")


def _without_ids(answer: Any, fact_id: str) -> str:
    error = answer.json()["error"]
    error.pop("requestId")
    return json.dumps(error).replace(fact_id, "ID")


def test_a_deleted_facts_id_and_a_revisions_id_stay_taken(app: ApiClient) -> None:
    fact = written(app, id="once")
    second = app.post(at(fact, "/supersede"), {"content": 2}).json()
    assert refusal(app.post(FACTS, {**PLAIN, "id": second["revisionId"]})) == (409, "id-taken")
    assert app.delete(at(fact)).status_code == 200
    assert refusal(app.post(FACTS, {**PLAIN, "id": "once"})) == (409, "id-taken")


@pytest.mark.parametrize(
    "id",
    [
        "a/b",
        "a b",
        "%",
        "_",
        "ä😀",
        "x" * 256,
        "line\nbreak",
        "../x",
        "?a=1#b",
        "<script>",
        "' OR 1=1 --",
        "{}",
    ],
)
def test_an_id_is_any_text_and_reachable(app: ApiClient, id: str) -> None:
    fact = written(app, id=id)
    assert fact["id"] == id
    assert app.get(at(fact)).json() == fact
    assert app.get(at(fact, "/revisions")).json() == {"data": [fact]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": ""}, (400, "bad-input")),
        ({"id": "x" * 257}, (400, "bad-input")),
        ({"id": 5}, (400, "bad-input")),
        ({"type": ""}, (400, "bad-input")),
        ({"scope": {"projectid": "p1"}}, (400, "unknown-field")),
        ({"scope": {"projectId": None}}, (400, "bad-input")),
        ({"scope": {"projectId": "p1", "tenantId": "globex"}}, (403, "scope-mismatch")),
        ({"scope": "p1"}, (400, "bad-input")),
        ({"scope": {"participantId": "u1"}}, (422, "invariant-violated")),
        ({"scope": {"projectId": "p2"}}, (403, "permission-denied")),
        ({"scope": {"projectId": "p1", "orgId": "o1"}}, (403, "permission-denied")),
        ({"scope": {}}, (403, "permission-denied")),
        ({"scope": {"sessionId": "s1"}}, (403, "permission-denied")),
        ({"validFrom": "2026-01-01T00:00:00"}, (400, "bad-input")),
        ({"validFrom": "2026-02-30T00:00:00Z"}, (400, "bad-input")),
        ({"validFrom": "yesterday"}, (400, "bad-input")),
        (
            {"validFrom": "2026-01-02T00:00:00Z", "validUntil": "2026-01-01T00:00:00Z"},
            (422, "invariant-violated"),
        ),
        ({"retention": {"keepUntil": "2026-01-01"}}, (400, "bad-input")),
        ({"retention": {"keepDays": 0}}, (400, "bad-input")),
        ({"retention": {"keepdays": 3}}, (400, "unknown-field")),
        ({"subjects": [{"kind": "external", "id": str(n)} for n in range(21)]}, (400, "bad-input")),
        ({"subjects": [{"kind": "robot", "id": "1"}]}, (400, "bad-input")),
        ({"causedByLogId": [str(n) for n in range(101)]}, (400, "bad-input")),
        ({"causedByLogId": [""]}, (400, "bad-input")),
        ({"causedByLogId": 7}, (400, "bad-input")),
        ({"source": {"kind": "http-api"}}, (400, "bad-input")),
        (
            {"source": {"kind": "ftp", "freshness": {}, "refresh": {"strategy": "manual"}}},
            (400, "bad-input"),
        ),
        ({"content": "\x00"}, (400, "bad-input")),
    ],
)
def test_a_write_that_breaks_a_rule_is_refused_and_stores_nothing(
    app: ApiClient, change: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert refusal(app.post(FACTS, {**PLAIN, **change})) == expected
    assert app.get(FACTS).json()["data"] == []


def test_times_of_another_zone_come_back_in_utc(app: ApiClient) -> None:
    fact = written(
        app, validFrom="2030-03-01T00:30:00+09:00", observedAt="2026-01-01T00:00:00.123456789Z"
    )
    assert fact["validFrom"] == "2030-02-28T15:30:00Z"
    assert fact["observedAt"] == "2026-01-01T00:00:00.123456Z"


def test_subjects_come_back_in_order_and_are_rows_to_find_a_person_by(
    acme: TenantKit, app: ApiClient
) -> None:
    subjects = [{"kind": "user", "id": "ann"}, {"kind": "external", "id": "bob"}]
    fact = written(app, subjects=subjects)
    assert fact["subjects"] == subjects
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(acme.id)])
        cursor.execute("SELECT fact_id FROM fact_subject WHERE subject_id = 'bob'")
        assert cursor.fetchall() == [(fact["id"],)]


def test_tenant_wide_facts_need_their_ability(acme: TenantKit) -> None:
    wide = acme.client("app", may=["read", "write", "tenant-wide"])
    assert written(wide, scope={})["scope"] == {"tenantId": "acme"}
    assert written(wide, scope={"sessionId": "s"})["scope"] == {
        "tenantId": "acme",
        "sessionId": "s",
    }


def test_a_retried_write_makes_one_fact(app: ApiClient) -> None:
    first = app.post(FACTS, PLAIN, Idempotency_Key="k1")
    again = app.post(FACTS, PLAIN, Idempotency_Key="k1")
    assert again.status_code == 201
    assert again.content == first.content
    assert len(app.get(FACTS).json()["data"]) == 1
    other = app.post(FACTS, {**PLAIN, "content": 2}, Idempotency_Key="k1")
    assert refusal(other) == (409, "idempotency-key-body-mismatch")
    assert app.delete(at(first.json())).status_code == 200
    assert refusal(app.post(FACTS, PLAIN, Idempotency_Key="k1")) == (
        409,
        "idempotency-key-replay-withheld",
    )


def test_an_auditor_and_a_key_without_the_ability_write_nothing(acme: TenantKit) -> None:
    assert refusal(acme.client("auditor").post(FACTS, PLAIN)) == (403, "permission-denied")
    reader = acme.client("agent", projects=["p1"], may=["read"])
    assert refusal(reader.post(FACTS, PLAIN)) == (403, "permission-denied")


def test_the_longest_names_of_the_widest_characters_are_stored_and_found(acme: TenantKit) -> None:
    everyone = acme.client("app", everything=True)
    name = "".join(chr(0x1F300 + number) for number in range(256))
    scope = {"projectId": name, "threadId": name, "participantId": name, "orgId": name}
    fact = written(
        everyone, id=name, type=name, scope=scope, subjects=[{"kind": "user", "id": name}]
    )
    assert everyone.get(FACTS, {"type": name}).json()["data"] == [fact]
    assert everyone.get(at(fact)).json() == fact


def test_a_word_as_long_as_the_content_may_be_is_stored(app: ApiClient) -> None:
    fact = written(app, content="z9" * 32_000)
    assert app.get(at(fact)).json()["size"] == 64_002


def test_a_body_of_more_than_a_mebibyte_is_refused_as_one(app: ApiClient) -> None:
    assert refusal(app.post(FACTS, {**PLAIN, "content": "x" * 1_100_000})) == (
        413,
        "content-too-large",
    )
