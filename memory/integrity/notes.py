"""Signed tree heads as text: C2SP signed-note and tlog-checkpoint, with Ed25519.

    <origin>
    <size>
    <base64 root hash>

    — <key name> <base64: 4 bytes of key hash, 64 bytes of signature>

What is signed is the text up to and with the newline before the empty line. The key's name is the
origin; its hash binds name, algorithm and public key. Source: c2sp.org/signed-note,
c2sp.org/tlog-checkpoint.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_ED25519: Final = b"\x01"
_DASH: Final = "\u2014 "
_SIZE: Final = re.compile("0|[1-9][0-9]{0,18}", re.ASCII)


class NoteError(ValueError):
    """The text is not a signed note, or not a checkpoint."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line of a note, as it stands; nothing about it is checked yet."""

    name: str
    key_hash: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A signed checkpoint, parsed. `body` is what was signed."""

    origin: str
    size: int
    root_hash: bytes
    body: str
    signatures: tuple[Signature, ...]


def key_hash(name: str, public_key: bytes) -> bytes:
    """The four bytes by which a note names its key."""
    return sha256(name.encode() + b"\n" + _ED25519 + public_key).digest()[:4]


def verifier_key(name: str, public_key: bytes) -> str:
    """The public key in the text form of signed notes: `<name>+<hash>+<base64>`."""
    encoded = base64.b64encode(_ED25519 + public_key).decode()
    return f"{name}+{key_hash(name, public_key).hex()}+{encoded}"


def checkpoint_body(origin: str, size: int, root_hash: bytes) -> str:
    """What is signed of a tree head."""
    if not origin or "\n" in origin or "+" in origin or origin.strip() != origin:
        raise NoteError("an origin has no newline, plus sign or space around it")
    return f"{origin}\n{size}\n{base64.b64encode(root_hash).decode()}\n"


def signature_line(name: str, public_key: bytes, signature: bytes) -> str:
    """One signature line, with its newline."""
    return note_line(name, key_hash(name, public_key) + signature)


def note_line(name: str, signature: bytes) -> str:
    """The line of a signature that begins with its key's hash, with its newline."""
    return f"{_DASH}{name} {base64.b64encode(signature).decode()}\n"


def signed_note(body: str, lines: Iterable[str]) -> str:
    """The whole note."""
    return f"{body}\n{''.join(lines)}"


def parse_checkpoint(text: str) -> Note:
    """Read a note that holds a tree head. Raises NoteError; no signature is checked."""
    body, separator, rest = text.rpartition("\n\n")
    if not separator:
        raise NoteError("a note has an empty line before its signatures")
    body += "\n"
    lines = body.split("\n")
    if len(lines) < 4 or not lines[0]:
        raise NoteError("a checkpoint has an origin, a size and a root")
    origin, size, root = lines[:3]
    if not _SIZE.fullmatch(size):
        raise NoteError("the size of a checkpoint is a decimal number")
    if not rest.endswith("\n"):
        raise NoteError("a note ends with a newline")
    return Note(
        origin=origin,
        size=int(size),
        root_hash=_decoded(root, 32),
        body=body,
        signatures=tuple(parse_signature(line) for line in rest.removesuffix("\n").split("\n")),
    )


def parse_signature(line: str) -> Signature:
    """Read one signature line, without its newline. Raises NoteError; nothing is checked."""
    words = line.removeprefix(_DASH).split(" ")
    if not line.startswith(_DASH) or len(words) != 2:
        raise NoteError("a signature line is: dash, name, base64")
    decoded = _decoded(words[1])
    if len(decoded) < 5:
        raise NoteError("a signature is too short")
    return Signature(words[0], decoded[:4], decoded[4:])


def _decoded(text: str, length: int | None = None) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoteError("not base64") from error
    if length is not None and len(decoded) != length:
        raise NoteError(f"not {length} bytes")
    return decoded


def signers_of(note: Note, public_keys: Iterable[bytes]) -> list[bytes]:
    """Those of the public keys that signed the note in its origin's name."""
    found: list[bytes] = []
    for public_key in public_keys:
        wanted = key_hash(note.origin, public_key)
        for one in note.signatures:
            if one.name == note.origin and one.key_hash == wanted:
                try:
                    Ed25519PublicKey.from_public_bytes(public_key).verify(
                        one.signature, note.body.encode()
                    )
                except InvalidSignature:
                    continue
                found.append(public_key)
                break
    return found
