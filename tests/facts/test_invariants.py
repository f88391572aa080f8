"""What must never be false about a fact is refused by the database too, whoever asks."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from memory.errors import constraint_of
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import at, written


@pytest.fixture
def fact(acme: TenantKit, app: ApiClient) -> dict[str, Any]:
    made = written(app, id="f", subjects=[{"kind": "user", "id": "ann"}])
    app.post(at(made, "/supersede"), {"content": 2})
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(acme.id)])
    return made


_REVISION = (
    "INSERT INTO fact_revision (tenant_id, fact_id, version, revision_id, supersedes, recorded_at, content_hash, size_bytes,"
    " trust, attributed_kind, attributed_id, written_by, written_by_role)"
    " SELECT tenant_id, fact_id, {version}, 'new', {supersedes}, now(), content_hash, 1, '{trust}', 'service', 's', 's', 'app'"
    " FROM fact_revision WHERE fact_id = 'f' AND version = 1"
)


def revision(version: int, supersedes: str = "'f'", trust: str = "asserted") -> str:
    return _REVISION.format(version=version, supersedes=supersedes, trust=trust)


@pytest.mark.parametrize(
    ("statement", "claim"),
    [
        ("UPDATE fact_revision SET trust = 'verified' WHERE fact_id = 'f'", None),
        (
            "UPDATE fact_revision SET invalidation_reason = 'erased' WHERE fact_id = 'f' AND version = 1",
            "fact_revision_only_closes",
        ),
        (
            "UPDATE fact_revision SET invalidated_at = NULL, invalidated_by = NULL, invalidation_reason = NULL WHERE version = 1",
            "fact_revision_only_closes",
        ),
        ("UPDATE fact SET type = 'x' WHERE id = 'f'", "fact_keeps_identity"),
        ("UPDATE fact SET scope_text = '{}' WHERE id = 'f'", "fact_keeps_identity"),
        ("UPDATE fact SET created_at = now() WHERE id = 'f'", "fact_keeps_identity"),
        ("UPDATE fact SET current_version = 1 WHERE id = 'f'", "fact_keeps_identity"),
        ("UPDATE fact SET keep_ends_at = now() WHERE id = 'f'", "fact_keep_window_says_why"),
        ("UPDATE fact SET hold_count = -1 WHERE id = 'f'", "fact_hold_count_is_not_negative"),
        ("UPDATE fact SET review = 'maybe' WHERE id = 'f'", "fact_review_is_known"),
        (revision(4), "fact_revision_continues_fact"),
        (revision(3, "'other'"), "fact_revision_continues_fact"),
        (revision(2), "fact_revision_pkey"),
        (
            revision(3, "(SELECT revision_id FROM fact_revision WHERE version = 2)"),
            "fact_revision_continues_fact",
        ),
        ("INSERT INTO fact SELECT * FROM fact WHERE false", None),
        ("UPDATE fact_content SET content_text = '1' WHERE fact_id = 'f'", None),
        ("TRUNCATE fact_revision CASCADE", None),
    ],
)
def test_a_statement_that_would_break_a_rule_is_refused(
    fact: dict[str, Any], app: ApiClient, statement: str, claim: str | None
) -> None:
    if statement.startswith("INSERT INTO fact SELECT"):
        statement = (
            "INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)"
            " SELECT tenant_id, 'g', type, '{\"participantId\":\"u\"}', 1, now() FROM fact WHERE id = 'f'"
        )
        claim = "fact_participant_needs_project"
    with (
        pytest.raises(DatabaseError) as refused,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    # without a claim the app role has no such grant at all
    assert constraint_of(refused.value) == claim
    if claim is None:
        assert getattr(refused.value.__cause__, "sqlstate", None) == "42501"


def test_a_first_revision_supersedes_nothing_and_inline_content_is_hashed(
    fact: dict[str, Any], app: ApiClient
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)"
            " SELECT tenant_id, 'h', type, scope_text, 1, now() FROM fact WHERE id = 'f'"
        )
    with (
        pytest.raises(DatabaseError) as refused,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "INSERT INTO fact_revision (tenant_id, fact_id, version, revision_id, recorded_at, trust, attributed_kind,"
            " attributed_id, written_by, written_by_role)"
            " SELECT tenant_id, 'h', 1, 'h', now(), 'asserted', 'service', 's', 's', 'app' FROM fact WHERE id = 'f'"
        )
    assert constraint_of(refused.value) == "fact_revision_inline_content_is_hashed"
