"""Holds what the server says inside a run against what the record of governance says that it did.

A word of erasure, and the end of a run, are as easily written into the database as any entry. Each belongs to an act that the
same transaction logged in `kindmem.governance`; without it the word is forged, and neither sealed nor believed. What can be read
of a head row besides its hashes (when its run began, went on and ended) is held against entries and acts, too.
"""

from pathlib import Path
from typing import Any, Final
from uuid import UUID

from memory.canonical import canonical
from memory.integrity.chain_sql import Cursor
from memory.integrity.states import FirstBad, Tampering
from memory.models.log import GOVERNANCE_RUN

NEAR_SECONDS: Final = 60
"""How far two moments of one transaction may be apart."""

AN_ACT: Final = "an act of governance that says so"
NO_ACT: Final = "no act"
AFTER_THE_END: Final = "an entry after the run was closed"

_WORDS: Final = (Path(__file__).parent / "acts_words.sql").read_text("utf-8")

# The act names the newest entry at that moment; before the next seal only words of erasure may have come after it.
_CLOSED: Final = """
SELECT c.at FROM (
  SELECT a.recorded_at AS at, substr(a.payload_text, length(p.beginning) + 1) AS rest
  FROM (SELECT '{"runId":' || to_json(%(run)s::text) || ',"toSequence":' AS beginning) p
  JOIN log_entry a ON a.tenant_id = %(tenant)s::uuid AND a.run_id = 'kindmem.governance' AND a.kind = 'event-emitted'
   AND right(a.payload_text, 21) = ',"type":"run.closed"}'
   AND a.payload_text COLLATE "C" >= p.beginning COLLATE "C" AND a.payload_text COLLATE "C" < (p.beginning || ':') COLLATE "C"
) c
CROSS JOIN LATERAL (
  SELECT CASE WHEN c.rest ~ '^[0-9]{1,18},"type":"run\\.closed"\\}$' THEN split_part(c.rest, ',', 1)::bigint END AS sequence
) m
WHERE m.sequence <= %(to)s::bigint AND NOT EXISTS (
  SELECT FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.sequence > m.sequence AND e.sequence <= %(to)s::bigint
    AND (e.kind = 'event-emitted' AND right(e.payload_text, 25) = ',"type":"payload.erased"}') IS NOT TRUE)
LIMIT 1
"""

# The act that names a word's id; or, of before acts named words, the entry that the word is about.
_ACTS_OF_WORDS: Final = """
SELECT w.id, (
  SELECT a.sequence FROM log_entry a
  WHERE a.tenant_id = %(tenant)s::uuid AND a.run_id = 'kindmem.governance' AND a.kind = 'event-emitted'
    AND right(a.payload_text, 30) = ',"type":"log.payloads-erased"}'
    AND (strpos(a.payload_text, ':' || to_json(w.id)) > 0
         OR starts_with(a.payload_text, '{"entries":') AND strpos(a.payload_text, to_json(w.caused_by)::text) > 0)
  ORDER BY a.recorded_at < w.recorded_at - INTERVAL '1 minute', a.recorded_at LIMIT 1)
FROM log_entry w
WHERE w.tenant_id = %(tenant)s::uuid AND w.run_id = %(run)s::text AND w.sequence <= %(last)s::bigint
  AND w.kind = 'event-emitted' AND right(w.payload_text, 25) = ',"type":"payload.erased"}'
"""

_CHOSEN: Final = """
SELECT EXISTS (SELECT FROM tenant t WHERE t.id = %(tenant)s::uuid AND t.hash_version = %(version)s::smallint)
    OR EXISTS (SELECT FROM log_entry a
               WHERE a.tenant_id = %(tenant)s::uuid AND a.run_id = %(governance)s::text AND a.payload_text = %(act)s::text)
"""

