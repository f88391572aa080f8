"""Corrections: they bind to the instance, widen only on a person's word, and leave one active record."""

from typing import Any

import pytest
from django.conf import settings

from memory.actions.correct import correct
from memory.records import clock
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.tenancy import tenant_context
from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.pages.people import person
from tests.records.builders import a_record, an_inference, body_of, refusal, valid
from tests.records.conftest import ANN, RECORDS, Memory, governance

CORRECT = "/v1/memory/correct"


def test_a_correction_binds_to_the_instance_and_the_wider_record_stays_elsewhere(
    app: Memory,
) -> None:
    wide = app.remember("aisle")
    answer = app.correct("window")
    record = valid(answer["record"])
    assert record["value"] == "window"
    assert record["source"]["type"] == "user_correction"
    assert record["scope"]["level"] == "instance"
    assert record["scope"]["bindings"] == {"trip_id": "T1"}
    assert record["correction"] == {
        "route": "fix-value",
        "supersedes": [],
        "superseded_by": None,
        "broadened": False,
    }
    here = app.recall(context={**ANN, "trip_id": "T1"})
    assert (here["decision"], here["reason"], here["value"]) == (
        "apply",
        "user-correction",
        "window",
    )
    assert app.recall(context={**ANN, "trip_id": "T2"})["value"] == "aisle"
    assert app.get(wide["id"])["lifecycle"]["status"] == "active"


def test_the_receipt_tells_before_after_route_scope_and_the_log_entry(
    app: Memory, admin: Memory
) -> None:
    wide = app.remember("aisle")
    answer = app.correct("window", reason="changed her mind")
    receipt = answer["receipt"]
    entry = governance(admin)[-1]
    assert receipt["before"] == {
        "record_id": wide["id"],
        "value": "aisle",
        "scope": {"level": "user", "bindings": {}},
    }
    assert receipt["after"] == {
        "record_id": answer["record"]["id"],
        "value": "window",
        "scope": {"level": "instance", "bindings": {"trip_id": "T1"}},
    }
    assert receipt["route"] == "fix-value"
    assert receipt["reason"] == "changed her mind"
    assert receipt["log_entry_id"] == entry["entryId"]
    assert receipt["log_entry_hash"] == entry["entryHash"]
    assert answer["record"]["source"]["evidence"] == {"kind": "trace", "ref": entry["entryId"]}
    assert entry["type"] == "record.corrected"
    assert "window" not in str(entry)
    assert "mind" not in str(entry)
    assert "ann" not in str(entry)


def test_control_keys_are_not_bound_and_name_the_evidence_and_the_agent(app: Memory) -> None:
    context = {
        **ANN,
        "trip_id": "T1",
        "leg": 2,
        "consequential": True,
        "message_ref": "msg-9",
        "agent": "booker@3.0",
        "route": "x",
        "confirmation_ref": "c",
    }
    record = app.correct("window", context=context)["record"]
    assert record["scope"]["bindings"] == {"trip_id": "T1", "leg": 2}
    assert record["source"]["evidence"] == {"kind": "message", "ref": "msg-9"}
    assert record["source"]["captured_by"] == "booker@3.0"
    assert app.correct("middle")["record"]["source"]["captured_by"].endswith("@1")


@pytest.mark.parametrize(
    "context", [{}, ANN, {**ANN, "consequential": True, "message_ref": "m", "agent": "a@1"}]
)
def test_without_a_case_there_is_nothing_to_bind_to(app: Memory, context: dict[str, Any]) -> None:
    record = app.remember("aisle")
    body = {"key": "travel.seat", "new_value": "window", "context": context}
    refusal(app.client.post(CORRECT, body), 422, "instance-unnamed")
    refusal(
        app.client.post(
            f"{RECORDS}/{record['id']}/correct", {"new_value": "window", "context": context}
        ),
        422,
        "instance-unnamed",
    )


def test_a_context_that_holds_more_than_scalars_is_refused(app: Memory) -> None:
    body = {"key": "travel.seat", "new_value": 1, "context": {"trip": {"id": 1}}}
    refusal(app.client.post(CORRECT, body), 400, "bad-input")


def test_correcting_the_same_instance_again_supersedes_the_earlier_correction(app: Memory) -> None:
    app.remember("aisle")
    first = app.correct("window")["record"]
    second = app.correct("middle")["record"]
    assert second["correction"]["supersedes"] == [first["id"]]
    assert app.get(first["id"])["correction"]["superseded_by"] == second["id"]
    assert app.recall(context={**ANN, "trip_id": "T1"})["value"] == "middle"
    in_slot = [one for one in app.list() if one["scope"]["bindings"] == {"trip_id": "T1"}]
    assert [one["id"] for one in in_slot] == [second["id"]]


