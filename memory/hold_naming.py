"""What a hold names, in SQL: which facts and records a scope is about, and whether a single one is held now.

A large hold protects from the moment it is placed, and takes in what it names batch by batch afterwards. Until it is done, the
count on an item's head doesn't tell: FACT_IS_HELD and `record_is_held` ask such holds, too. Their parameter is `tenant`. The
conditions here are those of `hold_names_fact` and `hold_names_record` in SQL, without what a scope leaves open, so that a
statement over many rows is quick; a test holds them equal.
"""

from typing import Protocol
from uuid import UUID

from django.db import connection


class Named(Protocol):
    """What of a scope matters here."""

    @property
    def subject_ids(self) -> tuple[str, ...]: ...
    @property
    def fact_types(self) -> tuple[str, ...]: ...
    @property
    def run_ids(self) -> tuple[str, ...]: ...
    @property
    def written_from(self) -> object | None: ...
    @property
    def written_until(self) -> object | None: ...
    @property
    def has_selector(self) -> bool: ...


_UNFINISHED = """EXISTS (SELECT FROM legal_hold u
  WHERE u.tenant_id = %(tenant)s::uuid AND u.taken_in_at IS NULL AND u.released_at IS NULL)"""
FACT_IS_HELD = f"(f.hold_count > 0 OR ({_UNFINISHED} AND fact_is_named(%(tenant)s::uuid, f.id)))"
"""Over `f`, a fact."""


def record_is_held(alias: str) -> str:
    """Over a memory record."""
    return f"({alias}.hold_count > 0 OR ({_UNFINISHED} AND record_is_named(%(tenant)s::uuid, {alias}.id)))"


def is_record_held(tenant_id: UUID, record_id: str) -> bool:
    """Whether a hold keeps this record now."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {record_is_held('m')} FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND m.id = %(id)s::text",
            {"tenant": tenant_id, "id": record_id},
        )
        row = cursor.fetchone()
    return row is not None and bool(row[0])


SHARE_NEW_ITEMS = "SELECT pg_advisory_xact_lock_shared(new_items_lock(%(tenant)s::uuid))"
"""Before the question whether something is held, by whoever then destroys it: a large hold is placed before, or after the act."""

_ABOUT_SUBJECTS = """f.id IN (
  SELECT a.id FROM fact a WHERE a.tenant_id = %(tenant)s::uuid AND a.user_id = ANY(%(subject_ids)s::text[])
  UNION SELECT a.id FROM fact a WHERE a.tenant_id = %(tenant)s::uuid AND a.participant_id = ANY(%(subject_ids)s::text[])
  UNION SELECT a.id FROM fact a WHERE a.tenant_id = %(tenant)s::uuid
    AND (a.project_id = ANY(%(subject_ids)s::text[]) OR a.org_id = ANY(%(subject_ids)s::text[]))
  UNION SELECT s.fact_id FROM fact_subject s
    WHERE s.tenant_id = %(tenant)s::uuid AND s.subject_id = ANY(%(subject_ids)s::text[]))"""
_OF_RUNS = """f.id IN (
  SELECT r.fact_id FROM fact_revision r WHERE r.tenant_id = %(tenant)s::uuid AND r.generated_run_id = ANY(%(run_ids)s::text[])
  UNION SELECT c.fact_id FROM fact_cause c JOIN log_entry e ON e.tenant_id = c.tenant_id AND e.id = c.log_entry_id
    WHERE c.tenant_id = %(tenant)s::uuid AND e.run_id = ANY(%(run_ids)s::text[]))"""
_RECORD_ABOUT_SUBJECTS = """(m.subject_id = ANY(%(subject_ids)s::text[])
  OR m.bindings ->> 'user_id' = ANY(%(subject_ids)s::text[]))"""
_RECORD_OF_RUNS = """(m.evidence_ref = ANY(%(run_ids)s::text[]) OR m.id IN (
  SELECT o.record_id FROM record_observation o WHERE o.tenant_id = %(tenant)s::uuid AND o.run_key = ANY(%(run_ids)s::text[]))
  OR m.evidence_ref IN (SELECT e.id FROM log_entry e
    WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = ANY(%(run_ids)s::text[])))"""


def facts_condition(scope: Named) -> str:
    """Over `f`: what the selector names. Its parameters are those of the scope, and `tenant`."""
    parts = {
        _ABOUT_SUBJECTS: scope.subject_ids,
        "f.type = ANY(%(fact_types)s::text[])": scope.fact_types,
        "f.created_at >= %(written_from)s::timestamptz": scope.written_from,
        "f.created_at < %(written_until)s::timestamptz": scope.written_until,
        _OF_RUNS: scope.run_ids,
    }
    return _all_of(scope, parts)


def records_condition(scope: Named) -> str:
    """Over `m`: what the selector names. Types are of facts: a selector with types names no record."""
    parts = {
        "false": scope.fact_types,
        _RECORD_ABOUT_SUBJECTS: scope.subject_ids,
        "m.recorded_at >= %(written_from)s::timestamptz": scope.written_from,
        "m.recorded_at < %(written_until)s::timestamptz": scope.written_until,
        _RECORD_OF_RUNS: scope.run_ids,
    }
    return _all_of(scope, parts)


def _all_of(scope: Named, parts: dict[str, object]) -> str:
    if not scope.has_selector:
        return "false"
    return "(" + " AND ".join(condition for condition, given in parts.items() if given) + ")"


IS_THERE = """(m.status <> 'deleted' OR EXISTS (
  SELECT 1 FROM sealed_copy s WHERE s.tenant_id = %(tenant)s::uuid AND s.record_id = m.id))"""
"""Over `m`: a record that a hold can still keep something of."""


def named_facts(scope: Named) -> str:
    """The ids of the facts that a scope names, one by one and by its selector. In no order."""
    return (
        "SELECT f.id FROM fact f WHERE f.tenant_id = %(tenant)s::uuid"
        f" AND (f.id = ANY(%(fact_ids)s::text[]) OR {facts_condition(scope)})"
    )


def named_records(scope: Named) -> str:
    """The same of records."""
    return (
        "SELECT m.id FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid"
        f" AND (m.id = ANY(%(record_ids)s::text[]) OR {records_condition(scope)}) AND {IS_THERE}"
    )
