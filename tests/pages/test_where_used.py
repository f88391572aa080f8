"""A person reads where a memory about them was used: in which run, by whom, and what the agent was told to do with it."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from corrections.queries import my_uses
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.records.builders import a_record, an_inference, body_of


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def used(kit: TenantKit, run: str | None, *, times: int = 1, **context: Any) -> None:
    agent = kit.client("agent", users=["ann"], projects=["p1"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", **context}}
    for _time in range(times):
        body_of(agent.post("/v1/memory/recall", {**body, **({"run_id": run} if run else {})}), 200)


def where_used(ann: Person, record: str) -> str:
    shown = text_of(ann.get(f"memory/{record}/"))
    return shown.partition("Where it was used")[2].partition("History")[0]


def test_before_any_use_it_says_so(ann: Person) -> None:
    app = ann.kit.client("app", users=["ann"])
    record = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    assert "No agent has used it yet" in where_used(ann, record)


def test_each_run_is_named_with_who_asked_and_what_they_were_told(ann: Person) -> None:
    app = ann.kit.client("app", users=["ann"])
    record = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    used(ann.kit, "trip-1")
    used(ann.kit, "trip-2", project_id="p1")
    shown = where_used(ann, record)
    assert "2 times" in shown
    assert shown.index("run trip-2") < shown.index("run trip-1")
    assert shown.count("used it") == 2
    assert "agent-" in shown


def test_a_guess_that_was_to_be_asked_about_says_so(ann: Person) -> None:
    agent = ann.kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "T"})
    record = body_of(agent.post("/v1/memory/records", guess), 201)["id"]
    used(ann.kit, "trip-1", trip_id="T", consequential=True)
    assert "was told to ask you first" in where_used(ann, record)


def test_uses_outside_of_runs_are_counted_and_said_to_be_on_no_record(ann: Person) -> None:
    app = ann.kit.client("app", users=["ann"])
    record = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    used(ann.kit, None)
    assert "None of these was part of a run on record" in where_used(ann, record)


def test_only_this_memory_of_this_person_is_told_of(acme: TenantKit, ann: Person) -> None:
    app = acme.client("app", users=["ann", "bob"])
    ids = {
        who: body_of(app.post("/v1/memory/records", a_record("aisle", subject=who)), 201)["id"]
        for who in ("ann", "bob")
    }
    other = a_record("vegan", key="food.diet")
    diet = body_of(app.post("/v1/memory/records", other), 201)["id"]
    used(acme, "trip-1")
    assert "run trip-1" in where_used(ann, ids["ann"])
    assert "run" not in where_used(ann, diet)
    bob = person(acme, "person", subject="bob")
    assert "run" not in where_used(bob, ids["bob"])


def test_the_newest_twenty_are_shown_with_few_statements(ann: Person) -> None:
    app = ann.kit.client("app", users=["ann"])
    record = body_of(app.post("/v1/memory/records", a_record("aisle")), 201)["id"]
    used(ann.kit, "trip-1", times=my_uses.SHOWN_MOST + 2)
    with CaptureQueriesContext(connection) as asked:
        shown = where_used(ann, record)
    assert shown.count("run trip-1") == my_uses.SHOWN_MOST
    assert "The newest 20 are shown" in shown
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12
