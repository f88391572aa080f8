"""A small C2SP witness: keeps the last head of each log it knows, and signs a new one that goes on from it.

It signs no smaller log than before, and no other log of a size that it has signed. Its state, with its
own key, is one file of mode 0600, on disk before an answer is given; one process at a time has it. Who
deletes that file deletes what it has seen. Source: c2sp.org/tlog-witness (`add-checkpoint`).
"""

import base64
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory.integrity.cosignatures import PublicKey, cosign, witness_key_of
from memory.integrity.merkle import EMPTY_ROOT, is_consistent
from memory.integrity.notes import Note, NoteError, parse_checkpoint, signers_of
from memory.integrity.proof_text import read_consistency

REQUEST_MAX_BYTES: Final = 64 << 10
SIZE_TYPE: Final = "text/x.tlog.size"
_LARGEST_LOG: Final = 2**53 - 1


class WitnessStateError(ValueError):
    """The state file can't be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An HTTP answer: cosignature lines with 200, the size last seen with 409, else a sentence."""

    status: int
    text: str
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Seen:
    size: int = 0
    root_hash: bytes = EMPTY_ROOT


class Witness:
    """One witness with its state file. `logs`: the keys whose checkpoints it looks at; a log may have several."""

    def __init__(self, path: Path, name: str, logs: Iterable[PublicKey]) -> None:
        """Take the state file, made when there is none. Raises WitnessStateError, OSError."""
        self._path = path
        self._keys: dict[str, list[bytes]] = {}
        for log in logs:
            self._keys.setdefault(log.name, []).append(log.public_key)
        self._one_at_a_time = threading.Lock()
        self._lock = _locked(path)
        try:
            self._name, self._seed, self._seen = _read(path, name)
        except (OSError, WitnessStateError):
            self.close()
            raise
        self._private = Ed25519PrivateKey.from_private_bytes(self._seed)
        self.key = witness_key_of(self._name, self._private.public_key().public_bytes_raw())
        if not path.exists():
            self._save()

    def close(self) -> None:
        """Let another process have the state file."""
        os.close(self._lock)

    def add_checkpoint(self, request: bytes) -> Answered:
        """Look at a checkpoint, and cosign it when it goes on from the last one. Raises OSError: then nothing was signed."""
        try:
            size, path, note_text = read_consistency(request.decode())
            note = parse_checkpoint(note_text)
        except (UnicodeDecodeError, NoteError) as error:
            return Answered(400, f"{error}\n")
        if note.size > _LARGEST_LOG or size > note.size:
            return Answered(400, "the old size is larger than the new\n")
        if note.origin not in self._keys:
            return Answered(404, "the log is not known\n")
        if not signers_of(note, self._keys[note.origin]):
            return Answered(403, "not signed by a key of the log\n")
        with self._one_at_a_time:
            return self._add(size, path, note)

    def _add(self, size: int, path: list[bytes], note: Note) -> Answered:
        seen = self._seen.get(note.origin, _Seen())
        is_other = note.size == seen.size and note.root_hash != seen.root_hash
        if size != seen.size or is_other:
            return Answered(409, f"{seen.size}\n", SIZE_TYPE)
        if not is_consistent(size, note.size, seen.root_hash, note.root_hash, path):
            return Answered(422, "the proof does not show that the log goes on\n")
        if note.size != seen.size or note.origin not in self._seen:
            self._seen[note.origin] = _Seen(note.size, note.root_hash)
            try:
                self._save()
            except OSError:
                self._seen[note.origin] = seen
                raise
        return Answered(200, cosign(note.body, self.key, int(time.time()), self._private.sign).line)

    def _save(self) -> None:
        """Put the whole state on disk, in the place of the former."""
        said = {
            "name": self._name,
            "seed": _text(self._seed),
            "logs": {
                origin: {"size": seen.size, "root": _text(seen.root_hash)}
                for origin, seen in sorted(self._seen.items())
            },
        }
        unfinished = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(said, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _locked(path: Path) -> int:
    """A lock beside the state file, which is itself replaced with each change."""
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise WitnessStateError(f"another witness runs with {path}") from None
    return descriptor


def _read(path: Path, name: str) -> tuple[str, bytes, dict[str, _Seen]]:
    """Name, private key and what was seen. A file that can't be read whole is never begun anew."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        if not name or "+" in name or any(letter.isspace() for letter in name):
            raise WitnessStateError("a witness has a name, without spaces and plus signs") from None
        return name, Ed25519PrivateKey.generate().private_bytes_raw(), {}
    try:
        said: dict[str, Any] = json.loads(text)
        kept, seed = str(said["name"]), _bytes(said["seed"])
        seen = {
            origin: _Seen(int(one["size"]), _bytes(one["root"]))
            for origin, one in said["logs"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WitnessStateError(f"{path} is not the state of a witness") from error
    if name and name != kept:
        raise WitnessStateError(f"{path} is the state of {kept}")
    return kept, seed, seen


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    value = base64.b64decode(text, validate=True)
    if len(value) != 32:
        raise ValueError("not 32 bytes")
    return value
