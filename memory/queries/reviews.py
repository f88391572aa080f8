"""What waits for a person's decision, oldest first: proposed records and facts, acts without a person's word, and complaints.

Kinds: `record` (its id), `fact` (its id), `act` (its own id), `withdrawal` and `dispute` (the receipt's number). For admins;
no read path of anybody else returns any of it. What is past its last day waits for nothing any more.
"""

import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from django.db import connection

from memory.access import Principal
from memory.api.json_text import Raw
from memory.errors import ReviewNotFound
from memory.instants import instant_text
from memory.queries.records import today_of
from memory.records.overdue import is_over

KINDS: Final = ("record", "act", "fact", "withdrawal", "dispute")
REASONS: Final = (
    *("instruction", "wide", "contradicts-a-person", "contradicts-a-policy", "lineage"),
    *("forgotten", "retired", "no-word", "wrong-person", "dispute", "restored"),
)


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One thing that waits. `name`: a record's key or a fact's type. `said`: canonical JSON of what it says, or asks.

    `act`: the act that waits. `statement`: what the person said about it.
    """

    kind: str
    id: str
    reason: str
    since: datetime
    writer: str
    role: str
    name: str | None
    subject_type: str | None
    subject_id: str | None
    act: str | None
    record_id: str | None
    fact_id: str | None
    said: str | None
    level: str | None
    bindings_text: str | None
    scope_text: str | None
    evidence_ref: str | None
    statement: str | None

    @property
    def bindings(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.bindings_text or "{}")
        return parsed

    @property
    def deletes_fact(self) -> bool:
        return self.act == "delete" and self.fact_id is not None

    def wire(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": self.kind,
            "id": self.id,
            "reason": self.reason,
            "waitingSince": instant_text(self.since),
            "writtenBy": self.writer,
            "role": self.role,
        }
        if self.subject_id is not None and self.subject_type is not None:
            body["subject"] = {"type": self.subject_type, "id": self.subject_id}
        if self.level is not None:
            body["appliesTo"] = {"level": self.level, "bindings": Raw(self.bindings_text or "{}")}
        named = {
            "name": self.name,
            "act": self.act,
            "recordId": self.record_id,
            "factId": self.fact_id,
            "says": None if self.said is None else Raw(self.said),
            "scope": None if self.scope_text is None else Raw(self.scope_text),
            "evidenceRef": self.evidence_ref,
            "statement": self.statement,
        }
        return body | {name: value for name, value in named.items() if value is not None}


_RECORD = f"""
SELECT 'record', r.id, coalesce(r.review_reason, 'lineage'), r.recorded_at, r.written_by, r.written_by_role, r.key,
       r.subject_type, r.subject_id, NULL, r.id, NULL, v.value_text, r.level, r.bindings_text, NULL, r.evidence_ref, NULL
FROM memory_record r LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
WHERE r.tenant_id = %(tenant)s::uuid AND r.review = 'pending' AND r.status = 'active' AND NOT {is_over("r")}
"""
_ACT = """
SELECT 'act', a.id, a.reason_code, a.asked_at, a.asked_by, a.asked_by_role,
       coalesce(a.key, (SELECT f.type FROM fact f WHERE f.tenant_id = a.tenant_id AND f.id = a.fact_id)),
       a.subject_type, a.subject_id, a.act, a.record_id, a.fact_id, a.body_text, NULL, NULL, NULL, NULL, NULL
FROM pending_act a
WHERE a.tenant_id = %(tenant)s::uuid AND a.decided_at IS NULL
"""
_FACT = """
SELECT 'fact', f.id, coalesce(f.review_reason, 'wide'), f.created_at, r.written_by, r.written_by_role, f.type,
       CASE WHEN coalesce(f.user_id, f.participant_id) IS NOT NULL THEN 'user' END, coalesce(f.user_id, f.participant_id),
       NULL, NULL, f.id, c.content_text, NULL, NULL, f.scope_text, r.cause_ids[1], NULL
FROM fact f JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
LEFT JOIN fact_content c ON c.tenant_id = r.tenant_id AND c.fact_id = r.fact_id AND c.version = r.version
WHERE f.tenant_id = %(tenant)s::uuid AND f.review = 'pending' AND f.deleted_at IS NULL
  AND (f.expires_at IS NULL OR f.expires_at > statement_timestamp())
"""
# Of several complaints about one record the newest stands; earlier ones were decided.
_WITHDRAWAL = f"""
SELECT 'withdrawal', p.number, 'wrong-person', p.made_at, p.actor, p.actor_role, r.key, r.subject_type, r.subject_id,
       'wrong-person', r.id, NULL, v.value_text, r.level, r.bindings_text, NULL, p.evidence_ref, p.reason
