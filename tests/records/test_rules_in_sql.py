"""The rules of records past Python: the database refuses, as the app role and as the owner, by the name of the rule."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from memory.errors import constraint_of
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.records.conftest import Memory

Refused = Callable[..., str | None]


@pytest.fixture
def refused(acme: TenantKit) -> Refused:
    """Run a statement for the tenant; the name of the constraint that refused it."""

    def run(statement: str, *parameters: Any) -> str | None:
        with (
            tenant_context(acme.id),
            pytest.raises(DatabaseError) as caught,
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement, parameters)
        return constraint_of(caught.value) or str(caught.value).split("\n")[0]

    return run


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("status = 'active', ended_at = NULL", "memory_record_moves_forward"),
        ("status = 'expired'", "memory_record_moves_forward"),
        ("ended_at = NULL", "memory_record_ended_says_when"),
        ("status = 'deleted'", "memory_record_tombstone_says_when_and_why"),
        ("subject_id = 'bob'", "memory_record_keeps_identity"),
        ("evidence_ref = 'other'", "memory_record_keeps_identity"),
    ],
)
def test_an_ended_record_only_moves_forward(
    app: Memory, refused: Refused, change: str, rule: str
) -> None:
    app.remember("aisle", bindings={"trip_id": "T1"})
    app.correct("window")
    assert refused(f"UPDATE memory_record SET {change} WHERE status = 'superseded'") == rule


@pytest.mark.parametrize(
    ("changes", "update", "rule"),
    [
        ({}, "level = 'galaxy'", "memory_record_level_is_known"),
        ({}, "bindings_text = '{\"a\":1}'", "memory_record_bindings_hash_is_theirs"),
        ({}, "hold_count = -1", "memory_record_hold_count_is_not_negative"),
        ({}, "review = 'maybe'", "memory_record_review_is_known"),
        (
            {},
            "valid_from = '2030-01-02', valid_until = '2030-01-01'",
            "memory_record_valid_dates_in_order",
        ),
        (
            {"sensitivity": "sensitive", "valid_until": "2030-01-01"},
            "valid_until = NULL",
            "memory_record_sensitive_ends",
        ),
        (
            {"source_type": "user_correction", "level": "instance", "bindings": {"t": 1}},
            "level = 'user'",
            "memory_record_correction_is_of_one_instance",
        ),
        (
            {"source_type": "agent_inferred", "level": "task"},
            "level = 'user'",
            "memory_record_wide_inference_is_confirmed",
        ),
    ],
)
def test_a_row_that_breaks_a_rule_is_refused(
    app: Memory, refused: Refused, changes: dict[str, Any], update: str, rule: str
) -> None:
    app.remember("aisle", **changes)
    assert refused(f"UPDATE memory_record SET {update}") == rule


def test_two_active_records_never_share_a_slot(app: Memory, refused: Refused) -> None:
    app.remember("aisle")
    app.remember("aisle", bindings={"a": 1})
    statement = (
        "UPDATE memory_record SET bindings_text = '{}', bindings_hash = sha256(convert_to('{}', 'UTF8')) "
        "WHERE binding_count = 1"
    )
    assert refused(statement) == "memory_record_one_active_per_slot"


def test_a_record_is_never_removed_nor_its_id_used_again(
    app: Memory, refused: Refused, acme: TenantKit
) -> None:
    app.remember("aisle", id="r1")
    app.forget("r1")
    assert "permission denied" in str(refused("DELETE FROM memory_record"))
    columns = (
        "tenant_id, id, subject_type, subject_id, key, authority, source_type, evidence_kind, evidence_ref, observations, "
        "captured_at, captured_by, level, bindings_text, bindings_hash, route, sensitivity, trust, written_by, "
        "written_by_role, recorded_at, changed_at, version_from"
    )
    statement = (
        f"INSERT INTO memory_record ({columns}) SELECT tenant_id, id, subject_type, subject_id, key, authority, source_type, "
        "evidence_kind, evidence_ref, observations, captured_at, captured_by, level, bindings_text, bindings_hash, route, "
        "sensitivity, trust, written_by, written_by_role, recorded_at, changed_at, version_from FROM memory_record"
    )
    assert refused(statement) == "memory_record_pkey"


def test_neither_a_policy_nor_a_tombstone_gets_a_value(app: Memory, refused: Refused) -> None:
    app.remember(
        None, key="k", authority="policy", source_of_truth="https://p.example.com/", id="p"
    )
    app.remember("x", key="k.x", id="t")
    app.forget("t")
    for record_id in ("p", "t"):
        statement = (
            "INSERT INTO record_value (tenant_id, record_id, value_text) "
            "SELECT tenant_id, id, '1' FROM memory_record WHERE id = %s"
        )
        assert refused(statement, record_id) == "record_value_is_of_what_has_one"


def test_a_value_is_never_edited(app: Memory, refused: Refused) -> None:
    app.remember("aisle")
    assert "permission denied" in str(refused("UPDATE record_value SET value_text = '1'"))


def test_a_record_has_one_successor(app: Memory, refused: Refused) -> None:
    old = app.remember("aisle", bindings={"trip_id": "T1"})
    app.correct("window")
    app.remember("x", key="k.other", id="other")
    statement = (
        "INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at) "
        "SELECT tenant_id, %s, 'other', now() FROM memory_record WHERE id = 'other'"
    )
    assert refused(statement, old["id"]) == "record_supersession_one_successor"


def test_what_is_held_goes_only_once_it_is_sealed(app: Memory, refused: Refused) -> None:
    app.remember("aisle")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_record SET hold_count = 1")
    assert refused("DELETE FROM record_value") == "record_value_held_is_sealed"


def test_a_word_is_used_once(app: Memory, agent: Memory, refused: Refused) -> None:
    word = app.says()
    agent.remember("aisle", evidence={"kind": "message", "ref": word})
    statement = (
        "INSERT INTO used_word (tenant_id, log_entry_id, act_id, used_at) "
        "SELECT tenant_id, log_entry_id, act_id, now() FROM used_word"
    )
    assert refused(statement) == "used_word_once"


def test_the_owner_is_refused_too(live_acme: TenantKit, owner_conninfo: str) -> None:
    app = Memory(live_acme.client("app", users=["ann"]))
    app.remember("aisle", id="r1")
    app.forget("r1")
    for statement, rule in (
        (
            "UPDATE memory_record SET status = 'active', ended_at = NULL",
            "memory_record_moves_forward",
        ),
        ("DELETE FROM memory_record", "memory_record_never_removed"),
        (
            "INSERT INTO record_value SELECT tenant_id, id, '1' FROM memory_record",
            "record_value_is_of_what_has_one",
        ),
    ):
        with psycopg.connect(owner_conninfo) as owner:
            owner.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(live_acme.id)])
            with pytest.raises(psycopg.Error) as caught:
                owner.execute(statement)
            assert caught.value.diag.constraint_name == rule


def test_another_tenants_records_are_out_of_reach(live_acme: TenantKit, live_db: None) -> None:
    from tests.builders import make_tenant

    Memory(live_acme.client("app", users=["ann"])).remember("aisle", id="shared")
    other = make_tenant()
    theirs = Memory(other.client("app", everything=True))
    assert theirs.list() == []
    assert theirs.recall()["decision"] == "none"
    theirs.remember("window", id="shared")
    assert theirs.recall()["value"] == "window"
    with tenant_context(other.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_record")
        assert cursor.fetchone() == (1,)
