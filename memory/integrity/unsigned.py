"""Leaves that were stored and not yet signed, as a crash leaves them: each is made again from what is stored now.

Whoever can write to the database could have put one there. Only a leaf that this server would have made comes under a signature.
"""

from typing import Any, Final
from uuid import UUID

from memory.errors import SealRefused
from memory.hashing import ZERO_HASH
from memory.integrity.leaves import (
    ERASURE,
    HASH_VERSION_CHANGED,
    KEY_ROTATED,
    RUN_CLOSED,
    hash_version_changed_text,
    key_rotated_text,
    leaf_of,
    run_closed_text,
    seal_of,
)
from memory.integrity.merkle import leaf_hash
from memory.integrity.sealing import Refused, RunSealer
from memory.integrity.signing import Signer

_UNSIGNED: Final = """
SELECT leaf_index, leaf_text, leaf_hash, record_hashes FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND leaf_index >= %(from)s::bigint AND leaf_index < %(to)s::bigint
ORDER BY leaf_index
"""

_BEFORE: Final = """
SELECT leaf_text FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND leaf_type = 'seal/v1' AND to_sequence < %(from)s::bigint
ORDER BY to_sequence DESC LIMIT 1
"""

_ATTESTING: Final = """
SELECT sequence FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::text AND run_id = %(run)s::text
"""

_HEAD: Final = """
SELECT next_sequence - 1, head_hash FROM run_head
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND closed_at IS NOT NULL
"""


def check_unsigned(
    cursor: Any, tenant_id: UUID, tenant_slug: str, first: int, end: int, by: Signer
) -> None:
    """Raises SealRefused unless every leaf from `first` up to, not including, `end` is one that would be made now."""
    cursor.execute(_UNSIGNED, {"tenant": tenant_id, "from": first, "to": end})
    rows = cursor.fetchall()
    for offset, (index, text, stored_hash, records) in enumerate(rows):
        again = _made_again(cursor, tenant_id, tenant_slug, leaf_of(text), by)
        is_same = again == (text, None if records is None else bytes(records))
        if index != first + offset or not is_same or bytes(stored_hash) != leaf_hash(text.encode()):
            raise SealRefused(reason="leaf", size=index)
    if len(rows) != end - first:
        raise SealRefused(reason="leaf", size=first + len(rows))


def _made_again(
    cursor: Any, tenant_id: UUID, tenant_slug: str, leaf: dict[str, Any], by: Signer
) -> tuple[str, bytes | None] | None:
    """The text and record hashes that this leaf should have; None when there should be none like it."""
    seal = seal_of(leaf)
    run_id = str(leaf.get("runId", ""))
    maker = RunSealer(cursor, tenant_id, tenant_slug, run_id)
    if seal is not None:
        cursor.execute(_BEFORE, {"tenant": tenant_id, "run": run_id, "from": seal.from_sequence})
        row = cursor.fetchone()
        before = seal_of(leaf_of(row[0])) if row else None
        sealed_to = before.to_sequence if before else -1
        if seal.from_sequence != sealed_to + 1:
            return None
        try:
            leaves, _ = maker.leaves_over(
                seal.from_sequence,
                seal.to_sequence,
                sealed_to,
                before.head_hash if before else ZERO_HASH,
            )
        except Refused:
            return None
        return leaves[0].text, leaves[0].record_hashes
    kind = leaf.get("type")
    if kind == ERASURE:
        cursor.execute(
            _ATTESTING, {"tenant": tenant_id, "run": run_id, "id": str(leaf.get("attestedBy"))}
        )
        row = cursor.fetchone()
        texts = maker.erasures_attested(row[0], row[0]) if row else []
        return (texts[0], None) if texts else None
    if kind == RUN_CLOSED:
        cursor.execute(_HEAD, {"tenant": tenant_id, "run": run_id})
        row = cursor.fetchone()
        if row is None:
            return None
        text = run_closed_text(tenant_slug, run_id, to_sequence=row[0], head_hash=bytes(row[1]))
        return text, None
    if kind == KEY_ROTATED and len(by.public_keys) > 1:
        for earlier in by.public_keys[1:]:
            text = key_rotated_text(tenant_slug, earlier, by.public_keys[0])
            if leaf_of(text) == leaf:
                return text, None
    if kind == HASH_VERSION_CHANGED:
        old, new = leaf.get("oldVersion"), leaf.get("newVersion")
        if (old, new) in ((1, 2), (2, 1)):
            return hash_version_changed_text(tenant_slug, int(str(old)), int(str(new))), None
    return None
