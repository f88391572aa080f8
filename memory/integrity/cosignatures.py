"""What a witness signs: that at some moment it had seen a log of this head, and nothing that contradicts it.

A cosignature is one more signature line of a checkpoint, in the witness's own name: four bytes of key
hash, eight bytes of POSIX time, 64 bytes of Ed25519 over

    cosignature/v1
    time <POSIX time>
    <the checkpoint's body>

Source: c2sp.org/tlog-cosignature.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from memory.integrity.notes import Note, NoteError, Signature, note_line, parse_signature

_LOG_KEY: Final = 0x01
_WITNESS_KEY: Final = 0x04
_TIME_BYTES: Final = 8
_LATEST: Final = 253_402_300_799  # the last second of the year 9999


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A name and its Ed25519 key: of a log (algorithm 1) or of a witness (algorithm 4)."""

    name: str
    algorithm: int
    public_key: bytes

    @property
    def hash(self) -> bytes:
        """The four bytes by which a note names the key."""
        text = self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public_key
        return sha256(text).digest()[:4]

    def as_text(self) -> str:
        """`<name>+<hash>+<base64>`, the form of signed notes."""
        encoded = base64.b64encode(bytes([self.algorithm]) + self.public_key).decode()
        return f"{self.name}+{self.hash.hex()}+{encoded}"


def log_key(text: str) -> PublicKey:
    """Read the verifier key of a log. Raises NoteError."""
    return _key(text, _LOG_KEY, "a log's key is an Ed25519 key (algorithm 1)")


def witness_key(text: str) -> PublicKey:
    """Read the verifier key of a witness. Raises NoteError."""
    return _key(text, _WITNESS_KEY, "a witness's key signs cosignature/v1 (algorithm 4)")


def witness_key_of(name: str, public_key: bytes) -> PublicKey:
    """The verifier key of a witness of this name."""
    return PublicKey(name, _WITNESS_KEY, public_key)


def _key(text: str, algorithm: int, otherwise: str) -> PublicKey:
    name, _, rest = text.partition("+")
    hash, _, encoded = rest.partition("+")
    if not name or any(letter.isspace() for letter in name):
        raise NoteError("a verifier key is: name, plus sign, hash, plus sign, base64")
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoteError("the key is not base64") from error
    if len(decoded) != 33:
        raise NoteError("the key is not one byte of algorithm and 32 of key")
    if decoded[0] != algorithm:
        raise NoteError(otherwise)
    key = PublicKey(name, algorithm, decoded[1:])
    if key.hash.hex() != hash:
        raise NoteError("the key's hash is of another key or name")
    return key


@dataclass(frozen=True, slots=True)
class Cosignature:
    """A witness's line that was checked. `time`: POSIX seconds, by the witness's clock."""

    line: str
    time: int


def cosign(body: str, key: PublicKey, time: int, sign: Callable[[bytes], bytes]) -> Cosignature:
    """Sign a checkpoint's body as a witness."""
    signature = sign(_message(body, time))
    stamped = time.to_bytes(_TIME_BYTES, "big") + signature
    return Cosignature(note_line(key.name, key.hash + stamped), time)


def cosignature_of(note: Note, lines: str, key: PublicKey) -> Cosignature:
    """The witness's line among those it answered, checked. Raises NoteError when there is none that verifies."""
    for line in lines.removesuffix("\n").split("\n"):
        one = parse_signature(line)
        if (one.name, one.key_hash) == (key.name, key.hash):
            return _checked(note, one, line, key)
    raise NoteError("no line in the name of the witness")


def _checked(note: Note, one: Signature, line: str, key: PublicKey) -> Cosignature:
    time = int.from_bytes(one.signature[:_TIME_BYTES], "big")
    if len(one.signature) != _TIME_BYTES + 64 or not 0 < time <= _LATEST:
        raise NoteError("not a cosignature/v1")
    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(
            one.signature[_TIME_BYTES:], _message(note.body, time)
        )
    except InvalidSignature as error:
        raise NoteError("not signed by the witness's key") from error
    return Cosignature(line + "\n", time)


def _message(body: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{body}".encode()


def time_of(line: str) -> int:
    """The POSIX seconds that a kept cosignature line says."""
    return int.from_bytes(parse_signature(line.removesuffix("\n")).signature[:_TIME_BYTES], "big")