_HEAD: Final = """
SELECT h.next_sequence - 1, h.first_at = f.recorded_at, h.last_at = l.recorded_at, h.closed_at IS NOT NULL,
       h.first_at::text, f.recorded_at::text, h.last_at::text, l.recorded_at::text,
       h.closed_at BETWEEN %(closed)s::timestamptz - make_interval(secs => %(near)s::int)
                       AND %(closed)s::timestamptz + make_interval(secs => %(near)s::int), h.closed_at::text
FROM run_head h
LEFT JOIN log_entry f ON f.tenant_id = h.tenant_id AND f.run_id = h.run_id AND f.sequence = 0
LEFT JOIN log_entry l ON l.tenant_id = h.tenant_id AND l.run_id = h.run_id AND l.sequence = h.next_sequence - 1
WHERE h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
LIMIT 1
"""


def unbacked_word(
    cursor: Cursor,
    tenant_id: UUID,
    run_id: str,
    *,
    first: int = 0,
    last: int | None = None,
    closed_at: int | None = None,
) -> FirstBad | None:
    """The first place in a range at which a word of erasure has no act, or a payload was erased at another time than it says.

    closed_at: where the run ends; such a word past it is an entry that nobody may have put there.
    """
    given = {
        "tenant": tenant_id,
        "run": run_id,
        "first": first,
        "last": last,
        "near": NEAR_SECONDS,
    }
    cursor.execute(_WORDS, given)
    row = cursor.fetchone()
    if row is None:
        return None
    sequence, word_sequence, expected, found = row
    if closed_at is not None and sequence == word_sequence > closed_at:
        return FirstBad(run_id, sequence, Tampering.SEAL, expected, AFTER_THE_END)
    return FirstBad(run_id, sequence, Tampering.CONTENT, expected, found)


def closed_by_act(cursor: Cursor, tenant_id: UUID, run_id: str, to_sequence: int) -> Any:
    """When an act of governance closed the run at this entry, or where only words of erasure follow; None for no such act."""
    cursor.execute(_CLOSED, {"tenant": tenant_id, "run": run_id, "to": to_sequence})
    row = cursor.fetchone()
    return None if row is None else row[0]


def acts_of_words(cursor: Cursor, tenant_id: UUID, run_id: str, last: int) -> list[int] | None:
    """Where in the record of governance the acts are that the run's words of erasure belong to; None for a run without words."""
    cursor.execute(_ACTS_OF_WORDS, {"tenant": tenant_id, "run": run_id, "last": last})
    rows = cursor.fetchall()
    return sorted({row[1] for row in rows if row[1] is not None}) if rows else None


def is_version_chosen(cursor: Cursor, tenant_id: UUID, version: int) -> bool:
    """Whether the tenant has this hash version, or an act of governance once gave it."""
    act = canonical({"type": "log.hash-version-changed", "hashVersion": version})
    given = {"tenant": tenant_id, "version": version, "governance": GOVERNANCE_RUN, "act": act}
    cursor.execute(_CHOSEN, given)
    return bool(cursor.fetchone()[0])


def bad_head(
    cursor: Cursor, tenant_id: UUID, run_id: str, *, closed_at: int | None
) -> FirstBad | None:
    """What the head row of a run, whose entries are as they should be, says otherwise than entries, seals and acts."""
    given: dict[str, Any] = {"tenant": tenant_id, "run": run_id, "near": NEAR_SECONDS}
    cursor.execute(_HEAD, {**given, "closed": None})
    row = cursor.fetchone()
    if row is None:
        return None
    newest, is_first, is_last, is_closed = row[:4]
    if not is_first:
        return FirstBad(run_id, 0, Tampering.LINK, f"begun at {row[5]}", f"begun at {row[4]}")
    if not is_last:
        return FirstBad(
            run_id, newest, Tampering.LINK, f"last moved at {row[7]}", f"last moved at {row[6]}"
        )
    if closed_at is None and not is_closed:
        return None
    if not is_closed:
        return FirstBad(run_id, newest, Tampering.LINK, "a closed run", "an open one")
    act = closed_by_act(cursor, tenant_id, run_id, newest if closed_at is None else closed_at)
    if act is None:
        return FirstBad(run_id, newest, Tampering.LINK, AN_ACT, "a run closed without one")
    cursor.execute(_HEAD, {**given, "closed": act})
    row = cursor.fetchone()
    if not row[8]:
        return FirstBad(run_id, newest, Tampering.LINK, f"closed at {act}", f"closed at {row[9]}")
    return None
