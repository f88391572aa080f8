"""The Merkle tree of RFC 6962: hashes, roots, append, and proofs with their checks.

Leaves are the bytes of the caller; a leaf hash is 32 bytes. A tree of n leaves is kept as its
compact range: the roots of the full subtrees that n's binary digits name, largest first. Proofs are
lists of 32-byte hashes, in the order of RFC 9162 §2.1.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final

EMPTY_ROOT: Final = sha256(b"").digest()

Subtree = Callable[[int, int], bytes]
"""Root of the leaves from the first index up to, not including, the second."""


def leaf_hash(leaf: bytes) -> bytes:
    """Hash one leaf; the prefix keeps a leaf from passing as a node."""
    return sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into their parent."""
    return sha256(b"\x01" + left + right).digest()


class CompactRange:
    """The right edge of a growing tree: O(log n) hashes that give each root and the next append."""

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        """Resume at `size` leaves with the `peaks` of that tree. Raises ValueError on a mismatch."""
        self.size = size
        self.peaks = list(peaks)
        if len(self.peaks) != size.bit_count():
            raise ValueError("a compact range has one peak for each binary digit of its size")

    def append(self, leaf: bytes) -> None:
        """Add one leaf."""
        self.append_hash(leaf_hash(leaf))

    def append_hash(self, hash: bytes) -> None:
        """Add one leaf by its leaf hash."""
        peaks = self.peaks
        full = self.size
        while full & 1:
            hash = node_hash(peaks.pop(), hash)
            full >>= 1
        peaks.append(hash)
        self.size += 1

    def root(self) -> bytes:
        """Return the root of the leaves so far; of none, the hash of nothing."""
        if not self.peaks:
            return EMPTY_ROOT
        root = self.peaks[-1]
        for peak in self.peaks[-2::-1]:
            root = node_hash(peak, root)
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaves, in one pass and O(log n) memory."""
    tree = CompactRange()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def root_of_hashes(hashes: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes, level by level: neighbours are hashed together, one without a neighbour moves up."""
    level = list(hashes)
    if not level:
        return EMPTY_ROOT
    while len(level) > 1:
        last = level[-1:] if len(level) & 1 else []
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [sha256(b"\x01" + left + right).digest() for left, right in pairs] + last
    return level[0]


def subtrees_of(hashes: Sequence[bytes]) -> Subtree:
    """Return the subtree roots over leaf hashes held in memory, for the proofs below."""
    return lambda start, end: root_of_hashes(hashes[start:end])


def inclusion_proof(subtree: Subtree, index: int, size: int) -> list[bytes]:
    """Prove that leaf `index` (from 0) is in the tree of `size` leaves (RFC 9162 §2.1.3.1).

    Asks `subtree` for O(log n) ranges. Raises ValueError when there is no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError("the leaf is not in the tree")
    proof: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            proof.append(subtree(middle, end))
            end = middle
        else:
            proof.append(subtree(start, middle))
            start = middle
    proof.reverse()
    return proof


def consistency_proof(subtree: Subtree, size: int, later_size: int) -> list[bytes]:
    """Prove that the tree of `size` leaves is the start of the later one (RFC 9162 §2.1.4.1).

    Empty for an empty tree and for equal sizes. Raises ValueError when `size` is the larger.
    """
    if not 0 <= size <= later_size:
        raise ValueError("the first tree is not the smaller")
    if size in (0, later_size):
        return []
    proof: list[bytes] = []
    start, end = 0, later_size
    whole_first_tree = True
    while size != end:
        middle = start + _split(end - start)
        if size <= middle:
            proof.append(subtree(middle, end))
            end = middle
        else:
            proof.append(subtree(start, middle))
            start = middle
            whole_first_tree = False
    if not whole_first_tree:
        proof.append(subtree(start, end))
    proof.reverse()
    return proof


def is_included(hash: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the proof shows a leaf hash at `index` of the tree (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size:
        return False
    node, last = index, size - 1
    current = hash
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            current = node_hash(sibling, current)
            while not node & 1 and node:
                node >>= 1
                last >>= 1
        else:
            current = node_hash(current, sibling)
        node >>= 1
        last >>= 1
    return last == 0 and current == root


def is_consistent(
    size: int, later_size: int, root: bytes, later_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the proof shows the first tree as the start of the later (RFC 9162 §2.1.4.2)."""
    if not 0 <= size <= later_size:
        return False
    if size == later_size:
        return not proof and root == later_root
    if size == 0:
        return not proof and root == EMPTY_ROOT
    path = list(proof)
    if size & (size - 1) == 0:
        path.insert(0, root)
    if not path:
        return False
    node, last = size - 1, later_size - 1
    while node & 1:
        node >>= 1
        last >>= 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            first = node_hash(sibling, first)
            second = node_hash(sibling, second)
            while not node & 1 and node:
                node >>= 1
                last >>= 1
        else:
            second = node_hash(second, sibling)
        node >>= 1
        last >>= 1
    return last == 0 and first == root and second == later_root


def _split(width: int) -> int:
    """Return the largest power of two below `width`."""
    return 1 << ((width - 1).bit_length() - 1)
