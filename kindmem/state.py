"""The keys that must never lie in the database, made on the first start in the state folder.

Each is a file of its own with mode 0600: whoever has only the database, or only a backup of it, can
neither sign in with a stored key digest, nor test guesses against a fingerprint, nor open a seal.
"""

import base64
import binascii
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

KEY_BYTES = 32


class StateError(RuntimeError):
    """A key file can't be made or read; the message says what to do, and never holds a key."""


@dataclass(frozen=True)
class State:
    """The installation's keys; none of them appears in its repr."""

    directory: Path
    secret_key: str = field(repr=False)
    """Django's signing key."""
    peppers: Mapping[int, bytes] = field(repr=False)
    """HMAC keys of API key digests by version; old versions verify, the current one makes new."""
    current_pepper: int
    """The version of the pepper for new API keys."""
    fingerprint_key: bytes = field(repr=False)
    """HMAC key of the fingerprints of what was forgotten or retired; 32 bytes."""
    sealing_key: bytes = field(repr=False)
    """AES-256-GCM key of sealed copies; 32 bytes."""
    _later_peppers: dict[int, bytes] = field(default_factory=dict, repr=False, compare=False)

    def pepper(self, version: int) -> bytes:
        """The pepper of this version, also when another process added it since. Raises KeyError."""
        if version in self.peppers:
            return self.peppers[version]
        if version not in self._later_peppers:
            self._later_peppers.update(_peppers(_text(self.directory / "peppers"))[0])
        return self._later_peppers[version]

    def newest_pepper_version(self) -> int:
        """The version for a new key, as the state folder has it now."""
        return _peppers(_text(self.directory / "peppers"))[1]

    def add_pepper(self) -> int:
        """Make a pepper for keys to come, beside the old ones. Return its version."""
        path = self.directory / "peppers"
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            stored = json.loads(_text(path))
            version = max(int(one) for one in stored["peppers"]) + 1
            stored["peppers"][str(version)] = _fresh_key()
            stored["current"] = version
            unfinished = _written(path.parent, json.dumps(stored))
            os.replace(unfinished, path)
            os.fsync(folder)
        finally:
            os.close(folder)
        return version


def load_or_create(state_dir: Path) -> State:
    """Read the keys, making those that don't exist yet; safe to run at the same time twice.

    Raises StateError when the folder or a file in it can't be used.
    """
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        versions, current = _peppers(_load(state_dir / "peppers", _fresh_peppers))
        return State(
            directory=state_dir,
            secret_key=_secret(_load(state_dir / "secret_key", lambda: secrets.token_urlsafe(50))),
            peppers=versions,
            current_pepper=current,
            fingerprint_key=_key(_load(state_dir / "fingerprint_key", _fresh_key)),
            sealing_key=_key(_load(state_dir / "sealing_key", _fresh_key)),
        )
    except OSError as error:
        raise StateError(
            f"The state folder {state_dir} can't be used: {error.strerror} ({error.filename}). "
            "Make it writable for this user, or give another one with KINDMEM_STATE_DIR."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"A key file in {state_dir} is damaged. Put back the copy that was kept when the "
            "product was set up; a new key would make stored API keys and sealed copies useless."
        ) from error


def _load(path: Path, fresh: Callable[[], str]) -> str:
    """The file's text; when there is no file, made whole with `fresh` by whoever comes first."""
    if not path.exists():
        unfinished = _written(path.parent, fresh())
        try:
            # A link, unlike a rename, never replaces what another process made meanwhile.
            with suppress(FileExistsError):
                os.link(unfinished, path)
                _sync_folder(path.parent)
        finally:
            os.unlink(unfinished)
    return _text(path)


def _text(path: Path) -> str:
    text = path.read_text().strip()
    if not text:
        raise ValueError("an empty key file")
    return text


def _written(folder: Path, text: str) -> str:
    """The path of a new private file that holds the text, on disk."""
    descriptor, unfinished = tempfile.mkstemp(dir=folder, prefix=".unfinished-")
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return unfinished


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _secret(text: str) -> str:
    # Django's own floor, below which its deployment check complains.
    if len(text) < 50:
        raise ValueError("a signing key that is too short")
    return text


def _fresh_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if len(key) != KEY_BYTES:
        raise ValueError("a key of another length")
    return key


def _fresh_peppers() -> str:
    return json.dumps({"current": 1, "peppers": {"1": _fresh_key()}})


def _peppers(text: str) -> tuple[Mapping[int, bytes], int]:
    stored = json.loads(text)
    versions = {int(version): _key(key) for version, key in stored["peppers"].items()}
    current = int(stored["current"])
    if current not in versions:
        raise ValueError("the current pepper is missing")
    return MappingProxyType(versions), current
