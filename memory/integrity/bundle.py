"""Writes an evidence bundle: one run's entries, seals and proofs in a ZIP that an auditor checks alone (INTEGRITY §7).

Files are streamed, so a long run needs no memory. The manifest's exact bytes are signed; nothing is ever serialised again to
check it. `verify_bundle.py` goes along.
"""

import base64
import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from memory.api.json_text import dumps
from memory.canonical import canonical, canonical_string
from memory.hashing import tag
from memory.integrity.signing import Signer
from memory.log_entry import StoredEntry

SCHEMA_VERSION: Final = 1
CSV_COLUMNS: Final = (
    "sequence",
    "timestamp",
    "kind",
    "actor",
    "id",
    "causedByLogId",
    "scope",
    "payload",
    "payloadErasedAt",
    "contentHash",
    "entryHash",
)
_HERE: Final = Path(__file__).parent
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class SealedLeaf:
    """A leaf about the run, with its path to the checkpoint's root."""

    index: int
    text: str
    path: Iterable[bytes]

    def line(self) -> str:
        return canonical(
            {"index": self.index, "leaf": self.text, "path": [tag(hash) for hash in self.path]}
        )


@dataclass(frozen=True, slots=True)
class StampedNote:
    """A checkpoint that a time stamp authority stamped (`stamp`: base64), with its path to the bundle's checkpoint."""

    authority: str
    note_text: str
    stamp: str
    path: Iterable[bytes]

    def line(self) -> str:
        return canonical(
            {
                "authority": self.authority,
                "note": self.note_text,
                "stamp": self.stamp,
                "path": [tag(hash) for hash in self.path],
            }
        )


@dataclass(frozen=True, slots=True)
class UnsignedLeaf:
    """A leaf about the run that no signed head covers yet."""

    index: int
    text: str

    def line(self) -> str:
        return canonical({"index": self.index, "leaf": self.text})


@dataclass(frozen=True, slots=True)
class ProvenAct:
    """An entry of the record of governance, with its tlog-proof where the bundle's checkpoint covers it."""

    entry: StoredEntry
    proof: str | None

    def line(self) -> str:
        said = {"entry": entry_line(self.entry)}
        return canonical(said if self.proof is None else {**said, "proof": self.proof})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What goes into a bundle. `entries` may be read several times; `about` is the manifest without files and counts."""

    about: Mapping[str, Any]
    entries: Callable[[], Iterator[StoredEntry]]
    leaves: Callable[[], Iterator[SealedLeaf]]
    note_text: str | None = None
    head_proof: str | None = None
    stamps: Sequence[StampedNote] = ()
    unsigned: Sequence[UnsignedLeaf] = ()
    acts: Callable[[], Iterator[ProvenAct]] | None = None
    """Where the run says that payloads of it were erased: the acts of governance that did it."""


@dataclass(slots=True)
class _Files:
    """The ZIP being written, and what the manifest says of each file."""

    bundle: zipfile.ZipFile
    named: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, name: str, parts: Iterable[str]) -> None:
        digest, size = sha256(), 0
        with self._open(name) as file:
            for part in parts:
                data = part.encode()
                file.write(data)
                digest.update(data)
                size += len(data)
        self.named[name] = {"sha256": tag(digest.digest()), "bytes": size}

    def write_last(self, name: str, data: bytes) -> None:
        """The manifest and its envelope, which no manifest names."""
        with self._open(name) as file:
            file.write(data)

    def _open(self, name: str) -> IO[bytes]:
        about = zipfile.ZipInfo(name, _EPOCH)
        about.compress_type = zipfile.ZIP_DEFLATED
        about.external_attr = 0o644 << 16
        return self.bundle.open(about, "w", force_zip64=True)


def write_bundle(target: IO[bytes], evidence: Evidence, by: Signer) -> dict[str, Any]:
    """Write the ZIP; the manifest that was signed."""
    counted = _Counted()
    with zipfile.ZipFile(target, "w") as bundle:
        files = _Files(bundle)
        files.write("entries.jsonl", (line + "\n" for line in counted.lines(evidence.entries())))
        files.write("entries.csv", _csv(evidence.entries()))
        if evidence.note_text is not None:
            files.write("seals.jsonl", (leaf.line() + "\n" for leaf in evidence.leaves()))
            files.write("checkpoint.txt", [evidence.note_text])
        if evidence.unsigned:
            files.write("unsigned.jsonl", (leaf.line() + "\n" for leaf in evidence.unsigned))
        if evidence.acts is not None:
            files.write("acts.jsonl", (act.line() + "\n" for act in evidence.acts()))
        if evidence.head_proof is not None:
            files.write("head.tlog-proof", [evidence.head_proof])
        if evidence.stamps:
            files.write("timestamps.jsonl", (stamp.line() + "\n" for stamp in evidence.stamps))
        files.write("verify_bundle.py", [(_HERE / "verify_bundle.py").read_text("utf-8")])
        files.write("README.md", [(_HERE / "bundle_readme.md").read_text("utf-8")])
        manifest = {
            **evidence.about,
            "entries": counted.entries,
            "headHash": counted.head_hash,
            "truncated": False,
            "files": files.named,
        }
        data = canonical(manifest).encode()
        files.write_last("manifest.json", data)
        files.write_last("envelope.json", canonical(_envelope(data, manifest, by)).encode())
    return manifest


def _envelope(data: bytes, manifest: Mapping[str, Any], by: Signer) -> dict[str, Any]:
    public_key = by.public_keys[0]
    return {
        "bundle": {"file": "manifest.json", "sha256": tag(sha256(data).digest())},
        "bundleSchemaVersion": SCHEMA_VERSION,
        "algorithm": "ed25519",
        "signingKeyId": key_id(public_key),
        "signature": base64.b64encode(by.sign(data)).decode(),
        "publicKey": base64.b64encode(public_key).decode(),
        "canonicalization": "sorted-key-json",
        "exportedAt": manifest["exportedAt"],
    }


def key_id(public_key: bytes) -> str:
    """How people tell signing keys apart: the first 16 hex digits of the key's SHA-256."""
    return sha256(public_key).hexdigest()[:16]


class _Counted:
    """Entries as canonical lines, counted as they pass."""

    def __init__(self) -> None:
        self.entries = 0
        self.head_hash: str | None = None

    def lines(self, entries: Iterable[StoredEntry]) -> Iterator[str]:
        for entry in entries:
            self.entries += 1
            self.head_hash = tag(entry.entry_hash or b"")
            yield entry_line(entry)


def entry_line(entry: StoredEntry) -> str:
    """An entry in canonical JSON, its stored texts as they are."""
    parts = sorted(entry.wire().items())
    return "{" + ",".join(f"{canonical_string(name)}:{_text(value)}" for name, value in parts) + "}"


def _text(value: Any) -> str:
    # Raw pieces are canonical already; numbers here are whole and small.
    return canonical_string(value) if type(value) is str else dumps(value)


def _csv(entries: Iterable[StoredEntry]) -> Iterator[str]:
    """A copy for reading: every cell is text, and none is a formula to a spreadsheet."""
    yield _row(CSV_COLUMNS)
    for entry in entries:
        wire = entry.wire()
        yield _row([_safe(str(wire.get(column, ""))) for column in CSV_COLUMNS])


def _row(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()


def _safe(cell: str) -> str:
    return "'" + cell if cell.startswith(_FORMULA) else cell
