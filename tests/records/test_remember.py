"""Remembering: shape, what the server owns, who may, and what becomes of the same thing again."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from memory.canonical import canonical
from memory.records.shape import RECORD_SCHEMA
from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.records.builders import a_record, an_inference, body_of, refusal, valid
from tests.records.conftest import Memory

PATH = "/v1/memory/records"


def test_a_record_comes_back_in_the_schemas_shape_with_what_the_server_owns(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["ann"])
    record = valid(body_of(app.post(PATH, a_record()), 201))
    assert record["value"] == "aisle"
    assert record["lifecycle"] == {
        "status": "active",
        "sensitivity": "none",
        "retain_value_after_expiry": False,
    }
    assert record["usage"] == {"last_used_at": None, "use_count": 0, "last_confirmed_at": None}
    assert record["correction"]["superseded_by"] is None
    assert valid(body_of(app.get(f"{PATH}/{record['id']}"), 200)) == record
    assert body_of(app.get(PATH), 200) == {"data": [record], "hasMore": False}


@pytest.mark.parametrize(
    "path",
    [
        ("subject",),
        ("subject", "type"),
        ("subject", "id"),
        ("key",),
        ("value",),
        ("authority",),
        ("source",),
        ("source", "type"),
        ("source", "evidence"),
        ("source", "evidence", "ref"),
        ("source", "observations"),
        ("source", "captured_at"),
        ("source", "captured_by"),
        ("scope",),
        ("scope", "level"),
        ("scope", "bindings"),
        ("scope", "valid_from"),
        ("scope", "valid_until"),
        ("scope", "revalidate_on"),
        ("correction",),
        ("correction", "route"),
        ("correction", "supersedes"),
        ("correction", "broadened"),
        ("lifecycle",),
        ("lifecycle", "sensitivity"),
        ("lifecycle", "retain_value_after_expiry"),
    ],
)
def test_what_the_caller_owns_must_be_there(acme: TenantKit, path: tuple[str, ...]) -> None:
    body = a_record()
    part: Any = body
    for name in path[:-1]:
        part = part[name]
    del part[path[-1]]
    details = refusal(acme.client("app", users=["ann"]).post(PATH, body), 400, "bad-input")
    assert details["issues"][0]["path"] == "/" + "/".join(path)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"key": "Travel.Seat"}, "bad-input"),
        ({"key": "a" * 257}, "bad-input"),
        ({"value": None}, "bad-input"),
        ({"authority": "opinion"}, "bad-input"),
        ({"level": "planet"}, "bad-input"),
        ({"bindings": {"trip": {"id": 1}}}, "bad-input"),
        ({"bindings": {"trip": None}}, "bad-input"),
        ({"bindings": {"": 1}}, "bad-input"),
        ({"valid_until": "2026-02-30"}, "bad-input"),
        ({"captured_at": "2026-03-01T09:30:00"}, "bad-input"),
        ({"id": ""}, "bad-input"),
        ({"id": "x" * 257}, "bad-input"),
        ({"subject": {"type": "user", "id": ""}}, "bad-input"),
        ({"subject": {"type": "user", "id": "ann", "name": "Ann"}}, "unknown-field"),
        ({"trust": "verified"}, "unknown-field"),
        (
            {
                "lifecycle": {
                    "status": "deleted",
                    "sensitivity": "none",
                    "retain_value_after_expiry": False,
                }
            },
            "bad-input",
        ),
    ],
)
def test_a_malformed_record_is_refused(acme: TenantKit, changes: dict[str, Any], code: str) -> None:
    refusal(acme.client("app", users=["ann"]).post(PATH, a_record(**changes)), 400, code)


def test_a_value_beyond_the_limit_is_refused_and_one_within_it_kept(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    refusal(app.post(PATH, a_record("x" * 70_000)), 413, "content-too-large")
    assert body_of(app.post(PATH, a_record("x" * 60_000)), 201)["value"] == "x" * 60_000


def test_server_owned_fields_are_accepted_and_ignored(acme: TenantKit) -> None:
    usage = {
        "last_used_at": "2026-01-01T00:00:00Z",
        "use_count": 9,
        "last_confirmed_at": "2026-01-02T00:00:00Z",
    }
    body = an_inference(usage=usage, observations=99)
    body["lifecycle"]["status"] = "active"
    body["correction"]["superseded_by"] = None
    of_agent = body_of(acme.client("agent", users=["ann"]).post(PATH, body), 201)
    assert of_agent["usage"] == {"last_used_at": None, "use_count": 0, "last_confirmed_at": None}
    assert of_agent["source"]["observations"] == 1
    body["key"] = "travel.meal"
    of_app = valid(body_of(acme.client("app", users=["ann"]).post(PATH, body), 201))
    assert of_app["usage"] == {
        "last_used_at": None,
        "use_count": 0,
        "last_confirmed_at": "2026-01-02T00:00:00Z",
    }
    assert of_app["source"]["observations"] == 99


def test_writing_needs_the_subject_and_the_ability(acme: TenantKit) -> None:
    refusal(acme.client("app", users=["bob"]).post(PATH, a_record()), 403, "permission-denied")
    refusal(
        acme.client("app", users=["ann"], may=["read"]).post(PATH, a_record()),
        403,
        "permission-denied",
    )
    refusal(acme.client("auditor").post(PATH, a_record()), 403, "permission-denied")


@pytest.mark.parametrize(
    ("subject", "grant"),
    [
        ({"type": "user", "id": "s1"}, {"users": ["s1"]}),
        ({"type": "project", "id": "s1"}, {"projects": ["s1"]}),
        ({"type": "client", "id": "s1"}, {"orgs": ["s1"]}),
        ({"type": "org", "id": "s1"}, {"orgs": ["s1"]}),
    ],
)
def test_a_record_is_read_by_whoever_has_its_subject_and_nobody_else(
    acme: TenantKit, subject: dict[str, str], grant: dict[str, list[str]]
) -> None:
    record = body_of(acme.client("app", **grant).post(PATH, a_record(subject=subject)), 201)
    path = f"{PATH}/{record['id']}"
    for reader in (acme.client("agent", **grant), acme.client("admin"), acme.client("auditor")):
        body_of(reader.get(path), 200)
        assert len(body_of(reader.get(PATH), 200)["data"]) == 1
    stranger = acme.client("agent", users=["s2"], projects=["s2"], orgs=["s2"])
    refused = stranger.get(path)
    missing = stranger.get(f"{PATH}/no-such-record")
    refusal(refused, 404, "record-not-found")
    assert refused.json()["error"] | {"requestId": ""} == missing.json()["error"] | {
        "requestId": ""
    }
    assert body_of(stranger.get(PATH), 200)["data"] == []


def test_a_key_on_behalf_of_a_project_has_the_persons_records_of_that_project(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["ann"])
    inside = body_of(app.post(PATH, a_record(bindings={"project_id": "p1"})), 201)
    for bindings in ({"project_id": "p2"}, {"project_id": 1}, {}):
        body_of(app.post(PATH, a_record(bindings=bindings)), 201)
    behalf = acme.client("agent", on_behalf_of=["p1", "1"])
    assert [one["id"] for one in body_of(behalf.get(PATH), 200)["data"]] == [inside["id"]]


def test_auditors_get_no_value(acme: TenantKit) -> None:
    record = body_of(acme.client("app", users=["ann"]).post(PATH, a_record("secret")), 201)
    auditor = acme.client("auditor")
    for shown in (
        body_of(auditor.get(f"{PATH}/{record['id']}"), 200),
        body_of(auditor.get(PATH), 200)["data"][0],
    ):
        assert "value" not in shown
        assert shown["meta"] == {"masked": True}


@pytest.mark.parametrize(
    ("changes", "invariant"),
    [
        ({"source_type": "agent_inferred", "level": "user"}, "I1"),
        ({"source_type": "agent_inferred", "level": "session"}, "I1"),
        ({"authority": "policy"}, "I2"),
        ({"source_type": "user_correction", "level": "user"}, "I4"),
        ({"sensitivity": "sensitive"}, "I6"),
        ({"valid_from": "2026-02-02", "valid_until": "2026-02-01"}, "valid-dates-in-order"),
    ],
)
def test_a_rule_that_is_broken_is_named(
    acme: TenantKit, changes: dict[str, Any], invariant: str
) -> None:
    answer = acme.client("app", users=["ann"]).post(PATH, a_record(**changes))
    assert refusal(answer, 422, "invariant-violated") == {"invariant": invariant}


def test_a_correction_names_the_instance_that_it_binds_to(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    body = a_record(source_type="user_correction", level="instance")
    refusal(app.post(PATH, body), 422, "instance-unnamed")
    assert body_of(app.get(PATH), 200)["data"] == []
    body["scope"]["bindings"] = {"t": 1}
    body_of(app.post(PATH, body), 201)


def test_a_policy_is_stored_without_its_value(acme: TenantKit) -> None:
    body = a_record(500, authority="policy", source_of_truth="https://policies.example.com/limit")
    record = valid(body_of(acme.client("app", users=["ann"]).post(PATH, body), 201))
    assert record["value"] is None
    assert record["source"]["source_of_truth"] == "https://policies.example.com/limit"


def test_a_confirmed_inference_of_an_app_may_be_wide(acme: TenantKit) -> None:
    usage = {"last_used_at": None, "use_count": 0, "last_confirmed_at": "2026-01-02T00:00:00Z"}
    body = an_inference(level="user", usage=usage)
    valid(body_of(acme.client("app", users=["ann"]).post(PATH, body), 201))
    refusal(acme.client("agent", users=["ann"]).post(PATH, body), 422, "invariant-violated")


def test_the_same_thing_again_is_the_first_record(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    first = body_of(app.post(PATH, a_record()), 201)
    again = body_of(app.post(PATH, a_record()), 201)
    assert again == first
    assert len(body_of(app.get(PATH), 200)["data"]) == 1


def test_a_newer_word_of_the_user_supersedes_and_an_older_one_is_told(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    old = body_of(app.post(PATH, a_record("aisle", captured_at="2026-02-01T00:00:00Z")), 201)
    new = valid(
        body_of(app.post(PATH, a_record("window", captured_at="2026-03-01T00:00:00Z")), 201)
    )
    assert new["correction"]["supersedes"] == [old["id"]]
    old_now = valid(body_of(app.get(f"{PATH}/{old['id']}"), 200))
    assert old_now["lifecycle"]["status"] == "superseded"
    assert old_now["correction"]["superseded_by"] == new["id"]
    details = refusal(
        app.post(PATH, a_record("middle", captured_at="2026-01-01T00:00:00Z")),
        409,
        "record-changed",
    )
    assert details["activeId"] == new["id"]
    assert [one["id"] for one in body_of(app.get(PATH), 200)["data"]] == [new["id"]]


def test_the_value_that_was_superseded_does_not_come_back_by_saying_it_again(
    acme: TenantKit,
) -> None:
    app = acme.client("app", users=["ann"])
    stamp = "2026-02-01T00:00:00Z"
    body_of(app.post(PATH, a_record("aisle", captured_at=stamp)), 201)
    new = body_of(app.post(PATH, a_record("window", captured_at=stamp)), 201)
    refusal(app.post(PATH, a_record(" AISLE", captured_at=stamp)), 409, "retired")
    assert [one["id"] for one in body_of(app.get(PATH), 200)["data"]] == [new["id"]]


def test_a_users_word_supersedes_the_same_guess(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    guess = body_of(app.post(PATH, an_inference()), 201)
    word = body_of(app.post(PATH, a_record(level="task")), 201)
    assert word["correction"]["supersedes"] == [guess["id"]]
    assert word["source"]["type"] == "user_stated"


def test_an_inference_from_another_run_counts_once_more_and_from_the_same_run_not(
    acme: TenantKit,
) -> None:
    agent = Memory(acme.client("agent", users=["ann"]))

    def observations(evidence: dict[str, str]) -> int:
        body = an_inference(evidence=evidence)
        return body_of(agent.client.post(PATH, body), 201)["source"]["observations"]

    runs = ("run-1", "run-1", "run-2", "run-2", "run-3")
    assert [observations(agent.thinks(run)) for run in runs] == [1, 1, 2, 2, 3]
    # A run may be named by its own id as well.
    agent.thinks("run-4")
    by_id = [observations({"kind": "trace", "ref": run}) for run in ("run-3", "run-4", "run-4")]
    assert by_id == [3, 4, 4]


def test_another_value_in_the_slot_is_told_with_the_active_id(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    first = body_of(app.post(PATH, a_record("DE-1", source_type="system_record")), 201)
    details = refusal(
        app.post(PATH, a_record("DE-2", source_type="system_record")), 409, "record-changed"
    )
    assert details["activeId"] == first["id"]
    named = a_record("DE-2", source_type="system_record", supersedes=[first["id"]])
    assert body_of(app.post(PATH, named), 201)["correction"]["supersedes"] == [first["id"]]


def test_an_id_is_used_once(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    body = a_record(id="r/1")
    first = body_of(app.post(PATH, body), 201)
    assert body_of(app.post(PATH, body), 201) == first
    assert refusal(app.post(PATH, {**body, "value": "window"}), 409, "id-reused") == {"id": "r/1"}
    other = acme.client("app", users=["bob"])
    refusal(other.post(PATH, a_record(id="r/1", subject="bob")), 409, "id-reused")
    assert valid(body_of(app.get(f"{PATH}/r/1"), 200)) == first


def test_a_word_about_an_earlier_time_goes_into_the_past(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    now = body_of(app.post(PATH, a_record("B-2", valid_from="2025-01-01")), 201)
    before = valid(body_of(app.post(PATH, a_record("B-1", valid_from="2024-01-01")), 201))
    assert before["lifecycle"]["status"] == "superseded"
    assert before["correction"]["superseded_by"] == now["id"]
    assert [one["value"] for one in body_of(app.get(PATH), 200)["data"]] == ["B-2"]
    then = body_of(app.get(PATH, {"as_of": "2024-06-15T00:00:00Z"}), 200)["data"]
    assert [one["value"] for one in then] == ["B-1"]


def test_a_policy_is_not_superseded_by_what_a_user_says(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    policy = body_of(
        app.post(PATH, a_record(0, authority="policy", source_of_truth="https://p.example.com/x")),
        201,
    )
    details = refusal(app.post(PATH, a_record(900)), 422, "policy-not-correctable")
    assert details["recordId"] == policy["id"]
    assert details["route"] == "fix-value"
    assert details["correctionUrl"].endswith(f"/memory/{policy['id']}/correct/fix-value")


def test_a_page_of_records_is_stable_while_others_are_added(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    ids = [body_of(app.post(PATH, a_record(key=f"k{n}")), 201)["id"] for n in range(7)]
    seen, query = [], {"limit": 3}
    while True:
        answer = body_of(app.get(PATH, query), 200)
        seen += [one["id"] for one in answer["data"]]
        body_of(app.post(PATH, a_record(key=f"later{len(seen)}")), 201)
        if not answer["hasMore"]:
            break
        query = {"limit": 3, "cursor": answer["nextCursor"]}
    assert seen == ids[::-1]
    refusal(app.get(PATH, {"limit": 3, "key": "k1", "cursor": query["cursor"]}), 400, "bad-input")
    refusal(app.get(PATH, {"topk": 3}), 400, "unknown-field")


def test_an_auditor_gets_values_for_a_reason_that_is_logged_first(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann"])
    record = body_of(app.post(PATH, a_record("secret")), 201)
    auditor, why = acme.client("auditor"), {"reveal": "complaint 17 about seat"}
    path = f"{PATH}/{record['id']}"
    for shown in (
        body_of(auditor.get(path, why), 200),
        body_of(auditor.get(PATH, why), 200)["data"][0],
        body_of(auditor.get(f"{path}/explain", why), 200),
        body_of(auditor.get(f"{path}/history", why), 200)["data"][0]["to"],
    ):
        assert shown["value"] == "secret"
    log = body_of(auditor.get("/v1/memory/runs/kindmem.governance/log"), 200)["data"]
    revealed = [one for one in log if one["payload"]["type"] == "record.revealed"]
    assert [one["payload"]["recordIds"] for one in revealed] == [[record["id"]]] * 4
    assert "complaint" not in str(log)
    assert [one["act"] for one in body_of(app.get(f"{path}/history"), 200)["data"]] == [
        "remembered"
    ]
    body_of(app.get(path, why), 200)
    log = body_of(auditor.get("/v1/memory/runs/kindmem.governance/log"), 200)["data"]
    assert sum(one["payload"]["type"] == "record.revealed" for one in log) == 4


def test_the_schema_is_the_one_that_was_agreed() -> None:
    """Byte for byte in its canonical form: a change of the shape is a change of the agreement."""
    digest = sha256(canonical(RECORD_SCHEMA).encode()).hexdigest()
    assert digest == "b6f6ca96936c75bba307142a1b357ebc9ae4e19664b11b31d4494e28060c9525"


def test_each_filter_of_the_list_leaves_out_what_does_not_fit(acme: TenantKit) -> None:
    app = acme.client("app", users=["ann", "bob"], projects=["p1"])
    project = {"type": "project", "id": "p1"}
    bodies = {
        "plain": a_record(id="plain"),
        "bobs": a_record(id="bobs", subject="bob"),
        "of-project": a_record(id="of-project", subject=project, level="project"),
        "other-key": a_record("apples", id="other-key", key="food.fruit"),
        "fact": a_record(id="fact", key="k.fact", authority="fact"),
        "narrow": a_record(id="narrow", key="k.narrow", level="task"),
        "copied": a_record(id="copied", key="k.copied", source_type="system_record"),
    }
    for body in bodies.values():
        body_of(app.post(PATH, body), 201)
    body_of(app.post(f"{PATH}/plain/forget", {}), 200)
    everything = set(bodies) - {"plain"}

    def found(**query: Any) -> set[str]:
        return {one["id"] for one in body_of(app.get(PATH, query), 200)["data"]}

    assert found() == everything
    assert found(status="deleted") == {"plain"}
    assert found(subject_id="bob") == {"bobs"}
    assert found(subject_type="project") == {"of-project"}
    assert found(key="food.fruit") == {"other-key"}
    assert found(q="apples") == {"other-key"}
    assert found(authority="fact") == {"fact"}
    assert found(level="task") == {"narrow"}
    assert found(source_type="system_record") == {"copied"}
    assert found(subject_id="bob", authority="fact") == set()
    for unknown in ({"status": "pending"}, {"level": "wide"}, {"source_type": "x"}):
        refusal(app.get(PATH, unknown), 400, "bad-input")
    refusal(app.get(PATH, {"subject": "ann"}), 400, "unknown-field")


@pytest.mark.races
def test_the_same_slot_filled_at_once_has_one_active_record(live_acme: TenantKit) -> None:
    token = live_acme.token("app", users=["ann"])
    later = (datetime.now(UTC) + timedelta(days=9)).date().isoformat()

    def remember(number: int) -> int:
        body = a_record(number, valid_from=later if number % 2 else None)
        return ApiClient(token).post(PATH, body).status_code

    answers = at_once(12, remember)
    assert set(answers) <= {201, 409}
    app = live_acme.client("app", users=["ann"])
    active = body_of(app.get(PATH), 200)["data"]
    begins = [one["scope"]["valid_from"] for one in active]
    assert len(begins) == len(set(begins))
    assert begins.count(None) == 1
    ended = body_of(app.get(PATH, {"status": "superseded"}), 200)["data"]
    successors = [one["correction"]["superseded_by"] for one in ended]
    assert None not in successors
    assert len(active) + len(ended) == answers.count(201)
