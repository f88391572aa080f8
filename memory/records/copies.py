"""Copies: what agents inferred about the same subject and key, saying the same as what a person took back.

The same is what the fingerprints call the same: trimmed, case-folded, canonical. A copy was not derived from the
record, so that its lineage leads nowhere, and it may stand in any slot.
"""

import json
from collections.abc import Collection
from uuid import UUID

from django.db import connection

from memory.canonical import canonical
from memory.records.fingerprints import folded


def copies_of(
    tenant_id: UUID,
    thing: tuple[str, str, str],
    value_texts: Collection[str | None],
    *,
    known: Collection[str] = (),
) -> list[str]:
    """Ids of active inferences about a thing (subject type, subject id, key) that say one of the values; not the
    known ones.
    """
    said = {_same(text) for text in value_texts if text is not None}
    if not said:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id, v.value_text FROM memory_record r "
            "JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id "
            "WHERE r.tenant_id = %(tenant)s::uuid AND r.subject_type = %(type)s::text "
            "AND r.subject_id = %(subject)s::text AND r.key = %(key)s::text AND r.status = 'active' "
            "AND r.review IS NULL AND r.source_type = 'agent_inferred' AND r.id <> ALL(%(known)s::text[]) "
            "ORDER BY r.id",
            {
                "tenant": tenant_id,
                "type": thing[0],
                "subject": thing[1],
                "key": thing[2],
                "known": list(known),
            },
        )
        return [record_id for record_id, text in cursor.fetchall() if _same(text) in said]


def _same(value_text: str) -> str:
    return canonical(folded(json.loads(value_text)))
