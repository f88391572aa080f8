"""The stored log of seals: reading subtree roots from it, proving from it, and appending to it.

Each leaf's row also holds the roots of the subtrees that it completes, so a root, an append or a proof
reads O(log n) rows. They are a shortcut and no evidence: who signs compares the root that they give
with the last signed one first, and a verifier recomputes everything from the leaves' texts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory.integrity.chain_sql import Cursor
from memory.integrity.merkle import (
    EMPTY_ROOT,
    CompactRange,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
)

_HASH_BYTES: Final = 32

_SIZE = "SELECT coalesce(max(leaf_index) + 1, 0) FROM seal_leaf WHERE tenant_id = %(tenant)s::uuid"

_NODES = """
SELECT leaf_index, leaf_hash, node_hashes FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND leaf_index = ANY(%(indices)s::bigint[])
"""

_INSERT = """
INSERT INTO seal_leaf (tenant_id, leaf_index, leaf_text, leaf_hash, node_hashes, record_hashes, appended_at)
SELECT %(tenant)s::uuid, l.index, l.text, l.hash, l.nodes, l.records, greatest(clock_timestamp(), %(since)s::timestamptz)
FROM unnest(%(indices)s::bigint[], %(texts)s::text[], %(hashes)s::bytea[], %(nodes)s::bytea[], %(records)s::bytea[])
     AS l(index, text, hash, nodes, records)
ORDER BY l.index
"""


class NodeMissing(LookupError):
    """The stored log has no row, or no subtree root, where its size says there is one."""


@dataclass(frozen=True, slots=True)
class NewLeaf:
    """A leaf to append; a seal comes with the leaf hashes of its entries."""

    text: str
    record_hashes: bytes | None = None


class StoredTree:
    """The tree over a tenant's stored leaves. The caller's transaction has set the tenant."""

    def __init__(self, cursor: Cursor, tenant_id: UUID) -> None:
        self._cursor = cursor
        self._tenant_id = tenant_id
        self._rows: dict[int, tuple[bytes, bytes]] = {}

    def size(self) -> int:
        """How many leaves are stored."""
        self._cursor.execute(_SIZE, {"tenant": self._tenant_id})
        [size] = self._cursor.fetchone()
        return int(size)

    def compact_range(self, size: int) -> CompactRange:
        """The right edge of the tree of the first `size` leaves. Raises NodeMissing."""
        parts = list(_complete_parts(0, size))
        self._load(parts)
        return CompactRange(size, [self._node(*part) for part in parts])

    def root(self, size: int) -> bytes:
        """The root of the first `size` leaves. Raises NodeMissing."""
        return self.compact_range(size).root() if size else EMPTY_ROOT

    def prove_inclusion(self, index: int, size: int) -> list[bytes]:
        """The path of a leaf in the tree of `size` leaves. Raises ValueError, NodeMissing."""
        ranges: list[tuple[int, int]] = []
        inclusion_proof(_noting(ranges), index, size)
        self._load_ranges(ranges)
        return inclusion_proof(self._subtree, index, size)

    def prove_consistency(self, size: int, later_size: int) -> list[bytes]:
        """That the tree of `size` leaves is the start of the later one. Raises ValueError, NodeMissing."""
        ranges: list[tuple[int, int]] = []
        consistency_proof(_noting(ranges), size, later_size)
        self._load_ranges(ranges)
        return consistency_proof(self._subtree, size, later_size)

    def append(
        self, tree: CompactRange, leaves: Sequence[NewLeaf], *, since: str | None = None
    ) -> None:
        """Store leaves after the ones that `tree` stands for, and grow it by them; their moment is not before `since`.

        Another sealer that came first makes this fail on the primary key, which aborts.
        """
        rows: list[tuple[int, NewLeaf, bytes, bytes]] = []
        for leaf in leaves:
            index = tree.size
            hash = leaf_hash(leaf.text.encode())
            rows.append((index, leaf, hash, completed_nodes(tree, hash)))
            tree.append_hash(hash)
        self._cursor.execute(
            _INSERT,
            {
                "tenant": self._tenant_id,
                "since": since,
                "indices": [row[0] for row in rows],
                "texts": [row[1].text for row in rows],
                "hashes": [row[2] for row in rows],
                "nodes": [row[3] for row in rows],
                "records": [row[1].record_hashes for row in rows],
            },
        )

    def _subtree(self, start: int, end: int) -> bytes:
        return CompactRange(
            end - start, [self._node(*part) for part in _complete_parts(start, end)]
        ).root()

    def _load_ranges(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._load([part for start, end in ranges for part in _complete_parts(start, end)])

    def _load(self, parts: Sequence[tuple[int, int]]) -> None:
        wanted = sorted({end - 1 for _, end in parts} - self._rows.keys())
        if not wanted:
            return
        self._cursor.execute(_NODES, {"tenant": self._tenant_id, "indices": wanted})
        for index, hash, nodes in self._cursor.fetchall():
            self._rows[index] = bytes(hash), bytes(nodes)

    def _node(self, start: int, end: int) -> bytes:
        """The root of a complete subtree, which the row of its last leaf holds."""
        level = (end - start).bit_length() - 1
        row = self._rows.get(end - 1)
        if row is None:
            raise NodeMissing(f"leaf {end - 1}")
        if level == 0:
            return row[0]
        node = row[1][(level - 1) * _HASH_BYTES : level * _HASH_BYTES]
        if len(node) != _HASH_BYTES:
            raise NodeMissing(f"subtree of leaf {end - 1}")
        return node


def completed_nodes(tree: CompactRange, hash: bytes) -> bytes:
    """Roots of the subtrees of two leaves and more that the next leaf completes."""
    nodes: list[bytes] = []
    full, place = tree.size, len(tree.peaks)
    while full & 1:
        place -= 1
        hash = node_hash(tree.peaks[place], hash)
        nodes.append(hash)
        full >>= 1
    return b"".join(nodes)


def _complete_parts(start: int, end: int) -> Iterable[tuple[int, int]]:
    """The complete subtrees that a range of the tree is made of, largest first."""
    while start < end:
        width = 1 << ((end - start).bit_length() - 1)
        yield start, start + width
        start += width


def _noting(ranges: list[tuple[int, int]]) -> Any:
    """A stand-in for subtree roots that only notes which are asked for."""

    def note(start: int, end: int) -> bytes:
        ranges.append((start, end))
        return b""

    return note
