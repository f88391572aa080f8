"""How the chosen time stamp authorities stand to one checkpoint, for whoever reads checkpoints."""

from typing import Any

from django.db import connection

from memory.access import Principal
from memory.hashing import timestamp_text
from memory.integrity.checkpoints import StoredCheckpoint
from memory.integrity.timestamps import PLACE, chosen_authorities, stamped_at

_STAMPS = """
SELECT place, answer FROM anchor
WHERE tenant_id = %(tenant)s::uuid AND size = %(size)s::bigint AND starts_with(place, 'timestamp:') ORDER BY place
"""

_STANDING = """
SELECT s.witness, s.origin = %(origin)s::text AND s.cosigned_size > %(size)s::bigint, s.failure, s.failed_at, s.retry_at
FROM witness_standing s WHERE s.tenant_id = %(tenant)s::uuid AND starts_with(s.witness, 'timestamp:')
"""


def timestamps_of(principal: Principal, row: StoredCheckpoint) -> list[dict[str, Any]]:
    """Each chosen authority: `stamped`, `covered` by a later stamp, `waiting`, or `failing` and why.

    An authority that is no longer chosen is there for the stamp that it gave.
    """
    said: dict[str, Any] = {"tenant": principal.tenant_id, "origin": row.origin, "size": row.size}
    with connection.cursor() as cursor:
        cursor.execute(_STAMPS, said)
        stamps = dict(cursor.fetchall())
        cursor.execute(_STANDING, said)
        standing = {place: rest for place, *rest in cursor.fetchall()}
    return [
        {"name": place.removeprefix(PLACE), **_state(stamps.get(place), standing.get(place))}
        for place in dict.fromkeys((*(one.place for one in chosen_authorities()), *stamps))
    ]


def _state(stamp: str | None, standing: list[Any] | None) -> dict[str, Any]:
    if stamp is not None:
        return {
            "state": "stamped",
            "stampedAt": timestamp_text(stamped_at(stamp)),
            "stamp": stamp,
        }
    is_covered, failure, failed_at, retry_at = standing or [False, None, None, None]
    if is_covered:
        return {"state": "covered"}
    if failure is None:
        return {"state": "waiting"}
    return {
        "state": "failing",
        "failure": failure,
        "failedAt": timestamp_text(failed_at),
        "retryAt": timestamp_text(retry_at),
    }
