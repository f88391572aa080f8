"""Each of the attacks that the product promises to name, by somebody with full write access to the real database.

Both verifiers name class and place; honest runs beside them stay clean. The numbers are those of docs/integrity.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connections

from memory.canonical import canonical
from memory.integrity.receipts import Receipt, first_contradicted
from memory.integrity.rows import EntryRow
from memory.integrity.signing import signer
from memory.integrity.states import State, Tampering
from tests.builders import TenantKit, make_tenant
from tests.integrity.attacks import hash_of
from tests.integrity.hands import Copy, Hands, OtherSigner, hands_on
from tests.integrity.logs import fill, seal, writer

C = Tampering
RUN, RUN_2, OTHER = "run-1", "run-v2", "run-other"
SEALS = "kindmem.seals"
FORGED = canonical({"n": "forged"})
RUNS_SEALED_FIRST = 2


@dataclass(frozen=True)
class Ground:
    """A sealed tenant, a second one, a copy of the first as it was one seal earlier, and an unsealed tail's receipts."""

    tenant: TenantKit
    stranger: TenantKit
    older: Copy
    receipts: list[Receipt]
    url: str


@pytest.fixture(scope="module")
def ground(
    django_db_setup: None, django_db_blocker: pytest.FixtureRequest, superuser_url: str
) -> Iterator[Ground]:
    with django_db_blocker.unblock():  # type: ignore[attr-defined]  # pytest-django's blocker
        tenant, stranger = make_tenant(), make_tenant()
        fill(stranger, 8, RUN)
        by, by_2 = writer(tenant), writer(tenant, hash_version=2)
        fill(tenant, 8, RUN, by=by)
        fill(tenant, 8, OTHER, by=by)
        seal(tenant)
        with hands_on(superuser_url, tenant) as hands:
            older = hands.copy()
        fill(tenant, 8, RUN_2, by=by_2)
        seal(tenant)
        tail = fill(tenant, 2, "run-tail", by=by)
        receipts = [Receipt(one.run_id, one.sequence, one.entry_hash) for one in tail]
        yield Ground(tenant, stranger, older, receipts, superuser_url)
        connections.close_all()


Act = Callable[[Hands, Ground], None]


@dataclass(frozen=True)
class Attack:
    name: str
    act: Act
    tampering: Tampering
    sequence: int
    run: str = RUN
    where: str | None = None
    """The run that the report names; the one that is verified, where not said."""


def edit(run: str, sequence: int, statement: str) -> Act:
    def act(hands: Hands, ground: Ground) -> None:
        touched = hands.do(
            f"UPDATE log_entry SET {statement} WHERE tenant_id = %(t)s AND run_id = %(r)s AND sequence = %(s)s",
            r=run,
            s=sequence,
            forged=FORGED,
        )
        assert touched == 1

    return act


def delete(statement: str) -> Act:
    def act(hands: Hands, ground: Ground) -> None:
        assert hands.do(f"DELETE FROM {statement}") > 0

    return act


def rewritten(change: Callable[[Hands, Ground], list[EntryRow]], start: int) -> Act:
    """Rows changed, every later hash done again and the head row moved."""

    def act(hands: Hands, ground: Ground) -> None:
        hands.replace(RUN, hands.rehashed(RUN, change(hands, ground), start))

    return act


def swapped(hands: Hands, ground: Ground) -> None:
    rows = hands.rows(RUN)
    rows[3], rows[4] = rows[4]._replace(sequence=3), rows[3]._replace(sequence=4)
    hands.replace(RUN, rows, head_too=False)


def duplicated(hands: Hands, ground: Ground) -> None:
    rows = hands.rows(RUN)
    twin = hands.rehashed(RUN, [*rows[:3], rows[3]._replace(payload_text=FORGED, id="twin")], 3)[-1]
    hands.replace(RUN, [*rows, twin], head_too=False)


def forked(hands: Hands, ground: Ground) -> None:
    rows = hands.rows(RUN)
    fork = rows[4]._replace(prev_hash=rows[3].prev_hash)
    rows[4] = fork._replace(entry_hash=hash_of(fork, RUN))
    hands.replace(RUN, rows, head_too=False)