@pytest.mark.parametrize("by_id", [True, False])
def test_a_record_with_the_same_bindings_is_superseded_by_id_and_by_key(
    app: Memory, by_id: bool
) -> None:
    old = app.remember("Flask+MySQL", key="stack", bindings={"repo": "shop"}, level="project")
    context = {**ANN, "repo": "shop"}
    if by_id:
        body = {"new_value": "Flask+MariaDB", "context": context}
        answer = body_of(app.client.post(f"{RECORDS}/{old['id']}/correct", body), 201)
    else:
        answer = app.correct("Flask+MariaDB", key="stack", context=context)
    assert answer["record"]["correction"]["supersedes"] == [old["id"]]
    assert app.recall("stack", context=context)["value"] == "Flask+MariaDB"
    assert [one["value"] for one in app.list(key="stack")] == ["Flask+MariaDB"]


@pytest.mark.parametrize(
    ("key", "old", "new"), [("project", "Orion", "Vega"), ("city", "Oslo", "Pune")]
)
def test_corrections_of_any_key_live_alike(app: Memory, key: str, old: str, new: str) -> None:
    app.remember(old, key=key, bindings={"trip_id": "T1"})
    app.correct(new, key=key)
    statuses = {
        status: [one["value"] for one in app.list(key=key, status=status)]
        for status in ("active", "superseded")
    }
    assert statuses == {"active": [new], "superseded": [old]}


def test_widening_supersedes_what_it_takes_in(app: Memory) -> None:
    wide = app.remember("aisle")
    context = {**ANN, "trip_id": "T1", "broaden_to": {"level": "user", "bindings": {}}}
    record = valid(app.correct("window", context=context, broaden=True)["record"])
    assert record["correction"]["broadened"] is True
    assert record["correction"]["supersedes"] == [wide["id"]]
    assert (record["scope"]["level"], record["scope"]["bindings"]) == ("user", {})
    assert app.recall()["value"] == "window"


def test_widening_less_than_the_wider_record_leaves_that_in_use_elsewhere(app: Memory) -> None:
    wide = app.remember("aisle")
    to = {"level": "project", "bindings": {"project_id": "p1"}}
    context = {**ANN, "trip_id": "T1", "project_id": "p1", "broaden_to": to}
    app.correct("window", context=context, broaden=True)
    assert app.recall(context={**ANN, "project_id": "p1"})["value"] == "window"
    assert app.recall(context={**ANN, "project_id": "p2"})["value"] == "aisle"
    assert app.get(wide["id"])["lifecycle"]["status"] == "active"


@pytest.mark.parametrize(
    "bindings",
    [{"project_id": "p9"}, {"trip": "1"}, {"trip": True}, {"trip": 1, "leg": 2}],
)
def test_widening_takes_in_the_case_that_is_corrected(
    app: Memory, bindings: dict[str, Any]
) -> None:
    record = app.remember("aisle")
    context = {**ANN, "trip": 1, "broaden_to": {"level": "project", "bindings": bindings}}
    body = {"new_value": "window", "context": context, "broaden": True}
    for path, more in (
        (CORRECT, {"key": "travel.seat"}),
        (f"{RECORDS}/{record['id']}/correct", {}),
    ):
        answer = app.client.post(path, {**body, **more})
        assert refusal(answer, 422, "invariant-violated") == {"invariant": "I4"}
    assert [one["value"] for one in app.list()] == ["aisle"]


def test_a_record_pointed_at_says_what_the_case_is_where_the_context_does_not(app: Memory) -> None:
    record = app.remember("aisle", level="task", bindings={"trip": 1})
    path = f"{RECORDS}/{record['id']}/correct"
    to = {"level": "task", "bindings": {"trip": 1}}
    body = {"new_value": "window", "broaden": True}
    elsewhere = {**body, "context": {**ANN, "trip": 2, "broaden_to": to}}
    refusal(app.client.post(path, elsewhere), 422, "invariant-violated")
    body_of(app.client.post(path, {**body, "context": {**ANN, "broaden_to": to}}), 201)
    assert app.recall(context={**ANN, "trip": 1})["value"] == "window"


def test_nothing_is_widened_to_an_instance_that_nobody_names(app: Memory) -> None:
    record = app.remember("aisle", level="instance", bindings={"trip": 1})
    to = {"level": "instance", "bindings": {}}
    body = {"new_value": "window", "broaden": True, "context": {**ANN, "trip": 1, "broaden_to": to}}
    path = f"{RECORDS}/{record['id']}"
    refusal(app.client.post(CORRECT, {"key": "travel.seat", **body}), 422, "instance-unnamed")
    refusal(app.client.post(f"{path}/correct", body), 422, "instance-unnamed")


