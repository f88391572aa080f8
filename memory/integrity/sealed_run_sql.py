"""The second comparison of a run with its seals: leaf hashes, Merkle roots and heads, all in PostgreSQL.

It shares with `sealed_run.py` what to call things and how seals join; a test holds the two to the same
answer. A statement takes a few seals, so that none runs for long.
"""

import time
from pathlib import Path
from typing import Final
from uuid import UUID

from memory.hashing import tag
from memory.integrity.acts import AFTER_THE_END
from memory.integrity.chain import NO_ENTRY
from memory.integrity.chain_sql import Cursor
from memory.integrity.sealed_run import RunSeals, SealComparison
from memory.integrity.states import FirstBad, Tampering

_COMPARE: Final = (Path(__file__).parent / "sealed_run.sql").read_text("utf-8")
_SEALS_A_STATEMENT: Final = 10

_PAST_THE_END = """
SELECT min(e.sequence) FROM log_entry e
WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.sequence > %(closed_at)s::bigint
  AND e.sequence >= %(first)s::bigint AND (%(last)s::bigint IS NULL OR e.sequence <= %(last)s::bigint)
  AND (e.kind = 'event-emitted' AND right(e.payload_text, 25) = ',"type":"payload.erased"}') IS NOT TRUE
"""


class SqlSealComparison:
    """A run, or a range of it, against its seals, some at a time; reading may go on in another transaction."""

    def __init__(
        self, tenant_id: UUID, seals: RunSeals, *, first: int = 0, last: int | None = None
    ) -> None:
        self._seals = seals
        self._joints = SealComparison(seals, lambda index: b"", first=first, last=last).first_bad
        self._reached = [
            one.leaf_index
            for one in seals.seals
            if one.seal.to_sequence >= first and (last is None or one.seal.from_sequence <= last)
        ]
        self._parameters = {"tenant": tenant_id, "run": seals.run_id, "first": first, "last": last}
        self._done = 0
        self.first_bad: FirstBad | None = None

    def read(self, cursor: Cursor, *, until: float | None = None) -> bool:
        """Read on; False when `until` (of `time.monotonic`) came first. Then `first_bad` says what is wrong, if anything."""
        while self._done < len(self._reached):
            indices = self._reached[self._done : self._done + _SEALS_A_STATEMENT]
            self._done += _SEALS_A_STATEMENT
            self.first_bad = self._compare(cursor, indices)
            if self.first_bad is not None:
                late = self._past_the_end(cursor)
                if late is not None and late.sequence < self.first_bad.sequence:
                    self.first_bad = late
                return True
            if until is not None and time.monotonic() >= until:
                return False
        self.first_bad = self._joints or self._past_the_end(cursor)
        return True

    def _compare(self, cursor: Cursor, indices: list[int]) -> FirstBad | None:
        # Both sides have a row for each entry, which the planner can't know: a nested loop would compare all with all.
        cursor.execute("SELECT set_config('enable_nestloop', 'off', true)")
        cursor.execute(_COMPARE, {**self._parameters, "indices": indices})
        row = cursor.fetchone()
        cursor.execute("SELECT set_config('enable_nestloop', 'on', true)")
        if row is None or (self._joints is not None and row[0] >= self._joints.sequence):
            return None
        expected, found = bytes(row[1]), row[2]
        return FirstBad(
            self._seals.run_id,
            row[0],
            Tampering.SEAL,
            tag(expected),
            NO_ENTRY if found is None else tag(bytes(found)),
        )

    def _past_the_end(self, cursor: Cursor) -> FirstBad | None:
        if self._seals.closed_at is None:
            return None
        cursor.execute(_PAST_THE_END, {**self._parameters, "closed_at": self._seals.closed_at})
        [late] = cursor.fetchone()
        if late is None:
            return None
        return FirstBad(self._seals.run_id, late, Tampering.SEAL, NO_ENTRY, AFTER_THE_END)
