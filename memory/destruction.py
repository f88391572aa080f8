"""The one way that facts are destroyed, whoever asks: sweep and erasure alike.

The caller has locked the heads. A second statement then looks at their holds once more: whoever waited for a lock has seen the
row again, but nothing else of its snapshot. What is held stays; the database's own triggers refuse it too. What goes, goes whole:
content, revisions, subjects, causes, freshness, index, kept answers; what stays is one evidence row a fact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db import connection

from memory.endings import write_down_after_commit
from memory.errors import constraint_errors
from memory.hold_naming import FACT_IS_HELD, SHARE_NEW_ITEMS
from memory.records import fingerprints
from memory.search.index import remove_index

MOST_AT_ONCE = 500

_HELD = f"""
SELECT f.id FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND f.id = ANY(%(ids)s::text[]) AND {FACT_IS_HELD} ORDER BY f.id
"""
_DIGESTS = """
SELECT f.id, f.current_version, r.content_hash FROM fact f
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = ANY(%(ids)s::text[])
"""
_EVIDENCE = """
INSERT INTO destroyed_fact
  (tenant_id, cause, cause_id, fact_id, type, rule, first_written_at, due_at, revision_count, content_digest)
SELECT %(tenant)s::uuid, %(cause)s::text, %(cause_id)s::uuid, e.shown, f.type, e.rule, f.created_at, e.due_at,
       f.current_version, e.digest
FROM unnest(%(ids)s::text[], %(shown)s::text[], %(rules)s::text[], %(dues)s::timestamptz[], %(digests)s::bytea[])
       AS e (id, shown, rule, due_at, digest)
JOIN fact f ON f.tenant_id = %(tenant)s::uuid AND f.id = e.id
"""
_WITHHOLD = """
UPDATE idempotency_key SET answer = NULL, withheld_at = now()
WHERE tenant_id = %(tenant)s::uuid AND item_ref = ANY(%(refs)s::text[]) AND withheld_at IS NULL
"""
_FORGET_CHANGES = """
UPDATE pending_act
SET body_text = NULL, decision = 'forgotten', decided_at = clock_timestamp(), decided_by = 'service:kindmem'
WHERE tenant_id = %(tenant)s::uuid AND fact_id = ANY(%(ids)s::text[]) AND decided_at IS NULL
"""
# In the order of their foreign keys.
_PARTS = ("fact_content", "fact_subject", "fact_cause", "fact_freshness", "fact_revision")


@dataclass(frozen=True, slots=True)
class Due:
    """A fact to destroy. `rule`: the code of why; `due_at`: since when; `type`: to be counted by."""

    fact_id: str
    rule: str
    due_at: datetime | None = None
    type: str = ""


@dataclass(frozen=True, slots=True)
class Destruction:
    """What went, and what a hold kept. `rows`: by table, the heads included."""

    destroyed: Sequence[Due]
    held: Sequence[str]
    rows: Mapping[str, int]


def held_among(tenant_id: UUID, fact_ids: Sequence[str]) -> list[str]:
    """Which of these facts a hold keeps, read in a statement of its own."""
    with connection.cursor() as cursor:
        cursor.execute(SHARE_NEW_ITEMS, {"tenant": tenant_id})
        cursor.execute(_HELD, {"tenant": tenant_id, "ids": list(fact_ids)})
        return [row[0] for row in cursor.fetchall()]


def destroy_facts(
    *,
    tenant_id: UUID,
    due: Sequence[Due],
    cause: Literal["sweep", "erasure"],
    cause_id: UUID,
    shown_ids: Mapping[str, str] | None = None,
) -> Destruction:
    """Destroy facts whose heads are locked in this transaction; what is held is left and named.

    shown_ids: how evidence names a fact, when not by its id. Raises LegalHoldActive when the database sees a hold first.
    """
    held = set(held_among(tenant_id, [one.fact_id for one in due]))
    going = [one for one in due if one.fact_id not in held]
    if not going:
        return Destruction([], sorted(held), {})
    ids = [one.fact_id for one in going]
    shown = shown_ids or {}
    rows: dict[str, int] = {}
    with constraint_errors(), connection.cursor() as cursor:
        cursor.execute(_DIGESTS, {"tenant": tenant_id, "ids": ids})
        hashes = {row[0]: row[2] for row in cursor.fetchall()}
        cursor.execute(
            _EVIDENCE,
            {
                "tenant": tenant_id,
                "cause": cause,
                "cause_id": cause_id,
                "ids": ids,
                "shown": [shown.get(one, one) for one in ids],
                "rules": [one.rule for one in going],
                "dues": [one.due_at for one in going],
                "digests": [_digest(tenant_id, hashes.get(one)) for one in ids],
            },
        )
        remove_index(tenant_id=tenant_id, fact_ids=ids)
        cursor.execute(_WITHHOLD, {"tenant": tenant_id, "refs": [f"fact:{one}" for one in ids]})
        cursor.execute(_FORGET_CHANGES, {"tenant": tenant_id, "ids": ids})
        for table in _PARTS:
            cursor.execute(
                f"DELETE FROM {table} WHERE tenant_id = %(tenant)s::uuid AND fact_id = ANY(%(ids)s::text[])",
                {"tenant": tenant_id, "ids": ids},
            )
            rows[table] = cursor.rowcount
        cursor.execute(
            "DELETE FROM fact WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[])",
            {"tenant": tenant_id, "ids": ids},
        )
        rows["fact"] = cursor.rowcount
    write_down_after_commit(tenant_id)
    return Destruction(going, sorted(held), rows)


def _digest(tenant_id: UUID, content_hash: bytes | None) -> bytes | None:
    """Keyed: a plain hash of short content could be tried out."""
    if content_hash is None:
        return None
    return fingerprints.of_text(tenant_id, bytes(content_hash).hex())
