"""How much one key may write in a window of time: writes, bytes of their bodies, and people (or other subjects) written about.

Counted in the transaction of the write, under the lock of the key's one row, so that writers at once are counted exactly and what
is refused counts for nothing. A key without a quota costs no statement; one with it costs one, two where subjects are bounded.
Appends to the log are not counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal, Quota
from memory.errors import RateLimited
from memory.instants import instant_text
from memory.records import fingerprints

_COUNT = """
INSERT INTO quota_use AS u (tenant_id, key_prefix, window_start, writes, bytes)
SELECT %(tenant)s::uuid, %(key)s::text,
       to_timestamp(floor(extract(epoch FROM clock_timestamp()) / %(window)s::int) * %(window)s::int), 1, %(bytes)s::bigint
ON CONFLICT ON CONSTRAINT quota_use_pkey DO UPDATE
SET writes = CASE WHEN u.window_start >= excluded.window_start THEN u.writes ELSE 0 END + 1,
    bytes = CASE WHEN u.window_start >= excluded.window_start THEN u.bytes ELSE 0 END + excluded.bytes,
    window_start = greatest(u.window_start, excluded.window_start)
RETURNING writes, bytes, window_start,
  greatest(1, ceil(extract(epoch FROM window_start - clock_timestamp()) + %(window)s::int))::int
"""
# A statement of its own, after the lock: it sees what writers before this one counted.
_COUNT_SUBJECTS = """
WITH gone AS (
  DELETE FROM quota_subject WHERE tenant_id = %(tenant)s::uuid AND key_prefix = %(key)s::text
    AND window_start < %(start)s::timestamptz AND digest <> ALL(%(digests)s::bytea[])
), named AS (
  INSERT INTO quota_subject AS s (tenant_id, key_prefix, digest, window_start)
  SELECT %(tenant)s::uuid, %(key)s::text, d, %(start)s::timestamptz FROM unnest(%(digests)s::bytea[]) AS d
  ON CONFLICT ON CONSTRAINT quota_subject_pkey DO UPDATE SET window_start = excluded.window_start
)
SELECT count(*) FROM quota_subject WHERE tenant_id = %(tenant)s::uuid AND key_prefix = %(key)s::text
  AND window_start >= %(start)s::timestamptz AND digest <> ALL(%(digests)s::bytea[])
"""
_USED = """
SELECT u.key_prefix, u.writes, u.bytes, (
  SELECT count(*) FROM quota_subject s
  WHERE s.tenant_id = u.tenant_id AND s.key_prefix = u.key_prefix AND s.window_start >= u.window_start), u.window_start
FROM quota_use u JOIN api_key k ON k.tenant_id = u.tenant_id AND k.prefix = u.key_prefix
WHERE u.tenant_id = %(tenant)s::uuid AND u.key_prefix = ANY(%(keys)s::text[])
  AND u.window_start + k.quota_window_seconds * interval '1 second' > clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class QuotaUsed:
    """What a key wrote in the window under way. `since` None: nothing yet."""

    writes: int = 0
    bytes: int = 0
    subjects: int = 0
    since: datetime | None = None


def count_write(principal: Principal, *, body: Any, size_bytes: int) -> None:
    """Count one write of a key with a quota. Raises RateLimited when it goes beyond."""
    quota = principal.quota
    if quota is None:
        return
    named: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "key": principal.id,
        "window": quota.window_seconds,
        "bytes": size_bytes,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, named)
        writes, size, start, seconds_left = cursor.fetchone()
    goes_beyond = (quota.writes is not None and writes > quota.writes) or (
        quota.bytes is not None and size > quota.bytes
    )
    if not goes_beyond and quota.subjects is not None:
        goes_beyond = _subjects(named, start, sorted(set(subjects_of(body)))) > quota.subjects
    if goes_beyond:
        raise RateLimited(retry_after_seconds=seconds_left)


def _subjects(named: dict[str, Any], start: datetime, subject_ids: Sequence[str]) -> int:
    """How many subjects were written about in this window, with these."""
    if not subject_ids:
        return 0
    tenant_id: UUID = named["tenant"]
    digests = [fingerprints.of_text(tenant_id, one) for one in subject_ids]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_SUBJECTS, {**named, "start": start, "digests": digests})
        others: int = cursor.fetchone()[0]
    return others + len(digests)


def subjects_of(body: Any) -> Iterator[str]:
    """Whom the body of a write is about: a record's subject, a fact's user, participant and subjects, a context's user."""
    if not isinstance(body, dict):
        return
    places = (
        (body.get("subject"), ("id",)),
        (body.get("scope"), ("userId", "participantId")),
        (body.get("context"), ("user_id",)),
    )
    for holder, names in places:
        if isinstance(holder, dict):
            yield from (holder[name] for name in names if isinstance(holder.get(name), str))
    subjects = body.get("subjects")
    for one in subjects if isinstance(subjects, list) else ():
        if isinstance(one, dict) and isinstance(one.get("id"), str):
            yield one["id"]


def quota_wire(quota: Quota) -> dict[str, Any]:
    """The bounds, as far as there are any."""
    said = {
        "writes": quota.writes,
        "bytes": quota.bytes,
        "subjects": quota.subjects,
        "windowSeconds": quota.window_seconds,
    }
    return {name: value for name, value in said.items() if value is not None}


def quota_uses(tenant_id: UUID, prefixes: Sequence[str]) -> dict[str, QuotaUsed]:
    """What each of these keys used of its quota in the window under way; those that used nothing are left out."""
    with connection.cursor() as cursor:
        cursor.execute(_USED, {"tenant": tenant_id, "keys": list(prefixes)})
        return {row[0]: QuotaUsed(*row[1:]) for row in cursor.fetchall()}


def quota_with_use(principal: Principal) -> dict[str, Any] | None:
    """The caller's bounds and what it used of them in the window under way; None without a quota."""
    quota = principal.quota
    if quota is None:
        return None
    used = quota_uses(principal.tenant_id, [principal.id]).get(principal.id, QuotaUsed())
    counts = {"writes": used.writes, "bytes": used.bytes, "subjects": used.subjects}
    said = {**quota_wire(quota), "used": counts}
    return said if used.since is None else {**said, "windowStart": instant_text(used.since)}
