"""The rules of a new record that need no look-up, and those that ask what was forgotten, retired, or contradicted.

Source: the product contract, I1, I2, I4, I6, I8 and "Trust and poisoning".
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.errors import InstanceUnnamed, InvariantViolated
from memory.models.record import LEVELS
from memory.records import fingerprints
from memory.records.guard import decides_for_people
from memory.records.record import Record
from memory.records.shape import Draft

WIDEST_UNCONFIRMED = LEVELS.index("task")


def check_invariants(principal: Principal, draft: Draft) -> None:
    """Raises InstanceUnnamed, InvariantViolated."""
    counts = decides_for_people(principal)
    if (
        draft.source_type == "agent_inferred"
        and LEVELS.index(draft.level) > WIDEST_UNCONFIRMED
        and not (counts and draft.last_confirmed_at is not None)
    ):
        raise InvariantViolated(invariant="I1")
    if draft.authority == "policy" and draft.source_of_truth is None:
        raise InvariantViolated(invariant="I2")
    if draft.source_type == "user_correction" and not draft.broadened and draft.level != "instance":
        raise InvariantViolated(invariant="I4")
    is_correction = draft.source_type == "user_correction" and not draft.broadened
    # A tombstone of one, as a file brings it, need not name its case any more.
    if is_correction and not draft.bindings and draft.value_text is not None:
        raise InstanceUnnamed
    if draft.broadened and not counts:
        # "True only if the user explicitly confirmed": nothing that an agent can say for itself.
        raise InvariantViolated(invariant="I4")
    if draft.sensitivity == "sensitive" and draft.valid_until is None:
        raise InvariantViolated(invariant="I6")
    if draft.valid_from and draft.valid_until and draft.valid_from > draft.valid_until:
        raise InvariantViolated(invariant="valid-dates-in-order")
    if draft.id is not None and draft.id in (*draft.derived_from, *draft.supersedes):
        raise InvariantViolated(invariant="I7")


@dataclass(frozen=True, slots=True)
class Bygones:
    """When, last, each was forgotten, retired or forbidden; None where it wasn't."""

    key_forgotten_at: datetime | None = None
    value_forgotten_at: datetime | None = None
    value_retired_at: datetime | None = None
    inference_refused: bool = False

    @property
    def forgotten_at(self) -> datetime | None:
        return max(filter(None, (self.key_forgotten_at, self.value_forgotten_at)), default=None)

    @property
    def value_gone_at(self) -> datetime | None:
        return max(filter(None, (self.value_forgotten_at, self.value_retired_at)), default=None)


# A writer's clock may be a little ahead of ours: the very words that were forgotten must not look newer than their end.
_SINCE = "greatest(f.made_at, r.captured_at)"
_OF_RECORD = "LEFT JOIN memory_record r ON r.tenant_id = f.tenant_id AND r.id = f.record_id"


def bygones(tenant_id: UUID, draft: Draft | Record) -> Bygones:
    """What the fingerprints say of what a draft, or a record that waits, says. One statement."""
    about = (draft.subject_type, draft.subject_id)
    key = fingerprints.of_key(tenant_id, *about, draft.key)
    value = fingerprints.of_value(tenant_id, *about, draft.key, draft.value)
    refused = [
        fingerprints.of_inference(tenant_id, *about, prefix)
        for prefix in (fingerprints.ANY_KEY, *fingerprints.prefixes(draft.key))
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.kind, max({_SINCE}) FROM forgotten_fingerprint f {_OF_RECORD} "
            "WHERE f.tenant_id = %s::uuid AND f.digest = ANY(%s::bytea[]) GROUP BY f.kind",
            [tenant_id, [key, value, *refused]],
        )
        found: dict[str, datetime] = dict(cursor.fetchall())
    return Bygones(
        key_forgotten_at=found.get("forgotten-key"),
        value_forgotten_at=found.get("forgotten-value"),
        value_retired_at=found.get("retired-value"),
        inference_refused="never-infer" in found,
    )


def retired_with_nothing_since(principal: Principal, draft: Draft) -> datetime | None:
    """To an agent: when, last, a value of this (subject, key) was retired of which nothing is in use now; else None."""
    if not principal.is_agent:
        return None
    tenant_id = principal.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(id), bool_or(status = 'active' AND review IS NULL AND NOT is_upcoming) FROM memory_record "
            "WHERE tenant_id = %s::uuid AND subject_type = %s::text AND subject_id = %s::text AND key = %s::text",
            [tenant_id, draft.subject_type, draft.subject_id, draft.key],
        )
        ids, is_in_use = cursor.fetchone()
        if not ids or is_in_use:
            return None
        cursor.execute(
            f"SELECT max({_SINCE}) FROM forgotten_fingerprint f {_OF_RECORD} "
            "WHERE f.tenant_id = %s::uuid AND f.kind = 'retired-value' AND f.record_id = ANY(%s::text[])",
            [tenant_id, ids],
        )
        retired_at: datetime | None = cursor.fetchone()[0]
    return retired_at


_CONTRADICTS = """
SELECT EXISTS (
  SELECT 1 FROM memory_record r LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
  WHERE r.tenant_id = %(tenant)s::uuid AND r.key = %(key)s::text AND r.subject_type = %(type)s::text
    AND r.subject_id = %(subject)s::text AND r.status = 'active' AND r.review IS NULL
    AND r.source_type IN ('user_stated', 'user_correction') AND v.value_text IS DISTINCT FROM %(value)s::text
    AND (%(is_policy)s::bool OR (r.level_rank, -r.binding_count) > (%(rank)s::int, -(%(count)s::int)))
    AND NOT EXISTS (
      SELECT 1 FROM jsonb_each(r.bindings) b
      WHERE %(bindings)s::jsonb ? b.key AND %(bindings)s::jsonb -> b.key <> b.value)
)
"""


def contradicts_a_person(
    tenant_id: UUID, draft: Draft, level: str, bindings_text: str, bindings: dict[str, Any]
) -> bool:
    """Whether it would win over a person's word of another value in a context that both match."""
    with connection.cursor() as cursor:
        cursor.execute(
            _CONTRADICTS,
            {
                "tenant": tenant_id,
                "key": draft.key,
                "type": draft.subject_type,
                "subject": draft.subject_id,
                "value": draft.value_text,
                "is_policy": draft.authority == "policy",
                "rank": LEVELS.index(level) + 1,
                "count": len(bindings),
                "bindings": bindings_text,
            },
        )
        return bool(cursor.fetchone()[0])


def shadows_a_policy(tenant_id: UUID, draft: Draft) -> bool:
    """Whether it is a policy where one is in use that no agent wrote, or that a person confirmed, in any slot.

    Also one about something else: a person's context may name its project, client and org. Not one about another
    person, project, client or org of the same kind, which no context names beside.
    """
    if draft.authority != "policy":
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM memory_record WHERE tenant_id = %(tenant)s::uuid "
            "AND (subject_type <> %(type)s::text OR subject_id = %(subject)s::text) AND key = %(key)s::text "
            "AND authority = 'policy' AND status = 'active' AND review IS NULL "
            "AND (written_by_role <> 'agent' OR confirmed_at IS NOT NULL))",
            {
                "tenant": tenant_id,
                "type": draft.subject_type,
                "subject": draft.subject_id,
                "key": draft.key,
            },
        )
        return bool(cursor.fetchone()[0])
