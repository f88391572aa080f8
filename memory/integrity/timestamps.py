"""Time stamps of RFC 3161: an authority outside signs that a checkpoint existed at some moment, so that it can't be backdated.

`KINDMEM_TIMESTAMPS`: name, address and roots of each authority, separated by commas or newlines:
`<name> https://tsa.example/tsr /etc/kindmem/tsa-roots.pem`. What is stamped is the signed note, byte for byte, without the
lines of witnesses. The package `rfc3161-client` is an extra (`kindmem[timestamps]`); without the setting it is not needed.
Requests go through the fetcher. Source: RFC 3161, RFC 5816.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from django.conf import settings

from memory.fetch_rules import FetchError, FetchRefused, FetchTooLarge
from memory.fetcher import fetch
from memory.integrity.verify_bundle import stamp_says

if TYPE_CHECKING:
    from rfc3161_client import TimeStampResponse

PLACE: Final = "timestamp:"
_ANSWER_MAX_BYTES: Final = 64 << 10
_QUERY: Final = "application/timestamp-query"


class TimestampSettingError(ValueError):
    """KINDMEM_TIMESTAMPS can't be used; the message says why."""


class StampFailed(Exception):
    """An authority gave no time stamp. `reason`: as of a witness, see docs/integrity.md."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Authority:
    """A time stamp authority of the settings."""

    name: str
    url: str
    roots: tuple[x509.Certificate, ...]

    @property
    def place(self) -> str:
        """How its time stamps are named among the anchors."""
        return f"{PLACE}{self.name}"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time stamp that was checked. `answer`: the TimeStampResp in DER; `at`: the authority's time."""

    answer: bytes
    at: datetime


def chosen_authorities() -> tuple[Authority, ...]:
    """Those of the settings. Raises TimestampSettingError."""
    return _parsed(settings.KINDMEM_TIMESTAMPS)


@lru_cache(maxsize=4)
def _parsed(text: str) -> tuple[Authority, ...]:
    found: dict[str, Authority] = {}
    for said in text.replace("\n", ",").split(","):
        words = said.split()
        if not words:
            continue
        if len(words) != 3:
            raise TimestampSettingError(
                "KINDMEM_TIMESTAMPS: each authority is a name, an address and a PEM file of its roots"
            )
        name, url, path = words
        if name in found or len(name) > 100 or not name.replace("-", "").replace(".", "").isalnum():
            raise TimestampSettingError(
                "KINDMEM_TIMESTAMPS: names are letters, digits, dots and dashes, and each is one's own"
            )
        try:
            roots = x509.load_pem_x509_certificates(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise TimestampSettingError(
                f"KINDMEM_TIMESTAMPS: no certificates can be read from {path}"
            ) from error
        found[name] = Authority(name, url, tuple(roots))
    if found and find_spec("rfc3161_client") is None:
        raise TimestampSettingError(
            "KINDMEM_TIMESTAMPS needs the extra: pip install 'kindmem[timestamps]' (rfc3161-client)"
        )
    return tuple(found.values())


def ask_stamp(authority: Authority, note_text: str) -> Stamp:
    """Have a signed note stamped. Takes as long as a fetch may; outside any transaction. Raises StampFailed."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    data = note_text.encode()
    request = TimestampRequestBuilder(data=data, hash_algorithm=HashAlgorithm.SHA256).build()
    try:
        answer = fetch(
            authority.url,
            method="POST",
            content=request.as_bytes(),
            headers={"Content-Type": _QUERY},
            max_bytes=_ANSWER_MAX_BYTES,
            allow_loopback=settings.KINDMEM_DEVELOPMENT,
        )
    except FetchRefused as error:
        if error.reason == "in-transaction":
            raise
        raise StampFailed("fetch-refused") from error
    except FetchTooLarge as error:
        raise StampFailed("answer-malformed") from error
    except FetchError as error:
        raise StampFailed("unreachable") from error
    if answer.status != 200:
        raise StampFailed("request-refused" if 400 <= answer.status < 500 else "unavailable")
    return check_stamp(authority, answer.body, note_text, nonce=request.nonce)


def check_stamp(
    authority: Authority, answer: bytes, note_text: str, *, nonce: int | None = None
) -> Stamp:
    """Hold a time stamp against the note and the authority's roots, offline. Raises StampFailed."""
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        response = decode_timestamp_response(answer)
    except ValueError as error:
        raise StampFailed("answer-malformed") from error
    if response.status != 0:
        raise StampFailed("request-refused")
    verifier = VerifierBuilder(roots=list(authority.roots), nonce=nonce).build()
    try:
        verifier.verify_message(response, note_text.encode())
        return Stamp(answer, _time_of(response))
    except (VerificationError, ValueError) as error:
        raise StampFailed("bad-cosignature") from error


def _time_of(response: TimeStampResponse) -> datetime:
    at: Any = response.tst_info.gen_time
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise ValueError("a time stamp has a time of UTC")
    return at


def stamped_at(text: str) -> datetime:
    """The authority's time in a kept time stamp, read without the extra. Raises ValueError."""
    _, _, time = stamp_says(stamp_bytes(text))
    whole, _, fraction = time.removesuffix("Z").partition(".")
    at = datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return at.replace(microsecond=int(fraction.ljust(6, "0")[:6] or 0))


def stamp_text(answer: bytes) -> str:
    """A time stamp as the database keeps it."""
    return base64.b64encode(answer).decode()


def stamp_bytes(text: str) -> bytes:
    """Read it back. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not a time stamp") from error
