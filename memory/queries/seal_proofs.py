"""Reading the log of seals: checkpoints, the proof that an entry is under one, and that one checkpoint continues another.

Checkpoints are the tenant's, for every reader in it: they hold a size and a root. A proof of a run needs read on the run, and one
of an entry read on that entry.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.errors import (
    BadInput,
    CheckpointNotFound,
    LogDamaged,
    LogNotFound,
    RunNotSealed,
)
from memory.hashing import tag
from memory.integrity.checkpoints import StoredCheckpoint, stored_checkpoints
from memory.integrity.leaves import leaf_of, seal_of
from memory.integrity.merkle import inclusion_proof, subtrees_of
from memory.integrity.proof_text import RecordPath, consistency_text, inclusion_text
from memory.integrity.seal_log import NodeMissing, StoredTree
from memory.integrity.sealing import hashes_in
from memory.queries.run_log import check_run_is_readable, log_guard

_SEAL_OF = """
SELECT l.leaf_index, l.leaf_text, l.from_sequence, l.to_sequence, l.record_hashes FROM seal_leaf l
WHERE l.tenant_id = %(tenant)s::uuid AND l.run_id = %(run)s::text AND l.leaf_type = 'seal/v1'
  AND l.leaf_index < %(size)s::bigint AND (%(sequence)s::bigint IS NULL OR l.to_sequence >= %(sequence)s::bigint)
ORDER BY CASE WHEN %(sequence)s::bigint IS NULL THEN -l.to_sequence ELSE l.to_sequence END LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class RunProof:
    """That a run is sealed up to an entry, or that one entry of it is. `text` is the `.tlog-proof`, whole by itself."""

    run_id: str
    sequence: int
    entry_hash: str
    leaf_index: int
    leaf_text: str
    checkpoint: StoredCheckpoint
    text: str

    def as_wire(self) -> dict[str, Any]:
        return {
            "runId": self.run_id,
            "sequence": self.sequence,
            "entryHash": self.entry_hash,
            "leafIndex": self.leaf_index,
            "leaf": self.leaf_text,
            "checkpoint": self.checkpoint.as_wire(),
            "proof": self.text,
        }


def checkpoints(
    principal: Principal, *, before: int | None = None, limit: int
) -> list[StoredCheckpoint]:
    """Signed heads, the largest first, at most `limit`; smaller ones than `before` only."""
    with connection.cursor() as cursor:
        return stored_checkpoints(cursor, principal.tenant_id, before=before, limit=limit)


def checkpoint(principal: Principal, size: int) -> StoredCheckpoint:
    """The head of that size. Raises CheckpointNotFound."""
    with connection.cursor() as cursor:
        return _checkpoint(cursor, principal, size)


def _checkpoint(cursor: Any, principal: Principal, size: int | None) -> StoredCheckpoint:
    found = stored_checkpoints(cursor, principal.tenant_id, size=size, limit=1)
    if not found:
        raise CheckpointNotFound
    return found[0]


def consistency(principal: Principal, size: int, later_size: int) -> dict[str, Any]:
    """That the later checkpoint's log goes on from the earlier's. Raises CheckpointNotFound; BadInput for a smaller later one."""
    if size > later_size:
        raise BadInput.at("n", "must not be smaller than m")
    with connection.cursor() as cursor:
        earlier = _checkpoint(cursor, principal, size)
        later = _checkpoint(cursor, principal, later_size)
        tree = StoredTree(cursor, principal.tenant_id)
        path = _proven(lambda: tree.prove_consistency(size, later_size))
    return {
        "from": {**earlier.as_wire(), "note": earlier.cosigned_note},
        "to": {**later.as_wire(), "note": later.cosigned_note},
        "hashes": [tag(hash) for hash in path],
        "proof": consistency_text(size, path, later.cosigned_note),
    }


def run_proof(
    principal: Principal,
    run_id: str,
    *,
    sequence: int | None = None,
    head: StoredCheckpoint | None = None,
) -> RunProof:
    """The proof of a run's newest sealed entry, or of the entry with this sequence, under `head` or the newest checkpoint.

    Raises LogNotFound; RunNotSealed while no checkpoint covers it.
    """
    with connection.cursor() as cursor:
        if sequence is None:
            check_run_is_readable(principal, run_id)
        entry = _entry(cursor, principal, run_id, sequence) if sequence is not None else None
        if head is None:
            heads = stored_checkpoints(cursor, principal.tenant_id, limit=1)
            if not heads:
                raise RunNotSealed(run_id=run_id)
            head = heads[0]
        cursor.execute(
            _SEAL_OF,
            {
                "tenant": principal.tenant_id,
                "run": run_id,
                "size": head.size,
                "sequence": sequence,
            },
        )
        row = cursor.fetchone()
        if row is None:
            raise RunNotSealed(run_id=run_id)
        index, leaf_text, first, last, records = row
        record = None
        if entry is not None and sequence is not None:
            entry_hash, version, caused_by = entry
            path = _path_in_seal(bytes(records), sequence - first)
            record = RecordPath(
                sequence, bytes(entry_hash), version, caused_by, sequence - first, path
            )
        else:
            entry_hash = _head_of(leaf_text)
        tree = StoredTree(cursor, principal.tenant_id)
        text = inclusion_text(
            leaf_text,
            record,
            index=index,
            path=_proven(lambda: tree.prove_inclusion(index, head.size)),
            note_text=head.cosigned_note,
        )
    return RunProof(
        run_id,
        last if sequence is None else sequence,
        tag(bytes(entry_hash)),
        index,
        leaf_text,
        head,
        text,
    )


def _entry(
    cursor: Any, principal: Principal, run_id: str, sequence: int
) -> tuple[bytes, int, str | None]:
    """What a seal binds of a readable entry. Raises LogNotFound."""
    rule, parameters = log_guard(principal, "e")
    cursor.execute(
        "SELECT e.entry_hash, e.hash_version, e.caused_by FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid "
        f"AND e.run_id = %(run)s::text AND e.sequence = %(sequence)s::bigint AND {rule}",
        {"tenant": principal.tenant_id, "run": run_id, "sequence": sequence, **parameters},
    )
    row = cursor.fetchone()
    if row is None:
        raise LogNotFound
    return bytes(row[0]), row[1], row[2]


def _head_of(leaf_text: str) -> bytes:
    seal = seal_of(leaf_of(leaf_text))
    if seal is None:
        raise LogDamaged
    return seal.head_hash


def _path_in_seal(records: bytes, place: int) -> list[bytes]:
    hashes = hashes_in(records)
    return _proven(lambda: inclusion_proof(subtrees_of(hashes), place, len(hashes)))


def _proven(prove: Callable[[], list[bytes]]) -> list[bytes]:
    """A path; a stored log that lacks what its size promises has nothing to prove with."""
    try:
        return prove()
    except (NodeMissing, ValueError) as error:
        raise LogDamaged from error
