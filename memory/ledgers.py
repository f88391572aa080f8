"""The ledgers of a tenant outside the database: which erasures were done, which holds were placed and released, what ended.

A restored backup is older than what was decided since: without these it would bring back what was erased, forgotten or replaced,
and let go what was held. They are written into the state folder before something is told as done, and by the worker for what was
cut off; what once stood there stays, so that an older database takes no line away. Erasures and ends are known by keyed hashes
alone. Holds name their scope and matter, so the files are for the owner alone. Ends are lines that are only added.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory.after_commit import after_commit
from memory.erasure.ledger import whole_ledger
from memory.instants import instant_text
from memory.private_folder import make_private
from memory.tenancy import tenant_context

Ledger = dict[str, list[dict[str, Any]]]
PARTS = ("erasures", "holds")
ENDINGS_SUFFIX = ".endings.jsonl"

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


def endings_path(slug: str) -> Path:
    """Where this instance keeps the lines of what ended."""
    return ledger_path(slug).with_name(f"{slug}{ENDINGS_SUFFIX}")


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
    if endings := [line for ledger in ledgers for line in ledger.get("endings", ())]:
        parts["endings"] = list({json.dumps(one, sort_keys=True): one for one in endings}.values())
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
    with _alone(path.parent) as folder:
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
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """The folder's descriptor, while nobody else writes there."""
    make_private(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def append_endings(slug: str, lines: Sequence[dict[str, Any]]) -> None:
    """Add lines of what ended; they are on disk when this returns. Raises OSError."""
    if not lines:
        return
    path = endings_path(slug)
    with _alone(path.parent) as folder:
        is_new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            size = os.fstat(descriptor).st_size
            # A line that was cut off ends here, and is none.
            is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            text = "".join(f"{json.dumps(one, sort_keys=True)}\n" for one in lines)
            file.write((b"\n" if is_cut else b"") + text.encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            os.fsync(folder)


def read_endings(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of what ended; none when it is not there. What was cut off is passed over."""
    found: list[dict[str, Any]] = []
    with suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError):
                found.append(json.loads(line))
    return found


def keep_ledger(tenant_id: UUID, slug: str) -> None:
    """Write down what the database knows. Opens its own transaction. Raises OSError."""
    with tenant_context(tenant_id):
        ledger = ledger_in_database(tenant_id)
    if any(ledger.values()):
        write_ledger(slug, ledger)


def write_ledger_after_commit(tenant_id: UUID) -> None:
    """Have this transaction's hold, release or erasure in the ledger before its caller is answered."""
    after_commit(keep_ledger, tenant_id)


def _by_id(ledger: Ledger) -> list[list[dict[str, Any]]]:
    def sort(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(lines, key=lambda one: str(one["id"]))

    return [sort(ledger.get(part, ())) for part in PARTS]
