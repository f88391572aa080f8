"""Reading and writing records' rows. Every act on one (subject, key) takes its lock first, so acts at once queue up.

Nothing here decides: callers have asked the rules. Lock order: the thing's lock, then records by id, then the run
head.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.endings import write_down_after_commit
from memory.errors import IdReused, RecordNotFound, constraint_errors
from memory.records.guard import record_guard
from memory.records.record import RECORD_COLUMNS, RECORD_TABLES, Record, record_of
from memory.records.shape import Draft
from memory.records.words_searched import words_of_record


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record about to be written.

    `observed_run`: the run that an inference was seen in. `is_upcoming`: it begins on a later day, and may have its slot
    beside the record that holds until then.
    """

    id: str
    subject_type: str
    subject_id: str
    key: str
    value_text: str | None
    authority: str
    source_type: str
    evidence_kind: str
    evidence_ref: str
    observations: int
    captured_at: datetime
    captured_by: str
    source_of_truth: str | None
    level: str
    bindings_text: str
    valid_from: date | None
    valid_until: date | None
    revalidate_on: Sequence[str]
    route: str
    broadened: bool
    derived_from: Sequence[str]
    sensitivity: str
    retain_value: bool
    trust: str
    written_by: str
    written_by_role: str
    recorded_at: datetime
    confirmed_at: datetime | None = None
    disputed_at: datetime | None = None
    review: str | None = None
    review_reason: str | None = None
    would_supersede: Sequence[str] | None = None
    request_digest: bytes | None = None
    observed_run: str | None = None
    status: str = "active"
    ended_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_reason: str | None = None
    is_upcoming: bool = False

    @classmethod
    def saying(
        cls, said: Draft | Record, *, by: Principal, at: datetime, **decided: Any
    ) -> "NewRecord":
        """What a draft, or an earlier record, says, written by `by`; `decided`: what else is known of it, or known better."""
        return cls(
            **{
                **{name: getattr(said, name) for name in _SAID},
                "written_by": by.writer,
                "written_by_role": by.role,
                "recorded_at": at,
                **decided,
            }
        )


_SAID = {field.name for field in fields(NewRecord)} & {field.name for field in fields(Draft)}


def lock_thing(tenant_id: UUID, subject_type: str, subject_id: str, key: str) -> None:
    """Wait for, and take, the lock of one (subject, key) until the transaction ends."""
    _lock(f"record {tenant_id} {subject_type} {subject_id}\x1f{key}")


def lock_inferences(tenant_id: UUID, subject_type: str, subject_id: str, *, shared: bool) -> None:
    """Between inferring about a subject (shared) and forbidding it (alone)."""
    _lock(f"inferences {tenant_id} {subject_type} {subject_id}", shared=shared)


def lock_lineage(tenant_id: UUID, own_id: str | None, parent_ids: Sequence[str]) -> None:
    """Keep a record and the ones derived from it from appearing unseen by each other: a caller-chosen id alone,
    parents shared.
    """
    if own_id is not None:
        _lock(f"lineage {tenant_id} {own_id}")
    for parent_id in sorted(set(parent_ids)):
        _lock(f"lineage {tenant_id} {parent_id}", shared=True)


def _lock(name: str, *, shared: bool = False) -> None:
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended(%s::text, 0))", [name])


