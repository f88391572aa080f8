"""Instants and days on the wire: RFC 3339 with a zone, read and written as UTC with the microseconds that the database keeps."""

import re
from datetime import UTC, date, datetime, timedelta

CLOCKS_APART = timedelta(minutes=5)
"""How far a caller's clock may be ahead of the server's."""

_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def instant_text(instant: datetime) -> str:
    """`2026-01-31T09:30:00Z`, with six digits of a second when there are any."""
    return instant.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def instant(text: str) -> datetime:
    """An aware UTC instant from an RFC 3339 time. Digits past microseconds are cut. Raises ValueError."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 time with a zone, such as 2026-01-31T09:30:00Z")
    day, clock, fraction, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        parsed = datetime.fromisoformat(f"{day}T{clock}{(fraction or '')[:7]}{zone}")
        return parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is not a time that exists") from None


def day(text: str) -> date:
    """A date from `YYYY-MM-DD`. Raises ValueError."""
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise ValueError("must be a date that exists, such as 2026-01-31")
