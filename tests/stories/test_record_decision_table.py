"""Every row of the decision table, over HTTP, with the variations that break naive stores: people, JSON types, dates, ties."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from memory.records import clock
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.records.builders import a_record, an_inference, body_of

RECORDS = "/v1/memory/records"
RECALL = "/v1/memory/recall"


def remember(client: ApiClient, body: dict[str, Any]) -> dict[str, Any]:
    return body_of(client.post(RECORDS, body), 201)


def recall(client: ApiClient, key: str = "travel.seat", **body: Any) -> dict[str, Any]:
    body.setdefault("context", {"user_id": "ann"})
    return body_of(client.post(RECALL, {"key": key, **body}), 200)


@pytest.fixture
def app(acme: TenantKit) -> ApiClient:
    return acme.client("app", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"])


def days(count: int) -> str:
    return (datetime.now(UTC).date() + timedelta(days=count)).isoformat()


def test_user_stated_in_scope_and_low_stakes_is_applied(app: ApiClient) -> None:
    record = remember(app, a_record("aisle", bindings={"airline": "LH"}))
    answer = recall(app, context={"user_id": "ann", "airline": "LH", "cabin": "eco"})
    assert answer["decision"] == "apply"
    assert answer["reason"] == "user-stated"
    assert answer["value"] == "aisle"
    assert answer["record_id"] == record["id"]
    assert answer["source_type"] == "user_stated"
    assert answer["evidence_ref"] == "msg-1"
    assert answer["correction_route"] == "fix-value"
    assert answer["correction_url"].endswith(f"/memory/{record['id']}/correct/fix-value")
    assert answer["trust"] == "asserted"
    assert "candidates" not in answer


def test_user_stated_in_scope_but_consequential_is_asked(app: ApiClient) -> None:
    remember(app, a_record())
    answer = recall(app, context={"user_id": "ann", "consequential": True})
    assert (answer["decision"], answer["reason"], answer["value"]) == (
        "ask",
        "consequential",
        "aisle",
    )
    answer = recall(app, context={"user_id": "ann", "consequential": False})
    assert answer["decision"] == "apply"
    for neither in ("true", 1):
        asked = {"key": "travel.seat", "context": {"user_id": "ann", "consequential": neither}}
        assert app.post(RECALL, asked).status_code == 400


def test_what_a_system_recorded_is_revalidated_also_when_consequential(app: ApiClient) -> None:
    remember(app, a_record(source_type="system_record"))
    for context in ({"user_id": "ann"}, {"user_id": "ann", "consequential": True}):
        answer = recall(app, context=context)
        assert (answer["decision"], answer["reason"], answer["value"]) == (
            "revalidate",
            "system-record",
            "aisle",
        )


def test_a_policy_is_revalidated_every_time_and_never_has_a_stored_value(app: ApiClient) -> None:
    body = a_record(300, authority="policy", source_of_truth="https://policies.example.com/limit")
    remember(app, body)
    for _ in range(2):
        answer = recall(app)
        assert (answer["decision"], answer["reason"], answer["value"]) == (
            "revalidate",
            "source-not-allowed",
            None,
        )


@pytest.mark.parametrize(("observations", "confirmed"), [(1, False), (3, False), (2, True)])
def test_inferred_too_few_times_or_never_confirmed_is_asked(
    app: ApiClient, observations: int, confirmed: bool
) -> None:
    at = "2026-01-02T00:00:00Z" if confirmed else None
    usage = {"last_used_at": None, "use_count": 0, "last_confirmed_at": at}
    remember(app, an_inference(observations=observations, usage=usage))
    answer = recall(app)
    assert (answer["decision"], answer["reason"]) == ("ask", "unconfirmed-inference")


def test_inferred_three_times_and_confirmed_is_applied_within_the_confirmed_scope(
    app: ApiClient,
) -> None:
    usage = {"last_used_at": None, "use_count": 0, "last_confirmed_at": "2026-01-02T00:00:00Z"}
    remember(app, an_inference(observations=3, usage=usage, bindings={"task_id": "t1"}))
    inside = recall(app, context={"user_id": "ann", "task_id": "t1"})
    assert (inside["decision"], inside["reason"]) == ("apply", "confirmed-inference")
    outside = recall(app, context={"user_id": "ann", "task_id": "t2"})
    assert (outside["decision"], outside["reason"]) == ("ask", "out-of-context")


def test_outside_its_bound_context_it_is_asked(app: ApiClient) -> None:
    remember(app, a_record("DE-1", key="expense.code", bindings={"project_id": "p1"}))
    named = recall(app, "expense.code", context={"user_id": "ann", "project_id": "p2"})
    assert (named["decision"], named["reason"], named["value"]) == (
        "ask",
        "out-of-context",
        "DE-1",
    )
    unnamed = recall(app, "expense.code", context={"project_id": "p2"})
    assert (unnamed["decision"], unnamed["reason"]) == ("ask", "out-of-context")
    assert (unnamed["value"], unnamed["record_id"]) == (None, None)


def test_a_correction_is_applied_in_the_same_instance(app: ApiClient) -> None:
    body = a_record(source_type="user_correction", level="instance", bindings={"trip_id": "T1"})
    remember(app, body)
    answer = recall(app, context={"user_id": "ann", "trip_id": "T1"})
    assert (answer["decision"], answer["reason"]) == ("apply", "user-correction")


def test_past_its_last_day_it_is_gone_expired_and_without_its_value(app: ApiClient) -> None:
    record = remember(app, a_record(valid_until=days(-2)))
    answer = recall(app)
    assert (answer["decision"], answer["reason"], answer["value"], answer["record_id"]) == (
        "none",
        "nothing-remembered",
        None,
        None,
    )
    stored = body_of(app.get(f"{RECORDS}/{record['id']}"), 200)
    assert stored["lifecycle"]["status"] == "expired"
    assert stored["value"] is None
    assert body_of(app.get(RECORDS), 200)["data"] == []


def test_an_expired_value_is_kept_where_it_is_to_be_retained_and_never_served(
    app: ApiClient,
) -> None:
    record = remember(app, a_record(valid_until=days(-2), retain=True))
    assert recall(app)["decision"] == "none"
    stored = body_of(app.get(f"{RECORDS}/{record['id']}"), 200)
    assert (stored["lifecycle"]["status"], stored["value"]) == ("expired", "aisle")


def test_what_is_sensitive_loses_its_value_at_its_end_and_leaves_a_minimal_entry(
    acme: TenantKit, app: ApiClient
) -> None:
    remember(
        app,
        a_record("O negative", key="health.blood", sensitivity="sensitive", valid_until=days(-2)),
    )
    assert recall(app, "health.blood")["decision"] == "none"
    log = body_of(acme.client("admin").get("/v1/memory/runs/kindmem.governance/log"), 200)["data"]
    types = [entry["payload"]["type"] for entry in log]
    assert [one for one in types if one.startswith("record.")] == [
        "record.remembered",
        "record.expired",
    ]
    assert "negative" not in str(log)


# ---- variations -----------------------------------------------------------------------------------------------------------


def test_another_persons_records_do_not_exist_once_a_person_is_named(app: ApiClient) -> None:
    remember(app, a_record("aisle"))
    for named in (
        {"context": {"user_id": "bob"}},
        {"context": {}, "subject": {"type": "user", "id": "bob"}},
    ):
        answer = recall(app, **named)
        assert answer["decision"] == "none"
        assert "aisle" not in str(answer)


def test_matches_about_several_people_and_none_named_are_asked_without_values(
    app: ApiClient,
) -> None:
    remember(app, a_record("aisle"))
    remember(app, a_record("window", subject="bob"))
    answer = recall(app, context={})
    assert (answer["decision"], answer["reason"]) == ("ask", "subject-unnamed")
    assert (answer["value"], answer["record_id"]) == (None, None)
    assert "candidates" not in answer


def test_one_persons_match_without_a_name_is_applied(app: ApiClient) -> None:
    remember(app, a_record("aisle"))
    assert recall(app, context={})["decision"] == "apply"


@pytest.mark.parametrize(
    ("bound", "given", "matches"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, "1", False),
        (1, True, False),
        ("1", 1, False),
        (True, True, True),
        (True, "true", False),
        (False, 0, False),
        ("a", "A", False),
        ("e\u0301", "\u00e9", False),
        (0.1, 0.1, True),
    ],
)
def test_bindings_are_compared_as_json_values(
    app: ApiClient, bound: Any, given: Any, matches: bool
) -> None:
    remember(app, a_record(bindings={"trip": bound}))
    answer = recall(app, context={"user_id": "ann", "trip": given})
    assert answer["decision"] == ("apply" if matches else "ask")


def test_empty_bindings_match_everywhere_for_their_subject(app: ApiClient) -> None:
    remember(app, a_record())
    assert recall(app, context={"user_id": "ann", "anything": 1})["decision"] == "apply"


def test_a_projects_record_without_bindings_is_not_used_in_another_project(app: ApiClient) -> None:
    remember(app, a_record("Friday", subject={"type": "project", "id": "p1"}, level="project"))
    assert recall(app, context={"project_id": "p1"})["decision"] == "apply"
    elsewhere = recall(app, context={"project_id": "p2"})
    assert (elsewhere["decision"], elsewhere["value"]) == ("ask", None)
    assert recall(app, context={}, subject={"type": "project", "id": "p2"})["decision"] == "none"
    assert recall(app, context={"project_id": 1})["decision"] == "ask"


def test_an_org_wide_record_is_found_in_every_project_and_loses_to_a_narrower_one(
    app: ApiClient,
) -> None:
    remember(app, a_record("email", subject={"type": "org", "id": "acme"}, level="org"))
    assert recall(app, context={"user_id": "ann", "project_id": "p1"})["value"] == "email"
    remember(app, a_record("chat", bindings={"project_id": "p1"}, level="project"))
    assert recall(app, context={"user_id": "ann", "project_id": "p1"})["value"] == "chat"
    assert recall(app, context={"user_id": "ann", "project_id": "p2"})["value"] == "email"


def test_the_narrowest_level_wins_then_more_bindings_then_the_better_source(app: ApiClient) -> None:
    levels = ["org", "user", "client", "project", "session", "task", "instance"]
    for number, level in enumerate(levels):
        remember(app, a_record(level, level=level, bindings={"x": 1}))
        answer = recall(app, context={"user_id": "ann", "x": 1, "y": 2})
        assert answer["value"] == level, number
    remember(app, a_record("more", level="instance", bindings={"x": 1, "y": 2}))
    assert recall(app, context={"user_id": "ann", "x": 1, "y": 2})["value"] == "more"
    remember(
        app,
        a_record("copy", level="instance", bindings={"x": 1, "z": 3}, source_type="system_record"),
    )
    assert recall(app, context={"user_id": "ann", "x": 1, "z": 3})["value"] == "copy"
    remember(app, a_record("said", level="instance", bindings={"z": 3, "w": 4}))
    answer = recall(app, context={"user_id": "ann", "x": 1, "z": 3, "w": 4})
    assert (answer["value"], answer["decision"]) == ("said", "apply")


def test_equally_good_matches_that_differ_are_a_conflict_with_both_as_candidates(
    app: ApiClient,
) -> None:
    one = remember(app, a_record("aisle", bindings={"airline": "LH"}))
    two = remember(app, a_record("window", bindings={"cabin": "eco"}))
    answer = recall(app, context={"user_id": "ann", "airline": "LH", "cabin": "eco"})
    assert (answer["decision"], answer["reason"], answer["value"]) == ("ask", "conflict", None)
    assert {(c["record_id"], c["value"]) for c in answer["candidates"]} == {
        (one["id"], "aisle"),
        (two["id"], "window"),
    }


def test_equally_good_matches_that_agree_are_applied(app: ApiClient) -> None:
    remember(app, a_record("aisle", bindings={"airline": "LH"}))
    newest = remember(app, a_record("aisle", bindings={"cabin": "eco"}))
    answer = recall(app, context={"user_id": "ann", "airline": "LH", "cabin": "eco"})
    assert (answer["decision"], answer["record_id"]) == ("apply", newest["id"])


def test_a_policy_outranks_a_narrower_preference_of_the_same_key(app: ApiClient) -> None:
    remember(app, a_record(900, key="expense.limit", level="instance", bindings={"trip_id": "T1"}))
    remember(
        app,
        a_record(
            None,
            key="expense.limit",
            level="org",
            subject={"type": "org", "id": "acme"},
            authority="policy",
            source_of_truth="https://policies.example.com/limit",
        ),
    )
    answer = recall(app, "expense.limit", context={"user_id": "ann", "trip_id": "T1"})
    assert (answer["decision"], answer["value"]) == ("revalidate", None)


def test_a_record_is_not_used_before_its_first_day(app: ApiClient) -> None:
    remember(app, a_record(valid_from=days(1)))
    assert recall(app)["decision"] == "none"
    with clock.fixed_at(datetime.now(UTC) + timedelta(days=1)):
        assert recall(app)["decision"] == "apply"


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"])
def test_first_and_last_day_are_days_of_the_tenants_zone(db: None, zone: str) -> None:
    tenant = make_tenant(time_zone=zone)
    app = tenant.client("app", users=["ann"])
    first, last = date(2026, 12, 10), date(2026, 12, 12)
    remember(app, a_record(valid_from=first.isoformat(), valid_until=last.isoformat()))
    second = timedelta(seconds=1)
    begins, ends = clock.start_of(first, zone), clock.start_of(last + timedelta(days=1), zone)
    expected = [
        (begins - second, "none"),
        (begins, "apply"),
        (ends - second, "apply"),
        (ends, "none"),
    ]
    for instant, decision in expected:
        with clock.fixed_at(instant):
            assert recall(app)["decision"] == decision, instant


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2027, 3, 28), 23), (date(2027, 10, 31), 25), (date(2027, 6, 1), 24)]
)
def test_a_day_is_as_long_as_the_zone_makes_it(db: None, day: date, hours: int) -> None:
    tenant = make_tenant(time_zone="Europe/Berlin")
    app = tenant.client("app", users=["ann"])
    remember(app, a_record(valid_from=day.isoformat(), valid_until=day.isoformat()))
    begins = clock.start_of(day, "Europe/Berlin")
    for offset, decision in ((0, "apply"), (hours * 3600 - 1, "apply"), (hours * 3600, "none")):
        with clock.fixed_at(begins + timedelta(seconds=offset)):
            assert recall(app)["decision"] == decision
