"""Streams a stored run from the database through the Python verifier, in bounded memory.

Each batch comes with the head row in the same statement, so the last one and the head are of one
snapshot; earlier batches may be older, which is safe because a run only grows. The caller's
transaction has set the tenant.
"""

import time
from collections.abc import Callable, Container, Iterable
from typing import Any, Final
from uuid import UUID

from memory.integrity.canonical_form import CanonicalForm
from memory.integrity.chain import OTHER_RUNS_LOOKED_AT, ChainVerifier
from memory.integrity.chain_sql import Cursor
from memory.integrity.rows import EntryRow, HeadRow, Progress
from memory.integrity.sealed_run import SealComparison
from memory.integrity.states import ChainReport

BATCH_ENTRIES: Final = 1_000

ENTRY_COLUMNS: Final = """
  e.sequence, e.id, e.kind, e.scope_text, e.actor,
  CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00' AND e.recorded_at < '10000-01-01 00:00:00+00'
    THEN to_char(e.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END AS timestamp,
  e.payload_text, e.payload_salt, e.content_hash, e.prev_hash, e.entry_hash,
  e.hash_version, e.caused_by, e.payload_erased_at IS NOT NULL AS is_erased
"""
"""The columns of `log_entry` e that make an EntryRow, in its order.

A time whose year has not four digits is none: `to_char` fails on it or writes another."""

_READ = f"""
SELECT h.next_sequence, h.head_hash, h.entry_count, h.prev_hash, batch.*
FROM (SELECT) AS always
LEFT JOIN run_head h ON h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
LEFT JOIN LATERAL (
  SELECT {ENTRY_COLUMNS} FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
    AND e.sequence >= %(from)s::bigint
    AND (%(last)s::bigint IS NULL OR e.sequence <= %(last)s::bigint)
  ORDER BY e.sequence LIMIT %(limit)s::bigint
) batch ON true
ORDER BY batch.sequence
"""

_READ_WORDS = f"""
SELECT {ENTRY_COLUMNS} FROM log_entry e
WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
  AND e.sequence > %(after)s::bigint AND e.kind = 'event-emitted'
  AND right(e.payload_text, 25) = ',"type":"payload.erased"}}'
ORDER BY e.sequence
"""

_READ_RUNS = """
SELECT run_id FROM run_head WHERE tenant_id = %(tenant)s::uuid LIMIT %(limit)s::bigint
"""


def read_batch(
    cursor: Cursor,
    *,
    tenant_id: UUID,
    run_id: str,
    from_sequence: int,
    last: int | None = None,
    limit: int,
) -> tuple[list[EntryRow], HeadRow | None]:
    """Return up to `limit` entries from a sequence on, and the head row, of one snapshot."""
    cursor.execute(
        _READ,
        {
            "tenant": tenant_id,
            "run": run_id,
            "from": from_sequence,
            "last": last,
            "limit": limit,
        },
    )
    rows = cursor.fetchall()
    next_sequence, head_hash, entry_count, prev_hash = rows[0][:4]
    head = None
    if next_sequence is not None:
        head = HeadRow(
            next_sequence, bytes(head_hash or b""), entry_count or 0, bytes(prev_hash or b"")
        )
    return [EntryRow._make(row[4:]) for row in rows if row[4] is not None], head


class StoredRunVerification:
    """Reads a run, or a range of it, through `ChainVerifier`; its arguments have the same meaning.

    `read` goes on where the last call stopped, also in another transaction. `seals` and `form` take
    the same rows, for the caller to finish. `on_batch` hears how far it came after each batch.
    """

    def __init__(
        self,
        *,
        tenant_id: UUID,
        tenant_slug: str,
        run_id: str,
        first: int = 0,
        last: int | None = None,
        resume: Progress | None = None,
        sealed_to: int = -1,
        attested_ids: Container[str] = frozenset(),
        seals: SealComparison | None = None,
        form: CanonicalForm | None = None,
        batch_entries: int = BATCH_ENTRIES,
        on_batch: Callable[[Progress], None] | None = None,
    ) -> None:
        self._tenant_id = tenant_id
        self._run_id = run_id
        self._last = last
        self._seals = seals
        self._form = form
        self._batch_entries = batch_entries
        self._on_batch = on_batch
        self._cursor: Cursor | None = None
        self._from = max(0, first - 1) if resume is None else resume.sequence
        self._head: HeadRow | None = None
        self._verifier = ChainVerifier(
            tenant_slug=tenant_slug,
            run_id=run_id,
            first=first,
            last=last,
            resume=resume,
            sealed_to=sealed_to,
            attested_ids=attested_ids,
            other_runs=self._other_runs,
        )

    def read(self, cursor: Cursor, *, until: float | None = None) -> bool:
        """Read on; False when `until` (of `time.monotonic`) came first. The cursor's transaction has set the tenant."""
        self._cursor = cursor
        # One more than a batch: the row that overlaps with the one before.
        limit = self._batch_entries + 1
        while True:
            rows, self._head = read_batch(
                cursor,
                tenant_id=self._tenant_id,
                run_id=self._run_id,
                from_sequence=self._from,
                last=self._last,
                limit=limit,
            )
            self._verifier.feed(rows)
            if self._seals is not None:
                self._seals.take(rows)
            if self._form is not None:
                self._form.take(rows)
            progress = self._verifier.progress
            if self._on_batch is not None:
                self._on_batch(progress)
            # A full batch that leads nowhere is one sequence many times over: decided, too.
            is_stuck = progress.sequence <= self._from
            if len(rows) < limit or self._verifier.is_decided or is_stuck:
                break
            self._from = progress.sequence
            if until is not None and time.monotonic() > until:
                return False
        if self._last is not None and self._verifier.unattested:
            cursor.execute(
                _READ_WORDS,
                {"tenant": self._tenant_id, "run": self._run_id, "after": self._last},
            )
            self._verifier.attest_later(EntryRow._make(row) for row in cursor.fetchall())
        return True

    def report(self) -> ChainReport:
        """What was found, once `read` said that it is through."""
        return self._verifier.finish(self._head)

    def _other_runs(self) -> Iterable[str]:
        assert self._cursor is not None
        self._cursor.execute(_READ_RUNS, {"tenant": self._tenant_id, "limit": OTHER_RUNS_LOOKED_AT})
        return [row[0] for row in self._cursor.fetchall()]


def verify_stored_run(cursor: Cursor, **options: Any) -> ChainReport:
    """Verify in one go; options as for `StoredRunVerification`."""
    verification = StoredRunVerification(**options)
    verification.read(cursor)
    return verification.report()
