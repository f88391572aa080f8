"""What a path and a query may hold: text, and ids that no other path could be taken for."""

import json
import re
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from django.test import Client, RequestFactory

from kindmem.wsgi import application
from memory.api import (
    converters,  # noqa: F401  # registers the `id` converter before routes use it
    routes_facts,
    routes_records,
)
from memory.ids import PATH_SUFFIXES, is_addressable
from tests.builders import TenantKit
from tests.records.builders import a_record, body_of, refusal

FACTS, RECORDS = "/v1/memory/facts", "/v1/memory/records"


def suffixes_of(routes: Any, parameter: str) -> set[str]:
    found = set()
    for pattern in routes.urlpatterns:
        match = re.fullmatch(rf".*<id:{parameter}>/(\w+)(/.*)?", str(pattern.pattern))
        if match:
            found.add(match.group(1))
    return found


def test_every_word_that_follows_an_id_in_a_path_is_known() -> None:
    assert suffixes_of(routes_facts, "fact_id") == set(PATH_SUFFIXES["fact"])
    assert suffixes_of(routes_records, "record_id") == {*PATH_SUFFIXES["record"], "routes"}


@pytest.mark.parametrize("word", PATH_SUFFIXES["fact"])
def test_no_fact_is_written_that_its_path_would_not_lead_to(acme: TenantKit, word: str) -> None:
    app = acme.client("app", projects=["p1"])
    body = {"type": "note", "scope": {"projectId": "p1"}, "content": 1}
    refusal(app.post(FACTS, {**body, "id": f"vv/{word}"}), 400, "bad-input")
    for id in (word, f"{word}/x", f"vv-{word}"):
        body_of(app.post(FACTS, {**body, "id": id}), 201)
        assert body_of(app.get(f"{FACTS}/{id}"), 200)["id"] == id


@pytest.mark.parametrize("id", [*(f"m/{word}" for word in PATH_SUFFIXES["record"]), "m/routes/x"])
def test_no_record_is_kept_that_its_path_would_not_lead_to(acme: TenantKit, id: str) -> None:
    app = acme.client("app", users=["ann"])
    refusal(app.post(RECORDS, a_record(id=id)), 400, "bad-input")
    assert not is_addressable("record", id)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/memory/facts/%FF",
        "/v1/memory/runs/a%C3%28/log",
        "/v1/memory/facts?type=%FF",
        "/v1/memory/facts?%80=x",
        "/livez?x=%FF",
        "/t/acme/%FE/",
    ],
)
def test_bytes_that_are_no_utf_8_are_refused_not_replaced(path: str, db: None) -> None:
    target, _, query = path.partition("?")
    environ = {
        **RequestFactory().get("/").environ,
        "PATH_INFO": unquote_to_bytes(target).decode("latin-1"),
        "QUERY_STRING": query,
    }
    told: list[str] = []
    body = b"".join(application(environ, lambda status, headers: told.append(status)))
    assert told == ["400 Bad Request"], path
    [issue] = json.loads(body)["error"]["details"]["issues"]
    assert issue["message"].endswith("not UTF-8")


def test_an_unknown_host_is_told_which_setting_names_the_known_ones(db: None) -> None:
    answer = Client().get("/livez", headers={"host": "elsewhere.example"})
    assert answer.status_code == 400
    [issue] = answer.json()["error"]["details"]["issues"]
    assert (issue["path"], "KINDMEM_ALLOWED_HOSTS" in issue["message"]) == ("Host", True)


def test_a_body_counts_on_every_method_that_changes_something(acme: TenantKit) -> None:
    app = acme.client("app", projects=["p1"])
    body = {"type": "note", "scope": {"projectId": "p1"}, "content": 1, "id": "f"}
    body_of(app.post(FACTS, body), 201)
    refusal(app.request("DELETE", f"{FACTS}/f", {"expectVersion": 1}), 400, "unknown-field")
    refusal(app.request("DELETE", f"{FACTS}/f", raw=b"{nope"), 400, "bad-input")
    body_of(app.request("DELETE", f"{FACTS}/f", {}), 200)


def test_of_a_batch_that_is_partly_stored_the_taken_id_is_named(acme: TenantKit) -> None:
    agent = acme.client("agent", projects=["p1"])
    entry = {"kind": "tool-call", "scope": {"projectId": "p1"}}
    path = "/v1/memory/runs/r/log/batch"
    body_of(agent.post(path, {"entries": [{**entry, "id": "a"}, {**entry, "id": "b"}]}), 201)
    for ids in (("b", "new"), ("new", "b")):
        said = refusal(
            agent.post(path, {"entries": [{**entry, "id": id} for id in ids]}), 409, "id-taken"
        )
        assert said["id"] == "b"


def test_a_state_that_no_run_can_have_is_refused(acme: TenantKit) -> None:
    auditor = acme.client("auditor")
    refusal(auditor.get("/v1/memory/runs", {"status": "verfied"}), 400, "bad-input")
    body_of(auditor.get("/v1/memory/runs", {"status": "unverified"}), 200)
