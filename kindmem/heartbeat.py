"""How the worker says that it lives, and how late it is: by the database's clock."""

from django.db import DatabaseError, connection

BEAT = (
    "INSERT INTO worker_heartbeat (name, beat_at) VALUES (%(name)s::text, clock_timestamp()) "
    "ON CONFLICT (name) DO UPDATE SET beat_at = clock_timestamp()"
)
# Late is a worker that was not heard of, and one that leaves waiting what could run: whichever is longer.
_LAG = """
SELECT greatest(
  extract(epoch FROM clock_timestamp() - h.beat_at),
  (SELECT extract(epoch FROM clock_timestamp() - min(coalesce(j.scheduled_at, (
     SELECT max(e.at) FROM procrastinate_events e WHERE e.job_id = j.id))))
   FROM procrastinate_jobs j
   WHERE j.status = 'todo' AND (j.scheduled_at IS NULL OR j.scheduled_at <= clock_timestamp())))::float8
FROM worker_heartbeat h WHERE h.name = %(name)s::text
"""


def beat(name: str = "worker") -> None:
    """Say that the worker lives."""
    with connection.cursor() as cursor:
        cursor.execute(BEAT, {"name": name})


def worker_lag_seconds(name: str = "worker") -> float | None:
    """Seconds that the worker is late; None when it was never heard of, or when the database can't be asked."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_LAG, {"name": name})
            row = cursor.fetchone()
    except DatabaseError:
        return None
    return None if row is None else max(0.0, row[0])
