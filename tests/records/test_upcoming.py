"""What is said of a later day: until then the present value is served, from then on the new one, at every moment exactly one."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from memory.errors import RecordChanged, constraint_errors
from memory.housekeeping import expire
from memory.records import clock
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.commands.governance import governance
from tests.records.builders import a_record, an_inference, body_of, refusal, valid
from tests.records.conftest import ANN, RECORDS, Memory

ZONE = "Europe/Berlin"
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
BEGINS = date(2027, 3, 28)
"""The night on which the clocks go forward."""


@pytest.fixture
def kit(live_db: None) -> TenantKit:
    return make_tenant(time_zone=ZONE)


@pytest.fixture
def app(kit: TenantKit) -> Memory:
    return Memory(kit.client("app", users=["ann"]))


def first_moment(day: date = BEGINS) -> datetime:
    return clock.start_of(day, ZONE)


def says(app: Memory, value: Any, *, begins: date | None = None, **changes: Any) -> dict[str, Any]:
    day = None if begins is None else begins.isoformat()
    return app.remember(value, valid_from=day, captured_at="2027-03-01T11:59:00Z", **changes)


def value_at(app: Memory, moment: datetime, **context: Any) -> Any:
    with clock.fixed_at(moment):
        return app.recall(context={**ANN, **context})["value"]


def statuses(app: Memory, *records: dict[str, Any]) -> list[str]:
    return [app.get(one["id"])["lifecycle"]["status"] for one in records]


@pytest.fixture
def two(app: Memory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What holds now and what will."""
    with clock.fixed_at(NOW):
        return says(app, "Köln"), says(app, "Berlin", begins=BEGINS)


