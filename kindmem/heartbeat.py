"""How the worker says that it lives, and how late it is: one row, by the database's clock."""

from django.db import DatabaseError, connection


def beat(name: str = "worker") -> None:
    """Say that the worker lives."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO worker_heartbeat (name, beat_at) VALUES (%s::text, clock_timestamp()) "
            "ON CONFLICT (name) DO UPDATE SET beat_at = clock_timestamp()",
            [name],
        )


def seconds_since_heartbeat(name: str = "worker") -> float | None:
    """Seconds since the worker was last heard of; None when never, or when the database can't be asked."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT extract(epoch FROM clock_timestamp() - beat_at)::float8 FROM worker_heartbeat "
                "WHERE name = %s::text",
                [name],
            )
            row = cursor.fetchone()
    except DatabaseError:
        return None
    return None if row is None else max(0.0, row[0])
