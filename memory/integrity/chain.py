"""Recomputes a run's hash chain from its stored rows, as a stream in bounded memory.

Trusts nothing that is stored but compares it: payload against content hash, every hashed column
against the entry hash, each entry against the one before, the last one against the head row, the
scope against the tenant. A self-consistent rewrite, with every later hash and the head row redone,
is beyond a chain: seals and anchors see that.

Readers give rows ordered by sequence, in batches that overlap by one row, so that a change between
two batches is seen; `progress` says where to go on, also in another process.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from hashlib import sha256
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Final

from memory.canonical import canonical_string
from memory.hashing import ZERO_HASH, tag
from memory.integrity.rows import EntryRow, HeadRow, Progress, lacking
from memory.integrity.states import ChainReport, FirstBad, Tampering, state_of

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

REORDER_WINDOW: Final = 10_000
"""How far from its place a moved entry is looked for before it counts as edited."""

OTHER_RUNS_LOOKED_AT: Final = 10_000
"""How many other runs a transplanted entry is looked for in before it counts as edited."""

ANOTHER_RUN: Final = "another run"
A_WHOLE_ENTRY: Final = "a whole entry"
NO_PAYLOAD: Final = "no payload"
A_PAYLOAD: Final = "a payload"
NO_SALT: Final = "a payload without its salt"
ATTESTED_ERASURE: Final = "an attested erasure"
A_HEAD: Final = "a head row"
NO_HEAD: Final = "no head row"
AN_ENTRY: Final = "an entry"
NO_ENTRY: Final = "no entry"
OTHER_SCOPE: Final = "the scope of another tenant"

_ERASURE_END: Final = ',"type":"payload.erased"}'


def attests_erasure(row: EntryRow) -> bool:
    """Whether the entry is the server's word that a payload was erased."""
    text = row.payload_text
    return row.kind == "event-emitted" and text is not None and text.endswith(_ERASURE_END)


