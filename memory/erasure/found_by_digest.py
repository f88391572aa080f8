"""Which records and facts of a tenant the ledger means by its keyed digests: tried out, since a digest can't be turned back."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.db import connection

from memory.erasure.ledger import selector_digest

_IDS: Final = {
    "fact": "SELECT id FROM fact WHERE tenant_id = %s::uuid",
    "record": "SELECT id FROM memory_record WHERE tenant_id = %s::uuid",
}


def found_by_digest(
    tenant_id: UUID, wanted: Iterable[tuple[str, bytes]]
) -> dict[tuple[str, bytes], str]:
    """(fact or record, digest) → id, of those that are there."""
    looked_for = set(wanted)
    found: dict[tuple[str, bytes], str] = {}
    for item in sorted({item for item, _ in looked_for}):
        with connection.cursor() as cursor:
            cursor.execute(_IDS[item], [tenant_id])
            for (candidate,) in cursor:
                key = (item, selector_digest(tenant_id, item, candidate))
                if key in looked_for:
                    found[key] = candidate
    return found
