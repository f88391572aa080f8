"""What ended, written down outside the database before it is told as done: a backup is older, and must not bring it back.

Triggers note every end in `ended_item`, in its own transaction. After the commit, and by the worker for whatever was cut off,
each is a line in the ledger: when, what became of it, and which record or fact by a keyed hash. Never an id, a value or a word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from memory.after_commit import after_commit
from memory.erasure.ledger import ledger_key_id, selector_digest
from memory.instants import instant_text
from memory.ledgers import append_endings
from memory.tenancy import tenant_context

AT_ONCE: Final = 1000
_TAKE = """
WITH taken AS (
  DELETE FROM ended_item WHERE tenant_id = %(tenant)s::uuid AND id IN (
    SELECT id FROM ended_item WHERE tenant_id = %(tenant)s::uuid ORDER BY ended_at, id LIMIT %(limit)s::int)
  RETURNING ended_at, id, item, item_id, act, was_id, version, mark, digest)
SELECT ended_at, item, item_id, act, was_id, version, mark, digest FROM taken ORDER BY ended_at, id
"""
# What says the same as before ends no value: a check of a fact, or a memory that was said anew in its place.
_SAME_FACTS = """
SELECT r.fact_id, r.version FROM unnest(%(ids)s::text[], %(versions)s::int[]) AS x (id, version)
JOIN fact_revision r ON r.tenant_id = %(tenant)s::uuid AND r.fact_id = x.id AND r.version = x.version
JOIN fact_revision n ON n.tenant_id = r.tenant_id AND n.fact_id = r.fact_id AND n.version = r.version + 1
WHERE n.content_hash IS NOT DISTINCT FROM r.content_hash AND n.content_ref IS NOT DISTINCT FROM r.content_ref
"""
_SAME_RECORDS = """
SELECT s.superseded_id FROM record_supersession s
JOIN memory_record o ON o.tenant_id = s.tenant_id AND o.id = s.superseded_id
JOIN memory_record n ON n.tenant_id = s.tenant_id AND n.id = s.successor_id
JOIN record_value v ON v.tenant_id = o.tenant_id AND v.record_id = o.id
JOIN record_value w ON w.tenant_id = n.tenant_id AND w.record_id = n.id
WHERE s.tenant_id = %(tenant)s::uuid AND s.superseded_id = ANY(%(ids)s::text[])
  AND v.value_text = w.value_text AND o.level = n.level AND o.bindings_text = n.bindings_text
"""


@dataclass(frozen=True, slots=True)
class _Ended:
    at: datetime
    item: str
    item_id: str
    act: str
    was_id: str | None
    version: int | None
    mark: str | None
    digest: bytes | None

    def line(self, tenant_id: UUID, key_id: str) -> dict[str, Any]:
        said: dict[str, Any] = {
            "at": instant_text(self.at),
            "item": self.item,
            "act": self.act,
            "hmac": selector_digest(tenant_id, self.item, self.item_id).hex(),
            "keyId": key_id,
            "version": self.version,
            "mark": self.mark,
        }
        if self.was_id is not None:
            said["was"] = selector_digest(tenant_id, self.item, self.was_id).hex()
        if self.digest is not None:
            said["digest"] = bytes(self.digest).hex()
        return {name: value for name, value in said.items() if value is not None}


def write_down(tenant_id: UUID, slug: str) -> int:
    """Everything of the tenant that is not written down yet; how many ends. Opens its own transactions; call it outside any.

    What is cut off between file and commit stands there twice, and counts once. Raises OSError.
    """
    written = 0
    while True:
        with tenant_context(tenant_id):
            ended = _take(tenant_id)
            key_id = ledger_key_id()
            append_endings(
                slug, [one.line(tenant_id, key_id) for one in _telling(tenant_id, ended)]
            )
        written += len(ended)
        if len(ended) < AT_ONCE:
            return written


def write_down_after_commit(tenant_id: UUID) -> None:
    """Have this transaction's ends written down once it is committed, before its caller is answered."""
    after_commit(write_down, tenant_id)


def _take(tenant_id: UUID) -> list[_Ended]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"tenant": tenant_id, "limit": AT_ONCE})
        return [_Ended(*row) for row in cursor.fetchall()]


def _telling(tenant_id: UUID, ended: Sequence[_Ended]) -> list[_Ended]:
    """Without what ended no value."""
    facts = [one for one in ended if one.version is not None]
    records = [one for one in ended if one.item == "record" and one.act == "superseded"]
    same: set[tuple[str, str, int | None]] = set()
    with connection.cursor() as cursor:
        if facts:
            cursor.execute(
                _SAME_FACTS,
                {
                    "tenant": tenant_id,
                    "ids": [one.item_id for one in facts],
                    "versions": [one.version for one in facts],
                },
            )
            same |= {("fact", fact_id, version) for fact_id, version in cursor.fetchall()}
        if records:
            cursor.execute(
                _SAME_RECORDS, {"tenant": tenant_id, "ids": [one.item_id for one in records]}
            )
            same |= {("record", record_id, None) for (record_id,) in cursor.fetchall()}
    return [
        one
        for one in ended
        if one.act != "superseded" or (one.item, one.item_id, one.version) not in same
    ]
