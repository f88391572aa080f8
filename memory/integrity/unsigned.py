"""Leaves that were stored and not yet signed, as a crash leaves them: each is made again from what is stored now.

Whoever can write to the database could have put one there. Only a leaf that this server would have made comes under a signature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory.hashing import ZERO_HASH
from memory.integrity.acts import closed_by_act, is_version_chosen
from memory.integrity.leaves import (
    ERASURE,
    HASH_VERSION_CHANGED,
    KEY_ROTATED,
    MOST_SEALED,
    RUN_CLOSED,
    Seal,
    hash_version_changed_text,
    key_rotated_text,
    leaf_of,
    run_closed_text,
    seal_of,
)
from memory.integrity.merkle import leaf_hash
from memory.integrity.seal_log import StoredTree, completed_nodes
from memory.integrity.sealing import Refused, RunSealer

_LEAVES_AT_ONCE: Final = 100

_UNSIGNED: Final = """
SELECT leaf_index, leaf_text, leaf_hash, node_hashes, record_hashes FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND leaf_index >= %(from)s::bigint
  AND (%(to)s::bigint IS NULL OR leaf_index < %(to)s::bigint)
ORDER BY leaf_index LIMIT %(limit)s::int
"""

_BEFORE: Final = """
SELECT leaf_text FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND leaf_type = 'seal/v1' AND leaf_index < %(index)s::bigint
ORDER BY leaf_index DESC LIMIT 1
"""

_ATTESTING: Final = """
SELECT sequence FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::text AND run_id = %(run)s::text
"""

_VERSION_BEFORE: Final = """
SELECT leaf_text FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND leaf_type = 'hash-version-changed' AND leaf_index < %(index)s::bigint
ORDER BY leaf_index DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class ForgedLeaf:
    """A leaf that this server would not have made, or the place of one that is missing. `run_id`: what it speaks of."""

    index: int
    run_id: str | None


def first_forged(
    cursor: Any,
    tenant_id: UUID,
    tenant_slug: str,
    first: int,
    end: int | None,
    public_keys: Sequence[bytes],
) -> ForgedLeaf | None:
    """The first leaf from `first` up to, not including, `end` (None: to the last) that would not be made now.

    The leaves before `first` are known to be good.
    """
    due = first
    tree = StoredTree(cursor, tenant_id).compact_range(first)
    while end is None or due < end:
        key = {"tenant": tenant_id, "from": due, "to": end, "limit": _LEAVES_AT_ONCE}
        cursor.execute(_UNSIGNED, key)
        rows = cursor.fetchall()
        for index, text, stored_hash, stored_nodes, records in rows:
            if index != due:
                return ForgedLeaf(due, None)
            leaf = leaf_of(text or "")
            again = _made_again(cursor, tenant_id, tenant_slug, leaf, index, public_keys)
            is_same = again == (text, None if records is None else bytes(records))
            hash = leaf_hash((text or "").encode())
            kept = bytes(stored_hash or b""), bytes(stored_nodes or b"")
            if not is_same or kept != (hash, completed_nodes(tree, hash)):
                run_id = leaf.get("runId")
                return ForgedLeaf(index, run_id if isinstance(run_id, str) else None)
            tree.append_hash(hash)
            due += 1
        if len(rows) < _LEAVES_AT_ONCE:
            return None if end is None or due >= end else ForgedLeaf(due, None)
    return None


def _made_again(
    cursor: Any,
    tenant_id: UUID,
    tenant_slug: str,
    leaf: dict[str, Any],
    index: int,
    public_keys: Sequence[bytes],
) -> tuple[str, bytes | None] | None:
    """The text and record hashes that this leaf should have; None when there should be none like it."""
    kind = leaf.get("type")
    run_id = leaf.get("runId", "")
    if not all(_is_storable(one) for one in (run_id, leaf.get("attestedBy", ""))):
        return None
    if kind == KEY_ROTATED:
        for earlier in public_keys[1:]:
            text = key_rotated_text(tenant_slug, earlier, public_keys[0])
            if leaf_of(text) == leaf:
                return text, None
        return None
    if kind == HASH_VERSION_CHANGED:
        cursor.execute(_VERSION_BEFORE, {"tenant": tenant_id, "index": index})
        row = cursor.fetchone()
        old = 1 if row is None else leaf_of(row[0]).get("newVersion")
        new = leaf.get("newVersion")
        if old not in (1, 2) or new != 3 - old or not is_version_chosen(cursor, tenant_id, new):
            return None
        return hash_version_changed_text(tenant_slug, old, new), None
    maker = RunSealer(cursor, tenant_id, tenant_slug, run_id)
    before = _seal_before(cursor, tenant_id, run_id, index)
    sealed_to = before.to_sequence if before else -1
    sealed_hash = before.head_hash if before else ZERO_HASH
    seal = seal_of(leaf)
    if seal is not None:
        covered = seal.to_sequence - sealed_to
        if seal.from_sequence != sealed_to + 1 or not 1 <= covered <= MOST_SEALED:
            return None
        try:
            leaves, _ = maker.leaves_over(
                seal.from_sequence, seal.to_sequence, sealed_to, sealed_hash
            )
        except Refused:
            return None
        return leaves[0].text, leaves[0].record_hashes
    if kind == ERASURE:
        cursor.execute(
            _ATTESTING, {"tenant": tenant_id, "run": run_id, "id": str(leaf.get("attestedBy"))}
        )
        row = cursor.fetchone()
        try:
            texts = maker.erasures_attested(row[0], row[0]) if row else []
        except Refused:
            return None
        return (texts[0], None) if texts else None
    if kind == RUN_CLOSED and closed_by_act(cursor, tenant_id, run_id, sealed_to) is not None:
        text = run_closed_text(tenant_slug, run_id, to_sequence=sealed_to, head_hash=sealed_hash)
        return text, None
    return None


def _is_storable(value: Any) -> bool:
    """Whether a leaf's id can be one of the database's at all."""
    if not isinstance(value, str) or "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _seal_before(cursor: Any, tenant_id: UUID, run_id: str, index: int) -> Seal | None:
    """The run's last seal before a leaf."""
    cursor.execute(_BEFORE, {"tenant": tenant_id, "run": run_id, "index": index})
    row = cursor.fetchone()
    return seal_of(leaf_of(row[0])) if row else None
