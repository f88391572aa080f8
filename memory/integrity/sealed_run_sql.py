"""The second comparison of a run with its seals: leaf hashes, Merkle roots and heads, all in PostgreSQL.

It shares with `sealed_run.py` what to call things and how seals join; a test holds the two to the same
answer. A statement takes a few seals, so that none runs for long.
"""

from pathlib import Path
from typing import Final
from uuid import UUID

from memory.hashing import tag
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
"""


def compare_in_sql(
    cursor: Cursor, tenant_id: UUID, seals: RunSeals, *, first: int = 0, last: int | None = None
) -> FirstBad | None:
    """The first place in the range where the run is not what was sealed; None when there is none."""
    joints = SealComparison(seals, lambda index: b"", first=first, last=last).first_bad
    reached = [
        one
        for one in seals.seals
        if one.seal.to_sequence >= first and (last is None or one.seal.from_sequence <= last)
    ]
    parameters = {"tenant": tenant_id, "run": seals.run_id, "first": first, "last": last}
    for start in range(0, len(reached), _SEALS_A_STATEMENT):
        indices = [one.leaf_index for one in reached[start : start + _SEALS_A_STATEMENT]]
        cursor.execute(_COMPARE, {**parameters, "indices": indices})
        row = cursor.fetchone()
        if row is not None and (joints is None or row[0] < joints.sequence):
            expected, found = bytes(row[1]), row[2]
            return FirstBad(
                seals.run_id,
                row[0],
                Tampering.SEAL,
                tag(expected),
                NO_ENTRY if found is None else tag(bytes(found)),
            )
    if joints is None and seals.closed_at is not None:
        cursor.execute(_PAST_THE_END, {**parameters, "closed_at": seals.closed_at})
        [late] = cursor.fetchone()
        if late is not None:
            return FirstBad(
                seals.run_id,
                late,
                Tampering.SEAL,
                NO_ENTRY,
                "an entry after the run was closed",
            )
    return joints