def older_over_newest(hands: Hands, ground: Ground) -> None:
    rows = hands.rows(RUN)
    hands.replace(RUN, [*rows[:-1], rows[2]._replace(sequence=7)], head_too=False)


def shifted(hands: Hands, ground: Ground) -> None:
    rows = hands.rows(RUN)
    moved = [row._replace(sequence=row.sequence + 1) if row.sequence >= 4 else row for row in rows]
    hands.put(RUN, moved)


def cut_with_head(hands: Hands, ground: Ground) -> None:
    hands.replace(RUN, hands.rows(RUN)[:-2])


def run_with_head(hands: Hands, ground: Ground) -> None:
    hands.replace(RUN, [])


def forged_tail(*, head_too: bool) -> Act:
    """The last two entries are others; or one more is there than the head row knows."""

    def act(hands: Hands, ground: Ground) -> None:
        rows = hands.rows(RUN)
        forged = [row._replace(payload_text=FORGED, id=f"forged-{row.id}") for row in rows[6:]]
        if head_too:
            hands.replace(RUN, hands.rehashed(RUN, [*rows[:6], *forged], 6))
        else:
            hands.put(RUN, hands.rehashed(RUN, [*rows, forged[0]], 8))

    return act


def transplanted(hands: Hands, ground: Ground) -> None:
    """Another run's rows, relabelled only."""
    hands.replace(RUN, hands.rows(OTHER))


def transplanted_from_stranger(hands: Hands, ground: Ground) -> None:
    hands.do("DELETE FROM log_entry WHERE tenant_id = %(t)s AND run_id = %(r)s", r=RUN)
    hands.do(
        "UPDATE log_entry SET tenant_id = %(t)s WHERE tenant_id = %(s)s AND run_id = %(r)s",
        s=ground.stranger.id,
        r=RUN,
    )
    hands.replace(RUN, hands.rows(RUN))


def other_runs_rows(hands: Hands, ground: Ground) -> list[EntryRow]:
    return hands.rows(OTHER)


def strangers_rows(hands: Hands, ground: Ground) -> list[EntryRow]:
    transplanted_from_stranger(hands, ground)
    scope = canonical({"projectId": "p1", "tenantId": ground.tenant.slug})
    return [row._replace(scope_text=scope) for row in hands.rows(RUN)]


def with_its_seals(hands: Hands, ground: Ground) -> None:
    run_with_head(hands, ground)
    assert hands.do("DELETE FROM seal_leaf WHERE tenant_id = %(t)s AND run_id = %(r)s", r=RUN) > 0


def with_its_seals_closed_up(hands: Hands, ground: Ground) -> None:
    """The same, and the leaves that are left moved up."""
    with_its_seals(hands, ground)
    hands.cursor.execute("ALTER TABLE seal_leaf DROP CONSTRAINT seal_leaf_pkey CASCADE")
    hands.do(
        "UPDATE seal_leaf l SET leaf_index = n.place FROM (SELECT leaf_index, row_number() OVER (ORDER BY leaf_index) - 1"
        " AS place FROM seal_leaf WHERE tenant_id = %(t)s) n WHERE l.tenant_id = %(t)s AND l.leaf_index = n.leaf_index"
    )


def everything(by: str) -> Act:
    """Every run and every seal rewritten; signed with the product's own key or with another."""

    def act(hands: Hands, ground: Ground) -> None:
        hands.replace(RUN, hands.rehashed(RUN, hands.edited(RUN, 3, payload_text=FORGED), 3))
        if by == "the key":
            hands.seal_anew(signer())
        else:
            key = Ed25519PrivateKey.generate()
            hands.seal_anew(OtherSigner((key.public_key().public_bytes_raw(),), key.sign))

    return act


def older_backup(hands: Hands, ground: Ground) -> None:
    hands.restore(ground.older)


