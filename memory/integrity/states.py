"""What a verification may say (docs/integrity.md): a state, never a bare yes, and the first bad place.

Where several states apply, the earlier one in `State` is the answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from memory.hashing import tag


class State(StrEnum):
    """In order of precedence; NOTHING_TO_VERIFY is what is left when no entry was looked at."""

    TAMPERED = "tampered"
    NOT_COMPLETE = "not-complete"
    LINKAGE_ONLY = "linkage-only"
    ERASED_ATTESTED = "erased-attested"
    VERIFIED_UNSEALED_TAIL = "verified-unsealed-tail"
    UNANCHORED = "unanchored"
    VERIFIED = "verified"
    NOTHING_TO_VERIFY = "nothing-to-verify"


EXIT_CODES: Final[dict[State, int]] = {
    State.VERIFIED: 0,
    State.TAMPERED: 10,
    State.NOT_COMPLETE: 11,
    State.LINKAGE_ONLY: 12,
    State.ERASED_ATTESTED: 13,
    State.VERIFIED_UNSEALED_TAIL: 14,
    State.UNANCHORED: 15,
    State.NOTHING_TO_VERIFY: 16,
}
"""What a command exits with; 1 and 2 stay for failures to run at all."""


UNPROTECTED: Final = ("id", "kind", "scope", "actor", "timestamp", "contentHash")
"""Of an erased entry of version 1: its place, its cause and its hash are all that a verifier can still hold against anything."""


def overall(states: Iterable[State]) -> State:
    """Return the state that speaks for all; one run with entries outweighs any without."""
    precedence = list(State)
    return min(states, key=precedence.index, default=State.NOTHING_TO_VERIFY)


_OF_ENTRIES: Final = frozenset(
    {
        State.VERIFIED,
        State.VERIFIED_UNSEALED_TAIL,
        State.ERASED_ATTESTED,
        State.UNANCHORED,
        State.LINKAGE_ONLY,
    }
)


def entries_since(state: str, verified_to: int | None, next_sequence: int) -> int:
    """How many entries a run gained after the verification that found it in a good state: the state is not about them."""
    if state not in _OF_ENTRIES or verified_to is None:
        return 0
    return max(0, next_sequence - 1 - verified_to)


class Tampering(StrEnum):
    """What was done, as far as the verifier can prove it."""

    CONTENT = "content"
    LINK = "link"
    GAP = "gap"
    FORK = "fork"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    SCOPE = "scope"
    SEAL = "seal"
    CHECKPOINT = "checkpoint"
    ANCHOR = "anchor"


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The lowest sequence at which the run is not what it was; hashes are written as tags."""

    run_id: str
    sequence: int
    tampering: Tampering
    expected: str
    found: str

    def as_wire(self) -> dict[str, Any]:
        return {
            "runId": self.run_id,
            "sequence": self.sequence,
            "class": self.tampering.value,
            "expected": self.expected,
            "found": self.found,
        }


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What verifying one run's entries `from_sequence` to `to_sequence` (inclusive) gave.

    `to_sequence` is `from_sequence` − 1 when there were none. `unsealed` counts entries past the
    last seal, `erased` those without their payload, `linkage_only` those of them whose hash can no
    longer be recomputed (version 1). `head_hash` is the last entry's. Counts of a tampered run
    reach as far as it was read.
    """

    state: State
    run_id: str
    from_sequence: int
    to_sequence: int
    entries: int
    head_hash: bytes | None
    unsealed: int
    erased: int
    linkage_only: int
    first_bad: FirstBad | None = None
    checkpoint: Mapping[str, Any] | None = None

    @property
    def unprotected(self) -> dict[str, Any] | None:
        """What can no longer be checked of erased entries of version 1, whose hash was made of these and of the payload."""
        if not self.linkage_only:
            return None
        return {"entries": self.linkage_only, "columns": list(UNPROTECTED)}

    def as_wire(self) -> dict[str, Any]:
        """Return the answer of docs/integrity.md."""
        answer: dict[str, Any] = {
            "state": self.state.value,
            "runId": self.run_id,
            "from": self.from_sequence,
            "to": self.to_sequence,
            "entries": self.entries,
            "unsealed": self.unsealed,
            "erased": self.erased,
        }
        if self.head_hash is not None:
            answer["headHash"] = tag(self.head_hash)
        if self.checkpoint is not None:
            answer["checkpoint"] = dict(self.checkpoint)
        if self.first_bad is not None:
            answer["firstBad"] = self.first_bad.as_wire()
        if self.unprotected is not None:
            answer["unprotected"] = self.unprotected
        return answer


def state_of(
    *,
    is_tampered: bool,
    is_complete: bool,
    entries: int,
    linkage_only: int,
    erased: int,
    unsealed: int,
    is_anchored: bool = True,
) -> State:
    """Return the state that counts amount to. Who knows nothing of anchors leaves `is_anchored`."""
    if is_tampered:
        return State.TAMPERED
    if entries == 0:
        return State.NOTHING_TO_VERIFY
    if not is_complete:
        return State.NOT_COMPLETE
    if linkage_only:
        return State.LINKAGE_ONLY
    if erased:
        return State.ERASED_ATTESTED
    if unsealed:
        return State.VERIFIED_UNSEALED_TAIL
    return State.VERIFIED if is_anchored else State.UNANCHORED
