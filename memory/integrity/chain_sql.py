"""The second verifier: recomputes a run's hashes inside PostgreSQL, in plain SQL.

It shares no code with `chain.py` but what to call things, and tests hold the two to the same answer.
One statement judges the run in one snapshot with its head row; a second one runs only when
something is bad, to say what. The caller's transaction has set the tenant.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import UUID

from memory.integrity.chain import (
    ATTESTED_ERASURE,
    NO_PAYLOAD,
    OTHER_RUNS_LOOKED_AT,
    REORDER_WINDOW,
)
from memory.integrity.states import ChainReport, FirstBad, Tampering, state_of

_HERE = Path(__file__).parent
_ROWS = (_HERE / "chain_rows.sql").read_text("utf-8")
SUMMARY: Final = _ROWS + (_HERE / "chain_summary.sql").read_text("utf-8")
FIRST_BAD: Final = _ROWS + (_HERE / "chain_first_bad.sql").read_text("utf-8")


class Cursor(Protocol):
    """What is needed of a Django or psycopg cursor."""

    def execute(self, query: Any, params: Any = ..., /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...


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
) -> ChainReport:
    """Verify a run, or the range `first` to `last` of it; arguments as for `ChainVerifier`."""
    parameters = {
        "tenant": tenant_id,
        "tenant_slug": tenant_slug,
        "run": run_id,
        "first": first,
        "last": last,
        "sealed_to": sealed_to,
        "attested": list(attested_ids),
    }
    cursor.execute(SUMMARY, parameters)
    (
        entries,
        erased,
        linkage_only,
        bad_sequence,
        unattested_sequence,
        newest_sequence,
        newest_hash,
        next_sequence,
        *end,
    ) = cursor.fetchone()
    first_bad: FirstBad | None = None
    if bad_sequence is not None:
        cursor.execute(
            FIRST_BAD,
            {
                **parameters,
                "bad_sequence": bad_sequence,
                "window": REORDER_WINDOW,
                "runs": OTHER_RUNS_LOOKED_AT,
            },
        )
        first_bad = _first_bad(run_id, bad_sequence, *cursor.fetchone())
    elif end[0] is not None:
        first_bad = _first_bad(run_id, *end)
    if unattested_sequence is not None and (
        first_bad is None or unattested_sequence < first_bad.sequence
    ):
        first_bad = FirstBad(
            run_id, unattested_sequence, Tampering.CONTENT, ATTESTED_ERASURE, NO_PAYLOAD
        )
    reached = max(newest_sequence, first - 1)
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
        head_hash=bytes(newest_hash) if entries else None,
        unsealed=unsealed,
        erased=erased,
        linkage_only=linkage_only,
        first_bad=first_bad,
    )


def _first_bad(run_id: str, sequence: int, tampering: str, expected: str, found: str) -> FirstBad:
    return FirstBad(run_id, sequence, Tampering(tampering), expected, found)
