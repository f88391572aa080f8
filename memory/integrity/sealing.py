"""Makes the leaves of what moved in a tenant's log since the last seal, recomputing every entry first.

A range that doesn't verify is never sealed: it comes back as a refusal with its first bad place. The
caller's transaction has set the tenant and holds its seal lock.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn
from uuid import UUID

from memory.hashing import ZERO_HASH, tag
from memory.integrity.acts import AN_ACT, closed_by_act, unbacked_word
from memory.integrity.chain import NO_ENTRY
from memory.integrity.chain_sql import CLEAN_SEAL, Cursor, verify_run_in_sql
from memory.integrity.leaves import (
    MOST_SEALED,
    erasure_text,
    leaf_of,
    record_hashes,
    run_closed_text,
    seal_of,
    seal_text,
)
from memory.integrity.seal_log import NewLeaf
from memory.integrity.states import FirstBad, Tampering

_HERE = Path(__file__).parent
_SEAL = (_HERE / "chain_rows.sql").read_text("utf-8") + (_HERE / "chain_seal.sql").read_text(
    "utf-8"
)

SPAN_ENTRIES: Final = 10 * MOST_SEALED
"""Entries that one statement recomputes."""

ROUND_SECONDS: Final = 2.0
"""How long one round goes on taking up runs; it ends in one transaction with the leaves."""

_MOVED = """
SELECT h.run_id, h.next_sequence, coalesce(sealed.to_sequence, -1), sealed.leaf_text, h.head_hash, h.prev_hash, closing.is_due
FROM run_head h
LEFT JOIN LATERAL (
  SELECT l.to_sequence, l.leaf_text FROM seal_leaf l
  WHERE l.tenant_id = h.tenant_id AND l.run_id = h.run_id AND l.leaf_type = 'seal/v1'
  ORDER BY l.to_sequence DESC LIMIT 1
) sealed ON true
CROSS JOIN LATERAL (
  SELECT h.closed_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM seal_leaf c WHERE c.tenant_id = h.tenant_id AND c.run_id = h.run_id AND c.leaf_type = 'run-closed') AS is_due
) closing
WHERE h.tenant_id = %(tenant)s::uuid AND (h.next_sequence - 1 > coalesce(sealed.to_sequence, -1) OR closing.is_due)
  AND (%(since)s::timestamptz IS NULL OR greatest(h.last_at, h.closed_at) >= %(since)s::timestamptz)
  AND h.run_id <> ALL (%(without)s::text[])
ORDER BY h.run_id LIMIT %(limit)s::int
"""

_WORDS = """
SELECT e.id, e.sequence, w.id FROM log_entry w
JOIN log_entry e ON e.tenant_id = w.tenant_id AND e.run_id = w.run_id
  AND e.id = w.caused_by
WHERE w.tenant_id = %(tenant)s::uuid AND w.run_id = %(run)s::text
  AND w.sequence BETWEEN %(first)s::bigint AND %(last)s::bigint
  AND w.kind = 'event-emitted' AND right(w.payload_text, 25) = ',"type":"payload.erased"}'
  AND e.sequence < w.sequence AND e.payload_erased_at IS NOT NULL
ORDER BY w.sequence
"""

_RUNS_A_ROUND: Final = 500


class Moved(NamedTuple):
    """A run with entries past its last seal."""

    run_id: str
    next_sequence: int
    sealed_to: int
    sealed_text: str | None
    head_hash: bytes
    prev_hash: bytes
    is_closing: bool
    """It was closed, and no leaf says so yet."""


class _Span(NamedTuple):
    """The row that chain_seal.sql answers with; chain_clean_seal.sql, with record hashes to be made."""

    entries: int
    bad_sequence: int | None
    first_prev_hash: bytes
    record_hashes: bytes
    entry_hashes: bytes
    has_word: bool


@dataclass(slots=True)
class Round:
    """What one round made. `is_last`: nothing else had moved."""

    leaves: list[NewLeaf] = field(default_factory=list)
    entries: int = 0
    refused: list[FirstBad] = field(default_factory=list)
    is_last: bool = True


class Refused(Exception):
    """The range doesn't verify; `bad` says where and why."""

    def __init__(self, bad: FirstBad) -> None:
        super().__init__(bad.tampering.value)
        self.bad = bad


def make_leaves(
    cursor: Cursor,
    *,
    tenant_id: UUID,
    tenant_slug: str,
    since: Any = None,
    without: Sequence[str] = (),
) -> Round:
    """Leaves over what moved, as much as one round takes.

    `since`: only runs whose last entry is at or after this instant. `without`: runs to leave alone.
    """
    cursor.execute(
        _MOVED,
        {"tenant": tenant_id, "since": since, "without": list(without), "limit": _RUNS_A_ROUND},
    )
    moved = [
        Moved(row[0], row[1], row[2], row[3], bytes(row[4] or b""), bytes(row[5] or b""), row[6])
        for row in cursor.fetchall()
    ]
    made = Round(is_last=len(moved) < _RUNS_A_ROUND)
    stop_at = time.monotonic() + ROUND_SECONDS
    for run in moved:
        maker = RunSealer(cursor, tenant_id, tenant_slug, run.run_id)
        try:
            is_done = maker.seal_moved(run, made, stop_at)
        except Refused as refusal:
            made.refused.append(refusal.bad)
            continue
        if not is_done:
            made.is_last = False
            break
    return made


