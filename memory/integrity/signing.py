"""Who signs checkpoints. The key is never in the database: a file of the state folder, or a key service.

`KINDMEM_SIGNER` names a function that gives a `Signer`; the default reads the state folder. A key
service puts its own there: a class with these three members is all it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.utils.module_loading import import_string


class Signer(Protocol):
    """Signs with Ed25519. `public_keys`: every key whose old checkpoints are to verify, the present one first, 32 bytes each."""

    @property
    def public_keys(self) -> tuple[bytes, ...]: ...

    def sign(self, message: bytes) -> bytes:
        """A signature of 64 bytes by the present key."""

    def sign_as_previous(self, message: bytes) -> bytes | None:
        """One by the key before, while it can still sign; else None."""


@dataclass(frozen=True)
class StateSigner:
    """Signs with the keys of the state folder."""

    public_keys: tuple[bytes, ...]
    seed: bytes = field(repr=False)
    previous_seed: bytes | None = field(repr=False, default=None)

    def sign(self, message: bytes) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def sign_as_previous(self, message: bytes) -> bytes | None:
        if self.previous_seed is None:
            return None
        return Ed25519PrivateKey.from_private_bytes(self.previous_seed).sign(message)


def state_signer() -> Signer:
    """The signer of this installation's state folder, as its file is now."""
    keys = settings.KINDMEM_STATE.signing_keys()
    return StateSigner(keys.public_keys, keys.seed, keys.previous_seed)


class SignerSettingError(ValueError):
    """KINDMEM_SIGNER names no function; the message says what is wrong."""


def chosen_signer() -> Callable[[], Signer]:
    """The function that the settings name, which is not called yet. Raises SignerSettingError."""
    name = settings.KINDMEM_SIGNER
    try:
        maker = import_string(name)
    except ImportError as error:
        raise SignerSettingError(f"KINDMEM_SIGNER: {error}") from error
    if not callable(maker):
        raise SignerSettingError(f"KINDMEM_SIGNER: {name} is no function that gives a signer")
    made: Callable[[], Signer] = maker
    return made


def signer() -> Signer:
    """The signer that the settings name."""
    return chosen_signer()()
