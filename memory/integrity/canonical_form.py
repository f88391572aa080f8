"""Holds what is stored of payloads and scopes against the form that they are hashed in: canonical JSON, RFC 8785.

A text that is none may have a hash that fits it all the same: somebody wrote it into the database. Whoever parses and writes it
again, as an auditor does, gets another hash. The many honest texts of a batch are parsed and written at once, by the C code of
Python's own module; only where that does not give the batch back is each looked at by itself.
"""

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from memory.canonical import canonical, ecmascript_number
from memory.integrity.chain_sql import Cursor
from memory.integrity.rows import EntryRow
from memory.integrity.states import FirstBad, Tampering

CANONICAL: Final = "canonical JSON"
OTHER_TEXT: Final = "another text"

_BATCH: Final = 1_000
# What the quick way can't tell: keys that UTF-16 orders otherwise, and numbers beyond 2^53.
_LOOK_CLOSER: Final = re.compile("[\ue000-\U0010ffff]|[0-9]{16}")
_WRITE: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode

_READ = """
SELECT e.sequence, e.payload_text, e.scope_text FROM log_entry e
WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.sequence >= %(first)s::bigint
  AND (%(last)s::bigint IS NULL OR e.sequence <= %(last)s::bigint)
ORDER BY e.sequence LIMIT %(limit)s::int
"""


class _Odd(ValueError):
    """A number is not written as it must be."""


def _float(text: str) -> float:
    number = float(text)
    if ecmascript_number(number) != text:
        raise _Odd
    return number


def _constant(text: str) -> float:
    raise _Odd


_PARSE: Final = json.JSONDecoder(parse_float=_float, parse_constant=_constant).decode


def is_canonical(text: str) -> bool:
    """Whether a text is JSON in its canonical form."""
    try:
        return canonical(json.loads(text)) == text
    except (ValueError, RecursionError):
        return False


def first_not_canonical(texts: Sequence[str]) -> int | None:
    """The place of the first text that is no canonical JSON."""
    # Between two texts a string that nobody could foresee, so that none can reach into the next one.
    between = f'"{secrets.token_hex(16)}"'
    joined = f"[{f',{between},'.join(texts)}]"
    if texts and (
        _LOOK_CLOSER.search(joined) or not _is_written_again(joined, len(texts), between)
    ):
        return next((place for place, text in enumerate(texts) if not is_canonical(text)), None)
    return None


def _is_written_again(joined: str, count: int, between: str) -> bool:
    try:
        values = _PARSE(joined)
        return (
            len(values) == 2 * count - 1
            and all(one == between[1:-1] for one in values[1::2])
            and _WRITE(values) == joined
        )
    except (ValueError, RecursionError):
        return False


class CanonicalForm:
    """Takes the rows of a run in order; `first_bad` is the first one whose payload or scope is no canonical JSON."""

    def __init__(self, run_id: str, *, first: int = 0) -> None:
        self._run_id = run_id
        self._next = first
        self.first_bad: FirstBad | None = None

    def take(self, rows: Iterable[EntryRow]) -> None:
        """Look at the next rows; those that were read before are passed over."""
        self._take([(row.sequence, row.payload_text, row.scope_text) for row in rows])

    def _take(self, rows: Sequence[tuple[int, str | None, str | None]]) -> None:
        if self.first_bad is not None:
            return
        due = [row for row in rows if row[0] >= self._next]
        scopes = {row[2] for row in due if row[2] is not None}
        bad_scopes = {one for one in scopes if not is_canonical(one)}
        payloads = [(row[0], row[1]) for row in due if row[1] is not None]
        place = first_not_canonical([text for _, text in payloads])
        bad = [row[0] for row in due if row[2] in bad_scopes]
        if place is not None:
            bad.append(payloads[place][0])
        if bad:
            self.first_bad = FirstBad(
                self._run_id, min(bad), Tampering.CONTENT, CANONICAL, OTHER_TEXT
            )
        if due:
            self._next = due[-1][0] + 1

    def read(self, cursor: Cursor, tenant_id: UUID, last: int | None) -> bool:
        """Read the next rows by itself; True when there are no more, or one is bad."""
        given: dict[str, Any] = {
            "tenant": tenant_id,
            "run": self._run_id,
            "first": self._next,
            "last": last,
            "limit": _BATCH,
        }
        cursor.execute(_READ, given)
        rows = cursor.fetchall()
        self._take(rows)
        return len(rows) < _BATCH or self.first_bad is not None
