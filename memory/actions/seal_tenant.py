"""Seal what moved in a tenant's log, sign the new tree head, and write it down outside.

Leaf, root, signature, anchor and row come in this order, each on disk before the next: leaves are committed before anything is
signed, so a root of a size is a function of what can't change any more, and whoever comes after a crash signs the same one. The
anchor file has the head before the database names it, so what was ever answered is anchored. Before signing, the stored log is
held against the last signed head and the last anchored one: what contradicts them is refused, never signed.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from memory.access import system_principal
from memory.actions.append_log_entries import append_governance
from memory.errors import SealRefused
from memory.integrity.anchors import AnchorFile, origin_of, read_newest_anchor, writing_anchors
from memory.integrity.checkpoints import note_of, signer_of, stored_checkpoints
from memory.integrity.leaves import (
    hash_version_changed_text,
    key_rotated_text,
    leaf_of,
)
from memory.integrity.merkle import CompactRange
from memory.integrity.notes import (
    checkpoint_body,
    parse_checkpoint,
    signature_line,
    signed_note,
)
from memory.integrity.seal_log import NewLeaf, NodeMissing, StoredTree
from memory.integrity.sealing import make_leaves
from memory.integrity.signing import Signer, signer
from memory.integrity.states import FirstBad
from memory.integrity.unsigned import check_unsigned
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.integrity")

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('kindmem.seal', 0) # hashtextextended(%(tenant)s::text, 0))"

_KEEP = """
INSERT INTO checkpoint (tenant_id, size, last_leaf, origin, root_hash, note_text)
VALUES (%(tenant)s::uuid, %(size)s::bigint, %(size)s::bigint - 1, %(origin)s::text, %(root)s::bytea, %(note)s::text)
ON CONFLICT ON CONSTRAINT checkpoint_pkey DO NOTHING
"""

_KEEP_ANCHOR = """
INSERT INTO anchor (tenant_id, size, place) VALUES (%(tenant)s::uuid, %(size)s::bigint, 'file')
ON CONFLICT ON CONSTRAINT anchor_pkey DO NOTHING
"""

# A quick look before the log is held against its anchors: has any run moved, or is a leaf not signed yet?
_STIRRED = """
SELECT clock_timestamp(), coalesce((SELECT max(size) FROM checkpoint WHERE tenant_id = %(tenant)s::uuid), 0),
  coalesce((SELECT max(leaf_index) + 1 FROM seal_leaf WHERE tenant_id = %(tenant)s::uuid), 0),
  EXISTS (
    SELECT FROM run_head h
    WHERE h.tenant_id = %(tenant)s::uuid
      AND (%(since)s::timestamptz IS NULL OR greatest(h.last_at, h.closed_at) >= %(since)s::timestamptz)
      AND (h.next_sequence - 1 > coalesce((
        SELECT max(l.to_sequence) FROM seal_leaf l
        WHERE l.tenant_id = h.tenant_id AND l.run_id = h.run_id AND l.leaf_type = 'seal/v1'), -1)
        OR h.closed_at IS NOT NULL AND NOT EXISTS (
          SELECT FROM seal_leaf c WHERE c.tenant_id = h.tenant_id AND c.run_id = h.run_id AND c.leaf_type = 'run-closed')))
"""

_VERSIONS = """
SELECT t.hash_version, (
  SELECT l.leaf_text FROM seal_leaf l
  WHERE l.tenant_id = t.id AND l.leaf_type = 'hash-version-changed' ORDER BY l.leaf_index DESC LIMIT 1)
FROM tenant t WHERE t.id = %(tenant)s::uuid
"""

_REMEMBER_REFUSAL = """
INSERT INTO run_verification (tenant_id, run_id, state, verified_to, first_bad_sequence, first_bad_class, verified_by)
VALUES (%(tenant)s::uuid, %(run)s::text, 'tampered', %(bad)s::bigint - 1, %(bad)s::bigint, %(class)s::text, 'service:sealer')
ON CONFLICT (tenant_id, run_id) DO UPDATE
SET state = excluded.state, verified_to = excluded.verified_to, first_bad_sequence = excluded.first_bad_sequence,
    first_bad_class = excluded.first_bad_class, verified_at = clock_timestamp(), verified_by = excluded.verified_by
