"""The witnesses that the operator chose, and how one is asked.

`KINDMEM_WITNESSES`: verifier key and address of each, separated by commas or newlines:
`<name>+<hash>+<base64> https://witness.example/`. Requests go through the fetcher: https, public
addresses, two seconds; with the development setting plain http on loopback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.conf import settings

from memory.fetch_rules import FetchError, FetchRefused, FetchTooLarge
from memory.fetcher import fetch
from memory.integrity.cosignatures import Cosignature, PublicKey, cosignature_of, witness_key
from memory.integrity.notes import Note, NoteError
from memory.integrity.proof_text import consistency_text

_ANSWER_MAX_BYTES: Final = 16 << 10
_PLACE: Final = "witness:"
_REASONS: Final = {
    400: "request-refused",
    403: "key-not-trusted",
    404: "log-not-known",
    422: "inconsistent",
}
CONTRADICTIONS: Final = frozenset(("inconsistent", "ahead", "conflict"))
"""Failures that say: the witness has seen another log than this one."""


class WitnessSettingError(ValueError):
    """KINDMEM_WITNESSES names no witness; the message says what is wrong."""


class WitnessFailed(Exception):
    """A witness gave no cosignature. `reason`: see docs/witness.md."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WitnessHas(Exception):
    """The witness last saw the log at another size than it was asked to go on from."""

    def __init__(self, size: int) -> None:
        super().__init__(str(size))
        self.size = size


@dataclass(frozen=True, slots=True)
class ChosenWitness:
    """One witness of the settings."""

    key: PublicKey
    url: str

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def place(self) -> str:
        """How its cosignatures are named among the anchors."""
        return f"{_PLACE}{self.key.name}"


def chosen_witnesses() -> tuple[ChosenWitness, ...]:
    """Those of the settings. Raises WitnessSettingError."""
    return _parsed(settings.KINDMEM_WITNESSES)


@lru_cache(maxsize=4)
def _parsed(text: str) -> tuple[ChosenWitness, ...]:
    found: dict[str, ChosenWitness] = {}
    for said in text.replace("\n", ",").split(","):
        if not said.strip():
            continue
        words = said.split()
        if len(words) != 2:
            raise WitnessSettingError("KINDMEM_WITNESSES: each witness is a key and an address")
        try:
            key = witness_key(words[0])
        except NoteError as error:
            raise WitnessSettingError(f"KINDMEM_WITNESSES: {error}") from error
        if key.name in found or len(key.name) > 200:
            raise WitnessSettingError("KINDMEM_WITNESSES: names are short, and each is one's own")
        found[key.name] = ChosenWitness(key, words[1].rstrip("/"))
    return tuple(found.values())


def ask(
    witness: ChosenWitness, size: int, path: Sequence[bytes], note: Note, text: str
) -> Cosignature:
    """Ask for a cosignature of a checkpoint, with the proof that it goes on from `size`.

    Takes as long as a fetch may; outside any transaction. Raises WitnessHas, WitnessFailed.
    """
    try:
        answer = fetch(
            f"{witness.url}/add-checkpoint",
            method="POST",
            content=consistency_text(size, path, text).encode(),
            max_bytes=_ANSWER_MAX_BYTES,
            allow_loopback=settings.KINDMEM_DEVELOPMENT,
        )
    except FetchRefused as error:
        if error.reason == "in-transaction":
            raise
        raise WitnessFailed("fetch-refused") from error
    except FetchTooLarge as error:
        raise WitnessFailed("answer-malformed") from error
    except FetchError as error:
        raise WitnessFailed("unreachable") from error
    if answer.status == 409:
        raise WitnessHas(_size(answer.body))
    if answer.status != 200:
        raise WitnessFailed(_REASONS.get(answer.status, "unavailable"))
    try:
        return cosignature_of(note, answer.body.decode(), witness.key)
    except (NoteError, UnicodeDecodeError) as error:
        raise WitnessFailed("bad-cosignature") from error


def _size(body: bytes) -> int:
    digits = body.removesuffix(b"\n")
    if not digits.isdigit() or len(digits) > 18:
        raise WitnessFailed("answer-malformed")
    return int(digits)