def test_the_present_value_is_served_until_the_new_one_begins(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    assert value_at(app, NOW) == "Köln"
    assert value_at(app, first_moment() - timedelta(seconds=1)) == "Köln"
    assert value_at(app, first_moment()) == "Berlin"
    assert value_at(app, first_moment() + timedelta(days=400)) == "Berlin"


def test_on_its_day_it_supersedes_what_held_until_then(
    kit: TenantKit, app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    old, new = two
    assert statuses(app, old, new) == ["active", "active"]
    with clock.fixed_at(first_moment() + timedelta(hours=3)):
        expire()
        assert statuses(app, old, new) == ["superseded", "active"]
        assert valid(app.get(new["id"]))["correction"]["supersedes"] == [old["id"]]
        assert valid(app.get(old["id"]))["correction"]["superseded_by"] == new["id"]
        assert [one["value"] for one in app.list()] == ["Berlin"]
        last = app.history(old["id"])[-1]
        assert (last["act"], last["why"]) == ("began", "valid-from")
        for moment, value in (
            (first_moment() - timedelta(seconds=1), "Köln"),
            (first_moment(), "Berlin"),
        ):
            assert app.recall(as_of=moment.isoformat())["value"] == value
        entry = next(one for one in governance(kit) if one["type"] == "record.began")
        assert (entry["recordId"], entry["supersedes"]) == (new["id"], [old["id"]])
        # The value that it replaced is retired.
        agent = kit.client("agent", users=["ann"])
        body = an_inference("Köln", bindings={"trip_id": "T1"}, captured_at=NOW.isoformat())
        assert agent.post(RECORDS, body).status_code == 202


def test_a_recall_that_meets_it_gives_it_its_place(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(first_moment()):
        app.recall()
        assert statuses(app, *two) == ["superseded", "active"]


def test_a_newer_word_after_that_day_replaces_the_one_that_has_begun(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(first_moment() + timedelta(hours=1)):
        third = app.remember("Hamburg", captured_at=clock.now().isoformat())
        assert statuses(app, *two, third) == ["superseded", "superseded", "active"]
        assert app.recall()["value"] == "Hamburg"


def test_the_order_of_telling_does_not_matter(app: Memory) -> None:
    with clock.fixed_at(NOW):
        later = says(app, "Berlin", begins=BEGINS)
        now = says(app, "Köln", begins=date(2027, 1, 1))
        assert statuses(app, later, now) == ["active", "active"]
    assert value_at(app, NOW) == "Köln"
    assert value_at(app, first_moment()) == "Berlin"


def test_of_two_words_about_a_time_to_come_the_newer_one_stands(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(NOW + timedelta(hours=1)):
        third = says(app, "Hamburg", begins=BEGINS - timedelta(days=7))
    assert statuses(app, *two, third) == ["active", "superseded", "active"]
    assert value_at(app, first_moment() - timedelta(days=8)) == "Köln"
    assert value_at(app, first_moment()) == "Hamburg"


def test_the_same_said_again_is_the_first_record(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(NOW):
        assert says(app, "Berlin", begins=BEGINS)["id"] == two[1]["id"]
        assert says(app, "Köln")["id"] == two[0]["id"]


def test_a_word_without_a_first_day_is_about_later_too(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(NOW + timedelta(hours=1)):
        says(app, "Hamburg")
    assert statuses(app, *two) == ["superseded", "superseded"]
    assert value_at(app, first_moment()) == "Hamburg"


def test_an_older_word_without_a_first_day_holds_until_the_newer_one_begins(app: Memory) -> None:
    with clock.fixed_at(NOW):
        later = says(app, "Berlin", begins=BEGINS)
        older = app.remember("Köln", captured_at="2027-03-01T09:00:00Z")
        assert statuses(app, later, older) == ["active", "active"]
    assert value_at(app, NOW) == "Köln"
    assert value_at(app, first_moment()) == "Berlin"


def test_an_older_word_gives_way_to_a_later_one_that_it_would_outrank(app: Memory) -> None:
    with clock.fixed_at(NOW):
        later = says(app, "Berlin", begins=BEGINS, source_type="system_record")
        body = a_record("Köln", captured_at="2027-03-01T09:00:00Z")
        details = refusal(app.client.post(RECORDS, body), 409, "record-changed")
        assert details["activeId"] == later["id"]


def test_so_is_a_correction_of_what_holds_now(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    everywhere = {**ANN, "broaden_to": {"level": "user", "bindings": {}}}
    with clock.fixed_at(NOW + timedelta(hours=1)):
        made = app.correct("Hamburg", context=everywhere, broaden=True)
        assert sorted(made["record"]["correction"]["supersedes"]) == sorted(
            [two[0]["id"], two[1]["id"]]
        )
        number = made["receipt"]["number"]
        body_of(app.client.post(f"/v1/memory/receipts/{number}/undo", {}), 200)
    assert value_at(app, NOW + timedelta(hours=2)) == "Köln"
    assert value_at(app, first_moment()) == "Berlin"


def test_a_correction_of_what_is_said_of_later_is_about_later(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    context = {**ANN, "broaden_to": {"level": "user", "bindings": {}}}
    with clock.fixed_at(NOW + timedelta(hours=1)):
        body = {"new_value": "Hamburg", "context": context, "broaden": True}
        made = body_of(app.client.post(f"{RECORDS}/{two[1]['id']}/correct", body), 201)
    assert valid(made["record"])["scope"]["valid_from"] == BEGINS.isoformat()
    assert made["record"]["correction"]["supersedes"] == [two[1]["id"]]
    assert value_at(app, first_moment() - timedelta(seconds=1)) == "Köln"
    assert value_at(app, first_moment()) == "Hamburg"


def test_what_is_forgotten_before_its_day_never_begins(
    app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(NOW + timedelta(hours=1)):
        app.forget(two[1]["id"])
    assert value_at(app, first_moment() + timedelta(days=1)) == "Köln"


def test_a_guess_does_not_set_an_end_to_a_persons_word(kit: TenantKit, app: Memory) -> None:
    agent = kit.client("agent", users=["ann"])
    with clock.fixed_at(NOW):
        app.remember("Köln", level="task", captured_at=NOW.isoformat())
        body = an_inference("Berlin", valid_from=BEGINS.isoformat(), captured_at=NOW.isoformat())
        assert agent.post(RECORDS, body).status_code == 202
    assert value_at(app, first_moment()) == "Köln"


def test_a_rule_stays_in_use_until_the_next_one_begins(app: Memory) -> None:
    rule = {"key": "expense.limit", "authority": "policy"}
    with clock.fixed_at(NOW):
        old = says(app, None, **rule, source_of_truth="https://p.example.com/2026")
        new = says(
            app,
            None,
            begins=BEGINS,
            supersedes=[old["id"]],
            **rule,
            source_of_truth="https://p.example.com/2027",
        )
        assert app.recall("expense.limit")["record_id"] == old["id"]
    with clock.fixed_at(first_moment()):
        assert app.recall("expense.limit")["record_id"] == new["id"]
        assert statuses(app, old, new) == ["superseded", "active"]


def test_nothing_begins_in_place_of_what_it_was_derived_from(app: Memory) -> None:
    with clock.fixed_at(NOW):
        old = says(app, "Köln")
        body = a_record(
            "Berlin",
            valid_from=BEGINS.isoformat(),
            captured_at=NOW.isoformat(),
            derived_from=[old["id"]],
        )
        details = refusal(app.client.post(RECORDS, body), 422, "invariant-violated")
    assert details == {"invariant": "I10"}


def test_what_is_held_ends_sealed_when_the_next_one_begins(
    kit: TenantKit, app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    scope = {"scope": {"records": [two[0]["id"]]}, "matter": "m", "reason": "r"}
    body_of(kit.client("admin").post("/v1/memory/legal-holds", scope), 201)
    with clock.fixed_at(first_moment()):
        expire()
        assert statuses(app, *two) == ["expired", "active"]
        assert app.recall()["value"] == "Berlin"
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT record_id, purpose FROM sealed_copy")
        assert cursor.fetchall() == [(two[0]["id"], "hold")]


def test_what_was_derived_from_the_old_value_ends_with_it(app: Memory) -> None:
    with clock.fixed_at(NOW):
        old = says(app, "Köln")
        child = says(app, "Rhineland", key="travel.region", derived_from=[old["id"]])
        says(app, "Berlin", begins=BEGINS)
    with clock.fixed_at(first_moment()):
        app.recall()
        assert statuses(app, child) == ["expired"]


def test_a_slot_never_has_two_that_hold_now_nor_two_that_will(
    kit: TenantKit, app: Memory, two: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with clock.fixed_at(NOW):
        other = says(app, "Hamburg", key="travel.other", begins=BEGINS)
    for twin in two:
        with (
            pytest.raises(RecordChanged),
            tenant_context(kit.id),
            constraint_errors(),
            connection.cursor() as cursor,
        ):
            cursor.execute(
                "INSERT INTO memory_record (tenant_id, id, subject_type, subject_id, key, authority, source_type, "
                "evidence_kind, evidence_ref, observations, captured_at, captured_by, level, bindings_text, "
                "bindings_hash, route, sensitivity, trust, written_by, written_by_role, recorded_at, changed_at, "
                "version_from, valid_from, is_upcoming) SELECT tenant_id, 'twin', subject_type, subject_id, "
                "'travel.seat', authority, source_type, evidence_kind, evidence_ref, observations, captured_at, "
                "captured_by, level, bindings_text, bindings_hash, route, sensitivity, trust, written_by, "
                "written_by_role, recorded_at, changed_at, version_from, valid_from, "
                "(SELECT t.is_upcoming FROM memory_record t WHERE t.id = %s) FROM memory_record WHERE id = %s",
                [twin["id"], other["id"]],
            )
    with (
        tenant_context(kit.id),
        connection.cursor() as cursor,
        pytest.raises(Exception, match="keeps its identity"),
    ):
        cursor.execute("UPDATE memory_record SET is_upcoming = true WHERE id = %s", [two[0]["id"]])
