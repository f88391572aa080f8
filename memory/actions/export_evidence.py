"""Export a run as a signed evidence bundle, and log that it was: an export is a reveal of its range."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import SEEK_END
from typing import IO, Any, Final

from django.conf import settings
from django.db import connection
from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.verify_tenant import examine_run
from memory.errors import ExportTooLarge, LogNotFound, PermissionDenied, RunNotSealed
from memory.hashing import timestamp_text
from memory.ids import new_text_id
from memory.integrity.acts import acts_of_words
from memory.integrity.bundle import (
    Evidence,
    ProvenAct,
    SealedLeaf,
    StampedNote,
    UnsignedLeaf,
    write_bundle,
)
from memory.integrity.checkpoints import StoredCheckpoint, stored_checkpoints
from memory.integrity.notes import parse_checkpoint, verifier_key
from memory.integrity.seal_log import StoredTree
from memory.integrity.signing import signer
from memory.integrity.timestamps import PLACE
from memory.log_entry import StoredEntry
from memory.models.log import GOVERNANCE_RUN
from memory.queries.run_log import check_run_is_readable, has_unreadable_entry, run_log
from memory.queries.seal_proofs import run_proof
from memory.tenancy import tenant_context

EXPORTED_AT_MOST: Final = 100_000
"""Entries of a run that one request exports; the command has no limit."""

EXPORTERS = ("admin", "auditor", "owner")
_ENTRIES_AT_ONCE = 1_000
_LEAVES_AT_ONCE = 200

_LEAVES = """
SELECT leaf_index, leaf_text FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND leaf_index < %(size)s::bigint
  AND leaf_index > %(after)s::bigint
ORDER BY leaf_index LIMIT %(limit)s::int
"""

_UNSIGNED = """
SELECT leaf_index, leaf_text FROM seal_leaf
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND leaf_index >= %(size)s::bigint
  AND (leaf_type <> 'seal/v1' OR to_sequence <= %(last)s::bigint)
ORDER BY leaf_index LIMIT %(limit)s::int
"""

# Of each authority the newest stamp of a checkpoint that this one goes on from.
_STAMPS = """
SELECT DISTINCT ON (a.place) a.place, a.size, a.answer, c.note_text
FROM anchor a JOIN checkpoint c ON c.tenant_id = a.tenant_id AND c.size = a.size
WHERE a.tenant_id = %(tenant)s::uuid AND a.size <= %(size)s::bigint AND starts_with(a.place, 'timestamp:')
  AND c.origin = %(origin)s::text
