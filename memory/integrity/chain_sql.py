"""The second verifier: recomputes a run's hashes inside PostgreSQL, in plain SQL.

It shares no code with `chain.py` but what to call things, and tests hold the two to the same answer.
A statement judges a span of entries, in one snapshot with the head row, so that no statement runs for
long. The first one only tells whether the span as a whole is as it should be (chain_clean.sql); where it
is not, or can't be told at once (erased payloads, strings that JSON escapes, two hash versions), the
second judges entry by entry, and a third says what is bad. The caller's transaction has set the tenant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from memory.integrity.chain import (
    ATTESTED_ERASURE,
    NO_ENTRY,
    NO_PAYLOAD,
    OTHER_RUNS_LOOKED_AT,
    REORDER_WINDOW,
)
from memory.integrity.rows import Progress
from memory.integrity.states import ChainReport, FirstBad, Tampering, state_of

_HERE = Path(__file__).parent
_CLEAN = (_HERE / "chain_clean.sql").read_text("utf-8")
CLEAN_SUMMARY: Final = _CLEAN + (_HERE / "chain_clean_summary.sql").read_text("utf-8")
CLEAN_SEAL: Final = _CLEAN + (_HERE / "chain_clean_seal.sql").read_text("utf-8")
_ROWS = (_HERE / "chain_rows.sql").read_text("utf-8")
SUMMARY: Final = _ROWS + (_HERE / "chain_summary.sql").read_text("utf-8")
FIRST_BAD: Final = _ROWS + (_HERE / "chain_first_bad.sql").read_text("utf-8")

SPAN_ENTRIES: Final = 20_000
"""Fewer, and planning each statement is felt; more, and a span that has to be judged entry by entry takes long."""

_ODD_SPANS: Final = 2
"""After so many spans of a run, one after another, that could not be told at once, no further one is tried so."""

_NEXT_SEQUENCE = """
SELECT min(e.sequence)::text FROM log_entry e
WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
  AND e.sequence > %(after)s::bigint
  AND (%(last)s::bigint IS NULL OR e.sequence <= %(last)s::bigint)
