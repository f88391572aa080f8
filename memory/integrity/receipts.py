"""What clients kept of their appends, held against the log: the only thing that shows a tail cut before it was sealed.

A receipts file is JSON lines, each an append's answer as it came: `id`, `runId`, `sequence` and `entryHash`
are looked at. A receipt is its holder's word unless it came with a proof, which the server signed.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from memory.hashing import digest_of_tag, tag
from memory.integrity.chain import NO_ENTRY
from memory.integrity.chain_sql import Cursor
from memory.integrity.states import FirstBad, Tampering

_FIND: Final = """
SELECT entry_hash FROM log_entry
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND sequence = %(sequence)s::bigint
"""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an append answered."""

    run_id: str
    sequence: int
    entry_hash: bytes


def read_receipts(lines: Iterable[str]) -> Iterator[Receipt]:
    """The receipts in a file's lines; empty ones are passed over. Raises ValueError naming the line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            yield Receipt(
                str(said["runId"]), int(said["sequence"]), digest_of_tag(said["entryHash"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"line {number} is no receipt") from error


def first_contradicted(
    cursor: Cursor, tenant_id: UUID, receipts: Iterable[Receipt]
) -> dict[str, FirstBad]:
    """By run, the lowest receipt whose entry is gone (a gap) or another one (content)."""
    bad: dict[str, FirstBad] = {}
    for one in receipts:
        cursor.execute(_FIND, {"tenant": tenant_id, "run": one.run_id, "sequence": one.sequence})
        row = cursor.fetchone()
        found = None if row is None else bytes(row[0])
        if found == one.entry_hash:
            continue
        known = bad.get(one.run_id)
        if known is None or one.sequence < known.sequence:
            bad[one.run_id] = FirstBad(
                one.run_id,
                one.sequence,
                Tampering.GAP if found is None else Tampering.CONTENT,
                tag(one.entry_hash),
                NO_ENTRY if found is None else tag(found),
            )
    return bad
