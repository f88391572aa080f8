"""Honest runs, and what an attacker with full write access to the database does to them.

The numbers are those of docs/integrity.md. `verdict` is the class and sequence that the chain with its
head row must name; None means that the rewrite is self-consistent and only seals (13 to 15, 17, and
3 for version 1), the anchor or receipts can see it. Whatever needs those is said in the note.
"""

from collections.abc import Callable
from dataclasses import dataclass

from memory.canonical import canonical
from memory.hashing import (
    ZERO_HASH,
    content_hash_v1,
    content_hash_v2,
    entry_hash_v1,
    entry_hash_v2,
)
from memory.integrity.rows import EntryRow, HeadRow, erasure_payload
from memory.integrity.states import Tampering

TENANT = "acme"
RUN = "run-1"
OTHER_RUN = "run-2"
SALT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SCOPE = canonical({"projectId": "p1", "tenantId": TENANT})
FORGED = canonical({"n": "forged"})

Run = tuple[list[EntryRow], HeadRow | None]


def hash_of(row: EntryRow, run_id: str = RUN) -> bytes:
    """Hash a row over what it now says."""
    if row.hash_version == 1:
        return entry_hash_v1(
            id=row.id,
            kind=row.kind,
            run_id=run_id,
            scope_text=row.scope_text,
            actor=row.actor,
            payload_text=row.payload_text,
            prev_hash=row.prev_hash,
            sequence=row.sequence,
            timestamp=row.timestamp,
        )
    return entry_hash_v2(
        id=row.id,
        kind=row.kind,
        run_id=run_id,
        scope_text=row.scope_text,
        actor=row.actor,
        content_hash=row.content_hash,
        caused_by=row.caused_by,
        prev_hash=row.prev_hash,
        sequence=row.sequence,
        timestamp=row.timestamp,
    )


def content_hash_of(row: EntryRow) -> bytes | None:
    if row.payload_text is None:
        return row.content_hash if row.is_erased else None
    if row.hash_version == 1:
        return content_hash_v1(row.payload_text)
    return content_hash_v2(row.payload_text, row.payload_salt or "")


def chained(rows: list[EntryRow], run_id: str = RUN, start: int = 0) -> list[EntryRow]:
    """Recompute every hash from row `start` on, as a patient attacker would."""
    done = rows[:start]
    prev_hash = done[-1].entry_hash if done else ZERO_HASH
    for row in rows[start:]:
        row = row._replace(prev_hash=prev_hash, content_hash=content_hash_of(row))
        row = row._replace(entry_hash=hash_of(row, run_id))
        done.append(row)
        prev_hash = row.entry_hash
    return done


def head_of(rows: list[EntryRow]) -> HeadRow | None:
    if not rows:
        return None
    return HeadRow(len(rows), rows[-1].entry_hash, len(rows), rows[-1].prev_hash)


def entry(sequence: int, version: int, payload: object, **changes: object) -> EntryRow:
    payload_text = None if payload is None else canonical(payload)
    row = EntryRow(
        sequence=sequence,
        id=f"le-{sequence}",
        kind="tool-result",
        scope_text=SCOPE,
        actor="tool:crm" if sequence % 3 else None,
        timestamp=f"2026-01-02T03:04:{sequence % 60:02d}.006Z",
        payload_text=payload_text,
        payload_salt=SALT if version == 2 and payload_text is not None else None,
        content_hash=None,
        prev_hash=ZERO_HASH,
        entry_hash=ZERO_HASH,
        hash_version=version,
        caused_by=f"le-{sequence - 1}" if sequence and sequence % 2 == 0 else None,
        is_erased=False,
    )
    return row._replace(**changes)  # type: ignore[arg-type]  # tests change any field


def honest_rows(version: int = 1, count: int = 8, run_id: str = RUN) -> list[EntryRow]:
    """Entries with and without payload and actor; version 0 mixes both versions."""
    rows = [
        entry(n, version or 1 + n % 2, None if n == 5 else {"n": n, "text": "caf\u00e9"})
        for n in range(count)
    ]
    return chained(rows, run_id)


