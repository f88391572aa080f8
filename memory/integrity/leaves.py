"""What the tenant's log of seals holds: the text of each kind of leaf (docs/integrity.md).

A leaf is canonical JSON; its bytes are what the Merkle tree hashes. A seal binds a range of a run's
entries: their hashes, and what version 1 leaves out of them. The other leaves attest what a verifier
could not tell from tampering: an erasure, a change of key or of hash version, the end of a run.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from memory.canonical import canonical
from memory.hashing import digest_of_tag, record_leaf_text, tag
from memory.integrity.merkle import leaf_hash, root_of_hashes

SEAL: Final = "seal/v1"
ERASURE: Final = "erasure"
RUN_CLOSED: Final = "run-closed"
RUN_RETIRED: Final = "run-retired"
KEY_ROTATED: Final = "key-rotated"
HASH_VERSION_CHANGED: Final = "hash-version-changed"

MOST_SEALED: Final = 1_000
"""Entries under one seal at most, which keeps the proof of one entry short."""


@dataclass(frozen=True, slots=True)
class Seal:
    """One seal leaf, parsed. Hashes are 32 raw bytes."""

    run_id: str
    from_sequence: int
    to_sequence: int
    head_hash: bytes
    records_root: bytes


def record_hash(entry_hash: bytes, hash_version: int, caused_by: str | None) -> bytes:
    """The Merkle leaf hash of one entry under a seal."""
    return leaf_hash(record_leaf_text(entry_hash, hash_version, caused_by).encode())


def record_hashes(entry_hashes: bytes, hash_version: int, causes: Mapping[int, str]) -> bytes:
    """`record_hash` of many entries of one version, whose hashes stand one after another. `causes`: by place among them."""
    digits = entry_hashes.hex().encode()
    text = b'\x00{"entryHash":"sha256:%b","hashVersion":' + b"%d}" % hash_version
    made = [sha256(text % digits[at : at + 64]).digest() for at in range(0, len(digits), 64)]
    for place, caused_by in causes.items():
        hash = entry_hashes[place * 32 : place * 32 + 32]
        made[place] = record_hash(hash, hash_version, caused_by)
    return b"".join(made)


def seal_text(
    tenant_slug: str,
    run_id: str,
    *,
    from_sequence: int,
    to_sequence: int,
    head_hash: bytes,
    record_hashes: Iterable[bytes],
) -> str:
    """A seal over the entries whose `record_hashes` are given in order."""
    return canonical(
        {
            "type": SEAL,
            "tenantId": tenant_slug,
            "runId": run_id,
            "fromSequence": from_sequence,
            "toSequence": to_sequence,
            "headHash": tag(head_hash),
            "recordsRoot": tag(root_of_hashes(record_hashes)),
        }
    )


def erasure_text(
    tenant_slug: str, run_id: str, *, entry_id: str, sequence: int, attested_by: str
) -> str:
    """The payload of an entry was erased; `attested_by` is the entry of the run that says so."""
    return canonical(
        {
            "type": ERASURE,
            "tenantId": tenant_slug,
            "runId": run_id,
            "logEntryId": entry_id,
            "sequence": sequence,
            "attestedBy": attested_by,
        }
    )


def run_closed_text(tenant_slug: str, run_id: str, *, to_sequence: int, head_hash: bytes) -> str:
    """The run ends with this entry; a later one is tampering."""
    return canonical(
        {
            "type": RUN_CLOSED,
            "tenantId": tenant_slug,
            "runId": run_id,
            "toSequence": to_sequence,
            "headHash": tag(head_hash),
        }
    )


def key_rotated_text(tenant_slug: str, old: bytes, new: bytes) -> str:
    """From the checkpoint that covers this leaf on, another Ed25519 key signs."""
    return canonical(
        {
            "type": KEY_ROTATED,
            "tenantId": tenant_slug,
            "algorithm": "ed25519",
            "oldKey": base64.b64encode(old).decode(),
            "newKey": base64.b64encode(new).decode(),
        }
    )


def hash_version_changed_text(tenant_slug: str, old: int, new: int) -> str:
    """New entries are hashed by another version."""
    return canonical(
        {
            "type": HASH_VERSION_CHANGED,
            "tenantId": tenant_slug,
            "oldVersion": old,
            "newVersion": new,
        }
    )


def leaf_of(text: str) -> dict[str, Any]:
    """A leaf as JSON; {} for what is no JSON object."""
    try:
        leaf = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return leaf if isinstance(leaf, dict) else {}


def seal_of(leaf: dict[str, Any]) -> Seal | None:
    """The seal that a parsed leaf is; None when it is none or malformed."""
    if leaf.get("type") != SEAL:
        return None
    try:
        return Seal(
            run_id=str(leaf["runId"]),
            from_sequence=int(leaf["fromSequence"]),
            to_sequence=int(leaf["toSequence"]),
            head_hash=digest_of_tag(leaf["headHash"]),
            records_root=digest_of_tag(leaf["recordsRoot"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
