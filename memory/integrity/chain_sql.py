"""The second verifier: recomputes a run's hashes inside PostgreSQL, in plain SQL.

It shares no code with `chain.py` but what to call things, and tests hold the two to the same answer.
A statement judges a span of entries, in one snapshot with the head row, so that no statement runs for
long; a second one runs only when something is bad, to say what. The caller's transaction has set the
tenant.
"""

from collections.abc import Collection
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
from memory.integrity.states import ChainReport, FirstBad, Tampering, state_of

_HERE = Path(__file__).parent
_ROWS = (_HERE / "chain_rows.sql").read_text("utf-8")
SUMMARY: Final = _ROWS + (_HERE / "chain_summary.sql").read_text("utf-8")
FIRST_BAD: Final = _ROWS + (_HERE / "chain_first_bad.sql").read_text("utf-8")

SPAN_ENTRIES: Final = 10_000

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


def verify_run_in_sql(
    cursor: Cursor,
    *,
    tenant_id: UUID,
    tenant_slug: str,
    run_id: str,
    first: int = 0,
    last: int | None = None,
    sealed_to: int = -1,
    attested_ids: Collection[str] = (),
    span_entries: int = SPAN_ENTRIES,
) -> ChainReport:
    """Verify a run, or the range `first` to `last` of it; arguments as for `ChainVerifier`."""
    parameters: dict[str, Any] = {
        "tenant": tenant_id,
        "tenant_slug": tenant_slug,
        "run": run_id,
        "sealed_to": sealed_to,
        "attested": list(attested_ids),
    }
    entries = erased = linkage_only = 0
    span_first = first
    while True:
        span_last = span_first + span_entries - 1
        if last is not None:
            span_last = min(span_last, last)
        parameters |= {"first": span_first, "last": span_last}
        cursor.execute(SUMMARY, parameters)
        totals = _Totals._make(cursor.fetchone())
        entries += totals.entries
        erased += totals.erased
        linkage_only += totals.linkage_only
        is_final = span_last == last or totals.newest_sequence < span_last
        first_bad = _bad_entry(cursor, parameters, totals)
        if first_bad is None and is_final:
            first_bad = _bad_end(cursor, parameters, totals, last)
        unattested = totals.unattested_sequence
        if unattested is not None and (first_bad is None or unattested < first_bad.sequence):
            first_bad = FirstBad(
                run_id, unattested, Tampering.CONTENT, ATTESTED_ERASURE, NO_PAYLOAD
            )
        if first_bad is not None or is_final:
            break
        span_first = span_last + 1
    reached = max(totals.newest_sequence, first - 1)
    next_sequence = totals.next_sequence
    is_whole = first == 0 and (
        last is None or next_sequence is None or reached + 1 >= next_sequence
    )
    unsealed = max(0, reached - max(sealed_to, first - 1))
    return ChainReport(
        state=state_of(
            is_tampered=first_bad is not None,
            is_complete=is_whole,
            entries=entries,
            linkage_only=linkage_only,
            erased=erased,
            unsealed=unsealed,
        ),
        run_id=run_id,
        from_sequence=first,
        to_sequence=reached,
        entries=entries,
        head_hash=bytes(totals.newest_hash) if entries else None,
        unsealed=unsealed,
        erased=erased,
        linkage_only=linkage_only,
        first_bad=first_bad,
    )


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
