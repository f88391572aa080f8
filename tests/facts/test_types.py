"""The registry of types: who declares, which schemas are taken, and what a content that doesn't fit is told."""

import json
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, PLAIN, at, refusal, written

TYPES = "/v1/memory/types"
SEAT = {
    "type": "object",
    "required": ["seat"],
    "properties": {"seat": {"enum": ["window", "aisle"]}, "code": {"pattern": "^[A-Z]{3}$"}},
}


def test_a_declaration_is_replaced_as_a_whole_but_for_windows_that_it_leaves_out(
    admin: ApiClient,
) -> None:
    first = admin.put(
        f"{TYPES}/note", {"semantic": False, "contentSchema": SEAT, "retention": {"keepDays": 3}}
    )
    assert first.status_code == 200, first.content
    body = first.json()
    assert (body["type"], body["keyword"], body["semantic"]) == ("note", True, False)
    assert body["contentSchema"] == SEAT
    assert body["retention"] == {"keepDays": 3}
    assert body["updatedBy"].startswith("service:")
    assert admin.get(f"{TYPES}/note").json() == body
    second = admin.put(f"{TYPES}/note", {}).json()
    assert not {"contentSchema", "embeddingModel"} & second.keys()
    assert (second["semantic"], second["createdAt"]) == (True, body["createdAt"])
    assert second["retention"] == {"keepDays": 3}
    third = admin.put(f"{TYPES}/note", {"retention": {"deleteAfterDays": 5}}).json()
    assert third["retention"] == {"deleteAfterDays": 5}
    assert "retention" not in admin.put(f"{TYPES}/note", {"retention": {}}).json()


def test_types_are_listed_by_name_in_pages(admin: ApiClient) -> None:
    for name in ("b", "a/x", "ä", "c"):
        assert admin.put(f"{TYPES}/{name}", {}).status_code == 200
    first = admin.get(TYPES, {"limit": 3}).json()
    rest = admin.get(TYPES, {"limit": 3, "cursor": first["nextCursor"]}).json()
    assert [one["type"] for one in first["data"] + rest["data"]] == ["a/x", "b", "c", "ä"]
    assert not rest["hasMore"]


def test_only_admins_declare_and_only_they_and_auditors_read(
    acme: TenantKit, app: ApiClient, agent: ApiClient
) -> None:
    for client in (app, agent, acme.client("auditor")):
        assert refusal(client.put(f"{TYPES}/note", {})) == (403, "permission-denied")
    for client in (app, agent):
        assert refusal(client.get(TYPES)) == (403, "permission-denied")
        assert refusal(client.get(f"{TYPES}/note")) == (403, "permission-denied")
    auditor = acme.client("auditor")
    assert auditor.get(TYPES).status_code == 200
    assert refusal(auditor.get(f"{TYPES}/note")) == (404, "type-not-found")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"embeddingModel": "gpt-embed-900"}, (422, "embedding-model-unknown")),
        ({"keyword": "yes"}, (400, "bad-input")),
        ({"kyword": True}, (400, "unknown-field")),
        ({"retention": {"keepDays": 0}}, (400, "bad-input")),
        ({"retention": {"keepDays": 36_501}}, (400, "bad-input")),
        ({"retention": {"keepDays": 9, "deleteAfterDays": 8}}, (400, "bad-input")),
        ({"retention": {"legalHold": True}}, (400, "unknown-field")),
        ({"contentSchema": "string"}, (400, "bad-input")),
        ({"contentSchema": {"type": "nonsense"}}, (400, "bad-input")),
        ({"contentSchema": {"$ref": "https://example.com/s.json"}}, (400, "bad-input")),
        ({"contentSchema": {"$ref": "file:///etc/passwd"}}, (400, "bad-input")),
        (
            {"contentSchema": {"properties": {"default": {"$ref": "other.json#/a"}}}},
            (400, "bad-input"),
        ),
        ({"contentSchema": {"$ref": "#/$defs/none"}}, (400, "bad-input")),
        ({"contentSchema": {"$ref": "#"}}, (400, "bad-input")),
        ({"contentSchema": {"$dynamicRef": "#a"}}, (400, "bad-input")),
        ({"contentSchema": {"items": {"$id": "https://example.com/x"}}}, (400, "bad-input")),
        (
            {"contentSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
            (400, "bad-input"),
        ),
        ({"contentSchema": {"pattern": "(?=a)b"}}, (400, "bad-input")),
        ({"contentSchema": {"pattern": "(\\w{1000}){1000}"}}, (400, "bad-input")),
        ({"contentSchema": {"pattern": "("}}, (400, "bad-input")),
        ({"contentSchema": {"enum": ["x" * 70_000]}}, (400, "bad-input")),
    ],
)
def test_a_declaration_that_breaks_a_rule_is_refused(
    admin: ApiClient, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert refusal(admin.put(f"{TYPES}/note", body)) == expected
    assert refusal(admin.get(f"{TYPES}/note")) == (404, "type-not-found")


def test_a_schema_whose_references_double_at_each_level_is_refused(admin: ApiClient) -> None:
    levels = {
        f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}, {"$ref": f"#/$defs/l{n + 1}"}]}
        for n in range(40)
    }
    schema = {"$defs": {**levels, "l40": {"type": "string"}}, "$ref": "#/$defs/l0"}
    started = time.monotonic()
    assert refusal(admin.put(f"{TYPES}/note", {"contentSchema": schema})) == (400, "bad-input")
    assert time.monotonic() - started < 5


