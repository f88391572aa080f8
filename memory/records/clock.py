"""What time it is for records, and what day in a tenant's zone.

One clock for all record times, so that a harness can fix it and a test can move it. It is the server's own: no caller
sets times.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo

_fixed: ContextVar[datetime | None] = ContextVar("records_clock", default=None)


def now() -> datetime:
    """The current instant, aware, UTC."""
    return _fixed.get() or datetime.now(UTC)


@contextmanager
def fixed_at(instant: datetime) -> Iterator[None]:
    """Let it be `instant` in this context."""
    token = _fixed.set(instant.astimezone(UTC))
    try:
        yield
    finally:
        _fixed.reset(token)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def day_of(instant: datetime, time_zone: str) -> date:
    """The date that an instant falls on in the zone; at either end of the calendar, the last one that there is."""
    try:
        return instant.astimezone(_zone(time_zone)).date()
    except OverflowError:
        return instant.astimezone(UTC).date()


def start_of(day: date, time_zone: str) -> datetime:
    """The instant at which a date begins in the zone; at either end of the calendar, the last one that there is."""
    begins = datetime.combine(day, time.min)
    try:
        return begins.replace(tzinfo=_zone(time_zone)).astimezone(UTC)
    except OverflowError:
        return begins.replace(tzinfo=UTC)
