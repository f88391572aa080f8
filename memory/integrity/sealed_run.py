"""Holds a run's entries against its seals: what a chain whose hashes were all redone can't hide.

Each entry's leaf hash, which binds its hash, its version and its cause, must be the one that was
sealed; the run must reach as far as it was sealed; the seals themselves must join without a gap.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from memory.hashing import tag
from memory.integrity.acts import AFTER_THE_END
from memory.integrity.chain import NO_ENTRY, attests_erasure
from memory.integrity.chain_sql import Cursor
from memory.integrity.leaves import ERASURE, RUN_CLOSED, Seal, leaf_of, record_hash, seal_of
from memory.integrity.merkle import root_of_hashes
from memory.integrity.rows import EntryRow
from memory.integrity.states import FirstBad, Tampering

_LEAVES: Final = """
SELECT leaf_index, leaf_text FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND leaf_index < %(size)s::bigint
ORDER BY leaf_index
"""

_RECORDS: Final = """
SELECT record_hashes FROM seal_leaf WHERE tenant_id = %(tenant)s::uuid AND leaf_index = %(index)s::bigint
"""


@dataclass(frozen=True, slots=True)
class StoredSeal:
    """A seal and where it is in the log."""

    leaf_index: int
    seal: Seal


@dataclass(frozen=True, slots=True)
class RunSeals:
    """What the log of seals says about one run. `closed_at`: the sequence that the run ends with."""

    run_id: str
    seals: tuple[StoredSeal, ...] = ()
    attested_ids: frozenset[str] = field(default_factory=frozenset)
    closed_at: int | None = None

    @property
    def sealed_to(self) -> int:
        """The highest sequence under a seal; −1 for none."""
        return self.seals[-1].seal.to_sequence if self.seals else -1


def run_seals(cursor: Cursor, tenant_id: UUID, run_id: str, size: int) -> RunSeals:
    """The seals of a run among the first `size` leaves, which the caller has verified."""
    cursor.execute(_LEAVES, {"tenant": tenant_id, "run": run_id, "size": size})
    seals: list[StoredSeal] = []
    attested: set[str] = set()
    closed_at = None
    for index, text in cursor.fetchall():
        leaf = leaf_of(text)
        seal = seal_of(leaf)
        if seal is not None:
            seals.append(StoredSeal(index, seal))
        elif leaf.get("type") == ERASURE:
            attested.add(str(leaf["logEntryId"]))
        elif leaf.get("type") == RUN_CLOSED:
            closed_at = int(leaf["toSequence"])
    return RunSeals(run_id, tuple(seals), frozenset(attested), closed_at)


def stored_records(cursor: Cursor, tenant_id: UUID) -> Callable[[int], bytes]:
    """A reader of the leaf hashes that are stored with the seal at a leaf index."""

    def read(leaf_index: int) -> bytes:
        cursor.execute(_RECORDS, {"tenant": tenant_id, "index": leaf_index})
        row = cursor.fetchone()
        return b"" if row is None or row[0] is None else bytes(row[0])

    return read


class SealComparison:
    """Takes the rows of a run in order and says where they are not what was sealed.

    `records` gives the stored leaf hashes of a seal; they name the entry exactly, and are held against
    the seal's own root first. `first`, `last`: the range that is read, as for `ChainVerifier`.
    """

    def __init__(
        self,
        seals: RunSeals,
        records: Callable[[int], bytes],
        *,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        self._seals = seals
        self.records = records
        self._next = first
        self._last = last
        self._place = 0
        self._current: Sequence[bytes] = ()
        self._read: int | None = None
        self.first_bad: FirstBad | None = None
        self._judge_joints()
        while self._place < len(seals.seals) and seals.seals[self._place].seal.to_sequence < first:
            self._place += 1

    def take(self, rows: Iterable[EntryRow]) -> None:
        """Compare the next rows; those that were read before are passed over."""
        for row in rows:
            if row.sequence < self._next or self.first_bad is not None:
                continue
            self._next = row.sequence + 1
            self._compare(row)

    def finish(self) -> FirstBad | None:
        """Say whether the rows end before the seals do. No rows may follow."""
        wanted = self._seals.sealed_to
        if self._last is not None:
            wanted = min(wanted, self._last)
        if self._next <= wanted and (
            self.first_bad is None or self._next < self.first_bad.sequence
        ):
            self._say(self._next, self._sealed_hash(self._next), NO_ENTRY)
        return self.first_bad

    def _judge_joints(self) -> None:
        due = 0
        for one in self._seals.seals:
            if one.seal.from_sequence != due:
                self._say(due, f"a seal from {due}", f"a seal from {one.seal.from_sequence}")
                return
            due = one.seal.to_sequence + 1

    def _compare(self, row: EntryRow) -> None:
        seals = self._seals.seals
        while self._place < len(seals) and seals[self._place].seal.to_sequence < row.sequence:
            self._place += 1
        if self._place < len(seals):
            self._compare_sealed(row)
        closed_at = self._seals.closed_at
        is_late = closed_at is not None and row.sequence > closed_at and not attests_erasure(row)
        if is_late and self.first_bad is None:
            self._say(row.sequence, NO_ENTRY, AFTER_THE_END)

    def _compare_sealed(self, row: EntryRow) -> None:
        seal = self._seals.seals[self._place].seal
        self._open(self._place)
        if self.first_bad is not None:
            return
        expected = self._current[row.sequence - seal.from_sequence]
        if row.entry_hash is None or row.hash_version is None:
            self._say(row.sequence, tag(expected), NO_ENTRY)
            return
        found = record_hash(row.entry_hash, row.hash_version, row.caused_by)
        if found != expected:
            self._say(row.sequence, tag(expected), tag(found))
        elif row.sequence == seal.to_sequence and row.entry_hash != seal.head_hash:
            self._say(row.sequence, tag(seal.head_hash), tag(row.entry_hash))

    def _open(self, place: int) -> None:
        """Read a seal's leaf hashes, once, and hold them against its root."""
        if self._read == place:
            return
        self._read = place
        stored = self._seals.seals[place]
        text = self.records(stored.leaf_index)
        hashes = [text[start : start + 32] for start in range(0, len(text), 32)]
        root = root_of_hashes(hashes)
        covered = stored.seal.to_sequence - stored.seal.from_sequence + 1
        if root != stored.seal.records_root or len(hashes) != covered:
            self._say(stored.seal.from_sequence, tag(stored.seal.records_root), tag(root))
        self._current = hashes

    def _sealed_hash(self, sequence: int) -> str:
        """What was sealed of an entry that is gone."""
        for place, one in enumerate(self._seals.seals):
            if one.seal.from_sequence <= sequence <= one.seal.to_sequence:
                self._open(place)
                if len(self._current) > sequence - one.seal.from_sequence:
                    return tag(self._current[sequence - one.seal.from_sequence])
        return "a sealed entry"

    def _say(self, sequence: int, expected: str, found: str) -> None:
        self.first_bad = FirstBad(self._seals.run_id, sequence, Tampering.SEAL, expected, found)