"""


class Cursor(Protocol):
    """What is needed of a Django or psycopg cursor."""

    def execute(self, query: Any, params: Any = ..., /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...


class _Clean(NamedTuple):
    """The row that chain_clean_summary.sql answers with for one span."""

    is_clean: bool
    entries: int
    newest_sequence: int
    newest_hash: bytes
    next_sequence: int | None
    has_more: bool


class _Totals(NamedTuple):
    """The row that chain_summary.sql answers with for one span."""

    entries: int
    erased: int
    linkage_only: int
    bad_sequence: int | None
    unattested_sequence: int | None
    newest_sequence: int
    newest_hash: bytes
    next_sequence: int | None
    end_sequence: int | None
    end_class: str
    end_expected: str
    end_found: str

    @classmethod
    def clean(cls, span: _Clean) -> _Totals:
        """The same of a span in which nothing is bad and nothing erased."""
        ends = (span.newest_sequence, span.newest_hash, span.next_sequence)
        return cls(span.entries, 0, 0, None, None, *ends, None, "", "", "")


class SqlChainReading:
    """The chain of a run, or of the range `first` to `last` of it, span by span; arguments as for `ChainVerifier`.

    Each span is a statement with a snapshot of its own, so reading may stop after any and go on in another transaction.
    """

    def __init__(
        self,
        *,
        tenant_id: UUID,
        tenant_slug: str,
        run_id: str,
        first: int = 0,
        last: int | None = None,
        sealed_to: int = -1,
        attested_ids: Collection[str] = (),
        span_entries: int = SPAN_ENTRIES,
        on_batch: Callable[[Progress], None] | None = None,
    ) -> None:
        self._parameters: dict[str, Any] = {
            "tenant": tenant_id,
            "tenant_slug": tenant_slug,
            "run": run_id,
            "sealed_to": sealed_to,
            "attested": list(attested_ids),
        }
        self._run_id = run_id
        self._first = first
        self._last = last
        self._sealed_to = sealed_to
        self._span_entries = span_entries
        self._on_batch = on_batch
        self._span_first = first
        self._entries = self._erased = self._linkage_only = 0
        self._totals: _Totals | None = None
        self._first_bad: FirstBad | None = None
        self._is_over = False
        self._odd_spans = 0

    def read(self, cursor: Cursor, *, until: float | None = None) -> bool:
        """Read on; False when `until` (of `time.monotonic`) came first. One span at least is read."""
        while not self._is_over:
            self._is_over = self._span(cursor)
            if until is not None and time.monotonic() >= until:
                break
        return self._is_over

    def _span(self, cursor: Cursor) -> bool:
        """Judge the next span; whether it was the last one, or something is wrong in it."""
        last, parameters = self._last, self._parameters
        span_last = self._span_first + self._span_entries - 1
        if last is not None:
            span_last = min(span_last, last)
        parameters |= {"first": self._span_first, "last": span_last}
        if self._odd_spans < _ODD_SPANS:
            cursor.execute(CLEAN_SUMMARY, parameters)
            clean = _Clean._make(cursor.fetchone())
            if clean.is_clean:
                return self._take_clean(clean, span_last)
            self._odd_spans += 1
        cursor.execute(SUMMARY, parameters)
        totals = self._totals = _Totals._make(cursor.fetchone())
        self._entries += totals.entries
        self._erased += totals.erased
        self._linkage_only += totals.linkage_only
        is_final = span_last == last or totals.newest_sequence < span_last
        first_bad = _bad_entry(cursor, parameters, totals)
        if first_bad is None and is_final:
            first_bad = _bad_end(cursor, parameters, totals, last)
        unattested = totals.unattested_sequence
        if unattested is not None and (first_bad is None or unattested < first_bad.sequence):
            first_bad = FirstBad(
                self._run_id, unattested, Tampering.CONTENT, ATTESTED_ERASURE, NO_PAYLOAD
            )
        self._first_bad = first_bad
        self._tell(totals, span_last)
        return first_bad is not None or is_final

    def _take_clean(self, clean: _Clean, span_last: int) -> bool:
        """Count a span that is as it should be; whether it was the last one."""
        self._odd_spans = 0
        newest, following = clean.newest_sequence, clean.next_sequence
        self._entries += clean.entries
        totals = self._totals = _Totals.clean(clean)
        self._tell(totals, span_last)
        is_end = following == newest + 1 and not clean.has_more
        return span_last == self._last or newest < span_last or is_end

    def _tell(self, totals: _Totals, span_last: int) -> None:
        self._span_first = span_last + 1
        if self._on_batch is not None and totals.entries:
            self._on_batch(
                Progress(
                    totals.newest_sequence,
                    bytes(totals.newest_hash),
                    entries=self._entries,
                    erased=self._erased,
                    linkage_only=self._linkage_only,
                )
            )

    def report(self) -> ChainReport:
        """What was read, which is all of it."""
        totals, first = self._totals, self._first
        if totals is None or not self._is_over:
            raise RuntimeError("the run is not read to its end")
        reached = max(totals.newest_sequence, first - 1)
        next_sequence = totals.next_sequence
        is_whole = first == 0 and (
            self._last is None or next_sequence is None or reached + 1 >= next_sequence
        )
        unsealed = max(0, reached - max(self._sealed_to, first - 1))
        return ChainReport(
            state=state_of(
                is_tampered=self._first_bad is not None,
                is_complete=is_whole,
                entries=self._entries,
                linkage_only=self._linkage_only,
                erased=self._erased,
                unsealed=unsealed,
            ),
            run_id=self._run_id,
            from_sequence=first,
            to_sequence=reached,
            entries=self._entries,
            head_hash=bytes(totals.newest_hash) if self._entries else None,
            unsealed=unsealed,
            erased=self._erased,
            linkage_only=self._linkage_only,
            first_bad=self._first_bad,
        )


def verify_run_in_sql(cursor: Cursor, **key: Any) -> ChainReport:
    """Verify a run, or a range of it, in one go; arguments as for `SqlChainReading`."""
    reading = SqlChainReading(**key)
    reading.read(cursor)
    return reading.report()


def _bad_entry(cursor: Cursor, parameters: dict[str, Any], totals: _Totals) -> FirstBad | None:
    """Say what is wrong with the first bad entry of the span."""
    if totals.bad_sequence is None:
        return None
    explaining = {
        "bad_sequence": totals.bad_sequence,
        "window": REORDER_WINDOW,
        "runs": OTHER_RUNS_LOOKED_AT,
    }
    cursor.execute(FIRST_BAD, {**parameters, **explaining})
    tampering, expected, found = cursor.fetchone()
    return FirstBad(parameters["run"], totals.bad_sequence, Tampering(tampering), expected, found)


def _bad_end(
    cursor: Cursor, parameters: dict[str, Any], totals: _Totals, last: int | None
) -> FirstBad | None:
    """Say where the entries of the last span end otherwise than the head row says."""
    if totals.end_sequence is None:
        return None
    found = totals.end_found
    if found == NO_ENTRY and totals.newest_sequence < parameters["last"]:
        # The span ended early; what comes after the gap may lie beyond it.
        after = max(totals.newest_sequence, parameters["first"] - 1)
        cursor.execute(_NEXT_SEQUENCE, {**parameters, "after": after, "last": last})
        [following] = cursor.fetchone()
        found = following or NO_ENTRY
    return FirstBad(
        parameters["run"],
        totals.end_sequence,
        Tampering(totals.end_class),
        totals.end_expected,
        found,
    )