ATTACKS = [
    Attack("1 payload edited", edit(RUN, 3, "payload_text = %(forged)s"), C.CONTENT, 3),
    Attack("1 payload edited, version 2", edit(RUN_2, 3, "payload_text = %(forged)s"), C.CONTENT, 3, RUN_2),
    Attack("1 payload and its hash edited", edit(RUN, 3,
        "payload_text = %(forged)s, content_hash = sha256(convert_to(%(forged)s, 'UTF8'))"), C.CONTENT, 3),
    Attack("2 id edited", edit(RUN, 4, "id = 'x'"), C.CONTENT, 4),
    Attack("2 kind edited", edit(RUN, 4, "kind = 'retrieval'"), C.CONTENT, 4),
    Attack("2 actor edited", edit(RUN, 4, "actor = 'user:eve'"), C.CONTENT, 4),
    Attack("2 scope edited", edit(RUN, 4, "scope_text = replace(scope_text, 'p1', 'p2')"), C.CONTENT, 4),
    Attack("2 timestamp edited", edit(RUN, 4, "recorded_at = recorded_at + interval '1 s'"), C.CONTENT, 4),
    Attack("3 cause edited", edit(RUN, 4, "caused_by = id"), C.SEAL, 4),
    Attack("3 cause removed", edit(RUN, 4, "caused_by = NULL"), C.SEAL, 4),
    Attack("3 cause added", edit(RUN, 3, "caused_by = id"), C.SEAL, 3),
    Attack("3 cause edited, version 2", edit(RUN_2, 4, "caused_by = id"), C.CONTENT, 4, RUN_2),
    Attack("4 entry deleted from the middle",
        delete("log_entry WHERE tenant_id = %(t)s AND run_id = 'run-1' AND sequence = 3"), C.GAP, 3),
    Attack("5 gap in sequence", shifted, C.GAP, 4),
    Attack("6 two rows swapped", swapped, C.REORDERED, 3),
    Attack("7 duplicate sequence", duplicated, C.DUPLICATE, 3),
    Attack("7 two rows with one prevHash", forked, C.FORK, 4),
    Attack("8 older entry over the newest", older_over_newest, C.REORDERED, 7),
    Attack("9 tail cut, rows only",
        delete("log_entry WHERE tenant_id = %(t)s AND run_id = 'run-1' AND sequence > 5"), C.GAP, 6),
    Attack("10 tail cut with the head row", cut_with_head, C.SEAL, 6),
    Attack("11 whole run deleted, rows only", delete("log_entry WHERE tenant_id = %(t)s AND run_id = 'run-1'"), C.GAP, 0),
    Attack("12 whole run with its head row", run_with_head, C.SEAL, 0),
    Attack("13 edit with the suffix re-hashed",
        rewritten(lambda h, g: h.edited(RUN, 3, payload_text=FORGED), 3), C.SEAL, 3),
    Attack("13 edit of the first entry, all re-hashed",
        rewritten(lambda h, g: h.edited(RUN, 0, actor="user:eve"), 0), C.SEAL, 0),
    Attack("14 deleted, renumbered, re-hashed",
        rewritten(lambda h, g: [row for row in h.rows(RUN) if row.sequence != 3], 3), C.SEAL, 3),
    Attack("15 forged tail in the place of the true one", forged_tail(head_too=True), C.SEAL, 6),
    Attack("15 forged tail past the head row", forged_tail(head_too=False), C.LINK, 8),
    Attack("16 transplant from another run, relabelled", transplanted, C.SCOPE, 0),
    Attack("16 transplant from another tenant, relabelled", transplanted_from_stranger, C.SCOPE, 0),
    Attack("17 transplant from another run, re-hashed", rewritten(other_runs_rows, 0), C.SEAL, 0),
    Attack("17 transplant from another tenant, re-hashed", rewritten(strangers_rows, 0), C.SEAL, 0),
    Attack("18 run, head and seals deleted", with_its_seals, C.CHECKPOINT, 1, where=SEALS),
    Attack("18 the same, leaves moved up", with_its_seals_closed_up, C.CHECKPOINT, 0, where=SEALS),
    Attack("19 everything rewritten without the key", everything("another key"), C.CHECKPOINT, 0, where=SEALS),
    Attack("20 everything rewritten with the key", everything("the key"), C.ANCHOR, 0, where=SEALS),
    Attack("21 older full backup restored", older_backup, C.ANCHOR, RUNS_SEALED_FIRST, where=SEALS),
]  # fmt: skip


