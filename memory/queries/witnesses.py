"""How the chosen witnesses stand to one checkpoint, for whoever reads checkpoints."""

from datetime import UTC, datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.hashing import timestamp_text
from memory.integrity.checkpoints import StoredCheckpoint
from memory.integrity.cosignatures import time_of
from memory.integrity.notes import parse_signature
from memory.integrity.witnesses import chosen_witnesses

_STANDING = """
SELECT s.witness, s.origin = %(origin)s::text AND s.cosigned_size > %(size)s::bigint, s.failure, s.failed_at, s.retry_at
FROM witness_standing s WHERE s.tenant_id = %(tenant)s::uuid
"""


def witnesses_of(principal: Principal, row: StoredCheckpoint) -> list[dict[str, Any]]:
    """Each chosen witness: `cosigned`, `covered` by a later cosignature, `waiting`, or `failing` and why.

    A witness that is no longer chosen is there for the cosignature that it gave.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _STANDING, {"tenant": principal.tenant_id, "origin": row.origin, "size": row.size}
        )
        standing = {name: rest for name, *rest in cursor.fetchall()}
    signed = {
        parse_signature(line.removesuffix("\n")).name: time_of(line) for line in row.cosignatures
    }
    keys = {witness.name: witness.key.as_text() for witness in chosen_witnesses()}
    answer = []
    for name in dict.fromkeys((*keys, *signed)):
        said: dict[str, Any] = {"name": name, "state": "waiting"}
        if name in keys:
            said["verifierKey"] = keys[name]
        is_covered, failure, failed_at, retry_at = standing.get(name, (False, None, None, None))
        if name in signed:
            said["state"] = "cosigned"
            said["cosignedAt"] = timestamp_text(datetime.fromtimestamp(signed[name], UTC))
        elif is_covered:
            said["state"] = "covered"
        elif failure is not None:
            said |= {
                "state": "failing",
                "failure": failure,
                "failedAt": timestamp_text(failed_at),
                "retryAt": timestamp_text(retry_at),
            }
        answer.append(said)
    return answer
