"""What an entry's hash covers, byte for byte (docs/integrity.md).

Hashes are 32 raw bytes here and in the database, and `sha256:<hex>` on the wire and inside hashed
text. Callers give the canonical texts that are stored (payload, scope); they are spliced in between
the other keys, so nothing is canonicalised twice. The order of keys below is JCS order.

The database fills three holes of an entry under the head lock: prevHash, sequence, timestamp. An
entry is therefore two pieces of text:
    before + hex(prevHash) + after + sequence + ',"timestamp":"' + timestamp + '"}'
"""

import base64
import os
import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple

from memory.canonical import canonical_string

ZERO_HASH: Final = bytes(32)
"""prevHash of the entry with sequence 0."""

_TAG = re.compile("sha256:([0-9a-f]{64})")


def tag(digest: bytes) -> str:
    """Return a 32-byte digest as the wire writes it: `sha256:` and 64 lower-case hex digits."""
    return "sha256:" + digest.hex()


def sha256_tag(data: bytes) -> str:
    """Return the tag of the SHA-256 of `data`."""
    return tag(sha256(data).digest())


def digest_of_tag(text: str) -> bytes:
    """Return the 32 bytes that a tag names. Raises ValueError for any other text."""
    match = _TAG.fullmatch(text)
    if match is None:
        raise ValueError("not a sha256 tag")
    return bytes.fromhex(match[1])


def timestamp_text(instant: datetime) -> str:
    """Return an aware instant, cut to milliseconds, as hashed: `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    utc = instant.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def new_salt() -> str:
    """Return a fresh payload salt: 32 random bytes in base64."""
    return base64.b64encode(os.urandom(32)).decode()


def content_hash_v1(payload_text: str) -> bytes:
    """Hash a canonical payload text alone."""
    return sha256(payload_text.encode()).digest()


def content_hash_v2(payload_text: str, salt: str) -> bytes:
    """Hash a canonical payload text with its salt, so that a short payload can't be guessed."""
    return sha256(f'{{"payload":{payload_text},"payloadSalt":"{salt}"}}'.encode()).digest()


class EntryPieces(NamedTuple):
    """The canonical text of an entry around the holes that the database fills (see above)."""

    before: str
    after: str


def entry_pieces_v1(
    *,
    id: str,
    kind: str,
    run_id: str,
    scope_text: str,
    actor: str | None,
    payload_text: str | None,
) -> EntryPieces:
    """Version 1: the payload itself is hashed. `scope_text`, `payload_text` are canonical JSON."""
    before = f'"id":{canonical_string(id)},"kind":{canonical_string(kind)}'
    if actor is not None:
        before = f'"actor":{canonical_string(actor)},{before}'
    if payload_text is not None:
        before = f'{before},"payload":{payload_text}'
    return EntryPieces(f'{{{before},"prevHash":"sha256:', _after(run_id, scope_text))


def entry_pieces_v2(
    *,
    id: str,
    kind: str,
    run_id: str,
    scope_text: str,
    actor: str | None,
    content_hash: bytes | None,
    caused_by: str | None,
) -> EntryPieces:
    """Version 2: the payload's salted hash is hashed, so the payload can be erased later."""
    before = ""
    if actor is not None:
        before = f'"actor":{canonical_string(actor)},'
    if caused_by is not None:
        before += f'"causedByLogId":{canonical_string(caused_by)},'
    if content_hash is not None:
        before += f'"contentHash":"{tag(content_hash)}",'
    before += f'"hashVersion":2,"id":{canonical_string(id)},"kind":{canonical_string(kind)}'
    return EntryPieces(f'{{{before},"prevHash":"sha256:', _after(run_id, scope_text))


def _after(run_id: str, scope_text: str) -> str:
    return f'","runId":{canonical_string(run_id)},"scope":{scope_text},"sequence":'


def entry_text(pieces: EntryPieces, prev_hash: bytes, sequence: int, timestamp: str) -> str:
    """Return the whole canonical text of an entry; `timestamp` as `timestamp_text` writes it."""
    return f'{pieces.before}{prev_hash.hex()}{pieces.after}{sequence},"timestamp":"{timestamp}"}}'


def entry_hash(pieces: EntryPieces, prev_hash: bytes, sequence: int, timestamp: str) -> bytes:
    """Hash an entry; the next one of its run names this as prevHash."""
    return sha256(entry_text(pieces, prev_hash, sequence, timestamp).encode()).digest()


def entry_hash_v1(
    *,
    id: str,
    kind: str,
    run_id: str,
    scope_text: str,
    actor: str | None,
    payload_text: str | None,
    prev_hash: bytes,
    sequence: int,
    timestamp: str,
) -> bytes:
    """Hash an entry of version 1, the default."""
    pieces = entry_pieces_v1(
        id=id,
        kind=kind,
        run_id=run_id,
        scope_text=scope_text,
        actor=actor,
        payload_text=payload_text,
    )
    return entry_hash(pieces, prev_hash, sequence, timestamp)


def entry_hash_v2(
    *,
    id: str,
    kind: str,
    run_id: str,
    scope_text: str,
    actor: str | None,
    content_hash: bytes | None,
    caused_by: str | None,
    prev_hash: bytes,
    sequence: int,
    timestamp: str,
) -> bytes:
    """Hash an entry of version 2, erasable payloads."""
    pieces = entry_pieces_v2(
        id=id,
        kind=kind,
        run_id=run_id,
        scope_text=scope_text,
        actor=actor,
        content_hash=content_hash,
        caused_by=caused_by,
    )
    return entry_hash(pieces, prev_hash, sequence, timestamp)


def record_leaf_text(entry_hash: bytes, hash_version: int, caused_by: str | None) -> str:
    """Return the leaf that a seal's recordsRoot has for one entry.

    It binds what version 1 leaves out of the entry hash: causedByLogId and the version itself.
    """
    cause = "" if caused_by is None else f'"causedByLogId":{canonical_string(caused_by)},'
    return f'{{{cause}"entryHash":"{tag(entry_hash)}","hashVersion":{hash_version}}}'
