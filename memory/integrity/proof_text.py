"""Proofs as text that other people's tools read: C2SP tlog-proof for inclusion, the lines of tlog-witness for consistency.

    c2sp.org/tlog-proof@v1
    extra <base64 of application data>
    index <leaf index>
    <base64 hash>
    …

    <signed checkpoint>

Our application data is canonical JSON with the leaf's text; where the proof is about one entry it also has the entry's path in
the seal: `{"leaf", "record": {"causedByLogId"?, "entryHash", "hashVersion", "path", "place", "sequence"}}`.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memory.canonical import canonical
from memory.hashing import digest_of_tag, record_leaf_text, tag
from memory.integrity.leaves import leaf_of, seal_of
from memory.integrity.merkle import is_included, leaf_hash
from memory.integrity.notes import NoteError, parse_checkpoint, signers_of

HEADER: Final = "c2sp.org/tlog-proof@v1"
_SIZE: Final = re.compile("0|[1-9][0-9]{0,15}", re.ASCII)
_LONGEST_PATH: Final = 63


class ProofError(ValueError):
    """The text is no proof, or proves something else; the message says what."""


@dataclass(frozen=True, slots=True)
class RecordPath:
    """An entry's place under a seal: its leaf in the seal's own tree and the path to recordsRoot."""

    sequence: int
    entry_hash: bytes
    hash_version: int
    caused_by: str | None
    place: int
    path: Sequence[bytes]

    def as_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "sequence": self.sequence,
            "entryHash": tag(self.entry_hash),
            "hashVersion": self.hash_version,
            "place": self.place,
            "path": [tag(hash) for hash in self.path],
        }
        if self.caused_by is not None:
            said["causedByLogId"] = self.caused_by
        return said


@dataclass(frozen=True, slots=True)
class Proven:
    """What a checked proof shows. `sequence` and `entry_hash`: of the entry, or of the seal's last one."""

    origin: str
    size: int
    run_id: str
    sequence: int
    entry_hash: bytes


def inclusion_text(
    leaf_text: str,
    record: RecordPath | None,
    *,
    index: int,
    path: Iterable[bytes],
    note_text: str,
) -> str:
    """The proof that a leaf, and an entry under it, is in the log that the checkpoint is of."""
    extra: dict[str, Any] = {"leaf": leaf_text}
    if record is not None:
        extra["record"] = record.as_json()
    encoded = base64.b64encode(canonical(extra).encode()).decode()
    return f"{HEADER}\nextra {encoded}\nindex {index}\n{_lines(path)}\n{note_text}"


def consistency_text(size: int, path: Iterable[bytes], note_text: str) -> str:
    """The proof that the log of `size` leaves is the start of the checkpoint's, as a witness is asked with it."""
    return f"old {size}\n{_lines(path)}\n{note_text}"


def read_consistency(text: str) -> tuple[int, list[bytes], str]:
    """What a witness is asked with: the old size, the path, the note. Raises NoteError."""
    head, separator, note_text = text.partition("\n\n")
    first, *lines = head.split("\n")
    size = first.removeprefix("old ")
    if not separator or first == size or not _SIZE.fullmatch(size):
        raise NoteError("a request is: 'old' and a size, hashes, an empty line, a checkpoint")
    try:
        path = [base64.b64decode(line, validate=True) for line in lines]
    except (binascii.Error, ValueError) as error:
        raise NoteError("a hash is not base64") from error
    if len(path) > _LONGEST_PATH or any(len(hash) != 32 for hash in path):
        raise NoteError("at most 63 hashes of 32 bytes")
    return int(size), path, note_text


def _lines(path: Iterable[bytes]) -> str:
    return "".join(base64.b64encode(hash).decode() + "\n" for hash in path)


def check_inclusion(text: str, public_keys: Iterable[bytes]) -> Proven:
    """Check a proof whole: signature, path of the leaf, path of the entry. Raises ProofError."""
    head, separator, note_text = text.partition("\n\n")
    lines = head.split("\n")
    if not separator or len(lines) < 3 or lines[0] != HEADER:
        raise ProofError("not a tlog-proof")
    extra, index = _word(lines[1], "extra "), _word(lines[2], "index ")
    try:
        note = parse_checkpoint(note_text)
        said = json.loads(base64.b64decode(extra, validate=True))
        path = [base64.b64decode(line, validate=True) for line in lines[3:]]
        leaf_text = str(said["leaf"])
        seal = seal_of(leaf_of(leaf_text))
    except (NoteError, binascii.Error, ValueError, KeyError, TypeError) as error:
        raise ProofError("a part of the proof is malformed") from error
    if not signers_of(note, public_keys):
        raise ProofError("the checkpoint is not signed by a known key")
    if not is_included(leaf_hash(leaf_text.encode()), int(index), note.size, path, note.root_hash):
        raise ProofError("the leaf is not in the checkpoint's tree")
    if seal is None:
        raise ProofError("the leaf is no seal")
    if "record" not in said:
        return Proven(note.origin, note.size, seal.run_id, seal.to_sequence, seal.head_hash)
    record = _record_of(said["record"])
    count = seal.to_sequence - seal.from_sequence + 1
    text_of = record_leaf_text(record.entry_hash, record.hash_version, record.caused_by)
    hash = leaf_hash(text_of.encode())
    if record.sequence != seal.from_sequence + record.place or not is_included(
        hash, record.place, count, record.path, seal.records_root
    ):
        raise ProofError("the entry is not under the seal")
    return Proven(note.origin, note.size, seal.run_id, record.sequence, record.entry_hash)


def _word(line: str, label: str) -> str:
    if not line.startswith(label):
        raise ProofError(f"no line '{label.strip()}'")
    return line.removeprefix(label)


def _record_of(said: Any) -> RecordPath:
    try:
        return RecordPath(
            int(said["sequence"]),
            digest_of_tag(said["entryHash"]),
            int(said["hashVersion"]),
            said.get("causedByLogId"),
            int(said["place"]),
            [digest_of_tag(hash) for hash in said["path"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProofError("the entry's path is malformed") from error