WHERE run_verification.state <> 'tampered' OR run_verification.first_bad_sequence IS DISTINCT FROM excluded.first_bad_sequence
   OR run_verification.first_bad_class IS DISTINCT FROM excluded.first_bad_class
"""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What sealing did. `size`: leaves under the last checkpoint; `looked_at`: by the database's clock.

    `refused`: runs that don't verify and were left out.
    """

    size: int
    leaves: int
    entries: int
    looked_at: datetime
    refused: tuple[FirstBad, ...] = ()


@dataclass(frozen=True, slots=True)
class _Standing:
    """The stored log, held against what was signed and anchored."""

    tree: CompactRange
    covered: int
    signed_by: bytes | None


def seal_tenant(
    *,
    tenant_id: UUID,
    tenant_slug: str,
    since: datetime | None = None,
    without: tuple[str, ...] = (),
) -> Sealed:
    """Seal everything that moved. Opens its own transactions; call it outside any.

    `since`: look only at runs with an entry at or after this instant, and do nothing when there are none; `without`: runs to
    leave alone.
    Raises SealRefused when the stored log contradicts what was signed or anchored; OSError when the anchor can't be written.
    """
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(_STIRRED, {"tenant": tenant_id, "since": since})
        looked_at, covered, stored_leaves, has_moved = cursor.fetchone()
    if since is not None and not has_moved and covered == stored_leaves:
        return Sealed(covered, 0, 0, looked_at)
    by = signer()
    leaves = entries = 0
    refused: list[FirstBad] = []
    grown: CompactRange | None = None
    while True:
        with tenant_context(tenant_id), connection.cursor() as cursor:
            cursor.execute(_LOCK, {"tenant": str(tenant_id)})
            stored = StoredTree(cursor, tenant_id)
            anchors = read_newest_anchor(tenant_slug)
            standing = _standing(cursor, stored, tenant_id, tenant_slug, anchors, by)
            tree = standing.tree
            is_own = grown is not None and (tree.size, tree.root()) == (grown.size, grown.root())
            if tree.size > standing.covered and not is_own:
                check_unsigned(cursor, tenant_id, tenant_slug, standing.covered, tree.size, by)
            made = make_leaves(
                cursor,
                tenant_id=tenant_id,
                tenant_slug=tenant_slug,
                since=since,
                without=without,
            )
            new = [*_changes(cursor, tenant_id, tenant_slug, standing, by), *made.leaves]
            if new:
                stored.append(tree, new)
            newly_refused = [bad for bad in made.refused if _remember(cursor, tenant_id, bad)]
        grown = tree
        _alarm(tenant_id, tenant_slug, newly_refused)
        leaves += len(new)
        entries += made.entries
        refused += made.refused
        if made.is_last:
            break
    if tree.size > standing.covered:
        sign_and_anchor(tenant_id, tenant_slug, tree.size, tree.root(), by)
    return Sealed(tree.size, leaves, entries, looked_at, tuple(refused))


def _standing(
    cursor: Any,
    stored: StoredTree,
    tenant_id: UUID,
    tenant_slug: str,
    anchors: AnchorFile,
    by: Signer,
) -> _Standing:
    """Raises SealRefused unless the stored log goes on from its last signed and its last anchored head."""
    size = stored.size()
    covered = 0
    signed_by: bytes | None = None
    try:
        for row in stored_checkpoints(cursor, tenant_id, limit=1):
            note = note_of(row, tenant_slug, anchors.epoch)
            signed_by = signer_of(note, by.public_keys) if note else None
            if signed_by is None or row.size > size or stored.root(row.size) != row.root_hash:
                raise SealRefused(reason="checkpoint", size=row.size)
            covered = row.size
        anchored = anchors.last
        if anchored is not None:
            if anchored.size > size:
                raise SealRefused(reason="restored", size=anchored.size)
            if stored.root(anchored.size) != anchored.root_hash:
                raise SealRefused(reason="anchor", size=anchored.size)
            if anchored.size > covered:
                covered = anchored.size
                signed_by = signer_of(parse_checkpoint(anchored.note_text), by.public_keys)
        return _Standing(stored.compact_range(size), covered, signed_by)
    except NodeMissing as error:
        raise SealRefused(reason="checkpoint", size=size) from error


