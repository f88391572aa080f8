"""Export everything about one person as lines of JSON, all as of one moment. Logged first, as a reveal of its range."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Any

from django.conf import settings
from django.db import connection, transaction

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.json_text import dumps
from memory.ids import new_text_id
from memory.instants import instant_text
from memory.queries.subject_export import entries_of, facts_of, receipts_of, records_of
from memory.records import clock, fingerprints
from memory.tenancy import tenant_context

FORMAT_VERSION = 1
_PARTS = (records_of, facts_of, entries_of, receipts_of)
_COUNTED = ("record", "fact", "log-entry", "receipt")


def export_subject(
    *,
    principal: Principal,
    subject_id: str,
    target: IO[bytes],
    progress: Callable[[Counter[str]], None] = lambda counts: None,
) -> dict[str, int]:
    """Write the lines to `target`; how many of each kind. Opens its own transactions; call it outside any.

    The first line is of kind `export`, the last of kind `end` with the counts: a file without it is not whole.
    Raises PermissionDenied.
    """
    principal.needs_role("admin", "owner")
    export_id, tenant_id = new_text_id(), principal.tenant_id
    with tenant_context(tenant_id):
        append_governance(
            principal=principal,
            payload={
                "type": "memory.exported",
                "exportId": export_id,
                "subjectDigest": fingerprints.of_text(tenant_id, subject_id).hex(),
            },
        )
    first = {
        "kind": "export",
        "id": export_id,
        "formatVersion": FORMAT_VERSION,
        "product": f"kindmem {settings.KINDMEM_VERSION}",
        "tenantId": principal.tenant_slug,
        "subject": {"type": "user", "id": subject_id},
        "exportedAt": instant_text(clock.now()),
    }
    target.write(_line(first))
    counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
    for line in _at_one_moment(principal, subject_id):
        target.write(_line(line))
        counts[line["kind"]] += 1
        progress(counts)
    target.write(_line({"kind": "end", "counts": dict(counts)}))
    return dict(counts)


def _at_one_moment(principal: Principal, subject_id: str) -> Iterator[dict[str, Any]]:
    """Every line, from one snapshot of the database where this opens it."""
    is_first = not connection.in_atomic_block
    with transaction.atomic():
        if is_first:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with tenant_context(principal.tenant_id):
            for part in _PARTS:
                yield from part(principal, subject_id)


def _line(said: dict[str, Any]) -> bytes:
    return dumps(said).encode() + b"\n"