def test_local_references_and_anchors_are_taken(admin: ApiClient, app: ApiClient) -> None:
    schema = {
        "$defs": {"name": {"$anchor": "n", "type": "string"}, "a/b~": {"type": "integer"}},
        "properties": {
            "first": {"$ref": "#n"},
            "age": {"$ref": "#/$defs/a~1b~0"},
            "$ref": {"type": "null"},
        },
    }
    assert admin.put(f"{TYPES}/note", {"contentSchema": schema}).status_code == 200
    assert (
        app.post(FACTS, {**PLAIN, "content": {"first": "x", "age": 3, "$ref": None}}).status_code
        == 201
    )
    for wrong in ({"first": 1}, {"age": "x"}, {"$ref": "x"}):
        assert refusal(app.post(FACTS, {**PLAIN, "content": wrong})) == (
            422,
            "content-schema-violated",
        )


def test_content_that_does_not_fit_its_type_is_told_where_and_never_repeated(
    admin: ApiClient, app: ApiClient
) -> None:
    before = written(app, content={"seat": "floor"})
    admin.put(f"{TYPES}/note", {"contentSchema": SEAT})
    fits = written(app, content={"seat": "aisle", "code": "LIS"})
    for answer in (
        app.post(FACTS, {**PLAIN, "content": {"seat": "secret-value"}}),
        app.post(at(fits, "/supersede"), {"content": {"seat": "secret-value"}}),
    ):
        assert refusal(answer) == (422, "content-schema-violated")
        assert b"secret-value" not in answer.content
        details = answer.json()["error"]["details"]
        assert details["type"] == "note"
        assert details["issues"][0]["path"] == "/content/seat"
    # what was there before the schema stays readable
    assert app.get(at(before)).json() == before
    assert app.get(at(fits)).json() == fits


def test_a_pattern_runs_in_linear_time(admin: ApiClient, app: ApiClient) -> None:
    admin.put(f"{TYPES}/note", {"contentSchema": {"pattern": "^(a+)+$"}})
    started = time.monotonic()
    answer = app.post(FACTS, {**PLAIN, "content": "a" * 60_000 + "b"})
    assert refusal(answer) == (422, "content-schema-violated")
    assert time.monotonic() - started < 5


def test_types_of_another_tenant_are_not_there(
    acme: TenantKit, admin: ApiClient, other: ApiClient
) -> None:
    admin.put(f"{TYPES}/note", {"contentSchema": False})
    assert other.get(TYPES).json()["data"] == []
    assert refusal(other.get(f"{TYPES}/note")) == (404, "type-not-found")


def test_a_type_without_searches_leaves_its_facts_out_of_the_index(
    admin: ApiClient, app: ApiClient
) -> None:
    admin.put(f"{TYPES}/note", {"keyword": False, "semantic": False})
    assert not {"embeddingModel", "meta"} & written(app).keys()


def test_an_operator_declares_a_type(acme: TenantKit, app: ApiClient, tmp_path: Path) -> None:
    schema = tmp_path / "seat.json"
    schema.write_text(json.dumps(SEAT), "utf-8")
    out = StringIO()
    call_command(
        "declare_type",
        "acme",
        "note",
        "--schema",
        str(schema),
        "--keep-days",
        "4",
        "--json",
        stdout=out,
    )
    said = json.loads(out.getvalue())
    assert (said["contentSchema"], said["retention"]) == (SEAT, {"keepDays": 4})
    assert said["updatedBy"] == "service:operator"
    assert refusal(app.post(FACTS, PLAIN)) == (422, "content-schema-violated")


def test_an_operators_declaration_drops_no_window_that_it_says_nothing_of(acme: TenantKit) -> None:
    def declared(*words: str) -> Any:
        out = StringIO()
        call_command("declare_type", "acme", "note", *words, "--json", stdout=out)
        return json.loads(out.getvalue()).get("retention")

    assert declared("--keep-days", "4", "--delete-after-days", "9") == {
        "keepDays": 4,
        "deleteAfterDays": 9,
    }
    assert declared("--no-semantic") == {"keepDays": 4, "deleteAfterDays": 9}
    assert declared("--keep-days", "5") == {"keepDays": 5}
    assert declared("--no-retention") is None