def _changes(
    cursor: Any, tenant_id: UUID, tenant_slug: str, standing: _Standing, by: Signer
) -> list[NewLeaf]:
    """Leaves for another signing key and another hash version, where the log doesn't name them yet."""
    leaves: list[NewLeaf] = []
    present = by.public_keys[0]
    if standing.signed_by not in (None, present) and not _names_key(cursor, tenant_id, standing):
        leaves.append(
            NewLeaf(key_rotated_text(tenant_slug, standing.signed_by or present, present))
        )
    cursor.execute(_VERSIONS, {"tenant": tenant_id})
    version, text = cursor.fetchone()
    named = 1 if text is None else int(leaf_of(text).get("newVersion", 1))
    if version != named:
        leaves.append(NewLeaf(hash_version_changed_text(tenant_slug, named, version)))
    return leaves


def _names_key(cursor: Any, tenant_id: UUID, standing: _Standing) -> bool:
    """Whether a leaf that is not signed yet names the new key already."""
    cursor.execute(
        "SELECT EXISTS (SELECT FROM seal_leaf WHERE tenant_id = %(tenant)s::uuid"
        " AND leaf_index >= %(covered)s::bigint AND leaf_type = 'key-rotated')",
        {"tenant": tenant_id, "covered": standing.covered},
    )
    return bool(cursor.fetchone()[0])


def sign_and_anchor(
    tenant_id: UUID, tenant_slug: str, size: int, root_hash: bytes, by: Signer
) -> None:
    """Sign the head of the committed leaves, append it to the anchor file, then keep it in the database.

    Does nothing when a larger head is anchored already. Raises SealRefused when the file has another root for this size.
    """
    with writing_anchors(tenant_slug) as writer:
        anchors = writer.newest()
        last = anchors.last
        if last is not None and last.size > size:
            return
        if last is not None and last.size == size:
            if last.root_hash != root_hash:
                raise SealRefused(reason="anchor", size=size)
            note_text = last.note_text
        else:
            note_text = _signed(origin_of(tenant_slug, anchors.epoch), size, root_hash, by)
            writer.add_checkpoint(anchors.epoch, note_text)
    with tenant_context(tenant_id), connection.cursor() as cursor:
        origin = parse_checkpoint(note_text).origin
        cursor.execute(
            _KEEP,
            {
                "tenant": tenant_id,
                "size": size,
                "origin": origin,
                "root": root_hash,
                "note": note_text,
            },
        )
        cursor.execute(_KEEP_ANCHOR, {"tenant": tenant_id, "size": size})


def _signed(origin: str, size: int, root_hash: bytes, by: Signer) -> str:
    """The note, signed by the present key and, while it can, by the one before."""
    body = checkpoint_body(origin, size, root_hash)
    message = body.encode()
    lines = [signature_line(origin, by.public_keys[0], by.sign(message))]
    earlier = by.sign_as_previous(message)
    if earlier is not None:
        lines.append(signature_line(origin, by.public_keys[1], earlier))
    return signed_note(body, lines)


def _remember(cursor: Any, tenant_id: UUID, bad: FirstBad) -> bool:
    """Note for lists and pages what is wrong with a run; whether that is news."""
    cursor.execute(
        _REMEMBER_REFUSAL,
        {
            "tenant": tenant_id,
            "run": bad.run_id,
            "bad": bad.sequence,
            "class": bad.tampering.value,
        },
    )
    return bool(cursor.rowcount)


def _alarm(tenant_id: UUID, tenant_slug: str, refused: list[FirstBad]) -> None:
    """Say it in the server's log and in the tenant's record of governance, once for each finding."""
    for bad in refused:
        log.error(
            "a run does not verify and was not sealed",
            tenant=tenant_slug,
            run=bad.run_id,
            sequence=bad.sequence,
            found=bad.tampering.value,
        )
        with tenant_context(tenant_id):
            append_governance(
                principal=system_principal(tenant_id, tenant_slug, id="sealer"),
                payload={
                    "type": "seal.refused",
                    "runId": bad.run_id,
                    "firstBad": {"sequence": bad.sequence, "class": bad.tampering.value},
                },
            )