def find_records(tenant_id: UUID, condition: str, parameters: dict[str, Any]) -> list[Record]:
    """Records under a condition over `r`, whoever may read them: for the rules, never for an answer."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.tenant_id = %(tenant)s::uuid AND {condition}",
            {"tenant": tenant_id, **parameters},
        )
        return [record_of(row) for row in cursor.fetchall()]


def find_record(tenant_id: UUID, record_id: str) -> Record | None:
    found = find_records(tenant_id, "r.id = %(id)s::text", {"id": record_id})
    return found[0] if found else None


def readable_record(principal: Principal, record_id: str) -> Record:
    """The record that the caller may see, tombstones included; not one in review. Raises RecordNotFound."""
    rule, parameters = record_guard(principal)
    found = find_records(
        principal.tenant_id,
        f"r.id = %(id)s::text AND r.review IS NULL AND {rule}",
        {"id": record_id, **parameters},
    )
    if not found:
        raise RecordNotFound
    return found[0]


def record_in_slot(
    tenant_id: UUID,
    subject_type: str,
    subject_id: str,
    key: str,
    level: str,
    bindings_text: str,
    *,
    upcoming: bool = False,
) -> Record | None:
    """The active record that fills the slot; `upcoming`: the one that will, from a later day on."""
    found = find_records(
        tenant_id,
        "r.subject_type = %(subject_type)s::text AND r.subject_id = %(subject_id)s::text AND r.key = %(key)s::text "
        "AND r.level = %(level)s::text AND r.bindings_hash = %(bindings_hash)s::bytea "
        "AND r.status = 'active' AND r.review IS NULL AND r.is_upcoming = %(upcoming)s::bool",
        {
            "subject_type": subject_type,
            "subject_id": subject_id,
            "key": key,
            "level": level,
            "bindings_hash": bindings_hash(bindings_text),
            "upcoming": upcoming,
        },
    )
    return found[0] if found else None


def bindings_hash(bindings_text: str) -> bytes:
    return sha256(bindings_text.encode()).digest()


_COLUMNS = (
    *(
        "id",
        "subject_type",
        "subject_id",
        "key",
        "authority",
        "source_type",
        "evidence_kind",
        "evidence_ref",
    ),
    *(
        "observations",
        "captured_at",
        "captured_by",
        "source_of_truth",
        "level",
        "bindings_text",
        "valid_from",
    ),
    *(
        "valid_until",
        "revalidate_on",
        "route",
        "broadened",
        "sensitivity",
        "retain_value",
        "trust",
        "written_by",
    ),
    *(
        "written_by_role",
        "recorded_at",
        "confirmed_at",
        "disputed_at",
        "review",
        "review_reason",
        "would_supersede",
        "request_digest",
        "status",
    ),
    *("ended_at", "deleted_at", "deleted_reason", "is_upcoming"),
)
_TYPES = {
    "observations": "int",
    "captured_at": "timestamptz",
    "valid_from": "date",
    "valid_until": "date",
    "revalidate_on": "text[]",
    "would_supersede": "text[]",
    "broadened": "bool",
    "retain_value": "bool",
    "recorded_at": "timestamptz",
    "confirmed_at": "timestamptz",
    "request_digest": "bytea",
    "ended_at": "timestamptz",
    "bindings_hash": "bytea",
    "disputed_at": "timestamptz",
    "deleted_at": "timestamptz",
    "hold_count": "int",
    "is_upcoming": "bool",
}

_INSERT = f"""
WITH record AS (
  INSERT INTO memory_record (tenant_id, bindings_hash, changed_at, version_from, {", ".join(_COLUMNS)})
  VALUES (%(tenant)s::uuid, %(bindings_hash)s::bytea, %(recorded_at)s::timestamptz, %(recorded_at)s::timestamptz,
          {", ".join(f"%({name})s::{_TYPES.get(name, 'text')}" for name in _COLUMNS)})
), value AS (
  INSERT INTO record_value (tenant_id, record_id, value_text)
  SELECT %(tenant)s::uuid, %(id)s::text, %(value_text)s::text WHERE %(value_text)s::text IS NOT NULL
), parents AS (
  INSERT INTO record_lineage (tenant_id, record_id, parent_id, position)
  SELECT %(tenant)s::uuid, %(id)s::text, p.id, p.n FROM unnest(%(derived_from)s::text[]) WITH ORDINALITY AS p (id, n)
), listeners AS (
  INSERT INTO record_listener (tenant_id, event_type, record_id)
  SELECT %(tenant)s::uuid, e, %(id)s::text FROM unnest(%(revalidate_on)s::text[]) AS e
), observation AS (
  INSERT INTO record_observation (tenant_id, record_id, run_key, observed_at)
  SELECT %(tenant)s::uuid, %(id)s::text, %(observed_run)s::text, %(recorded_at)s::timestamptz
  WHERE %(observed_run)s::text IS NOT NULL
), document AS (
  INSERT INTO record_document (tenant_id, record_id, lexemes)
  SELECT %(tenant)s::uuid, %(id)s::text, %(lexemes)s::text[] WHERE cardinality(%(lexemes)s::text[]) > 0
), superseded AS (
  INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at)
  SELECT %(tenant)s::uuid, s, %(id)s::text, %(recorded_at)s::timestamptz FROM unnest(%(superseded)s::text[]) AS s
)
INSERT INTO record_usage (tenant_id, record_id) VALUES (%(tenant)s::uuid, %(id)s::text)
"""


def insert_record(
    tenant_id: UUID, new: NewRecord, *, language: str, superseded: Sequence[str] = ()
) -> None:
    """Write a record and all that hangs on it. `superseded`: ids whose successor it is; they have ended already.

    `language`: the tenant's, for search; what isn't served has no words there.

    Raises IdReused, RecordChanged (another active record fills the slot), InvariantViolated.
    """
    is_served = new.status == "active" and new.review is None
    parameters: dict[str, Any] = {name: getattr(new, name) for name in _COLUMNS}
    parameters |= {
        "tenant": tenant_id,
        "bindings_hash": bindings_hash(new.bindings_text),
        "revalidate_on": list(new.revalidate_on),
        "value_text": new.value_text,
        "derived_from": list(dict.fromkeys(new.derived_from)),
        "observed_run": new.observed_run,
        "superseded": list(superseded),
        "lexemes": words_of_record(new.key, new.value_text, language) if is_served else [],
    }
    with (
        constraint_errors(memory_record_pkey=IdReused(id=new.id)),
        connection.cursor() as cursor,
    ):
        cursor.execute(_INSERT, parameters)


_ENDING = {"status", "review", "disputed_at"}


def update_records(tenant_id: UUID, ids: Sequence[str], at: datetime, **columns: Any) -> int:
    """Set columns of records; how many there were. What ends by it is in the ledger before the caller is answered.

    Raises what their constraints say.
    """
    assignments = ", ".join(f"{name} = %({name})s::{_TYPES.get(name, 'text')}" for name in columns)
    with constraint_errors(), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE memory_record SET changed_at = %(at)s::timestamptz, {assignments} "
            "WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[])",
            {"tenant": tenant_id, "ids": list(ids), "at": at, **columns},
        )
        if _ENDING & columns.keys():
            write_down_after_commit(tenant_id)
        return cursor.rowcount


def waiting_in_slot(
    tenant_id: UUID, writer: str, thing: tuple[str, str, str], level: str, bindings_text: str
) -> list[Record]:
    """What one writer proposed for a slot of a thing (subject type, subject id, key) and nobody decided yet."""
    return find_records(
        tenant_id,
        "r.subject_type = %(type)s::text AND r.subject_id = %(subject)s::text AND r.key = %(key)s::text "
        "AND r.review = 'pending' AND r.status = 'active' AND r.level = %(level)s::text "
        "AND r.bindings_text = %(bindings)s::text AND r.written_by = %(writer)s::text",
        {
            "type": thing[0],
            "subject": thing[1],
            "key": thing[2],
            "level": level,
            "bindings": bindings_text,
            "writer": writer,
        },
    )


def add_observation(tenant_id: UUID, record_id: str, run_key: str, at: datetime) -> bool:
    """Note the run that an inference was seen in; False when it was noted before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO record_observation (tenant_id, record_id, run_key, observed_at) "
            "VALUES (%s::uuid, %s::text, %s::text, %s::timestamptz) "
            "ON CONFLICT ON CONSTRAINT record_observation_pkey DO NOTHING",
            [tenant_id, record_id, run_key, at],
        )
        return cursor.rowcount == 1