def with_erasure(rows: list[EntryRow], sequence: int, *, attested: bool = True) -> list[EntryRow]:
    """Erase one payload the honest way: content goes, an attesting entry is appended."""
    erased = [
        row._replace(payload_text=None, payload_salt=None, is_erased=True)
        if row.sequence == sequence
        else row
        for row in rows
    ]
    if attested:
        word = erasure_payload(rows[sequence].id, "subject-request")
        erased.append(entry(len(rows), 1, word, kind="event-emitted", caused_by=None))
        return [*erased[:-1], *chained([*rows, erased[-1]], start=len(rows))[-1:]]
    return erased


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    make: Callable[[list[EntryRow]], Run]
    verdict: tuple[Tampering, int] | None
    """None: the chain and its head row agree with themselves."""
    verdict_v2: tuple[Tampering, int] | str | None = "same"
    note: str = ""

    def expected(self, version: int) -> tuple[Tampering, int] | None:
        if version == 2 and not isinstance(self.verdict_v2, str):
            return self.verdict_v2
        return self.verdict


def _edit(sequence: int, **changes: object) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        edited = list(rows)
        edited[sequence] = rows[sequence]._replace(**changes)  # type: ignore[arg-type]
        return edited, head_of(rows)

    return attack


def _payload_and_its_hash(rows: list[EntryRow]) -> Run:
    edited = rows[3]._replace(payload_text=FORGED)
    edited = edited._replace(content_hash=content_hash_of(edited))
    return [*rows[:3], edited, *rows[4:]], head_of(rows)


def _delete(*gone: int) -> Callable[[list[EntryRow]], Run]:
    return lambda rows: ([row for row in rows if row.sequence not in gone], head_of(rows))


def _shift_from(sequence: int) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        moved = [
            row._replace(sequence=row.sequence + 1) if row.sequence >= sequence else row
            for row in rows
        ]
        return moved, head_of(rows)

    return attack


def _swap(first: int, second: int) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        swapped = list(rows)
        swapped[first] = rows[second]._replace(sequence=first)
        swapped[second] = rows[first]._replace(sequence=second)
        return swapped, head_of(rows)

    return attack


def _second_row_at(sequence: int) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        twin = rows[sequence]._replace(id="le-twin", payload_text=FORGED)
        twin = chained([*rows[:sequence], twin], start=sequence)[-1]
        return [*rows[: sequence + 1], twin, *rows[sequence + 1 :]], head_of(rows)

    return attack


def _fork_at(sequence: int) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        fork = rows[sequence]._replace(prev_hash=rows[sequence - 1].prev_hash)
        fork = fork._replace(entry_hash=hash_of(fork))
        return [*rows[:sequence], fork, *rows[sequence + 1 :]], head_of(rows)

    return attack


def _older_over_newest(rows: list[EntryRow]) -> Run:
    return [*rows[:-1], rows[2]._replace(sequence=rows[-1].sequence)], head_of(rows)


def _cut(count: int, *, head_too: bool) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        return rows[:-count], head_of(rows[:-count] if head_too else rows)

    return attack


def _rewritten_from(sequence: int, *, head_too: bool) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        edited = list(rows)
        edited[sequence] = rows[sequence]._replace(payload_text=FORGED)
        edited = chained(edited, start=sequence)
        return edited, head_of(edited if head_too else rows)

    return attack


def _renumbered(*, rehashed: bool) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        left = [row for row in rows if row.sequence != 3]
        left = [row._replace(sequence=n) for n, row in enumerate(left)]
        if rehashed:
            left = chained(left, start=3)
        return left, head_of(left)

    return attack


def _forged_tail(*, head_too: bool) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        tail = entry(len(rows), rows[-1].hash_version, {"n": "forged"})
        longer = chained([*rows, tail], start=len(rows))
        return longer, head_of(longer if head_too else rows)

    return attack


def _relabelled_run(rows: list[EntryRow]) -> Run:
    version = rows[0].hash_version
    return (moved := honest_rows(version, run_id=OTHER_RUN)), head_of(moved)


def _relabelled_tail(rows: list[EntryRow]) -> Run:
    foreign = honest_rows(rows[0].hash_version, run_id=OTHER_RUN)
    mixed = [*rows[:6], *foreign[6:]]
    return mixed, head_of(mixed)


def _rehashed_from_other_run(rows: list[EntryRow]) -> Run:
    moved = chained(honest_rows(rows[0].hash_version, run_id=OTHER_RUN), run_id=RUN)
    return moved, head_of(moved)


