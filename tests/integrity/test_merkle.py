"""Roots and proofs are those of `pymerkle` and of RFC 6962 up to 130 leaves; forged ones fail."""

import hashlib
from itertools import pairwise

import pymerkle
import pytest

from memory.integrity.merkle import (
    EMPTY_ROOT,
    CompactRange,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    is_included,
    leaf_hash,
    node_hash,
    root_of,
    root_of_hashes,
    subtrees_of,
)

LARGEST = 130
LEAVES = [f"leaf {n}".encode() for n in range(LARGEST)]
HASHES = [leaf_hash(leaf) for leaf in LEAVES]
SUBTREES = subtrees_of(HASHES)
ROOTS = [root_of(LEAVES[:size]) for size in range(LARGEST + 1)]


@pytest.fixture(scope="module")
def oracle() -> pymerkle.InmemoryTree:
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for leaf in LEAVES:
        tree.append_entry(leaf)
    return tree


def test_roots_of_every_size_equal_the_oracle(oracle: pymerkle.InmemoryTree) -> None:
    assert [oracle.get_root(size) for size in range(LARGEST + 1)] == ROOTS


def test_an_empty_tree_and_a_single_leaf_are_those_of_rfc_6962() -> None:
    assert root_of([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()
    assert root_of([b""]) == hashlib.sha256(b"\x00").digest()
    assert root_of([b"a", b"b"]) == node_hash(leaf_hash(b"a"), leaf_hash(b"b"))


def test_a_tree_resumed_from_its_peaks_grows_as_if_never_stopped() -> None:
    for size in range(LARGEST):
        begun = CompactRange()
        for leaf in LEAVES[:size]:
            begun.append(leaf)
        resumed = CompactRange(begun.size, begun.peaks)
        resumed.append(LEAVES[size])
        assert resumed.root() == ROOTS[size + 1]
        assert begun.root() == ROOTS[size]


def test_peaks_that_do_not_fit_the_size_are_refused() -> None:
    with pytest.raises(ValueError, match="one peak for each binary digit"):
        CompactRange(3, [HASHES[0]])


def test_roots_over_hashes_equal_roots_over_leaves() -> None:
    assert [root_of_hashes(HASHES[:n]) for n in (0, 1, 7, 64, 130)] == [
        ROOTS[n] for n in (0, 1, 7, 64, 130)
    ]


def test_inclusion_proofs_equal_the_oracle_and_verify(oracle: pymerkle.InmemoryTree) -> None:
    for size in [*range(1, 34), 63, 64, 65, 127, 128, 129, 130]:
        for index in range(size):
            proof = inclusion_proof(SUBTREES, index, size)
            [own, *path] = oracle.prove_inclusion(index + 1, size).path
            assert (own, path) == (HASHES[index], proof)
            assert is_included(HASHES[index], index, size, proof, ROOTS[size])


def test_consistency_proofs_of_every_pair_of_sizes_verify() -> None:
    for later in range(LARGEST + 1):
        for size in range(later + 1):
            proof = consistency_proof(SUBTREES, size, later)
            assert is_consistent(size, later, ROOTS[size], ROOTS[later], proof)


def subproof(size: int, hashes: list[bytes], whole: bool) -> list[bytes]:
    """SUBPROOF of RFC 6962 §2.1.2, as it stands there; the oracle lays its proofs otherwise."""
    if size == len(hashes):
        return [] if whole else [root_of_hashes(hashes)]
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    if size <= k:
        return [*subproof(size, hashes[:k], whole), root_of_hashes(hashes[k:])]
    return [*subproof(size - k, hashes[k:], False), root_of_hashes(hashes[:k])]


def test_consistency_proofs_are_those_that_rfc_6962_defines() -> None:
    for later in [*range(1, 34), 64, 65, 130]:
        for size in range(1, later + 1):
            expected = subproof(size, HASHES[:later], True)
            assert consistency_proof(SUBTREES, size, later) == expected


def forgeries(proof: list[bytes]) -> list[list[bytes]]:
    """Every way to spoil one hash, drop one, swap two or add one."""
    flipped = [
        [*proof[:n], bytes([proof[n][0] ^ 1]) + proof[n][1:], *proof[n + 1 :]]
        for n in range(len(proof))
    ]
    dropped = [[*proof[:n], *proof[n + 1 :]] for n in range(len(proof))]
    swapped = [
        [*proof[:n], proof[n + 1], proof[n], *proof[n + 2 :]] for n, _ in enumerate(pairwise(proof))
    ]
    return [*flipped, *dropped, *swapped, [*proof, HASHES[0]], [HASHES[0], *proof]]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13, 64, 130])
def test_spoiled_inclusion_proofs_fail(size: int) -> None:
    for index in {0, size // 2, size - 1}:
        proof = inclusion_proof(SUBTREES, index, size)
        root = ROOTS[size]
        for forged in forgeries(proof):
            assert not is_included(HASHES[index], index, size, forged, root)
        assert not is_included(HASHES[(index + 1) % LARGEST], index, size, proof, root)
        assert not is_included(HASHES[index], index, size, proof, ROOTS[size - 1])
        assert not is_included(HASHES[index], size, size, proof, root)
        assert not is_included(HASHES[index], -1, size, proof, root)
        if size > 1:
            assert not is_included(HASHES[index], (index + 1) % size, size, proof, root)


@pytest.mark.parametrize(("size", "later"), [(1, 2), (3, 7), (4, 8), (6, 8), (64, 130), (65, 130)])
def test_spoiled_consistency_proofs_fail(size: int, later: int) -> None:
    proof = consistency_proof(SUBTREES, size, later)
    for forged in forgeries(proof):
        assert not is_consistent(size, later, ROOTS[size], ROOTS[later], forged)
    assert not is_consistent(size, later, ROOTS[size - 1], ROOTS[later], proof)
    assert not is_consistent(size, later, ROOTS[size], ROOTS[later - 1], proof)
    assert not is_consistent(later, size, ROOTS[later], ROOTS[size], proof)
    assert not is_consistent(size, later, ROOTS[size], ROOTS[later], [])


def test_equal_sizes_need_equal_roots_and_no_proof() -> None:
    assert is_consistent(5, 5, ROOTS[5], ROOTS[5], [])
    assert not is_consistent(5, 5, ROOTS[5], ROOTS[6], [])
    assert not is_consistent(5, 5, ROOTS[5], ROOTS[5], [HASHES[0]])


def test_the_empty_tree_is_the_start_of_every_tree_but_its_root_is_checked() -> None:
    assert is_consistent(0, 5, EMPTY_ROOT, ROOTS[5], [])
    assert not is_consistent(0, 5, ROOTS[1], ROOTS[5], [])
    assert not is_consistent(0, 5, EMPTY_ROOT, ROOTS[5], [HASHES[0]])


def test_proofs_of_what_is_not_there_are_refused() -> None:
    for index, size in [(0, 0), (5, 5), (-1, 5)]:
        with pytest.raises(ValueError, match="not in the tree"):
            inclusion_proof(SUBTREES, index, size)
    with pytest.raises(ValueError, match="not the smaller"):
        consistency_proof(SUBTREES, 6, 5)
