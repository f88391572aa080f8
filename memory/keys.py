"""API keys: how a token looks, and what is kept of it.

A token is `kmk_<prefix 10>_<secret 43>`; the secret has 256 random bits, so a fast keyed hash is right. Kept: the prefix to look
it up by, and HMAC-SHA256 of the token under a pepper that is outside the database.
"""

import hmac
import re
import secrets
from hashlib import sha256

from django.conf import settings

TOKEN = re.compile(r"kmk_([a-z0-9]{10})_([A-Za-z0-9_-]{43})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def new_token() -> tuple[str, str]:
    """A new token and its prefix."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(10))
    return f"kmk_{prefix}_{secrets.token_urlsafe(32)}", prefix


def prefix_of(token: str) -> str | None:
    """The prefix of a well-formed token, else None."""
    match = TOKEN.fullmatch(token)
    return match.group(1) if match else None


def digest(token: str, pepper_version: int) -> bytes:
    """32 bytes. Raises KeyError for a pepper that this installation doesn't hold."""
    pepper: bytes = settings.KINDMEM_STATE.pepper(pepper_version)
    return hmac.new(pepper, token.encode(), sha256).digest()


def current_pepper_version() -> int:
    """The version that this process began with; what is verified names its own."""
    return int(settings.KINDMEM_STATE.current_pepper)


def newest_pepper_version() -> int:
    """The version for a new key: the newest there is, also when this process began before it was made."""
    return int(settings.KINDMEM_STATE.newest_pepper_version())


def add_pepper() -> int:
    """Make a new pepper for keys to come; return its version. Keys that are there name theirs and go on working."""
    return int(settings.KINDMEM_STATE.add_pepper())