def place_of_leaf(hands: Hands, attack: Attack, ground: Ground) -> int:
    """Where the log of seals is named bad: by what was sealed when, which the governance run shifts."""
    if attack.name.startswith("21"):
        return len(ground.older["seal_leaf"][1])
    if attack.name.startswith("18"):
        hands.do(
            "SELECT min(leaf_index) FROM seal_leaf WHERE tenant_id = %(t)s AND run_id = %(r)s",
            r=RUN,
        )
        return int(hands.cursor.fetchone()[0])  # type: ignore[index]  # an aggregate has a row
    return attack.sequence


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_on_the_database_is_named_with_class_and_place(
    attack: Attack, ground: Ground
) -> None:
    with hands_on(ground.url, ground.tenant) as hands:
        assert hands.report(attack.run).state is State.VERIFIED
        place = place_of_leaf(hands, attack, ground)
        attack.act(hands, ground)
        report = hands.report(attack.run)
        bad = report.first_bad
        assert report.state is State.TAMPERED
        assert bad is not None
        assert (bad.tampering, bad.run_id, bad.sequence) == (
            attack.tampering,
            attack.where or attack.run,
            place,
        )
        if attack.where is None:
            # Nothing else is accused.
            assert hands.report(OTHER).state is State.VERIFIED


def test_22_an_unsealed_tail_cut_with_its_head_row_is_shown_by_receipts(ground: Ground) -> None:
    with hands_on(ground.url, ground.tenant) as hands:
        assert hands.report("run-tail").state is State.VERIFIED_UNSEALED_TAIL
        assert not first_contradicted(hands.cursor, ground.tenant.id, ground.receipts)
        hands.replace("run-tail", hands.rows("run-tail")[:1])
        bad = first_contradicted(hands.cursor, ground.tenant.id, ground.receipts)["run-tail"]
        assert (bad.tampering, bad.sequence) == (C.GAP, 1)
        forged = hands.rehashed("run-tail", hands.edited("run-tail", 0, payload_text=FORGED))
        hands.replace("run-tail", forged)
        bad = first_contradicted(hands.cursor, ground.tenant.id, ground.receipts)["run-tail"]
        assert (bad.tampering, bad.sequence) == (C.CONTENT, 0)


def test_an_honest_tenant_stays_clean_whatever_was_sealed_when(ground: Ground) -> None:
    with hands_on(ground.url, ground.tenant) as hands:
        assert hands.sealed_log().first_bad is None
        for run in (RUN, RUN_2, OTHER):
            report = hands.report(run)
            assert (report.state, report.first_bad) == (State.VERIFIED, None)


HEAD_COLUMNS = {
    "next_sequence": "next_sequence + 1",
    "head_hash": "sha256(head_hash)",
    "prev_hash": "sha256(prev_hash)",
    "entry_count": "entry_count + 1",
}
ENTRY_COLUMNS = {
    "run_id": "'run-nowhere'",
    "sequence": "sequence + 100",
    "id": "id || 'x'",
    "kind": "'retrieval'",
    "scope_text": "replace(scope_text, 'p1', 'p2')",
    "actor": "coalesce(actor || 'x', 'x')",
    "recorded_at": "recorded_at + interval '1 ms'",
    "payload_text": "'{}'",
    "content_hash": "sha256(coalesce(content_hash, ''))",
    "prev_hash": "sha256(prev_hash)",
    "entry_hash": "sha256(entry_hash)",
    "hash_version": "3 - hash_version",
    "caused_by": "coalesce(caused_by || 'x', 'x')",
    "payload_erased_at": "now()",
    "tenant_id": "gen_random_uuid()",
}
OUTSIDE_THE_HASH = {
    "writer": "who wrote is kept for people and lists; it is not evidence",
    "writer_role": "as writer",
    "payload_salt": "version 1 has none; of version 2 it is changed below",
}
LEAF_COLUMNS = {
    "leaf_index": "leaf_index + 100",
    "leaf_text": "replace(leaf_text, 'run', 'fun')",
    "leaf_hash": "sha256(leaf_hash)",
    "node_hashes": "sha256(node_hashes)",
    "record_hashes": "sha256(record_hashes) || substr(record_hashes, 33)",
    "tenant_id": "gen_random_uuid()",
}
CHECKPOINT_COLUMNS = {
    "size": "size + 100",
    "origin": "origin || 'x'",
    "root_hash": "sha256(root_hash)",
    "note_text": "replace(note_text, 'kindmem', 'kindnem')",
}


