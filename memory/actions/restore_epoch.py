"""After a restore from an older backup, or the loss of the anchor file: begin a new epoch of a tenant's log of seals, so that it
can be sealed again.

The anchor file keeps what was anchored before, and says that the log begins anew after what the restored database still has. From
then on checkpoints are signed under the origin `<instance>/<tenant>/<epoch>`, so no size of one origin ever has two roots.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.seal_tenant import seal_tenant
from memory.errors import BadInput, InvariantViolated, SealRefused
from memory.integrity.anchors import epoch_of, origin_of, read_anchors, writing_anchors
from memory.integrity.checkpoints import note_of, signer_of, stored_checkpoints
from memory.integrity.seal_log import NodeMissing, StoredTree
from memory.integrity.signing import signer
from memory.tenancy import tenant_context

REASON_MAX = 2000


@dataclass(frozen=True, slots=True)
class Epoch:
    """`kept`: leaves that the restored log still has; `lost`: leaves that were anchored beyond them."""

    number: int
    origin: str
    kept: int
    lost: int


def restore_epoch(*, principal: Principal, reason: str) -> Epoch:
    """Begin the epoch and seal. Opens its own transactions; call it outside any.

    reason: 1 to 2000 characters, kept in the anchor file. Raises PermissionDenied, BadInput; InvariantViolated when the log is
    not behind its anchor, and no signed head is missing from the anchor file; SealRefused when what is left of it is not what was
    anchored: that is no restore.
    """
    principal.needs_role("admin", "owner")
    if not 1 <= len(reason.strip()) <= REASON_MAX:
        raise BadInput.at("/reason", f"must have 1 to {REASON_MAX} characters")
    slug = principal.tenant_slug
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        stored = StoredTree(cursor, principal.tenant_id)
        size = stored.size()
        signed, signed_epoch = _newest_signed(cursor, principal)
        # Read after the rows, which a sealer writes second.
        anchors = read_anchors(slug)
        for one in anchors.checkpoints:
            if one.size <= size and not _has_root(stored, one.size, one.root_hash):
                raise SealRefused(reason="anchor", size=one.size)
    last = anchors.last
    anchored = last.size if last else 0
    if anchored <= size and signed <= anchors.reaches:
        raise InvariantViolated(invariant="log-is-not-behind-its-anchor")
    number = max(anchors.epoch, signed_epoch) + 1
    # Logged first: where that is refused, the anchor file says nothing either.
    with tenant_context(principal.tenant_id):
        append_governance(
            principal=principal,
            payload={
                "type": "log.epoch-started",
                "epoch": number,
                "afterSize": size,
                "anchoredSize": anchored,
            },
        )
        with writing_anchors(slug) as writer:
            now = writer.newest()
            if (now.epoch, now.last) != (anchors.epoch, last):
                raise InvariantViolated(invariant="anchor-moved-meanwhile")
            writer.begin_epoch(number, size, reason.strip())
    seal_tenant(tenant_id=principal.tenant_id, tenant_slug=slug)
    return Epoch(number, origin_of(slug, number), size, max(0, anchored - size))


def _newest_signed(cursor: Any, principal: Principal) -> tuple[int, int]:
    """Leaves under the newest checkpoint of the database that a known key signed, and its epoch; (0, 0) for none."""
    for row in stored_checkpoints(cursor, principal.tenant_id, limit=1):
        note = note_of(row, principal.tenant_slug)
        if note is not None and signer_of(note, signer().public_keys) is not None:
            return row.size, epoch_of(note.origin, principal.tenant_slug) or 0
    return 0, 0


def _has_root(stored: StoredTree, size: int, root_hash: bytes) -> bool:
    try:
        return stored.root(size) == root_hash
    except NodeMissing:
        return False