class RunSealer:
    """Makes the leaves of one run."""

    def __init__(self, cursor: Cursor, tenant_id: UUID, tenant_slug: str, run_id: str) -> None:
        self._cursor = cursor
        self._tenant_id = tenant_id
        self._slug = tenant_slug
        self._run_id = run_id

    def seal_moved(self, run: Moved, made: Round, stop_at: float) -> bool:
        """Add the leaves over everything past the last seal; False when time ran out before its end."""
        sealed_to, sealed_hash = run.sealed_to, ZERO_HASH
        if run.sealed_text is not None:
            seal = seal_of(leaf_of(run.sealed_text))
            if seal is None:
                self._refuse(run.sealed_to, Tampering.SEAL, "a seal", "another text")
            sealed_hash = seal.head_hash
        newest = run.next_sequence - 1
        while sealed_to < newest:
            if time.monotonic() > stop_at:
                return False
            first, last = sealed_to + 1, min(sealed_to + SPAN_ENTRIES, newest)
            leaves, sealed_hash = self.leaves_over(first, last, sealed_to, sealed_hash)
            sealed_to = last
            if last == newest and sealed_hash != run.head_hash:
                self._refuse(newest, Tampering.LINK, tag(run.head_hash), tag(sealed_hash))
            made.leaves += leaves
            made.entries += last - first + 1
        if run.is_closing:
            if sealed_hash != run.head_hash:
                self._refuse(newest, Tampering.LINK, tag(run.head_hash), tag(sealed_hash))
            if closed_by_act(self._cursor, self._tenant_id, run.run_id, newest) is None:
                self._refuse(newest, Tampering.LINK, AN_ACT, "a run closed without one")
            text = run_closed_text(
                self._slug, run.run_id, to_sequence=newest, head_hash=sealed_hash
            )
            made.leaves.append(NewLeaf(text))
        return True

    def leaves_over(
        self, first: int, last: int, sealed_to: int, sealed_hash: bytes, *, most: int = MOST_SEALED
    ) -> tuple[list[NewLeaf], bytes]:
        """Seals over `first` to `last` and what the entries there attest; the hash of the last entry. Raises Refused."""
        span = self._recomputed(first, last, sealed_to)
        if span.bad_sequence is not None or span.entries != last - first + 1:
            self._refuse_chain(first, last, sealed_to)
        if span.first_prev_hash != sealed_hash:
            self._refuse(
                max(0, sealed_to), Tampering.SEAL, tag(sealed_hash), tag(span.first_prev_hash)
            )
        leaves: list[NewLeaf] = []
        for start in range(first, last + 1, most):
            end = min(start + most - 1, last)
            records = span.record_hashes[(start - first) * 32 : (end + 1 - first) * 32]
            text = seal_text(
                self._slug,
                self._run_id,
                from_sequence=start,
                to_sequence=end,
                head_hash=span.entry_hashes[(end - first) * 32 : (end + 1 - first) * 32],
                record_hashes=hashes_in(records),
            )
            leaves.append(NewLeaf(text, records))
        if span.has_word:
            leaves += [NewLeaf(text) for text in self.erasures_attested(first, last)]
        return leaves, span.entry_hashes[-32:]

    def erasures_attested(self, first: int, last: int) -> list[str]:
        """Erasure leaves for the attestations among these entries. Raises Refused for one that no act of governance names."""
        forged = unbacked_word(self._cursor, self._tenant_id, self._run_id, first=first, last=last)
        if forged is not None:
            raise Refused(forged)
        self._cursor.execute(
            _WORDS,
            {"tenant": self._tenant_id, "run": self._run_id, "first": first, "last": last},
        )
        return [
            erasure_text(
                self._slug, self._run_id, entry_id=entry_id, sequence=sequence, attested_by=word
            )
            for entry_id, sequence, word in self._cursor.fetchall()
        ]

    def _recomputed(self, first: int, last: int, sealed_to: int) -> _Span:
        parameters = {
            "tenant": self._tenant_id,
            "tenant_slug": self._slug,
            "run": self._run_id,
            "first": first,
            "last": last,
            "sealed_to": sealed_to,
            "attested": [],
        }
        self._cursor.execute(CLEAN_SEAL, parameters)
        clean = self._cursor.fetchone()
        if clean is not None:
            entries, prev_hash, hashes, has_word, version, caused, causes = clean
            places = [sequence - first for sequence in caused or ()]
            records = record_hashes(
                bytes(hashes), version, dict(zip(places, causes or (), strict=True))
            )
            return _Span(entries, None, bytes(prev_hash), records, bytes(hashes), has_word)
        self._cursor.execute(_SEAL, parameters)
        row = self._cursor.fetchone()
        return _Span(
            row[0], row[1], bytes(row[2] or b""), bytes(row[3] or b""), bytes(row[4] or b""), row[5]
        )

    def _refuse_chain(self, first: int, last: int, sealed_to: int) -> NoReturn:
        """Say what is wrong with the range, as the verifier does."""
        report = verify_run_in_sql(
            self._cursor,
            tenant_id=self._tenant_id,
            tenant_slug=self._slug,
            run_id=self._run_id,
            first=first,
            last=last,
            sealed_to=sealed_to,
        )
        if report.first_bad is not None:
            raise Refused(report.first_bad)
        self._refuse(first, Tampering.GAP, str(first), NO_ENTRY)

    def _refuse(self, sequence: int, tampering: Tampering, expected: str, found: str) -> NoReturn:
        raise Refused(FirstBad(self._run_id, sequence, tampering, expected, found))


def hashes_in(text: bytes) -> list[bytes]:
    """The 32-byte hashes that stand one after another."""
    return [text[start : start + 32] for start in range(0, len(text), 32)]
