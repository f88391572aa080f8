"""Recomputes a tenant's log of seals from its leaves and holds it against what was signed and anchored.

Every leaf's text is hashed again and the tree grown leaf by leaf; at the size of each checkpoint, in
the database and in the anchor file, the root must be the one that was signed. What contradicts a
checkpoint is of class `checkpoint`, what contradicts only the anchor file of class `anchor`; the place
is `kindmem.seals` and the first leaf that no smaller checkpoint vouches for.
So is a checkpoint of the anchor file that is gone from the database, and a moment that is not the
anchor file's. Leaves that are not signed yet are each made again: one that this server would not
have made is named, too, and accuses only the run that it speaks of.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from memory.hashing import tag
from memory.integrity.anchors import AnchorFile
from memory.integrity.chain_sql import Cursor
from memory.integrity.checkpoints import StoredCheckpoint, note_of, signer_of, stored_checkpoints
from memory.integrity.merkle import CompactRange
from memory.integrity.seal_log import completed_nodes
from memory.integrity.states import FirstBad, Tampering
from memory.integrity.unsigned import ForgedLeaf, first_forged

SEALS_RUN: Final = "kindmem.seals"
"""What a report names as run when the log of seals itself is bad; its sequence is the leaf index."""

SIGNATURES_CHECKED: Final = 200
"""How many of the newest checkpoints have their signatures checked besides their roots."""

MOMENTS_DIFFER_SECONDS: Final = 60
"""How far what the database says of a moment may be from what the anchor file says: a sealer may be slow."""

_CHUNK_LEAVES: Final = 5_000

_CHUNK = """
SELECT count(*), coalesce(max(l.leaf_index), -1),
       string_agg(sha256('\\x00'::bytea || convert_to(coalesce(l.leaf_text, ''), 'UTF8')), ''::bytea ORDER BY l.leaf_index),
       string_agg(l.leaf_hash, ''::bytea ORDER BY l.leaf_index),
       string_agg(l.node_hashes, ''::bytea ORDER BY l.leaf_index)
FROM seal_leaf l
WHERE l.tenant_id = %(tenant)s::uuid AND l.leaf_index >= %(from)s::bigint AND l.leaf_index < %(to)s::bigint
"""

# Asked only of leaves that a head vouches for: of others the text may be no JSON.
_ODD = """
SELECT min(l.leaf_index) FILTER (
         WHERE (l.leaf_type, l.run_id, l.from_sequence::text, l.to_sequence::text) IS DISTINCT FROM
               (j.leaf ->> 'type', j.leaf ->> 'runId', j.leaf ->> 'fromSequence', j.leaf ->> 'toSequence'))
FROM (
  SELECT * FROM seal_leaf
  WHERE tenant_id = %(tenant)s::uuid AND leaf_index >= %(from)s::bigint AND leaf_index < %(to)s::bigint OFFSET 0
) l CROSS JOIN LATERAL (SELECT l.leaf_text::jsonb AS leaf) j
"""

# A leaf is appended after the head before it was signed, and before the head over it is.
_OTHER_TIME = """
SELECT l.leaf_index, c.since::text, c.signed_at::text, l.appended_at::text
FROM (SELECT size, signed_at, coalesce(lag(size) OVER place, 0) AS first, lag(signed_at) OVER place AS since
      FROM checkpoint
      WHERE tenant_id = %(tenant)s::uuid AND size >= %(from)s::bigint AND size <= %(to)s::bigint
      WINDOW place AS (ORDER BY size)) c
JOIN seal_leaf l
  ON l.tenant_id = %(tenant)s::uuid AND l.leaf_index >= greatest(c.first, %(from)s::bigint) AND l.leaf_index < c.size
WHERE l.appended_at > c.signed_at + make_interval(secs => %(near)s::int)
   OR l.appended_at < c.since - make_interval(secs => %(near)s::int)