def test_widening_says_how_far_and_beyond_one_user_takes_an_admin(
    app: Memory, admin: Memory
) -> None:
    app.remember("aisle")
    body = {
        "key": "travel.seat",
        "new_value": "window",
        "context": {**ANN, "t": 1},
        "broaden": True,
    }
    assert refusal(app.client.post(CORRECT, body), 422, "invariant-violated") == {"invariant": "I4"}
    body["context"]["broaden_to"] = {"level": "user"}
    details = refusal(app.client.post(CORRECT, body), 400, "bad-input")
    assert details["issues"][0]["path"] == "/context/broaden_to/bindings"
    body["context"]["broaden_to"] = {"level": "org", "bindings": {}}
    refusal(app.client.post(CORRECT, body), 403, "permission-denied")
    assert body_of(admin.client.post(CORRECT, body), 201)["record"]["scope"]["level"] == "org"


def test_a_policy_is_not_corrected_and_names_its_route(app: Memory) -> None:
    policy = app.remember(
        None,
        key="expense.limit",
        authority="policy",
        source_of_truth="https://p.example.com/x",
        route="ask-finance",
    )
    body = {"key": "expense.limit", "new_value": 900, "context": {**ANN, "trip_id": "T1"}}
    details = refusal(app.client.post(CORRECT, body), 422, "policy-not-correctable")
    assert details["recordId"] == policy["id"]
    assert details["route"] == "ask-finance"


def test_nothing_matched_makes_a_new_record_for_the_named_subject(app: Memory) -> None:
    record = valid(app.correct("vegan", key="travel.meal")["record"])
    assert record["subject"] == {"type": "user", "id": "ann"}
    assert app.recall("travel.meal", context={**ANN, "trip_id": "T1"})["value"] == "vegan"
    named = {"type": "project", "id": "p1"}
    record = app.correct("vegan", key="team.meal", context={"trip_id": "T1"}, subject=named)[
        "record"
    ]
    assert record["subject"] == named
    body = {"key": "x.y", "new_value": 1, "context": {"trip_id": "T1"}}
    refusal(app.client.post(CORRECT, body), 422, "subject-required")


def test_matches_about_several_people_need_the_subject(app: Memory) -> None:
    app.remember("aisle")
    app.remember("window", subject="bob")
    body = {"key": "travel.seat", "new_value": "middle", "context": {"trip_id": "T1"}}
    refusal(app.client.post(CORRECT, body), 422, "subject-required")


def test_a_correction_of_what_is_about_an_org_is_about_whom_the_caller_may_write(
    acme: TenantKit, app: Memory
) -> None:
    app.remember("email", key="contact.by", subject={"type": "org", "id": "acme"}, level="org")
    of_app = app.correct("chat", key="contact.by")["record"]
    assert of_app["subject"] == {"type": "org", "id": "acme"}
    narrow = Memory(acme.client("app", users=["ann"]))
    of_user = narrow.correct("phone", key="contact.by", context={**ANN, "trip_id": "T2"})["record"]
    assert of_user["subject"] == {"type": "user", "id": "ann"}


def test_a_correction_by_id_is_refused_in_another_persons_case(app: Memory) -> None:
    record = app.remember("aisle")
    of_org = app.remember("x", key="k.org", subject={"type": "org", "id": "acme"}, level="org")
    bob = {"user_id": "bob", "trip_id": "T1"}
    for about, body, path in (
        (record, {"context": bob}, "/context/user_id"),
        (
            record,
            {"context": {"trip_id": "T1"}, "subject": {"type": "user", "id": "bob"}},
            "/subject",
        ),
        (of_org, {"context": {"org_id": "other", "trip_id": "T1"}}, "/context/org_id"),
    ):
        answer = app.client.post(f"{RECORDS}/{about['id']}/correct", {"new_value": "z", **body})
        assert [one["path"] for one in refusal(answer, 400, "bad-input")["issues"]] == [path]
    assert {one["value"] for one in app.list()} == {"aisle", "x"}
    # Whoever is in the room may be named where the record is about none of them.
    said = {"new_value": "y", "context": bob}
    made = body_of(app.client.post(f"{RECORDS}/{of_org['id']}/correct", said), 201)["record"]
    assert made["subject"] == {"type": "org", "id": "acme"}


def test_whoever_saw_something_else_is_told_the_difference(app: Memory) -> None:
    first = app.remember("aisle", bindings={"trip_id": "T1"})
    app.correct("window", expect=first["id"])
    body = {
        "key": "travel.seat",
        "new_value": "middle",
        "context": {**ANN, "trip_id": "T1"},
        "expect": first["id"],
    }
    details = refusal(app.client.post(CORRECT, body), 409, "record-changed")
    assert details["expectedId"] == first["id"]
    assert details["current"]["value"] == "window"
    assert details["activeId"] == details["current"]["recordId"]
    refusal(
        app.client.post(
            f"{RECORDS}/{first['id']}/correct", {"new_value": "x", "context": {"trip_id": "T1"}}
        ),
        409,
        "record-changed",
    )


