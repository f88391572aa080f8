"""What an erasure reaches: the facts, records and log entries of a person, a conversation or a fact, and which are held.

A person is one subject id: in `scope.userId`, `participantId` of any project, `subjects[].id` of any kind, a record's subject and
its bindings, a member's subject; and in an entry's actor, as such or as `user:` or `participant:`.

An erasure that a hold stopped, or that is done again after a restore, reaches what was there before a moment, and nothing newer.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.erasure.ledger import PERSON_KINDS, selector_digest
from memory.hold_naming import FACT_IS_HELD, record_is_held
from memory.log_pseudonyms import is_of, is_pseudonym, pseudonym

_FACTS = {
    "fact": "f.id = %(selector)s::text",
    "conversation": "f.thread_id = %(selector)s::text",
    "person": (
        "f.id IN (SELECT a.id FROM fact a WHERE a.tenant_id = %(tenant)s::uuid AND a.user_id = %(selector)s::text"
        " UNION SELECT b.id FROM fact b WHERE b.tenant_id = %(tenant)s::uuid AND b.participant_id = %(selector)s::text"
        " UNION SELECT s.fact_id FROM fact_subject s WHERE s.tenant_id = %(tenant)s::uuid AND s.subject_id = %(selector)s::text)"
    ),
}
_ENTRIES = {
    "fact": "false",
    "conversation": "e.thread_id = %(selector)s::text",
    "person": "(e.user_id IN (%(selector)s::text, %(in_log)s::text)"
    " OR e.participant_id IN (%(selector)s::text, %(in_log)s::text)"
    " OR (e.actor = ANY(%(actors)s::text[]) AND person_in_actor(e.run_id, e.actor, e.writer) IS NOT NULL))",
}
_RECORDS = {
    "fact": "(m.evidence_ref = %(selector)s::text OR EXISTS (SELECT 1 FROM record_lineage l"
    " WHERE l.tenant_id = m.tenant_id AND l.record_id = m.id AND l.parent_id = %(selector)s::text))",
    "conversation": "(m.bindings ->> 'thread_id' = %(selector)s::text OR m.evidence_ref IN (SELECT e.id FROM log_entry e"
    " WHERE e.tenant_id = %(tenant)s::uuid AND e.thread_id = %(selector)s::text))",
    "person": "((m.subject_type = 'user' AND m.subject_id = %(selector)s::text)"
    " OR m.bindings ->> 'user_id' = %(selector)s::text OR m.bindings ->> 'participant_id' = %(selector)s::text)",
}
# Lineage and earlier versions of what is reached go too.
_CLOSURE = """
WITH RECURSIVE gone (id) AS (
  SELECT m.id FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND {records}
  UNION
  SELECT n.id FROM gone g, LATERAL (
    SELECT l.record_id AS id FROM record_lineage l WHERE l.tenant_id = %(tenant)s::uuid AND l.parent_id = g.id
    UNION ALL
    SELECT s.superseded_id FROM record_supersession s WHERE s.tenant_id = %(tenant)s::uuid AND s.successor_id = g.id
  ) n
)
"""


def _named(kind: str) -> str:
    return "person" if kind in PERSON_KINDS else kind


_ACTS_AS = ("", "user:", "participant:")
_SINCE = {"f": "f.created_at", "m": "m.recorded_at", "e": "e.recorded_at"}


def selected(tenant_id: UUID, selector_id: str, before: datetime | None = None) -> dict[str, Any]:
    """The parameters of the conditions below. before: of those that `in_time` bounds; None bounds nothing."""
    in_log = pseudonym(tenant_id, selector_id)
    return {
        "tenant": tenant_id,
        "selector": selector_id,
        "in_log": in_log,
        "actors": [prefix + one for one in (selector_id, in_log) for prefix in _ACTS_AS],
        "before": before,
    }


def in_time(condition: str, alias: str) -> str:
    """The condition over `f`, `m` or `e`, of what was there before the moment up to which an erasure reaches."""
    bound = f"(%(before)s::timestamptz IS NULL OR {_SINCE[alias]} < %(before)s::timestamptz)"
    return f"({condition} AND {bound})"


def facts_condition(kind: str) -> str:
    """SQL over `f`; its parameters are those of `selected`."""
    return _FACTS[_named(kind)]


def entries_condition(kind: str) -> str:
    """SQL over `e`; its parameters are those of `selected`."""
    return _ENTRIES[_named(kind)]


def is_named_plainly(kind: str) -> str:
    """SQL over `e`, an entry in reach: whether it keeps the id itself for ever, and not a keyed hash of it."""
    if kind not in PERSON_KINDS:
        return "true"
    return (
        "coalesce(%(selector)s::text IN (e.user_id, e.participant_id), false)"
        " OR coalesce(e.actor = ANY(%(actors)s::text[])"
        " AND right(e.actor, length(%(selector)s::text)) = %(selector)s::text, false)"
    )


def records_condition(kind: str) -> str:
    """SQL over `m`; its parameters are those of `selected`."""
    return _RECORDS[_named(kind)]


def records_closure(kind: str) -> str:
    """A WITH clause whose `gone` holds the records in reach, with all derived from them and their earlier versions."""
    return _CLOSURE.format(records=in_time(records_condition(kind), "m"))


def held_in_reach(
    tenant_id: UUID,
    kind: str,
    selector_id: str,
    *,
    before: datetime | None = None,
    limit: int = 100,
) -> list[str]:
    """Ids of facts, records and log entries in reach that a hold keeps; log entries by the run or subject of a hold."""
    parameters = {**selected(tenant_id, selector_id, before), "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.id FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND {FACT_IS_HELD}"
            f" AND {in_time(facts_condition(kind), 'f')}"
            " ORDER BY f.id LIMIT %(limit)s::int",
            parameters,
        )
        held = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            records_closure(kind)
            + f"SELECT m.id FROM memory_record m WHERE m.tenant_id = %(tenant)s::uuid AND {record_is_held('m')}"
            " AND m.id IN (SELECT id FROM gone) ORDER BY m.id LIMIT %(limit)s::int",
            parameters,
        )
        held += [row[0] for row in cursor.fetchall()]
        cursor.execute(
            "SELECT e.id FROM log_entry e JOIN legal_hold h ON h.tenant_id = e.tenant_id AND h.released_at IS NULL"
            " WHERE e.tenant_id = %(tenant)s::uuid AND e.payload_text IS NOT NULL AND h.has_selector"
            " AND cardinality(h.fact_types) = 0"
            " AND (cardinality(h.run_ids) = 0 OR e.run_id = ANY (h.run_ids))"
            " AND (cardinality(h.subject_ids) = 0 OR e.user_id = ANY (h.subject_ids) OR e.participant_id = ANY (h.subject_ids))"
            " AND (h.written_from IS NULL OR e.recorded_at >= h.written_from)"
            " AND (h.written_until IS NULL OR e.recorded_at < h.written_until)"
            f" AND {in_time(entries_condition(kind), 'e')} ORDER BY e.id LIMIT %(limit)s::int",
            parameters,
        )
        held += [row[0] for row in cursor.fetchall()]
    return held[:limit]


_PEOPLE = """
SELECT DISTINCT p.id FROM (
  SELECT user_id AS id FROM fact WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT participant_id FROM fact WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT subject_id FROM fact_subject WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT subject_id FROM memory_record WHERE tenant_id = %(tenant)s::uuid AND subject_type = 'user'
  UNION ALL SELECT bindings ->> 'user_id' FROM memory_record WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT bindings ->> 'participant_id' FROM memory_record WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT user_id FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND user_id IS NOT NULL
  UNION ALL SELECT participant_id FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND participant_id IS NOT NULL
  UNION ALL SELECT person_in_actor(run_id, actor, writer) FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND actor IS NOT NULL
  UNION ALL SELECT unnest(users || participants) FROM api_key WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT subject_id FROM member WHERE tenant_id = %(tenant)s::uuid
) p WHERE p.id IS NOT NULL
"""
_CONVERSATIONS = """
SELECT DISTINCT c.id FROM (
  SELECT thread_id AS id FROM fact WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT thread_id FROM log_entry WHERE tenant_id = %(tenant)s::uuid
  UNION ALL SELECT bindings ->> 'thread_id' FROM memory_record WHERE tenant_id = %(tenant)s::uuid
) c WHERE c.id IS NOT NULL
"""
_FACT_IDS = "SELECT id FROM fact WHERE tenant_id = %(tenant)s::uuid"


def find_again(
    tenant_id: UUID, wanted: Sequence[tuple[str, bytes]]
) -> dict[tuple[str, bytes], str]:
    """Who in the tenant has these (kind, keyed hash): tried out, since the hash can't be turned back."""
    found: dict[tuple[str, bytes], str] = {}
    looked_for = set(wanted)
    for kind in sorted({kind for kind, _ in wanted}):
        query = {"fact": _FACT_IDS, "conversation": _CONVERSATIONS}.get(kind, _PEOPLE)
        with connection.cursor() as cursor:
            cursor.execute(query, {"tenant": tenant_id})
            for (candidate,) in cursor:
                key = (kind, selector_digest(tenant_id, kind, candidate))
                if key in looked_for:
                    found[key] = candidate
                elif is_pseudonym(candidate) and kind in PERSON_KINDS:
                    # Nothing but the log has the person any more: there the pseudonym is the id.
                    for digest in (one for of, one in looked_for if of == kind):
                        if is_of(candidate, kind, digest):
                            found.setdefault((kind, digest), candidate)
    return found