def link_imported(
    tenant_id: UUID, record_id: str, *, superseded: Sequence[str], by: str | None
) -> None:
    """Say who replaced whom, as far as both are there, the one has ended and nobody else took its place."""
    earlier = [*superseded, *([record_id] if by is not None else [])]
    later = [*(record_id for _ in superseded), *([by] if by is not None else [])]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at) "
            "SELECT o.tenant_id, o.id, n.id, o.ended_at FROM unnest(%(earlier)s::text[], %(later)s::text[]) AS p (o, n) "
            "JOIN memory_record o ON o.tenant_id = %(tenant)s::uuid AND o.id = p.o "
            "AND o.status IN ('superseded', 'deleted') "
            "JOIN memory_record n ON n.tenant_id = %(tenant)s::uuid AND n.id = p.n AND n.id <> o.id "
            "WHERE (o.subject_type, o.subject_id, o.key) = (n.subject_type, n.subject_id, n.key) "
            "ON CONFLICT ON CONSTRAINT record_supersession_one_successor DO NOTHING",
            {"tenant": tenant_id, "earlier": earlier, "later": later},
        )


def link_superseded(tenant_id: UUID, superseded_id: str, successor_id: str, at: datetime) -> None:
    """Say of a record that has ended which one took its place."""
    with constraint_errors(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at) "
            "VALUES (%s::uuid, %s::text, %s::text, %s::timestamptz)",
            [tenant_id, superseded_id, successor_id, at],
        )


def link_past(
    tenant_id: UUID, record_id: str, *, superseded_by: str, begins: datetime, ends: datetime
) -> None:
    """Say of a record that was superseded from the start when it held, and by what it is superseded."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH link AS ("
            "INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at) "
            "VALUES (%(tenant)s::uuid, %(id)s::text, %(by)s::text, %(ends)s::timestamptz)) "
            "INSERT INTO record_past (tenant_id, record_id, row_version, from_at, until_at, level, bindings_text, "
            "valid_from, valid_until, observations, confirmed_at, trust) "
            "SELECT tenant_id, id, 0, %(begins)s::timestamptz, %(ends)s::timestamptz, level, bindings_text, valid_from, "
            "valid_until, observations, confirmed_at, trust FROM memory_record "
            "WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::text",
            {
                "tenant": tenant_id,
                "id": record_id,
                "by": superseded_by,
                "begins": begins,
                "ends": ends,
            },
        )