def _of_other_tenant(*, rehashed_scope: bool) -> Callable[[list[EntryRow]], Run]:
    def attack(rows: list[EntryRow]) -> Run:
        scope = canonical({"projectId": "p1", "tenantId": "globex"})
        foreign = chained([row._replace(scope_text=scope) for row in rows])
        if rehashed_scope:
            foreign = chained([row._replace(scope_text=SCOPE) for row in foreign])
        return foreign, head_of(foreign)

    return attack


def _erased_without_word(rows: list[EntryRow]) -> Run:
    return with_erasure(rows, 2, attested=False), head_of(rows)


def _erased_with_the_word_of_another(rows: list[EntryRow]) -> Run:
    erased = with_erasure(rows, 2)
    erased[3] = erased[3]._replace(payload_text=None, payload_salt=None, is_erased=True)
    return erased, head_of(erased)


def _refilled_after_erasure(rows: list[EntryRow]) -> Run:
    erased = with_erasure(rows, 2)
    erased[2] = rows[2]._replace(is_erased=True)
    return erased, head_of(erased)


C = Tampering
ATTACKS = [
    Attack("1 payload edited", _edit(3, payload_text=FORGED), (C.CONTENT, 3)),
    Attack("1 payload edited with its content hash", _payload_and_its_hash, (C.CONTENT, 3)),
    Attack("1 payload removed", _edit(3, payload_text=None, payload_salt=None), (C.CONTENT, 3)),
    Attack(
        "1 payload removed with its content hash",
        _edit(3, payload_text=None, payload_salt=None, content_hash=None),
        (C.CONTENT, 3),
    ),
    Attack("1 payload added where none was", _edit(5, payload_text=FORGED), (C.CONTENT, 5)),
    Attack(
        "1 payload added with its content hash",
        lambda rows: _edit(
            5,
            payload_text=FORGED,
            payload_salt=SALT if rows[5].hash_version == 2 else None,
            content_hash=content_hash_v2(FORGED, SALT)
            if rows[5].hash_version == 2
            else content_hash_v1(FORGED),
        )(rows),
        (C.CONTENT, 5),
    ),
    Attack(
        "1 salt removed",
        _edit(3, payload_salt=None),
        None,
        verdict_v2=(C.CONTENT, 3),
        note="version 1 has no salt",
    ),
    Attack("1 payload of the first entry edited", _edit(0, payload_text=FORGED), (C.CONTENT, 0)),
    Attack("1 payload of the last entry edited", _edit(7, payload_text=FORGED), (C.CONTENT, 7)),
    Attack("1 content hash edited", _edit(3, content_hash=bytes(32)), (C.CONTENT, 3)),
    Attack("1 content hash removed", _edit(3, content_hash=None), (C.CONTENT, 3)),
    Attack("1 same value in other bytes", _edit(3, payload_text='{"n": 3}'), (C.CONTENT, 3)),
    Attack("2 id edited", _edit(4, id="le-x"), (C.CONTENT, 4)),
    Attack("2 kind edited", _edit(4, kind="user-message"), (C.CONTENT, 4)),
    Attack("2 actor edited", _edit(4, actor="user:eve"), (C.CONTENT, 4)),
    Attack("2 actor removed", _edit(4, actor=None), (C.CONTENT, 4)),
    Attack("2 actor added", _edit(3, actor="user:eve"), (C.CONTENT, 3)),
    Attack(
        "2 scope edited",
        _edit(4, scope_text=canonical({"projectId": "p2", "tenantId": TENANT})),
        (C.CONTENT, 4),
    ),
    Attack("2 timestamp edited", _edit(4, timestamp="2026-01-02T03:04:59.006Z"), (C.CONTENT, 4)),
    Attack(
        "3 causedByLogId edited",
        _edit(4, caused_by="le-0"),
        None,
        verdict_v2=(C.CONTENT, 4),
        note="version 1 does not hash it: the seal's recordsRoot does",
    ),
    Attack(
        "3 causedByLogId removed",
        _edit(4, caused_by=None),
        None,
        verdict_v2=(C.CONTENT, 4),
        note="version 1 does not hash it: the seal's recordsRoot does",
    ),
    Attack("4 entry deleted from the middle", _delete(3), (C.GAP, 3)),
    Attack("4 first entry deleted", _delete(0), (C.GAP, 0)),
    Attack("4 several entries deleted", _delete(2, 3, 5), (C.GAP, 2)),
    Attack("5 gap in sequence", _shift_from(4), (C.GAP, 4)),
    Attack("6 two neighbours swapped", _swap(3, 4), (C.REORDERED, 3)),
    Attack("6 two distant rows swapped", _swap(1, 6), (C.REORDERED, 1)),
    Attack("7 duplicate sequence", _second_row_at(3), (C.DUPLICATE, 3)),
    Attack("7 duplicate of the first", _second_row_at(0), (C.DUPLICATE, 0)),
    Attack("7 duplicate of the last", _second_row_at(7), (C.DUPLICATE, 7)),
    Attack("7 two rows with one prevHash", _fork_at(4), (C.FORK, 4)),
    Attack("8 older entry over the newest", _older_over_newest, (C.REORDERED, 7)),
    Attack("9 tail cut, rows only", _cut(2, head_too=False), (C.GAP, 6)),
    Attack(
        "10 tail cut with the head row",
        _cut(2, head_too=True),
        None,
        note="a shorter run is a run: the last seal names a head that is gone",
    ),
    Attack("11 whole run deleted, rows only", _cut(8, head_too=False), (C.GAP, 0)),
    Attack(
        "12 whole run with its head row",
        lambda rows: ([], None),
        None,
        note="nothing to verify, which is no success: the seal leaves still name the run",
    ),
    Attack("13 suffix re-hashed, head left", _rewritten_from(3, head_too=False), (C.LINK, 7)),
    Attack(
        "13 suffix re-hashed with the head row",
        _rewritten_from(3, head_too=True),
        None,
        note="self-consistent: the seal's headHash differs",
    ),
    Attack("14 deleted and renumbered", _renumbered(rehashed=False), (C.REORDERED, 3)),
    Attack(
        "14 deleted, renumbered and re-hashed",
        _renumbered(rehashed=True),
        None,
        note="self-consistent: the seal's range and headHash differ",
    ),
    Attack("15 forged tail, rows only", _forged_tail(head_too=False), (C.LINK, 8)),
    Attack(
        "15 forged tail with the head row",
        _forged_tail(head_too=True),
        None,
        note="looks like an append: an unsealed tail until a receipt or a person contests it",
    ),
    Attack("16 transplant of a run, relabelled", _relabelled_run, (C.SCOPE, 0)),
    Attack("16 transplant of a tail, relabelled", _relabelled_tail, (C.SCOPE, 6)),
    Attack(
        "16 transplant from another tenant",
        _of_other_tenant(rehashed_scope=False),
        (C.SCOPE, 0),
    ),
    Attack(
        "17 transplant of a run, re-hashed",
        _rehashed_from_other_run,
        None,
        note="self-consistent: no seal of this run names these hashes",
    ),
    Attack(
        "17 transplant from another tenant, re-hashed",
        _of_other_tenant(rehashed_scope=True),
        None,
        note="self-consistent: no seal of this tenant names these hashes",
    ),
    Attack("prevHash edited", _edit(4, prev_hash=bytes(32)), (C.LINK, 4)),
    Attack("prevHash of the first entry edited", _edit(0, prev_hash=b"\x01" * 32), (C.LINK, 0)),
    Attack("entryHash edited", _edit(4, entry_hash=bytes(32)), (C.CONTENT, 4)),
    Attack("hash version unknown", _edit(4, hash_version=3), (C.CONTENT, 4)),
    Attack("head row deleted", lambda rows: (rows, None), (C.LINK, 7)),
    Attack(
        "head row's hash edited",
        lambda rows: (rows, HeadRow(8, bytes(32), 8, rows[-1].prev_hash)),
        (C.LINK, 7),
    ),
    Attack(
        "head row's count edited",
        lambda rows: (rows, HeadRow(8, rows[-1].entry_hash, 9, rows[-1].prev_hash)),
        (C.GAP, 8),
    ),
    Attack(
        "head row's link edited",
        lambda rows: (rows, HeadRow(8, rows[-1].entry_hash, 8, bytes(32))),
        (C.LINK, 7),
    ),
    Attack("payload erased without a word", _erased_without_word, (C.CONTENT, 2)),
    Attack(
        "payload erased with the word for another", _erased_with_the_word_of_another, (C.CONTENT, 3)
    ),
    Attack("payload put back after its erasure", _refilled_after_erasure, (C.CONTENT, 2)),
]
