"""The ledgers of a tenant outside the database: which erasures were done, which holds were placed and released.

A restored backup is older than what was decided since: without these it would bring back what was erased and let go what was
held. The worker writes them into the state folder; what once stood there stays, so that an older database takes no line away.
Erasures are known by keyed hashes alone. Holds name their scope and matter, so the files are for the owner alone.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory.erasure.ledger import whole_ledger
from memory.instants import instant_text
from memory.private_folder import make_private

Ledger = dict[str, list[dict[str, Any]]]
PARTS = ("erasures", "holds")

_HOLDS = """
SELECT h.id, h.matter, h.reason, h.scope_text, h.placed_by, h.placed_at, h.review_on, h.released_at, h.released_because,
       r.id, r.reason, r.requested_by, r.requested_at, r.decided_by, r.decided_at
FROM legal_hold h
LEFT JOIN hold_release r ON r.tenant_id = h.tenant_id AND r.hold_id = h.id AND r.decision = 'approved'
WHERE h.tenant_id = %s::uuid ORDER BY h.placed_at, h.id
"""


def ledger_path(slug: str) -> Path:
    """Where this instance keeps a tenant's ledgers."""
    folder: Path = settings.KINDMEM_LEDGER_DIR
    return folder / quote(settings.KINDMEM_INSTANCE, safe="") / f"{slug}.json"


def ledger_in_database(tenant_id: UUID) -> Ledger:
    """What the database knows, in the tenant's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLDS, [tenant_id])
        holds = [_hold(*row) for row in cursor.fetchall()]
    return {"erasures": [one.ledger_entry() for one in whole_ledger(tenant_id)], "holds": holds}


def _hold(*row: Any) -> dict[str, Any]:
    said: dict[str, Any] = {
        "id": str(row[0]),
        "matter": row[1],
        "reason": row[2],
        "scope": json.loads(row[3]),
        "placedBy": row[4],
        "placedAt": instant_text(row[5]),
        "reviewOn": row[6].isoformat(),
    }
    if row[7] is not None:
        said |= {
            "releasedAt": instant_text(row[7]),
            "releasedBecause": row[8],
            "release": {
                "id": str(row[9]),
                "reason": row[10],
                "requestedBy": row[11],
                "requestedAt": instant_text(row[12]),
                "decidedBy": row[13],
                "decidedAt": instant_text(row[14]),
            },
        }
    return said


def merged(*ledgers: Ledger) -> Ledger:
    """All lines of all, one an id: a completed erasure and a released hold win over the same before."""
    parts: Ledger = {}
    for part, ended in (("erasures", "completedAt"), ("holds", "releasedAt")):
        known: dict[str, dict[str, Any]] = {}
        for ledger in ledgers:
            for one in ledger.get(part, ()):
                if one["id"] not in known or ended in one:
                    known[one["id"]] = one
        parts[part] = list(known.values())
    return parts


def read_ledger(slug: str) -> Ledger:
    """What stands outside the database; empty when nothing does."""
    try:
        said: Ledger = json.loads(ledger_path(slug).read_text("utf-8"))
    except FileNotFoundError:
        return {part: [] for part in PARTS}
    return said


def write_ledger(slug: str, ledger: Ledger) -> bool:
    """Add these lines to what stands there, whole or not at all; whether anything is new."""
    path = ledger_path(slug)
    make_private(path.parent)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        before = read_ledger(slug)
        now = merged(before, ledger)
        if _by_id(now) == _by_id(before):
            return False
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(now, file, ensure_ascii=False, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
            os.fsync(folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
    finally:
        os.close(folder)
    return True


def _by_id(ledger: Ledger) -> list[list[dict[str, Any]]]:
    def sort(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(lines, key=lambda one: str(one["id"]))

    return [sort(ledger.get(part, ())) for part in PARTS]
