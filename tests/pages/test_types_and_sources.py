"""Types and policy sources on the admin's pages: what is declared, how far its index is, and whether a source answers."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.tenancy import tenant_context
from memory.type_policy import type_policy
from tests.builders import TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.records.builders import body_of, refusal
from tests.records.test_policy_sources import Source, source

__all__ = ["source"]


@pytest.fixture
def admin(acme: TenantKit) -> Person:
    return person(acme, "admin")


def write(kit: TenantKit, type: str, content: Any = "x", status: int = 201) -> Any:
    fact = {"type": type, "scope": {"userId": "ann"}, "content": content}
    return body_of(kit.client("app", users=["ann"]).post("/v1/memory/facts", fact), status)


def policy_of(kit: TenantKit, name: str) -> Any:
    with tenant_context(kit.id):
        return type_policy(kit.id, name)


def governance(kit: TenantKit, type: str) -> list[dict[str, Any]]:
    log = kit.client("auditor").get("/v1/memory/runs/kindmem.governance/log?limit=200")
    return [one["payload"] for one in log.json()["data"] if one["payload"]["type"] == type]


def test_types_of_facts_and_declared_ones_are_listed_once_and_by_name(
    acme: TenantKit, admin: Person
) -> None:
    for name in ("seat", "meal", "seat"):
        write(acme, name)
    acme.client("admin").put("/v1/memory/types/meal", {"keyword": False})
    acme.client("admin").put("/v1/memory/types/unused", {})
    shown = text_of(admin.get("admin/types/"))
    assert shown.index("meal") < shown.index("seat") < shown.index("unused")
    assert shown.count("not declared") == 1


def test_more_types_than_a_page_takes_are_read_page_by_page(acme: TenantKit, admin: Person) -> None:
    keeper = acme.client("admin")
    for number in range(45):
        keeper.put(f"/v1/memory/types/t{number:02}", {})
    first = admin.get("admin/types/").content.decode()
    assert "t39" in first
    assert "t40" not in first
    second = text_of(admin.get("admin/types/?after=t39"))
    assert "t44" in second
    assert "t39" not in second


def test_what_a_page_declares_holds_for_new_facts_and_keeps_the_retention(
    acme: TenantKit, admin: Person
) -> None:
    acme.client("admin").put("/v1/memory/types/seat", {"retention": {"keepDays": 9}})
    schema = '{"type": "object", "required": ["side"]}'
    answer = admin.post("admin/types/seat/", {"keyword": "on", "content_schema": schema})
    assert answer.status_code == 302
    declared = policy_of(acme, "seat")
    assert (declared.keyword, declared.semantic, declared.keep_days) == (True, False, 9)
    fact = {"type": "seat", "scope": {"userId": "ann"}, "content": {"row": 3}}
    app = acme.client("app", users=["ann"])
    refusal(app.post("/v1/memory/facts", fact), 422, "content-schema-violated")
    assert governance(acme, "fact-type.declared")[-1]["factType"] == "seat"


def test_a_schema_that_is_none_is_refused_with_the_text_kept(
    acme: TenantKit, admin: Person
) -> None:
    for schema in ("{not json", '{"type": 7}', '{"$ref": "https://evil.example/x"}', "[]"):
        answer = admin.post("admin/types/seat/", {"keyword": "on", "content_schema": schema})
        assert answer.status_code == 422, schema
    assert "[]" in answer.content.decode()
    assert not policy_of(acme, "seat").is_declared
    assert governance(acme, "fact-type.declared") == []


def test_a_changed_search_shows_how_far_the_index_is_until_it_is_there(
    live_acme: TenantKit,
) -> None:
    from memory.housekeeping import fill_in_vectors, reindex

    admin = person(live_acme, "admin")
    write(live_acme, "seat")
    admin.post("admin/types/seat/", {"semantic": "on"})
    assert "The index is catching up" in text_of(admin.get("admin/types/seat/"))
    assert "catching up" in text_of(admin.get("admin/types/"))
    reindex()
    fill_in_vectors()
    assert "catching up" not in text_of(admin.get("admin/types/seat/"))
    assert "catching up" not in text_of(admin.get("admin/types/"))


def test_a_type_is_declared_before_its_first_fact_and_not_twice(
    acme: TenantKit, admin: Person
) -> None:
    fields = {"type": "a/b new", "keyword": "on"}
    answer = admin.post("admin/types/new", fields)
    assert answer.status_code == 302
    assert "a/b new" in text_of(admin.get(answer["Location"]))
    assert admin.post("admin/types/new", fields).status_code == 422


def test_the_list_of_types_costs_few_statements(acme: TenantKit, admin: Person) -> None:
    for number in range(5):
        write(acme, f"t{number}")
    with CaptureQueriesContext(connection) as asked:
        admin.get("admin/types/")
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12


SOURCE = {
    "match": "https://policies.example.com/travel",
    "fetch_url": "https://policies.example.com/api/travel.json",
    "pointer": "/limits/meal",
}


def test_a_source_is_added_changed_and_switched_off(acme: TenantKit, admin: Person) -> None:
    page = admin.post("admin/sources/new", SOURCE)["Location"]
    assert "In use" in text_of(admin.get("admin/sources/"))
    assert admin.post("admin/sources/new", SOURCE).status_code == 422
    assert admin.post(page, {**SOURCE, "pointer": "/limits/hotel"}).status_code == 302
    shown = text_of(admin.get("admin/sources/"))
    assert "/limits/hotel" in shown
    assert "Off" in shown
    for wrong in ({"match": "http://x.example"}, {"pointer": "limits"}, {"fetch_url": "ftp://x"}):
        answer = admin.post(page, {**SOURCE, **wrong})
        assert answer.status_code == 422
        assert next(iter(wrong.values())) in answer.content.decode()


def test_another_tenants_types_and_sources_are_not_seen(live_acme: TenantKit) -> None:
    write(live_acme, "seat")
    page = person(live_acme, "admin").post("admin/sources/new", SOURCE)["Location"]
    other = person(make_tenant(), "admin")
    assert "seat" not in text_of(other.get("admin/types/"))
    for act in ("", "try"):
        mine = page.replace(live_acme.slug, other.kit.slug) + act
        assert other.post(mine, SOURCE).status_code == 404


def trial(source: Source, live_acme: TenantKit, **changed: Any) -> Any:
    admin = person(live_acme, "admin")
    fields = {"match": source.url, "fetch_url": f"{source.url}/v", "pointer": "/limits/meal"}
    page = admin.post("admin/sources/new", {**fields, **changed})["Location"]
    return admin.post(f"{page}try")


def test_a_source_that_answers_shows_its_value_and_keeps_nothing(
    live_acme: TenantKit, source: Source
) -> None:
    source.says({"limits": {"meal": "45 <b>euro</b>"}})
    answer = trial(source, live_acme)
    assert "It answered" in text_of(answer)
    assert "45 &lt;b&gt;euro" in answer.content.decode()
    [(path, headers)] = source.asked
    assert path == "/v"
    assert "cookie" not in headers.lower()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((500, {}, b"{}"), "status 500"),
        ((302, {"Location": "https://elsewhere.example"}, b""), "redirects are not followed"),
        ((200, {}, b"<html>"), "not JSON"),
        ((200, {}, b'{"limits": {}}'), "nothing at this pointer"),
        ((200, {}, b" " * 70_000), "larger than 64 KiB"),
    ],
)
def test_a_source_that_gives_nothing_says_why(
    live_acme: TenantKit, source: Source, said: Any, words: str
) -> None:
    source.answer = said
    assert words in text_of(trial(source, live_acme))


def test_a_source_that_hangs_is_given_up_after_two_seconds(
    live_acme: TenantKit, source: Source
) -> None:
    source.wait_seconds = 4.0
    assert "within two seconds" in text_of(trial(source, live_acme))


def test_a_source_on_this_machine_is_asked_in_development_only(
    live_acme: TenantKit, source: Source, settings: Any
) -> None:
    admin = person(live_acme, "admin")
    fields = {"match": source.url, "fetch_url": f"{source.url}/v", "pointer": ""}
    page = admin.post("admin/sources/new", fields)["Location"]
    settings.KINDMEM_DEVELOPMENT = False
    assert "only public https hosts" in text_of(admin.post(f"{page}try"))
    assert source.asked == []


def test_auditors_keep_neither(acme: TenantKit) -> None:
    auditor = person(acme, "auditor")
    for path in ("admin/types/", "admin/types/new", "admin/sources/", "admin/sources/new"):
        assert auditor.get(path).status_code == 403
