"""What clients kept of their appends, held against the log: the only thing that shows a tail cut before it was sealed.

A receipts file is JSON lines, each an append's answer as it came, also a batch's: `runId`, `sequence`, `entryHash` and the
tenant of the scope are looked at. A receipt is its holder's word unless it came with a proof, which the server signed.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from memory.admission import ID_MAX, MAX_INTEGER
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


def read_receipts(lines: Iterable[str], tenant_slug: str | None = None) -> Iterator[Receipt]:
    """The receipts in a file's lines; empty ones are passed over. Raises ValueError naming the line.

    The answer to a batch holds several. tenant_slug: whose receipts they must be, where they say whose they are.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            entries = said["data"] if isinstance(said.get("data"), list) else [said]
            for entry in entries:
                receipt = _receipt(entry)
                tenant = _tenant_of(entry)
                if tenant_slug is not None and tenant not in (None, tenant_slug):
                    break
                yield receipt
            else:
                continue
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ValueError(f"line {number} is no receipt") from error
        raise ValueError(f"line {number} is a receipt of the tenant {tenant}, not of {tenant_slug}")


def _receipt(said: Any) -> Receipt:
    run_id, sequence = said["runId"], said["sequence"]
    if not isinstance(run_id, str) or not 1 <= len(run_id) <= ID_MAX or "\x00" in run_id:
        raise ValueError("no run")
    run_id.encode()
    # True is a number to Python, and 1.0 is no sequence.
    if type(sequence) is not int or not 0 <= sequence <= MAX_INTEGER:
        raise ValueError("no sequence")
    return Receipt(run_id, sequence, digest_of_tag(said["entryHash"]))


def _tenant_of(said: Any) -> str | None:
    scope = said.get("scope")
    tenant = scope.get("tenantId") if isinstance(scope, dict) else None
    return tenant if isinstance(tenant, str) else None


def first_contradicted(
    cursor: Cursor, tenant_id: UUID, receipts: Iterable[Receipt]
) -> dict[str, FirstBad]:
    """By run, the lowest receipt whose entry is gone (a gap) or another one (content)."""
    bad: dict[str, FirstBad] = {}
    for one in receipts:
        cursor.execute(_FIND, {"tenant": tenant_id, "run": one.run_id, "sequence": one.sequence})
        row = cursor.fetchone()
        found = None if row is None else bytes(row[0] or b"")
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