def generated_of(hands: Hands, table: str) -> set[str]:
    hands.cursor.execute(
        "SELECT attname, attgenerated <> '' FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        " AND NOT attisdropped",
        [table],
    )
    columns = dict(hands.cursor.fetchall())
    return {name for name, is_generated in columns.items() if not is_generated}


def test_every_column_of_the_log_matters(ground: Ground) -> None:
    with hands_on(ground.url, ground.tenant) as hands:
        columns = generated_of(hands, "log_entry")
        assert columns == ENTRY_COLUMNS.keys() | OUTSIDE_THE_HASH.keys()
        changes = [
            (
                RUN,
                f"UPDATE log_entry SET {name} = {value} WHERE tenant_id = %(t)s AND run_id = %(r)s AND sequence = 4",
            )
            for name, value in ENTRY_COLUMNS.items()
        ]
        changes += [
            (
                RUN,
                f"UPDATE run_head SET {name} = {value} WHERE tenant_id = %(t)s AND run_id = %(r)s",
            )
            for name, value in HEAD_COLUMNS.items()
        ]
        changes.append(
            (
                RUN_2,
                "UPDATE log_entry SET payload_salt = 'x' WHERE tenant_id = %(t)s AND run_id = %(r)s AND sequence = 4",
            )
        )
        missed = [change for run, change in changes if not is_noticed(hands, run, change)]
        assert not missed


def test_every_column_of_the_seals_matters(ground: Ground) -> None:
    with hands_on(ground.url, ground.tenant) as hands:
        hands.cursor.execute(
            "ALTER TABLE seal_leaf DROP CONSTRAINT seal_leaf_hash_is_of_text, DROP CONSTRAINT seal_leaf_pkey CASCADE"
        )
        hands.cursor.execute(
            "ALTER TABLE checkpoint DROP CONSTRAINT checkpoint_last_leaf_is_of_size"
        )
        assert generated_of(hands, "seal_leaf") == LEAF_COLUMNS.keys() | {"appended_at"}
        assert generated_of(hands, "checkpoint") == CHECKPOINT_COLUMNS.keys() | {
            "tenant_id",
            "signed_at",
            "last_leaf",
        }
        changes = [
            f"UPDATE seal_leaf SET {name} = {value} WHERE tenant_id = %(t)s AND run_id = %(r)s"
            for name, value in LEAF_COLUMNS.items()
        ]
        changes += [
            f"UPDATE checkpoint SET {name} = {value} WHERE tenant_id = %(t)s"
            for name, value in CHECKPOINT_COLUMNS.items()
        ]
        for column in ("run_id", "leaf_type", "from_sequence", "to_sequence"):
            hands.cursor.execute(f"ALTER TABLE seal_leaf ALTER COLUMN {column} DROP EXPRESSION")
            value = "'x'" if column in ("run_id", "leaf_type") else f"{column} + 1"
            changes.append(
                f"UPDATE seal_leaf SET {column} = {value} WHERE tenant_id = %(t)s AND run_id = %(r)s"
            )
        hands.cursor.execute(
            "ALTER TABLE seal_leaf DROP CONSTRAINT seal_leaf_type_is_known,"
            " DROP CONSTRAINT seal_leaf_of_seal_has_range"
        )
        missed = [change for change in changes if not is_noticed(hands, RUN, change)]
        assert not missed


def is_noticed(hands: Hands, run: str, change: str) -> bool:
    """Whether a change leaves the run otherwise than verified; it is taken back."""
    hands.cursor.execute("SAVEPOINT one")
    assert hands.do(change, r=run) > 0
    report = hands.report(run)
    hands.cursor.execute("ROLLBACK TO SAVEPOINT one")
    return report.state is State.TAMPERED