ORDER BY a.place, a.size DESC
"""


@dataclass(frozen=True, slots=True)
class Exported:
    """The manifest that was signed, and of the whole file its SHA-256 in hex and its length."""

    manifest: dict[str, Any]
    sha256: str
    size_bytes: int

    @property
    def file_name(self) -> str:
        return f"evidence-{self.manifest['bundleId']}.zip"


def export_evidence(
    *,
    principal: Principal,
    run_id: str,
    target: IO[bytes],
    most_entries: int | None = None,
    reason: str | None = None,
) -> Exported:
    """Write the bundle of a whole run to `target`, an empty file that can be read back. Opens its own transactions.

    `reason`: the code of why, for the log. Call it outside any transaction, unless the run is short.
    Raises PermissionDenied, LogNotFound; ExportTooLarge for a run of more than `most_entries`.
    """
    principal.needs_role(*EXPORTERS)
    tenant_id = principal.tenant_id
    with tenant_context(tenant_id), connection.cursor() as cursor:
        check_run_is_readable(principal, run_id)
        if has_unreadable_entry(principal, run_id):
            raise PermissionDenied(needs="read on every entry of the run")
        heads = stored_checkpoints(cursor, tenant_id, limit=1)
        last = _last_sequence(cursor, principal, run_id)
    if most_entries is not None and last >= most_entries:
        raise ExportTooLarge(limit_entries=most_entries)
    head = heads[0] if heads else None
    report = examine_run(principal=principal, run_id=run_id)
    by = signer()
    about: dict[str, Any] = {
        "bundleId": new_text_id(),
        "bundleSchemaVersion": 1,
        "product": f"kindmem {settings.KINDMEM_VERSION}",
        "tenantId": principal.tenant_slug,
        "runId": run_id,
        "filter": {"runId": run_id},
        "range": {"from": 0, "to": last},
        "verification": report.as_wire(),
        "exportedAt": timestamp_text(timezone.now()),
        "exportedBy": principal.writer,
    }
    proof = None
    if head is not None:
        about["origin"] = parse_checkpoint(head.note_text).origin
        about["checkpoint"] = head.as_wire()
        about["verifierKeys"] = [verifier_key(about["origin"], key) for key in by.public_keys]
        proof = _head_proof(principal, run_id, head)
    manifest = write_bundle(
        target,
        Evidence(
            about=about,
            entries=lambda: _entries(principal, run_id, last),
            leaves=lambda: _leaves(principal, run_id, head),
            note_text=head.cosigned_note if head is not None else None,
            head_proof=proof,
            stamps=_stamps(principal, head),
            unsigned=_unsigned(principal, run_id, head, last),
            acts=_acts(principal, run_id, head, last),
        ),
        by,
    )
    exported = Exported(manifest, _sha256(target), target.seek(0, SEEK_END))
    said: dict[str, Any] = {
        "type": "evidence.exported",
        "bundleId": about["bundleId"],
        "runId": run_id,
        "from": 0,
        "to": last,
        "entries": manifest["entries"],
        "state": report.state.value,
        # Of the file, whose random id nobody guesses: whoever has a copy can tell that it is this one.
        "sha256": exported.sha256,
        "bytes": exported.size_bytes,
    }
    if reason is not None:
        said["reasonCode"] = reason
    with tenant_context(tenant_id):
        append_governance(principal=principal, payload=said)
    return exported


def _sha256(file: IO[bytes]) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest()


def _last_sequence(cursor: Any, principal: Principal, run_id: str) -> int:
    """The newest entry now; later ones are not in the bundle. Raises LogNotFound when there is none."""
    cursor.execute(
        "SELECT max(sequence) FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text",
        {"tenant": principal.tenant_id, "run": run_id},
    )
    [last] = cursor.fetchone()
    if last is None:
        raise LogNotFound
    return int(last)


def _entries(principal: Principal, run_id: str, last: int) -> Iterator[StoredEntry]:
    """The entries up to `last`, a transaction a batch."""
    since = 0
    while since <= last:
        with tenant_context(principal.tenant_id):
            batch = run_log(principal, run_id, since_sequence=since, limit=_ENTRIES_AT_ONCE)
        batch = [entry for entry in batch if entry.sequence <= last]
        yield from batch
        if not batch:
            return
        since = batch[-1].sequence + 1


def _leaves(
    principal: Principal, run_id: str, head: StoredCheckpoint | None
) -> Iterator[SealedLeaf]:
    """The leaves about the run under the checkpoint, each proven."""
    if head is None:
        return
    after = -1
    while True:
        with tenant_context(principal.tenant_id), connection.cursor() as cursor:
            cursor.execute(
                _LEAVES,
                {
                    "tenant": principal.tenant_id,
                    "run": run_id,
                    "size": head.size,
                    "after": after,
                    "limit": _LEAVES_AT_ONCE,
                },
            )
            rows = cursor.fetchall()
            tree = StoredTree(cursor, principal.tenant_id)
            proven = [
                SealedLeaf(index, text, tree.prove_inclusion(index, head.size))
                for index, text in rows
            ]
        yield from proven
        if len(rows) < _LEAVES_AT_ONCE:
            return
        after = rows[-1][0]


def _unsigned(
    principal: Principal, run_id: str, head: StoredCheckpoint | None, last: int
) -> list[UnsignedLeaf]:
    """Leaves about the run's entries up to `last` that wait for their signature: somebody else may have put them there."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            _UNSIGNED,
            {
                "tenant": principal.tenant_id,
                "run": run_id,
                "size": head.size if head else 0,
                "last": last,
                "limit": _LEAVES_AT_ONCE,
            },
        )
        return [UnsignedLeaf(*row) for row in cursor.fetchall()]


def _acts(
    principal: Principal, run_id: str, head: StoredCheckpoint | None, last: int
) -> Callable[[], Iterator[ProvenAct]] | None:
    """The acts of governance that the run's words of erasure belong to; None for a run without such words."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        sequences = acts_of_words(cursor, principal.tenant_id, run_id, last)
    if sequences is None:
        return None

    def proven() -> Iterator[ProvenAct]:
        for sequence in sequences:
            with tenant_context(principal.tenant_id):
                [entry] = run_log(principal, GOVERNANCE_RUN, since_sequence=sequence, limit=1)
                yield ProvenAct(entry, _proof_of_act(principal, sequence, head))

    return proven


def _proof_of_act(principal: Principal, sequence: int, head: StoredCheckpoint | None) -> str | None:
    if head is None:
        return None
    try:
        return run_proof(principal, GOVERNANCE_RUN, sequence=sequence, head=head).text
    except RunNotSealed:
        return None


def _stamps(principal: Principal, head: StoredCheckpoint | None) -> list[StampedNote]:
    """The time stamps that show that the checkpoint's log, or the start of it, existed at some moment."""
    if head is None:
        return []
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            _STAMPS, {"tenant": principal.tenant_id, "size": head.size, "origin": head.origin}
        )
        rows = cursor.fetchall()
        tree = StoredTree(cursor, principal.tenant_id)
        return [
            StampedNote(
                place.removeprefix(PLACE),
                note_text,
                answer,
                tree.prove_consistency(size, head.size),
            )
            for place, size, answer, note_text in rows
        ]


def _head_proof(principal: Principal, run_id: str, head: StoredCheckpoint) -> str | None:
    with tenant_context(principal.tenant_id):
        try:
            return run_proof(principal, run_id, head=head).text
        except RunNotSealed:
            return None
