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

from django.db import connection

from memory.actions.raise_alarm import raise_alarm, remember
from memory.errors import SealRefused
from memory.hashing import timestamp_text
from memory.integrity.anchors import (
    AnchorFile,
    origin_of,
    read_anchors,
    read_newest_anchor,
    writing_anchors,
)
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
from memory.integrity.sealed_log import SEALS_RUN
from memory.integrity.sealing import make_leaves
from memory.integrity.signing import Signer, signer
from memory.integrity.states import FirstBad, State, Tampering
from memory.integrity.unsigned import first_forged
from memory.tenancy import tenant_context

_BY_THE_FILE = ("anchor", "lost", "restored")
"""Reasons to refuse that the anchor file gives."""

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('kindmem.seal', 0) # hashtextextended(%(tenant)s::text, 0))"

_KEEP = """
INSERT INTO checkpoint (tenant_id, size, last_leaf, origin, root_hash, note_text, signed_at)
VALUES (%(tenant)s::uuid, %(size)s::bigint, %(size)s::bigint - 1, %(origin)s::text, %(root)s::bytea, %(note)s::text,
        %(at)s::timestamptz)
ON CONFLICT ON CONSTRAINT checkpoint_pkey DO NOTHING
"""

_KEEP_ANCHOR = """
INSERT INTO anchor (tenant_id, size, place, anchored_at)
VALUES (%(tenant)s::uuid, %(size)s::bigint, 'file', %(at)s::timestamptz)
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

_NOW = "SELECT greatest(clock_timestamp(), %(since)s::timestamptz)"


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
    """The stored log, held against what was signed and anchored. `in_rows`: leaves under the last checkpoint of the database."""

    tree: CompactRange
    covered: int
    signed_by: bytes | None
    in_rows: int
    anchors: AnchorFile


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
    Raises SealRefused, which is told once as an alarm, when the stored log contradicts what was signed or anchored; OSError when
    the anchor can't be written.
    """
    try:
        return _seal(tenant_id, tenant_slug, since, without)
    except SealRefused as refusal:
        _tell_of_refusal(tenant_id, tenant_slug, refusal)
        raise


def _seal(
    tenant_id: UUID, tenant_slug: str, since: datetime | None, without: tuple[str, ...]
) -> Sealed:
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
            cursor.execute(LOCK, {"tenant": str(tenant_id)})
            stored = StoredTree(cursor, tenant_id)
            standing = _standing(cursor, stored, tenant_id, tenant_slug, by)
            tree = standing.tree
            gone = _put_back(cursor, tenant_id, tenant_slug, standing)
            is_own = grown is not None and (tree.size, tree.root()) == (grown.size, grown.root())
            if tree.size > standing.covered and not is_own:
                _check_unsigned(cursor, tenant_id, tenant_slug, standing.covered, tree.size, by)
            made = make_leaves(
                cursor,
                tenant_id=tenant_id,
                tenant_slug=tenant_slug,
                since=since,
                without=without,
            )
            new = [*_changes(cursor, tenant_id, tenant_slug, standing, by), *made.leaves]
            if new:
                last = standing.anchors.last
                stored.append(tree, new, since=last.at if last else None)
            refusals = [
                bad for bad in made.refused if remember(cursor, tenant_id, bad, by="service:sealer")
            ]
        grown = tree
        if gone is not None:
            raise_alarm(
                tenant_id, tenant_slug, gone, words=_GONE, act="seal.refused", reason="gone"
            )
        for bad in refusals:
            raise_alarm(
                tenant_id,
                tenant_slug,
                bad,
                words="a run does not verify and was not sealed",
                act="seal.refused",
            )
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
    by: Signer,
) -> _Standing:
    """Raises SealRefused unless the stored log goes on from its last signed and its last anchored head, and the file has both."""
    size = stored.size()
    covered = 0
    signed_by: bytes | None = None
    try:
        rows = stored_checkpoints(cursor, tenant_id, limit=1)
        # Read after the rows: a sealer writes the file first, so what a row says is in it, unless the file was lost.
        anchors = read_newest_anchor(tenant_slug)
        for row in rows:
            note = note_of(row, tenant_slug)
            signed_by = signer_of(note, by.public_keys) if note else None
            if signed_by is None or row.size > size or stored.root(row.size) != row.root_hash:
                raise SealRefused(reason="checkpoint", size=row.size)
            covered = row.size
        in_rows = covered
        anchored = anchors.last
        if anchored is not None:
            if anchored.size > size:
                raise SealRefused(reason="restored", size=anchored.size)
            if stored.root(anchored.size) != anchored.root_hash:
                raise SealRefused(reason="anchor", size=anchored.size)
            if anchored.size > covered:
                covered = anchored.size
                signed_by = signer_of(parse_checkpoint(anchored.note_text), by.public_keys)
        if in_rows > anchors.reaches:
            raise SealRefused(reason="lost", size=anchors.reaches)
        stored.root(covered)
    except NodeMissing as error:
        raise SealRefused(reason="checkpoint", size=size) from error
    try:
        tree = stored.compact_range(size)
    except NodeMissing:
        # What is not signed yet does not fit together: say which leaf it is.
        _check_unsigned(cursor, tenant_id, tenant_slug, covered, size, by)
        raise
    return _Standing(tree, covered, signed_by, in_rows, anchors)