FROM memory_record r
JOIN receipt p ON p.tenant_id = r.tenant_id AND p.record_id = r.id AND p.route = 'wrong-person' AND p.undone_at IS NULL
LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
WHERE r.tenant_id = %(tenant)s::uuid AND r.review = 'withdrawn' AND r.status = 'active' AND NOT {is_over("r")}
  AND NOT EXISTS (
    SELECT 1 FROM receipt l
    WHERE l.tenant_id = p.tenant_id AND l.record_id = p.record_id AND l.route = p.route AND l.made_at > p.made_at)
"""
_DISPUTE = f"""
SELECT 'dispute', p.number, 'dispute', p.made_at, p.actor, p.actor_role, r.key, r.subject_type, r.subject_id, 'dispute',
       r.id, NULL, v.value_text, r.level, r.bindings_text, NULL, p.evidence_ref, p.statement
FROM memory_record r
JOIN receipt p ON p.tenant_id = r.tenant_id AND p.record_id = r.id AND p.route = 'dispute' AND p.made_at = r.disputed_at
  AND p.undone_at IS NULL
LEFT JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
WHERE r.tenant_id = %(tenant)s::uuid AND r.disputed_at IS NOT NULL AND r.status = 'active' AND r.review IS NULL
  AND NOT {is_over("r")}
"""
_BRANCHES: Final = {
    "record": (_RECORD, "r.recorded_at", "r.id", "r.subject_id", "r.written_by", "r.review_reason"),
    "act": (_ACT, "a.asked_at", "a.id", "a.subject_id", "a.asked_by", "a.reason_code"),
    "fact": (
        _FACT,
        "f.created_at",
        "f.id",
        "coalesce(f.user_id, f.participant_id)",
        "r.written_by",
        "f.review_reason",
    ),
    "withdrawal": (
        _WITHDRAWAL,
        "p.made_at",
        "p.number",
        "r.subject_id",
        "p.actor",
        "'wrong-person'",
    ),
    "dispute": (_DISPUTE, "p.made_at", "p.number", "r.subject_id", "p.actor", "'dispute'"),
}
"""By kind: the statement, and its columns for since, id, subject, writer and reason."""
_COLUMNS: Final = ", ".join(field.name for field in fields(ReviewItem))


@dataclass(frozen=True, slots=True)
class ReviewFilters:
    kind: str | None = None
    reason: str | None = None
    subject_id: str | None = None
    writer: str | None = None

    def wire(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def list_reviews(
    principal: Principal,
    filters: ReviewFilters,
    *,
    after: tuple[str, str, str] | None = None,
    limit: int,
) -> list[ReviewItem]:
    """What waits, oldest first. after: (since, id, kind) of the last of the page before."""
    branches = [
        _branch(kind, filters, has_position=after is not None)
        for kind in KINDS
        if filters.kind in (None, kind)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT * FROM ({' UNION ALL '.join(branches)}) w ({_COLUMNS}) "
            'ORDER BY since, id COLLATE "C", kind COLLATE "C" LIMIT %(limit)s::int',
            {
                **filters.wire(),
                **_here(principal),
                "limit": limit,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
                "after_kind": after[2] if after else None,
            },
        )
        return [ReviewItem(*row) for row in cursor.fetchall()]


def _branch(kind: str, filters: ReviewFilters, *, has_position: bool) -> str:
    statement, since, item_id, subject, writer, reason = _BRANCHES[kind]
    conditions = [
        f"{column} = %({name})s::text"
        for name, column in (("subject_id", subject), ("writer", writer), ("reason", reason))
        if getattr(filters, name) is not None
    ]
    if has_position:
        conditions.append(
            f'({since}, {item_id} COLLATE "C", \'{kind}\' COLLATE "C")'
            ' > (%(after_at)s::timestamptz, %(after_id)s::text COLLATE "C", %(after_kind)s::text COLLATE "C")'
        )
    more = "".join(f" AND {one}" for one in conditions)
    return f'({statement}{more} ORDER BY {since}, {item_id} COLLATE "C" LIMIT %(limit)s::int)'


def _here(principal: Principal) -> dict[str, Any]:
    return {"tenant": principal.tenant_id, "today": today_of(principal)}


def find_review(principal: Principal, kind: str, item_id: str) -> ReviewItem:
    """One thing that waits. Raises ReviewNotFound for what is decided, and for what never waited."""
    if kind not in _BRANCHES:
        raise ReviewNotFound
    statement, _, id_column, *_ = _BRANCHES[kind]
    with connection.cursor() as cursor:
        cursor.execute(
            f"{statement} AND {id_column} = %(id)s::text", {**_here(principal), "id": item_id}
        )
        row = cursor.fetchone()
    if row is None:
        raise ReviewNotFound
    return ReviewItem(*row)
