"""How the chains of a workspace stand: by the day on which runs began, and what signed and anchored heads cover."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from memory.access import Principal
from memory.integrity.checkpoints import StoredCheckpoint, stored_checkpoints
from memory.integrity.cosignatures import time_of
from memory.integrity.sealed_log import SEALS_RUN
from memory.integrity.timestamps import PLACE, stamped_at

# Those who govern read every run; the reader's zone says what a day is.
_DAYS = """
SELECT (h.first_at AT TIME ZONE %(zone)s::text)::date AS day, count(*), sum(h.entry_count)::bigint,
       count(*) FILTER (WHERE v.state = 'tampered'),
       count(*) FILTER (WHERE v.state IS NULL OR v.state IN ('not-complete', 'nothing-to-verify')),
       count(*) FILTER (WHERE v.state NOT IN ('tampered', 'not-complete', 'nothing-to-verify')
                          AND v.verified_to < h.next_sequence - 1)
FROM run_head h LEFT JOIN run_verification v ON v.tenant_id = h.tenant_id AND v.run_id = h.run_id
WHERE h.tenant_id = %(tenant)s::uuid AND h.first_at >= %(since)s::timestamptz
GROUP BY 1
"""
# A run that was removed with its head shows only in what was found of it; the log of seals has none.
_GONE = """
SELECT v.run_id, v.state, v.first_bad_sequence FROM run_verification v
WHERE v.tenant_id = %(tenant)s::uuid AND (v.state = 'tampered' OR v.run_id = 'kindmem.seals' AND v.state = 'unanchored')
  AND NOT EXISTS (SELECT FROM run_head h WHERE h.tenant_id = v.tenant_id AND h.run_id = v.run_id)
ORDER BY v.run_id <> 'kindmem.seals', v.run_id LIMIT 21
"""
# What each witness and each time stamp authority signed last.
_OUTSIDE = """
SELECT s.witness, s.cosigned_size, s.failure, a.answer FROM witness_standing s
LEFT JOIN anchor a ON a.tenant_id = s.tenant_id AND a.size = s.cosigned_size AND a.place IN (s.witness, 'witness:' || s.witness)
WHERE s.tenant_id = %(tenant)s::uuid ORDER BY s.witness LIMIT 20
"""


@dataclass(frozen=True, slots=True)
class Outside:
    """Somebody outside who signed a head of the log: `size` is the newest, 0 for none. `failure`: why not a newer one."""

    name: str
    is_stamp: bool
    size: int
    signed_at: datetime | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class Day:
    """Runs that began on one day of the reader's. `grown`: found intact, and gone on since: what came is not verified yet."""

    day: date
    runs: int = 0
    entries: int = 0
    broken: int = 0
    unverified: int = 0
    grown: int = 0

    @property
    def intact(self) -> int:
        return self.runs - self.broken - self.unverified - self.grown


@dataclass(frozen=True, slots=True)
class SealsFound:
    """What is wrong with the log of seals itself: `tampered` or `unanchored`, and the leaf at which it shows."""

    state: str
    leaf: int


@dataclass(frozen=True, slots=True)
class ChainHealth:
    """`days`: each of the period, the newest first. `gone`: ids of runs that seals know and the log does not."""

    days: list[Day]
    gone: list[str]
    checkpoint: StoredCheckpoint | None
    outside: list[Outside]
    seals: SealsFound | None = None

    @property
    def runs(self) -> int:
        return sum(day.runs for day in self.days)

    @property
    def broken(self) -> int:
        return sum(day.broken for day in self.days)

    @property
    def unverified(self) -> int:
        return sum(day.unverified for day in self.days)

    @property
    def grown(self) -> int:
        return sum(day.grown for day in self.days)


def chain_health(principal: Principal, *, today: date, days: int) -> ChainHealth:
    """The last `days` days, `today` among them."""
    zone = timezone.get_current_timezone()
    first = today - timedelta(days=days - 1)
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "zone": str(zone),
        "since": datetime.combine(first, time.min, zone),
    }
    with connection.cursor() as cursor:
        cursor.execute(_DAYS, parameters)
        found = {row[0]: Day(*row) for row in cursor.fetchall()}
        cursor.execute(_GONE, parameters)
        headless = cursor.fetchall()
        newest = stored_checkpoints(cursor, principal.tenant_id, limit=1)
        cursor.execute(_OUTSIDE, parameters)
        outside = [_outside(*row) for row in cursor.fetchall()]
    each = (today - timedelta(days=ago) for ago in range(days))
    return ChainHealth(
        [found.get(day, Day(day)) for day in each],
        [row[0] for row in headless if row[0] != SEALS_RUN],
        newest[0] if newest else None,
        outside,
        next((SealsFound(*row[1:]) for row in headless if row[0] == SEALS_RUN), None),
    )


def _outside(name: str, size: int, failure: str | None, answer: str | None) -> Outside:
    is_stamp = name.startswith(PLACE)
    at = None
    if answer is not None:
        at = stamped_at(answer) if is_stamp else datetime.fromtimestamp(time_of(answer), UTC)
    return Outside(name.removeprefix(PLACE), is_stamp, size, at, failure)