ORDER BY l.leaf_index LIMIT 1
"""

_FIRST_MISSING = """
SELECT min(place) FROM generate_series(%(from)s::bigint, %(to)s::bigint) place
WHERE NOT EXISTS (SELECT FROM seal_leaf l WHERE l.tenant_id = %(tenant)s::uuid AND l.leaf_index = place)
"""


@dataclass(frozen=True, slots=True)
class SealedLog:
    """What is proven of the log of seals. `size`: leaves under a good signature; `anchored`: those of them under an anchor."""

    size: int
    anchored: int
    checkpoint: StoredCheckpoint | None
    first_bad: FirstBad | None
    forged: ForgedLeaf | None = None
    """Of the leaves that are not signed yet, the first that this server would not have made. What is signed stands."""
    unanchored_from: int | None = None
    """The first leaf under a signed head that the anchor file should have and has not: the file was lost, or is an older one."""

    @property
    def bad_anywhere(self) -> FirstBad | None:
        """What is wrong with the log of seals, signed or not."""
        if self.first_bad is not None or self.forged is None:
            return self.first_bad
        return forged_leaf(self.forged)


NOTHING_SEALED: Final = SealedLog(0, 0, None, None)


def forged_leaf(forged: ForgedLeaf) -> FirstBad:
    """A leaf past the last signed head that nobody but this server may have put there."""
    return FirstBad(
        SEALS_RUN,
        forged.index,
        Tampering.CHECKPOINT,
        "a leaf that this server makes",
        "another leaf",
    )


@dataclass(frozen=True, slots=True)
class _Head:
    """A root that the log must have at a size, and what it is that says so."""

    size: int
    root_hash: bytes
    by: Tampering


def verify_sealed_log(
    cursor: Cursor,
    *,
    tenant_id: UUID,
    tenant_slug: str,
    anchors: AnchorFile | Callable[[], AnchorFile],
    public_keys: Iterable[bytes],
    signatures: int = SIGNATURES_CHECKED,
) -> SealedLog:
    """Recompute the whole log. `anchors`: the anchor file as its reader has it; empty where there is none.

    A function is called once the checkpoints were read: a sealer writes them into the file first.
    """
    rows = stored_checkpoints(cursor, tenant_id)
    if callable(anchors):
        anchors = anchors()
    heads: list[_Head] = []
    bad_note: int | None = None
    signed: StoredCheckpoint | None = None
    keys = tuple(public_keys)
    for place, row in enumerate(rows):
        note = note_of(row, tenant_slug)
        if note is None or (place < signatures and signer_of(note, keys) is None):
            bad_note = row.size
            continue
        signed = signed or row
        heads.append(_Head(row.size, row.root_hash, Tampering.CHECKPOINT))
    heads += [_Head(one.size, one.root_hash, Tampering.ANCHOR) for one in anchors.checkpoints]
    # A checkpoint before an anchor of the same size: what contradicts both contradicts the nearer one.
    heads.sort(key=lambda head: (head.size, head.by is Tampering.ANCHOR))
    walk = _Walk(cursor, tenant_id, heads)
    bad = walk.first_bad()
    if bad_note is not None and (bad is None or bad.tampering is Tampering.ANCHOR):
        vouched = max((head.size for head in heads if head.size < bad_note), default=0)
        if bad is not None:
            vouched = min(vouched, bad.sequence)
        bad = FirstBad(
            SEALS_RUN, vouched, Tampering.CHECKPOINT, "a note signed by a known key", "another note"
        )
    bad = bad or _gone(rows, anchors) or _other_moment(cursor, tenant_id, rows, anchors)
    anchored = anchors.last.size if anchors.last else 0
    size = max(signed.size if signed else 0, anchored)
    if bad is not None:
        return SealedLog(0, 0, signed, bad)
    forged = first_forged(cursor, tenant_id, tenant_slug, size, None, keys)
    lost = anchored if signed is not None and signed.size > anchors.reaches else None
    return SealedLog(size, anchored, signed, None, forged, lost)


def _gone(rows: Sequence[StoredCheckpoint], anchors: AnchorFile) -> FirstBad | None:
    """The first checkpoint of the anchor file that has no row. The newest may be on its way."""
    stored = {row.size for row in rows}
    vouched = 0
    for one in anchors.checkpoints[:-1]:
        if one.size not in stored:
            expected = f"the checkpoint of {one.size} leaves"
            return FirstBad(SEALS_RUN, vouched, Tampering.CHECKPOINT, expected, "no checkpoint")
        vouched = one.size
    return None


def _other_moment(
    cursor: Cursor, tenant_id: UUID, rows: Sequence[StoredCheckpoint], anchors: AnchorFile
) -> FirstBad | None:
    """The first moment in the log of seals that is not the anchor file's, or out of order."""
    written = {one.size: one.at for one in anchors.checkpoints}
    vouched, before = 0, ""
    for row in reversed(rows):
        said = written.get(row.size)
        for moment in (row.signed_at, row.filed_at):
            if said is not None and not _is_near(said, moment):
                return FirstBad(
                    SEALS_RUN, vouched, Tampering.CHECKPOINT, said, moment or "no moment"
                )
        if before > row.signed_at and not _is_near(before, row.signed_at):
            expected = f"not before {before}"
            return FirstBad(SEALS_RUN, vouched, Tampering.CHECKPOINT, expected, row.signed_at)
        vouched, before = row.size, row.signed_at
    sizes = [row.size for row in reversed(rows)]
    since = 0
    for place in range(0, len(sizes), _CHUNK_LEAVES):
        upto = sizes[place : place + _CHUNK_LEAVES][-1]
        bad = _other_time(cursor, tenant_id, since, upto)
        if bad is not None:
            return bad
        since = upto
    return None


