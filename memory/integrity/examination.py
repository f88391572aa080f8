"""Examines one run whole: its chain, its seals and what the tenant's log of seals says, by either verifier.

Reading may stop and go on in another transaction, so that a long run keeps none open for long.
"""

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from memory.integrity.acts import bad_head, unbacked_word
from memory.integrity.canonical_form import CanonicalForm
from memory.integrity.chain_sql import Cursor, SqlChainReading
from memory.integrity.rows import Progress
from memory.integrity.sealed_log import SealedLog
from memory.integrity.sealed_run import RunSeals, SealComparison, run_seals, stored_records
from memory.integrity.sealed_run_sql import SqlSealComparison
from memory.integrity.states import ChainReport, FirstBad
from memory.integrity.stored_run import StoredRunVerification
from memory.integrity.verdict import verdict

_ERASED = """
SELECT count(*), count(*) FILTER (WHERE hash_version = 1) FROM log_entry
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND sequence <= %(to)s::bigint AND id = ANY (%(ids)s::text[])
"""


class RunExamination:
    """One run, or a range of it, against the verified log of seals. `read` until it is through, then `report`.

    `since`: what the first so many leaves of that log seal is taken on its signature, and the rest must join to it. Only `read`
    knows of it.
    """

    def __init__(
        self,
        cursor: Cursor,
        *,
        tenant_id: UUID,
        tenant_slug: str,
        run_id: str,
        sealed_log: SealedLog,
        first: int = 0,
        last: int | None = None,
        since: int = 0,
        on_batch: Callable[[Progress], None] | None = None,
    ) -> None:
        self._tenant_id = tenant_id
        self._sealed_log = sealed_log
        self._first, self._last = first, last
        self._word_bad: FirstBad | None = None
        self._head_bad: FirstBad | None = None
        self._seals = run_seals(cursor, tenant_id, run_id, sealed_log.size)
        key: dict[str, Any] = {
            "tenant_id": tenant_id,
            "tenant_slug": tenant_slug,
            "run_id": run_id,
            "first": first,
            "last": last,
            "sealed_to": self._seals.sealed_to,
            "attested_ids": self._seals.attested_ids,
        }
        trusted = _trusted(cursor, tenant_id, self._seals, since)
        self._read_from = trusted.sequence + 1 if trusted else first
        self._comparison = SealComparison(
            self._seals,
            stored_records(cursor, tenant_id),
            first=trusted.sequence + 1 if trusted else first,
            last=last,
        )
        self._form = CanonicalForm(run_id, first=self._read_from)
        self._reading = StoredRunVerification(
            **key, seals=self._comparison, form=self._form, on_batch=on_batch, resume=trusted
        )
        self._sql_chain = SqlChainReading(**key, on_batch=on_batch)
        self._sql_seals = SqlSealComparison(tenant_id, self._seals, first=first, last=last)

    def read(self, cursor: Cursor, *, until: float | None = None) -> bool:
        """Read on; False when `until` (of `time.monotonic`) came first."""
        self._comparison.records = stored_records(cursor, self._tenant_id)
        if not self._reading.read(cursor, until=until):
            return False
        self._hold_against_acts(cursor, self._read_from)
        return True

    def _hold_against_acts(self, cursor: Cursor, first: int) -> None:
        """What the run says of erasures, and its head of its times, against the record of governance."""
        run_id, closed_at = self._seals.run_id, self._seals.closed_at
        self._word_bad = unbacked_word(
            cursor, self._tenant_id, run_id, first=first, last=self._last, closed_at=closed_at
        )
        if self._first == 0 and self._last is None:
            self._head_bad = bad_head(cursor, self._tenant_id, run_id, closed_at=closed_at)

    def report(self) -> ChainReport:
        """What was read, judged; the last reading's cursor is still open."""
        chain = self._reading.report()
        return self._judged(chain, self._comparison.finish())

    def read_in_sql(self, cursor: Cursor, *, until: float | None = None) -> bool:
        """As `read`, by the verifier that is written in SQL; then `report_in_sql`."""
        if not self._sql_chain.read(cursor, until=until):
            return False
        if not self._sql_seals.read(cursor, until=until):
            return False
        while not self._form.read(cursor, self._tenant_id, self._last):
            if until is not None and time.monotonic() >= until:
                return False
        self._hold_against_acts(cursor, self._first)
        return True

    def report_in_sql(self) -> ChainReport:
        """What was read in SQL, judged."""
        chain = self._sql_chain.report()
        return self._judged(chain, self._sql_seals.first_bad)

    def _judged(self, chain: ChainReport, seal_bad: FirstBad | None) -> ChainReport:
        return verdict(
            chain,
            self._seals,
            self._sealed_log,
            in_the_run=(seal_bad, self._word_bad, self._form.first_bad),
            of_its_head=self._head_bad,
        )

    def in_sql(self, cursor: Cursor) -> ChainReport:
        """The same in one go."""
        self.read_in_sql(cursor)
        return self.report_in_sql()


def _trusted(cursor: Cursor, tenant_id: UUID, seals: RunSeals, since: int) -> Progress | None:
    """The last head of the run among the first `since` leaves, and what was erased up to it."""
    vouched = [one.seal for one in seals.seals if one.leaf_index < since]
    if not vouched:
        return None
    to = vouched[-1].to_sequence
    ids = list(seals.attested_ids)
    cursor.execute(_ERASED, {"tenant": tenant_id, "run": seals.run_id, "to": to, "ids": ids})
    erased, linkage_only = cursor.fetchone()
    return Progress(
        to, vouched[-1].head_hash, entries=to + 1, erased=erased, linkage_only=linkage_only
    )
