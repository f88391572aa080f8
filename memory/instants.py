"""How an instant is written on the wire: RFC 3339, UTC, `Z`, with the microseconds that the database keeps."""

from datetime import UTC, datetime


def instant_text(instant: datetime) -> str:
    """`2026-01-31T09:30:00Z`, with six digits of a second when there are any."""
    return instant.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