class ChainVerifier:
    """Verifies one run: `feed` batches in order, then `finish`.

    `first`, `last`: the range asked for (inclusive; `last` None means to the end). With `first` > 0
    the first row must be entry `first` − 1, which only lends its hash.
    `resume`: go on from there; the first row of the next batch must be the last one read before.
    `sealed_to`: highest sequence under a seal, −1 for none. `attested_ids`: entries whose erasure
    has a leaf; an erasure attested only by an entry of the run counts while that entry is unsealed.
    `other_runs`: ids of the tenant's runs, asked for only to name a transplant.
    """

    def __init__(
        self,
        *,
        tenant_slug: str,
        run_id: str,
        first: int = 0,
        last: int | None = None,
        resume: Progress | None = None,
        sealed_to: int = -1,
        attested_ids: Container[str] = frozenset(),
        other_runs: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._run_id = run_id
        self._run_part = _run_part(run_id)
        self._tenant_part = f'"tenantId":"{tenant_slug}"'
        self._first = first
        self._last = last
        self._sealed_to = sealed_to
        self._attested_ids = attested_ids
        self._other_runs = other_runs
        if resume is None:
            # Entry −1 is the zero hash; of a later start the hash is known when its row was read.
            resume = Progress(first - 1 if first == 0 else first - 2, ZERO_HASH)
            self._has_overlap = False
            self._is_anchored = first == 0
        else:
            self._has_overlap = True
            self._is_anchored = True
        self._sequence = resume.sequence
        self._entry_hash = resume.entry_hash
        self._prev_hash = resume.prev_hash
        self._entries = resume.entries
        self._erased = resume.erased
        self._linkage_only = resume.linkage_only
        self._unattested = dict(resume.unattested)
        self._first_bad = resume.first_bad

    @property
    def progress(self) -> Progress:
        """How far it came; the next batch starts with the entry of this sequence."""
        return Progress(
            self._sequence,
            self._entry_hash,
            self._prev_hash,
            self._entries,
            self._erased,
            self._linkage_only,
            tuple(self._unattested.items()),
            self._first_bad,
        )

    @property
    def unattested(self) -> frozenset[str]:
        """Ids of erased entries read so far whose erasure nothing attests yet."""
        return frozenset(self._unattested)

    @property
    def is_decided(self) -> bool:
        """Whether further rows can change nothing: tampered, and no erasure waits for its word."""
        bad = self._first_bad
        return bad is not None and self._sequence > bad.sequence and not self._unattested

    def feed(self, batch: Sequence[EntryRow]) -> None:
        """Take the next rows. Raises ValueError when they are not in order of sequence."""
        start = 0
        if not self._is_anchored:
            start = self._take_anchor(batch)
        elif self._has_overlap:
            start = self._take_overlap(batch)
        for row in islice(batch, start, None):
            self._take(row)
        self._has_overlap = self._sequence >= 0

    def attest_later(self, rows: Iterable[EntryRow]) -> None:
        """Take entries after the range, of which only attested erasures count; see `unattested`."""
        for row in rows:
            if row.kind == "event-emitted":
                self._note_attestation(row)

    def finish(self, head: HeadRow | None) -> ChainReport:
        """Compare with the head row and say what was found. No batch may follow."""
        reached = max(self._sequence, self._first - 1)
        if self._first_bad is None:
            self._judge_end(head)
        if self._unattested:
            sequence = min(self._unattested.values())
            if self._first_bad is None or sequence < self._first_bad.sequence:
                self._say(sequence, Tampering.CONTENT, ATTESTED_ERASURE, NO_PAYLOAD)
        is_whole = self._first == 0 and (
            self._last is None or head is None or reached + 1 >= head.next_sequence
        )
        unsealed = max(0, reached - max(self._sealed_to, self._first - 1))
        return ChainReport(
            state=state_of(
                is_tampered=self._first_bad is not None,
                is_complete=is_whole,
                entries=self._entries,
                linkage_only=self._linkage_only,
                erased=self._erased,
                unsealed=unsealed,
            ),
            run_id=self._run_id,
            from_sequence=self._first,
            to_sequence=reached,
            entries=self._entries,
            head_hash=self._entry_hash if self._entries else None,
            unsealed=unsealed,
            erased=self._erased,
            linkage_only=self._linkage_only,
            first_bad=self._first_bad,
        )

    def _say(self, sequence: int, tampering: Tampering, expected: str, found: str) -> None:
        self._first_bad = FirstBad(self._run_id, sequence, tampering, expected, found)

    def _take_anchor(self, batch: Sequence[EntryRow]) -> int:
        """Take the hash of the entry before the range. Return how many rows that used up."""
        used = 0
        for row in batch:
            if row.sequence != self._first - 1:
                break
            self._sequence, self._entry_hash = row.sequence, row.entry_hash or ZERO_HASH
            self._prev_hash = row.prev_hash
            used += 1
        if batch:
            self._is_anchored = True  # without it the first row of the range shows a gap
        return used

    def _take_overlap(self, batch: Sequence[EntryRow]) -> int:
        """See that the last row read is still what it was, and still alone at its sequence."""
        repeated = 0
        for row in batch:
            if row.sequence != self._sequence:
                break
            repeated += 1
        if self._first_bad is not None and self._first_bad.sequence != self._sequence:
            return repeated
        if repeated > 1:
            self._say_duplicate()
        elif self._first_bad is None:
            if repeated == 0:
                self._say(self._sequence, Tampering.GAP, str(self._sequence), NO_ENTRY)
            elif batch[0].entry_hash != self._entry_hash:
                expected, found = tag(self._entry_hash), tag(batch[0].entry_hash or b"")
                self._say(self._sequence, Tampering.CONTENT, expected, found)
        return repeated

    def _say_duplicate(self) -> None:
        expected, found = str(self._sequence + 1), str(self._sequence)
        self._say(self._sequence, Tampering.DUPLICATE, expected, found)

    def _take(self, row: EntryRow) -> None:
        sequence = row.sequence
        if self._first_bad is None:
            if sequence == self._sequence + 1:
                self._judge(row)
            elif sequence > self._sequence:
                missing = self._sequence + 1
                self._say(missing, Tampering.GAP, str(missing), str(sequence))
        if sequence <= self._sequence:
            if sequence < self._sequence:
                raise ValueError("rows are not in order of sequence")
            if self._first_bad is None or self._first_bad.sequence == sequence:
                self._say_duplicate()
        self._entries += 1
        if row.is_erased:
            self._note_erasure(row)
        elif row.kind == "event-emitted" and self._unattested:
            self._note_attestation(row)
        self._sequence = sequence
        self._entry_hash = row.entry_hash or ZERO_HASH
        self._prev_hash = row.prev_hash

    def _note_erasure(self, row: EntryRow) -> None:
        self._erased += 1
        if row.hash_version == 1:
            self._linkage_only += 1
        if row.id is not None and row.id not in self._attested_ids:
            self._unattested.setdefault(row.id, row.sequence)

    def _note_attestation(self, row: EntryRow) -> None:
        text = row.payload_text
        if text is None or row.sequence <= self._sealed_to or not text.endswith(_ERASURE_END):
            return
        for entry_id in list(self._unattested):
            if text.startswith(f'{{"logEntryId":{canonical_string(entry_id)},'):
                del self._unattested[entry_id]

    def _judge(self, row: EntryRow) -> None:
        """Recompute one entry that stands where it should; the hot path."""
        (
            sequence,
            entry_id,
            kind,
            scope_text,
            actor,
            timestamp,
            payload_text,
            salt,
            content_hash,
            prev_hash,
            stored_hash,
            version,
            caused_by,
            is_erased,
        ) = row
        if None in (entry_id, kind, scope_text, timestamp, prev_hash, stored_hash, version):
            self._say(sequence, Tampering.CONTENT, A_WHOLE_ENTRY, f"no {lacking(row)}")
            return
        # What the payload says, and what is stored of it.
        if payload_text is None:
            payload_hash = content_hash if is_erased else None
        elif version == 1:
            payload_hash = sha256(payload_text.encode()).digest()
        elif salt is None:
            payload_hash = b""  # equals no stored hash, and not a missing one either
        else:
            salted = f'{{"payload":{payload_text},"payloadSalt":"{salt}"}}'
            payload_hash = sha256(salted.encode()).digest()
        if payload_hash != content_hash or is_erased or version not in (1, 2):
            self._judge_payload(row, payload_hash)
            if self._first_bad is not None:
                return
        actor_part = "" if actor is None else f'"actor":{quoted(actor)},'
        if version == 1:
            payload_part = "" if payload_text is None else f',"payload":{payload_text}'
            before = f'{{{actor_part}"id":{quoted(entry_id)},"kind":{quoted(kind)}{payload_part}'
        else:
            cause_part = "" if caused_by is None else f'"causedByLogId":{quoted(caused_by)},'
            content_part = (
                "" if content_hash is None else f'"contentHash":"sha256:{content_hash.hex()}",'
            )
            before = (
                f'{{{actor_part}{cause_part}{content_part}"hashVersion":2,'
                f'"id":{quoted(entry_id)},"kind":{quoted(kind)}'
            )
        if not (is_erased and version == 1):
            text = (
                f'{before},"prevHash":"sha256:{prev_hash.hex()}{self._run_part}{scope_text}'
                f',"sequence":{sequence},"timestamp":"{timestamp}"}}'
            )
            computed = sha256(text.encode()).digest()
            if computed != stored_hash:
                self._explain(row, before, computed)
                return
        if prev_hash != self._entry_hash:
            is_fork = sequence > 0 and prev_hash == self._prev_hash
            tampering = Tampering.FORK if is_fork else Tampering.LINK
            self._say(sequence, tampering, tag(self._entry_hash), tag(prev_hash))
        elif self._tenant_part not in scope_text:
            self._say(sequence, Tampering.SCOPE, self._tenant_part, OTHER_SCOPE)

    def _judge_payload(self, row: EntryRow, payload_hash: bytes | None) -> None:
        """Say what is wrong with what is stored of the payload, if anything is."""
        sequence, stored = row.sequence, row.content_hash
        if row.hash_version not in (1, 2):
            self._say(sequence, Tampering.CONTENT, "hash version 1 or 2", str(row.hash_version))
        elif row.is_erased:
            if row.payload_text is not None or row.payload_salt is not None:
                self._say(sequence, Tampering.CONTENT, NO_PAYLOAD, A_PAYLOAD)
            elif stored is None:
                self._say(sequence, Tampering.CONTENT, "a content hash", NO_PAYLOAD)
        else:
            expected = NO_PAYLOAD if stored is None else tag(stored)
            found = NO_PAYLOAD if payload_hash is None else tag(payload_hash)
            if payload_hash == b"":
                found = NO_SALT
            self._say(sequence, Tampering.CONTENT, expected, found)

    def _explain(self, row: EntryRow, before: str, computed: bytes) -> None:
        """The entry hash is wrong: find out whether it was moved rather than edited."""
        sequence, stored = row.sequence, row.entry_hash
        tail = f',"timestamp":"{row.timestamp}"}}'

        def begun(prev_hash: bytes, run_part: str) -> "Hash":
            text = f'{before},"prevHash":"sha256:{prev_hash.hex()}{run_part}{row.scope_text}'
            return sha256(f'{text},"sequence":'.encode())

        def is_stored(hash: "Hash", sequence: int) -> bool:
            whole = hash.copy()
            whole.update(f"{sequence}{tail}".encode())
            return whole.digest() == stored

        if is_stored(begun(self._entry_hash, self._run_part), sequence):
            self._say(sequence, Tampering.LINK, tag(self._entry_hash), tag(row.prev_hash))
            return
        as_stored = begun(row.prev_hash, self._run_part)
        for other in range(max(0, sequence - REORDER_WINDOW), sequence + REORDER_WINDOW + 1):
            if is_stored(as_stored, other):
                self._say(sequence, Tampering.REORDERED, str(sequence), str(other))
                return
        for run_id in islice(self._other_runs(), OTHER_RUNS_LOOKED_AT):
            if is_stored(begun(row.prev_hash, _run_part(run_id)), sequence):
                self._say(sequence, Tampering.SCOPE, self._run_id, ANOTHER_RUN)
                return
        self._say(sequence, Tampering.CONTENT, tag(stored), tag(computed))

    def _judge_end(self, head: HeadRow | None) -> None:
        """Compare where the rows end with where the head row says they end."""
        following = self._sequence + 1
        if not self._is_anchored:
            if head is not None and head.next_sequence >= self._first:
                missing = self._first - 1
                self._say(missing, Tampering.GAP, str(missing), NO_ENTRY)
            return
        if head is None:
            if self._sequence >= 0:
                self._say(self._sequence, Tampering.LINK, A_HEAD, NO_HEAD)
            return
        if following > head.next_sequence:
            self._say(head.next_sequence, Tampering.LINK, NO_ENTRY, AN_ENTRY)
        elif following == head.next_sequence:
            if head.head_hash != self._entry_hash:
                expected, found = tag(head.head_hash), tag(self._entry_hash)
                self._say(self._sequence, Tampering.LINK, expected, found)
            elif self._prev_hash is not None and head.prev_hash != self._prev_hash:
                # The head row hands this link on to the entry that it appends.
                expected, found = tag(head.prev_hash), tag(self._prev_hash)
                self._say(self._sequence, Tampering.LINK, expected, found)
            elif head.entry_count != head.next_sequence:
                self._say(following, Tampering.GAP, str(head.entry_count), str(following))
        elif self._last is None or following <= self._last:
            self._say(following, Tampering.GAP, str(following), NO_ENTRY)


def _run_part(run_id: str) -> str:
    return f'","runId":{canonical_string(run_id)},"scope":'