def _other_time(cursor: Cursor, tenant_id: UUID, since: int, upto: int) -> FirstBad | None:
    """The first leaf between two heads that was appended at another time than the heads around it allow."""
    given = {"tenant": tenant_id, "near": MOMENTS_DIFFER_SECONDS, "from": since, "to": upto}
    cursor.execute(_OTHER_TIME, given)
    row = cursor.fetchone()
    if row is None:
        return None
    index, before, after, found = row
    expected = f"between {before or 'the beginning'} and {after}"
    return FirstBad(SEALS_RUN, index, Tampering.CHECKPOINT, expected, str(found))


def _is_near(one: str, other: str | None) -> bool:
    try:
        apart = datetime.fromisoformat(one) - datetime.fromisoformat(other or "")
    except (ValueError, OverflowError):
        return False
    return abs(apart.total_seconds()) <= MOMENTS_DIFFER_SECONDS


class _Walk:
    """Grows the tree over the stored leaves up to the largest head."""

    def __init__(self, cursor: Cursor, tenant_id: UUID, heads: list[_Head]) -> None:
        self._cursor = cursor
        self._tenant_id = tenant_id
        self._heads = heads
        self._tree = CompactRange()
        self._vouched = 0
        self._next = 0

    def first_bad(self) -> FirstBad | None:
        end = self._heads[-1].size if self._heads else 0
        while self._tree.size < end:
            bad = self._chunk(min(self._tree.size + _CHUNK_LEAVES, end))
            if bad is not None:
                return self._first_odd(min(self._vouched, bad.sequence)) or bad
        return self._first_odd(self._vouched)

    def _first_odd(self, end: int) -> FirstBad | None:
        """The first of the vouched leaves whose columns say something else than its text."""
        for start in range(0, end, _CHUNK_LEAVES):
            to = min(start + _CHUNK_LEAVES, end)
            self._cursor.execute(_ODD, {"tenant": self._tenant_id, "from": start, "to": to})
            [odd] = self._cursor.fetchone()
            if odd is not None:
                return self._say(odd, Tampering.CHECKPOINT, "the leaf's own words", "other columns")
        return None

    def _chunk(self, end: int) -> FirstBad | None:
        start = self._tree.size
        parameters: dict[str, Any] = {"tenant": self._tenant_id, "from": start, "to": end}
        self._cursor.execute(_CHUNK, parameters)
        count, _, texts, hashes, nodes = self._cursor.fetchone()
        if count != end - start:
            self._cursor.execute(_FIRST_MISSING, {**parameters, "to": end - 1})
            [missing] = self._cursor.fetchone()
            if missing > start:
                return self._chunk(missing)  # what stands before it may be bad already
            return self._say(missing, self._first_head_past(missing), "a leaf", "no leaf")
        computed, stored, shortcuts = (bytes(one or b"") for one in (texts, hashes, nodes))
        place = 0
        for offset in range(0, len(computed), 32):
            hash = computed[offset : offset + 32]
            made = completed_nodes(self._tree, hash)
            kept = shortcuts[place : place + len(made)]
            place += len(made)
            index = self._tree.size
            self._tree.append_hash(hash)
            bad = self._judge_heads()
            if bad is not None:
                return bad
            if hash != stored[offset : offset + 32] or made != kept:
                return self._say(index, Tampering.CHECKPOINT, tag(hash), "another hash")
        if place != len(shortcuts):
            return self._say(start, Tampering.CHECKPOINT, "its subtree roots", "more of them")
        return None

    def _judge_heads(self) -> FirstBad | None:
        """Compare the root with every head of this size."""
        while self._next < len(self._heads) and self._heads[self._next].size == self._tree.size:
            head = self._heads[self._next]
            root = self._tree.root()
            if root != head.root_hash:
                return self._say(self._vouched, head.by, tag(head.root_hash), tag(root))
            self._next += 1
            if self._next == len(self._heads) or self._heads[self._next].size != self._tree.size:
                self._vouched = head.size
        return None

    def _first_head_past(self, index: int) -> Tampering:
        """What vouches for a leaf: a checkpoint where one covers it, else the anchor file."""
        covering = {head.by for head in self._heads if head.size > index}
        return Tampering.CHECKPOINT if Tampering.CHECKPOINT in covering else Tampering.ANCHOR

    def _say(self, index: int, by: Tampering, expected: str, found: str) -> FirstBad:
        return FirstBad(SEALS_RUN, index, by, expected, found)