_GONE = "checkpoints were gone from the database; the anchor file gave them back"


def _put_back(
    cursor: Any, tenant_id: UUID, tenant_slug: str, standing: _Standing
) -> FirstBad | None:
    """Keep the checkpoints that are anchored and not in the database. A crash leaves one; of more the first is returned, once."""
    if standing.covered == standing.in_rows:
        return None
    missing = [one for one in read_anchors(tenant_slug).checkpoints if one.size > standing.in_rows]
    for one in missing:
        _keep(cursor, tenant_id, one.size, one.root_hash, one.note_text, one.at)
    if len(missing) < 2:
        return None
    gone = FirstBad(SEALS_RUN, standing.in_rows, Tampering.CHECKPOINT, "a checkpoint", "none")
    return gone if remember(cursor, tenant_id, gone, by="service:sealer") else None


def _check_unsigned(
    cursor: Any, tenant_id: UUID, tenant_slug: str, first: int, end: int, by: Signer
) -> None:
    """Raises SealRefused unless every leaf that is not signed yet is one that this server would make now."""
    forged = first_forged(cursor, tenant_id, tenant_slug, first, end, by.public_keys)
    if forged is not None:
        raise SealRefused(reason="leaf", size=forged.index)


def _keep(
    cursor: Any, tenant_id: UUID, size: int, root_hash: bytes, note_text: str, at: str
) -> None:
    """Keep a checkpoint as the anchor file has it, with the moment that its line says."""
    given = {
        "tenant": tenant_id,
        "size": size,
        "origin": parse_checkpoint(note_text).origin,
        "root": root_hash,
        "note": note_text,
        "at": at,
    }
    cursor.execute(_KEEP, given)
    cursor.execute(_KEEP_ANCHOR, given)


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
    with writing_anchors(tenant_slug) as writer, connection.cursor() as cursor:
        anchors = writer.newest()
        last = anchors.last
        if last is not None and last.size > size:
            return
        if last is not None and last.size == size:
            if last.root_hash != root_hash:
                raise SealRefused(reason="anchor", size=size)
            note_text, at = last.note_text, last.at
        else:
            note_text = _signed(origin_of(tenant_slug, anchors.epoch), size, root_hash, by)
            # By the database's clock, as all other moments of the log, and never before the line above.
            cursor.execute(_NOW, {"since": last.at if last else None})
            at = writer.add_checkpoint(
                anchors.epoch, note_text, timestamp_text(cursor.fetchone()[0])
            )
    with tenant_context(tenant_id), connection.cursor() as cursor:
        _keep(cursor, tenant_id, size, root_hash, note_text, at)


def _signed(origin: str, size: int, root_hash: bytes, by: Signer) -> str:
    """The note, signed by the present key and, while it can, by the one before."""
    body = checkpoint_body(origin, size, root_hash)
    message = body.encode()
    lines = [signature_line(origin, by.public_keys[0], by.sign(message))]
    earlier = by.sign_as_previous(message)
    if earlier is not None:
        lines.append(signature_line(origin, by.public_keys[1], earlier))
    return signed_note(body, lines)


def _tell_of_refusal(tenant_id: UUID, tenant_slug: str, refusal: SealRefused) -> None:
    """The log of seals itself is not as it must be, so nothing is sealed: say so once, and where operators and auditors look."""
    tampering = Tampering.ANCHOR if refusal.reason in _BY_THE_FILE else Tampering.CHECKPOINT
    state = State.UNANCHORED if refusal.reason == "lost" else State.TAMPERED
    bad = FirstBad(SEALS_RUN, refusal.size, tampering, "", "")
    with tenant_context(tenant_id), connection.cursor() as cursor:
        is_news = remember(cursor, tenant_id, bad, by="service:sealer", state=state)
    if is_news:
        raise_alarm(
            tenant_id,
            tenant_slug,
            bad,
            words="nothing is sealed: the log of seals is not as it must be",
            act="seal.refused",
            reason=refusal.reason,
        )