def test_a_correction_inherits_sensitivity_and_its_end(app: Memory) -> None:
    app.remember(
        "O-",
        key="health.blood",
        sensitivity="sensitive",
        valid_until="2030-01-01",
        revalidate_on=["moved"],
    )
    record = valid(app.correct("A+", key="health.blood")["record"])
    assert record["lifecycle"]["sensitivity"] == "sensitive"
    assert record["scope"]["valid_until"] == "2030-01-01"
    assert record["scope"]["revalidate_on"] == ["moved"]


def test_the_writer_must_have_the_subject(acme: TenantKit, app: Memory) -> None:
    record = app.remember("aisle")
    stranger = acme.client("app", users=["bob"])
    body = {"new_value": "x", "context": {"trip_id": "T1"}}
    refusal(stranger.post(f"{RECORDS}/{record['id']}/correct", body), 404, "record-not-found")
    named = {**body, "key": "travel.seat", "subject": {"type": "user", "id": "ann"}}
    refusal(stranger.post(CORRECT, named), 403, "permission-denied")
    reader = acme.client("app", users=["ann"], may=["read"])
    refusal(reader.post(f"{RECORDS}/{record['id']}/correct", body), 403, "permission-denied")


def test_what_was_derived_from_a_superseded_record_ends_with_it(app: Memory) -> None:
    old = app.remember("aisle", bindings={"trip_id": "T1"})
    child = app.remember(
        "prefers aisle", key="travel.summary", derived_from=[old["id"]], bindings={"trip_id": "T1"}
    )
    app.correct("window")
    stored = app.get(child["id"])
    assert (stored["lifecycle"]["status"], stored["value"]) == ("expired", None)


def test_an_agents_later_rewrite_of_the_corrected_value_waits(app: Memory, agent: Memory) -> None:
    app.remember("aisle", bindings={"trip_id": "T1"})
    app.correct("window")
    for level, bindings in (
        ("instance", {"trip_id": "T1"}),
        ("task", {"trip_id": "T1"}),
        ("task", {}),
    ):
        body = an_inference(" Aisle ", level=level, bindings=bindings)
        assert body_of(agent.client.post(RECORDS, body), 202)["review"] == "pending"
    answer = agent.recall(context={**ANN, "trip_id": "T1"})
    assert (answer["value"], answer["decision"]) == ("window", "apply")


def test_an_app_brings_a_retired_value_back_only_by_a_newer_word(app: Memory) -> None:
    with clock.fixed_at(clock.now()):
        app.remember("aisle", bindings={"trip_id": "T1"})
        app.correct("window")
        copy = a_record(
            "AISLE", source_type="system_record", level="task", bindings={"trip_id": "T1"}
        )
        refusal(app.client.post(RECORDS, copy), 409, "retired")
        older = a_record("aisle", captured_at="2026-01-01T00:00:00Z", level="task")
        refusal(app.client.post(RECORDS, older), 409, "retired")
    app.remember("aisle", level="task", bindings={"trip_id": "T1"})


@pytest.mark.races
def test_corrections_at_once_leave_one_active_and_tell_the_others(live_acme: TenantKit) -> None:
    app = Memory(live_acme.client("app", users=["ann"]))
    app.remember("v0", bindings={"trip_id": "T1"})
    token = live_acme.token("app", users=["ann"])

    def correct(number: int) -> Any:
        body = {
            "key": "travel.seat",
            "new_value": f"v{number + 1}",
            "context": {**ANN, "trip_id": "T1"},
        }
        return ApiClient(token).post(CORRECT, body)

    answers = at_once(8, correct)
    assert {answer.status_code for answer in answers} <= {201, 409}
    for answer in answers:
        if answer.status_code == 409:
            details = refusal(answer, 409, "record-changed")
            assert details["activeId"] != details["expectedId"]
            assert details["current"]["value"].startswith("v")
    assert len(app.list()) == 1
    done = sum(answer.status_code == 201 for answer in answers)
    assert len(app.list(status="superseded")) == done
    chain = {one["id"]: one["correction"]["superseded_by"] for one in app.list(status="superseded")}
    assert len(set(chain.values())) == len(chain)


def test_a_person_on_their_page_is_named_by_the_page(acme: TenantKit) -> None:
    ann = person(acme, "person", subject="ann")
    asked = Correction(
        new_value="window", context=read_context({**ANN, "trip_id": "T1"}), key="travel.seat"
    )
    with tenant_context(acme.id):
        made = correct(principal=ann.principal, asked=asked).record
    assert made is not None
    assert made.captured_by == f"page@{settings.KINDMEM_VERSION}"
