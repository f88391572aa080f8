"""The keys that must never lie in the database, made on the first start in the state folder.

Each is a file of its own with mode 0600: whoever has only the database, or only a backup of it, can
neither sign in with a stored key digest, nor test guesses against a fingerprint, nor open a seal.
A command that may yet be refused holds missing keys in memory (`keep_later`), so that a mistyped
folder is not filled with keys that fit nothing.
"""

import base64
import binascii
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES = 32
_FILES = ("peppers", "secret_key", "fingerprint_key", "sealing_key")  # and the signing keys
_is_kept_later = False


class StateError(RuntimeError):
    """A key file can't be made or read; the message says what to do, and never holds a key."""


@dataclass(frozen=True)
class SigningKeys:
    """Ed25519 keys of checkpoints. Seeds and public keys are 32 bytes each."""

    seed: bytes = field(repr=False)
    """What signs now."""
    previous_seed: bytes | None = field(repr=False)
    """What signed before, kept until every tenant's log names the new key."""
    public_keys: tuple[bytes, ...]
    """Every key that ever signed here, the present one first: old checkpoints still verify."""


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
    signing_keys_path: Path
    """Where the signing keys are; they are read each time, since another process may rotate them."""
    missing: tuple[str, ...] = ()
    """Names of the key files that don't exist: these keys are in memory alone, until `kept`."""
    _later_peppers: dict[int, bytes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def lack(self) -> str:
        """What is missing, in words; empty when nothing is."""
        return "keys" if len(self.missing) > len(_FILES) else ", ".join(self.missing)

    def kept(self) -> "State":
        """The folder's keys, those written down that were missing; another process's if it came first."""
        return _state(self.directory, self.signing_keys_path, _load)

    def read_again(self) -> "State":
        """What the folder holds now; nothing is written."""
        return _state(self.directory, self.signing_keys_path, _look)

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
        with _changed(self.directory / "peppers") as stored:
            version = max(int(one) for one in stored["peppers"]) + 1
            stored["peppers"][str(version)] = _fresh_key()
            stored["current"] = version
        return version

    def signing_keys(self) -> SigningKeys:
        """The keys of checkpoints as their file has them now."""
        return _signing_keys(_text(self.signing_keys_path))

    def rotate_signing_key(self) -> None:
        """Sign with a new key from now on; the old one stays until `drop_previous_signing_seed`."""
        with _changed(self.signing_keys_path) as stored:
            stored["keys"].insert(0, _fresh_signing_key())
            for older in stored["keys"][2:]:
                older.pop("seed", None)

    def drop_previous_signing_seed(self) -> None:
        """Keep of older keys only what verifies."""
        with _changed(self.signing_keys_path) as stored:
            for older in stored["keys"][1:]:
                older.pop("seed", None)


def keep_later() -> None:
    """From now on this process writes keys down in `State.kept` only, not when it loads them."""
    global _is_kept_later
    _is_kept_later = True


def load_or_create(state_dir: Path, signing_keys_path: Path | None = None) -> State:
    """Read the keys, making those that don't exist yet; safe to run at the same time twice.

    `signing_keys_path`: where checkpoints' keys are kept when not in the folder.
    Raises StateError when the folder or a file in it can't be used.
    """
    get = _look if _is_kept_later else _load
    return _state(state_dir, signing_keys_path or state_dir / "signing_keys", get)


_Get = Callable[[Path, Callable[[], str]], str]


def _state(state_dir: Path, signing_keys_path: Path, get: _Get) -> State:
    try:
        if get is _load:
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        missing = tuple(
            path.name
            for path in (*(state_dir / name for name in _FILES), signing_keys_path)
            if get is _look and not path.exists()
        )
        versions, current = _peppers(get(state_dir / "peppers", _fresh_peppers))
        _signing_keys(get(signing_keys_path, _fresh_signing_keys))
        return State(
            directory=state_dir,
            secret_key=_secret(get(state_dir / "secret_key", _fresh_secret)),
            peppers=versions,
            current_pepper=current,
            fingerprint_key=_key(get(state_dir / "fingerprint_key", _fresh_key)),
            sealing_key=_key(get(state_dir / "sealing_key", _fresh_key)),
            signing_keys_path=signing_keys_path,
            missing=missing,
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


def _look(path: Path, fresh: Callable[[], str]) -> str:
    """The file's text, or what a new file might say."""
    try:
        return _text(path)
    except FileNotFoundError:
        return fresh()


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


@contextmanager
def _changed(path: Path) -> Iterator[dict[str, Any]]:
    """A key file's JSON, to be changed by one process at a time and put back whole."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        stored = json.loads(_text(path))
        yield stored
        os.replace(_written(path.parent, json.dumps(stored)), path)
        os.fsync(folder)
    finally:
        os.close(folder)


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


def _fresh_secret() -> str:
    return secrets.token_urlsafe(50)


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


def _fresh_signing_key() -> dict[str, str]:
    seed = secrets.token_bytes(KEY_BYTES)
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return {"public": base64.b64encode(public).decode(), "seed": base64.b64encode(seed).decode()}


def _fresh_signing_keys() -> str:
    return json.dumps({"keys": [_fresh_signing_key()]})


def _signing_keys(text: str) -> SigningKeys:
    keys = json.loads(text)["keys"]
    previous = keys[1].get("seed") if len(keys) > 1 else None
    return SigningKeys(
        seed=_key(keys[0]["seed"]),
        previous_seed=None if previous is None else _key(previous),
        public_keys=tuple(_key(one["public"]) for one in keys),
    )
