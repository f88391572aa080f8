"""What moved is sealed, signed and anchored; what doesn't verify never is."""

import json
from typing import Any

import pytest
from django.db import connection

from memory.errors import SealRefused
from memory.hashing import ZERO_HASH
from memory.integrity import sealing
from memory.integrity.anchors import anchor_path, read_anchors
from memory.integrity.checkpoints import stored_checkpoints
from memory.integrity.leaves import MOST_SEALED
from memory.integrity.merkle import root_of
from memory.integrity.notes import parse_checkpoint, signers_of
from memory.integrity.sealing import RunSealer
from memory.integrity.signing import signer
from memory.integrity.states import State, Tampering
from memory.tenancy import tenant_context
from tests.at_once import at_once
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, leaves, seal, verified_twice, writer


def test_a_sealed_run_is_verified_and_later_entries_are_an_unsealed_tail(
    live_acme: TenantKit,
) -> None:
    entries = fill(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED_UNSEALED_TAIL

    sealed = seal(live_acme)

    report = verified_twice(live_acme)
    assert (report.state, report.unsealed) == (State.VERIFIED, 0)
    assert report.checkpoint is not None
    assert report.checkpoint["size"] == sealed.size
    assert report.checkpoint["anchoredAt"]
    fill(live_acme, 3)
    tail = verified_twice(live_acme)
    assert (tail.state, tail.unsealed) == (State.VERIFIED_UNSEALED_TAIL, 3)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    first, *_ = (leaf for leaf in leaves(live_acme) if leaf["runId"] == "run-1")
    assert first["toSequence"] == 7
    assert first["headHash"] == "sha256:" + entries[7].entry_hash.hex()


def test_sealing_again_without_news_changes_nothing(live_acme: TenantKit) -> None:
    fill(live_acme)
    first = seal(live_acme)
    again = seal(live_acme)
    assert (again.size, again.leaves, again.entries) == (first.size, 0, 0)
    assert len(read_anchors(live_acme.slug).checkpoints) == 1


def test_the_checkpoint_is_signed_over_the_root_of_all_leaves(live_acme: TenantKit) -> None:
    for run in ("a", "b", "c"):
        fill(live_acme, 2, run)
        seal(live_acme)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        rows = stored_checkpoints(cursor, live_acme.id)
        cursor.execute(
            "SELECT leaf_text FROM seal_leaf WHERE tenant_id = %s::uuid ORDER BY leaf_index",
            [live_acme.id],
        )
        texts = [text.encode() for (text,) in cursor.fetchall()]
    keys = signer().public_keys
    for row in rows:
        note = parse_checkpoint(row.note_text)
        assert note.root_hash == row.root_hash == root_of(texts[: row.size])
        assert signers_of(note, keys) == [keys[0]]
        assert note.origin == f"kindmem/{live_acme.slug}"
    assert [one.size for one in read_anchors(live_acme.slug).checkpoints] == sorted(
        row.size for row in rows
    )


def test_a_long_run_is_sealed_in_pieces_that_join(live_acme: TenantKit) -> None:
    by = writer(live_acme)
    for _ in range(3):
        fill(live_acme, 900, by=by)
    assert seal(live_acme).entries >= 2700
    ranges = [
        (leaf["fromSequence"], leaf["toSequence"])
        for leaf in leaves(live_acme)
        if leaf["runId"] == "run-1"
    ]
    assert ranges == [(0, MOST_SEALED - 1), (MOST_SEALED, 2 * MOST_SEALED - 1), (2000, 2699)]
    assert verified_twice(live_acme).state is State.VERIFIED
    assert verified_twice(live_acme, first=1500, last=2100).state is State.NOT_COMPLETE


def test_a_run_that_does_not_verify_is_never_sealed_and_alarms_once(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    fill(live_acme, 4, "other")
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET actor = 'user:eve' WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 4",
            [live_acme.id],
        )
    sealed = seal(live_acme)
    [bad] = sealed.refused
    assert (bad.run_id, bad.sequence, bad.tampering) == ("run-1", 4, Tampering.CONTENT)
    assert {leaf["runId"] for leaf in leaves(live_acme)} >= {"other"}
    assert "run-1" not in {leaf["runId"] for leaf in leaves(live_acme)}
    seal(live_acme)
    seal(live_acme)
    acts = live_acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    refusals = [act["payload"] for act in acts if act["payload"]["type"] == "seal.refused"]
    assert [act["firstBad"] for act in refusals] == [{"class": "content", "sequence": 4}]
    listed = live_acme.client("auditor").get("/v1/memory/runs", {"status": "tampered"}).json()
    assert [run["runId"] for run in listed["data"]] == ["run-1"]


def test_a_rewritten_prefix_is_not_sealed_over(live_acme: TenantKit, superuser_url: str) -> None:
    entries = fill(live_acme)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET entry_hash = sha256('x') WHERE tenant_id = %s AND id = %s",
            [live_acme.id, entries[7].id],
        )
        session.execute(
            "UPDATE run_head SET head_hash = sha256('x') WHERE tenant_id = %s AND run_id = 'run-1'",
            [live_acme.id],
        )
    fill(live_acme, 2)
    [bad] = seal(live_acme).refused
    assert (bad.sequence, bad.tampering) == (7, Tampering.SEAL)


def test_forged_leaves_of_an_interrupted_seal_are_not_signed(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    size = seal(live_acme).size
    forged = json.dumps({"type": "erasure", "runId": "run-1", "logEntryId": "x"})
    with attacker(superuser_url) as session:
        session.execute(
            "INSERT INTO seal_leaf (tenant_id, leaf_index, leaf_text, leaf_hash, node_hashes) VALUES"
            " (%s, %s, %s, sha256('\\x00'::bytea || convert_to(%s, 'UTF8')), '')",
            [live_acme.id, size, forged, forged],
        )
    with pytest.raises(SealRefused) as refusal:
        seal(live_acme)
    assert refusal.value.reason in ("leaf", "checkpoint")
    assert read_anchors(live_acme.slug).last.size == size  # type: ignore[union-attr]  # sealed above


def test_a_log_that_is_not_what_was_anchored_is_not_signed(live_acme: TenantKit) -> None:
    fill(live_acme)
    seal(live_acme)
    path = anchor_path(live_acme.slug)
    line = json.loads(path.read_text())
    line["note"] = line["note"].replace("\n" + line["note"].split("\n")[2], "\n" + "A" * 43 + "=")
    path.write_text(json.dumps(line) + "\n")
    fill(live_acme, 1)
    with pytest.raises(SealRefused) as refusal:
        seal(live_acme)
    assert refusal.value.reason == "anchor"


@pytest.mark.races
def test_sealers_that_meet_make_one_log(live_acme: TenantKit) -> None:
    for run in range(4):
        fill(live_acme, 3, f"r{run}")

    def work(number: int) -> int:
        fill(live_acme, 1, f"late-{number}")
        return seal(live_acme).size

    results = at_once(4, work)
    assert all(isinstance(size, int) for size in results), results
    seal(live_acme)
    for run in range(4):
        assert verified_twice(live_acme, f"r{run}").state is State.VERIFIED
        assert verified_twice(live_acme, f"late-{run}").state is State.VERIFIED
    sizes = [one.size for one in read_anchors(live_acme.slug).checkpoints]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("version", [1, 2])
def test_a_span_that_is_told_at_once_is_sealed_as_one_that_is_judged_entry_by_entry(
    version: int, live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        fill(live_acme, 8, by=writer(live_acme, hash_version=version))

    def made() -> list[tuple[str, bytes | None]]:
        with tenant_context(live_acme.id), connection.cursor() as cursor:
            sealer = RunSealer(cursor, live_acme.id, live_acme.slug, "run-1")
            spans = [sealer.leaves_over(0, 23, -1, ZERO_HASH, most=5)]
            spans.append(sealer.leaves_over(3, 9, 2, _hash_of(cursor, live_acme, 2)))
        return [(leaf.text, leaf.record_hashes) for leaves, _ in spans for leaf in leaves]

    at_once = made()
    monkeypatch.setattr(sealing, "CLEAN_SEAL", "SELECT 1 WHERE false")
    assert made() == at_once
    assert len(at_once) == 6
    monkeypatch.undo()
    monkeypatch.setattr(sealing, "_SEAL", "no statement: the first one is enough")
    assert made() == at_once


def _hash_of(cursor: Any, tenant: TenantKit, sequence: int) -> bytes:
    cursor.execute(
        "SELECT entry_hash FROM log_entry WHERE tenant_id = %s::uuid AND run_id = 'run-1' AND sequence = %s",
        [tenant.id, sequence],
    )
    return bytes(cursor.fetchone()[0])
