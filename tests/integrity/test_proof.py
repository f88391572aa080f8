"""Proofs over the API: in the standard text formats, equal to an oracle's, checked by readers that share no code with it."""

import base64
import hashlib
import json
from typing import Any

import pymerkle
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import connection

from memory.integrity.leaves import hash_version_changed_text
from memory.integrity.merkle import CompactRange, is_consistent, leaf_hash
from memory.integrity.notes import NoteError, parse_checkpoint
from memory.integrity.proof_text import ProofError, check_inclusion
from memory.integrity.seal_log import NewLeaf, StoredTree
from memory.integrity.signing import signer
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, seal, writer

LARGEST = 130


@pytest.fixture
def oracle() -> pymerkle.InmemoryTree:
    return pymerkle.InmemoryTree(algorithm="sha256")


def test_stored_proofs_equal_the_oracle_for_every_size_up_to_130(
    acme: TenantKit, oracle: pymerkle.InmemoryTree
) -> None:
    texts = [hash_version_changed_text(acme.slug, n, n + 1) for n in range(LARGEST)]
    with tenant_context(acme.id), connection.cursor() as cursor:
        grown, at = CompactRange(), 0
        # In pieces of odd lengths, as seals come.
        for length in (1, 2, 3, 5, 8, 13, 21, 34, 43):
            tree = StoredTree(cursor, acme.id)
            assert tree.compact_range(at).root() == grown.root()
            tree.append(grown, [NewLeaf(text) for text in texts[at : at + length]])
            at += length
        assert at == LARGEST
        stored = StoredTree(cursor, acme.id)
        assert stored.size() == LARGEST
        for text in texts:
            oracle.append_entry(text.encode())
        for size in range(LARGEST + 1):
            assert stored.root(size) == oracle.get_root(size)
        for size in (1, 2, 3, 7, 8, 9, 33, 64, 65, 127, 128, 129, 130):
            for index in range(size):
                own, *path = oracle.prove_inclusion(index + 1, size).path
                assert own == leaf_hash(texts[index].encode())
                assert stored.prove_inclusion(index, size) == path
            for earlier in range(size + 1):
                proof = stored.prove_consistency(earlier, size)
                roots = stored.root(earlier), stored.root(size)
                assert is_consistent(earlier, size, *roots, proof)


def note_is_signed(note: str, verifier: str) -> tuple[str, int, bytes]:
    """An independent reader of a signed note: RFC-like steps, no code of the product. The head it is of."""
    name, key_hash, key = verifier.split("+", 2)
    algorithm_and_key = base64.b64decode(key)
    assert algorithm_and_key[0] == 1
    digest = hashlib.sha256(name.encode() + b"\n" + algorithm_and_key).hexdigest()
    assert digest[:8] == key_hash
    text, signatures = note.split("\n\n")
    for line in signatures.splitlines():
        dash, signer_name, encoded = line.split(" ")
        signature = base64.b64decode(encoded)
        if (dash, signer_name, signature[:4].hex()) == ("\u2014", name, key_hash):
            Ed25519PublicKey.from_public_bytes(algorithm_and_key[1:]).verify(
                signature[4:], (text + "\n").encode()
            )
            break
    else:
        raise AssertionError("not signed by this key")
    origin, size, root = text.split("\n")
    return origin, int(size), base64.b64decode(root)


def root_by_path(hash: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """RFC 6962 2.1.1 turned around, recursively: the root that a path leads to."""
    if size == 1:
        assert not path
        return hash
    split = 1
    while split * 2 < size:
        split *= 2
    *rest, sibling = path
    if index < split:
        left, right = root_by_path(hash, index, split, rest), sibling
    else:
        left, right = sibling, root_by_path(hash, index - split, size - split, rest)
    return hashlib.sha256(b"\x01" + left + right).digest()


def hashed(text: str) -> bytes:
    return hashlib.sha256(b"\x00" + text.encode()).digest()


def by_tag(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("sha256:"))


def proven_by_hand(proof: str, verifier: str) -> dict[str, Any]:
    """An independent reader of a tlog-proof. What its application data says, once everything holds."""
    head, note = proof.split("\n\n", 1)
    first, extra, index, *hashes = head.split("\n")
    assert first == "c2sp.org/tlog-proof@v1"
    said = json.loads(base64.b64decode(extra.removeprefix("extra ")))
    _, size, root = note_is_signed(note, verifier)
    path = [base64.b64decode(hash) for hash in hashes]
    place = int(index.removeprefix("index "))
    assert root_by_path(hashed(said["leaf"]), place, size, path) == root
    seal_leaf = json.loads(said["leaf"])
    if record := said.get("record"):
        bound = {
            name: record[name]
            for name in ("causedByLogId", "entryHash", "hashVersion")
            if name in record
        }
        text = json.dumps(bound, separators=(",", ":"), sort_keys=True)
        count = seal_leaf["toSequence"] - seal_leaf["fromSequence"] + 1
        record_path = [by_tag(hash) for hash in record["path"]]
        found = root_by_path(hashed(text), record["place"], count, record_path)
        assert found == by_tag(seal_leaf["recordsRoot"])
    return said


def test_a_run_and_each_of_its_entries_are_proven_in_the_standard_text(
    live_acme: TenantKit,
) -> None:
    entries = fill(live_acme)
    for run in ("b", "c", "d"):
        fill(live_acme, 2, run)
        seal(live_acme)
    reader = live_acme.client("auditor")
    size = reader.get("/v1/memory/checkpoints").json()["data"][0]["size"]
    [verifier] = reader.get(f"/v1/memory/checkpoints/{size}").json()["verifierKeys"]

    head = reader.get("/v1/memory/runs/run-1/proof").json()
    assert (head["sequence"], head["entryHash"]) == (7, "sha256:" + entries[7].entry_hash.hex())
    assert proven_by_hand(head["proof"], verifier)["leaf"] == head["leaf"]
    assert head["checkpoint"]["size"] == size
    for entry in entries:
        answer = reader.get("/v1/memory/runs/run-1/proof", {"sequence": entry.sequence}).json()
        said = proven_by_hand(answer["proof"], verifier)
        assert by_tag(said["record"]["entryHash"]) == entry.entry_hash
        assert said["record"].get("causedByLogId") == entry.caused_by
        proven = check_inclusion(answer["proof"], signer().public_keys)
        assert (proven.run_id, proven.sequence, proven.entry_hash) == (
            "run-1",
            entry.sequence,
            entry.entry_hash,
        )


def test_a_proof_that_was_touched_proves_nothing(live_acme: TenantKit) -> None:
    fill(live_acme)
    seal(live_acme)
    reader = live_acme.client("auditor")
    text = reader.get("/v1/memory/runs/run-1/proof", {"sequence": 4}).json()["proof"]
    keys = signer().public_keys
    check_inclusion(text, keys)
    lines = text.split("\n")
    extra = json.loads(base64.b64decode(lines[1].removeprefix("extra ")))
    extra["record"]["entryHash"] = "sha256:" + "0" * 64
    forged = base64.b64encode(json.dumps(extra).encode()).decode()
    broken = [
        text.replace(lines[1], f"extra {forged}"),
        text.replace("\nindex ", "\nindex 1"),
        text.replace("tlog-proof@v1", "tlog-proof@v2"),
        text.replace(lines[3], base64.b64encode(bytes(32)).decode()),
        text.replace(lines[1], "extra !"),
        text.replace("\n\nkindmem/", "\n\nkindnem/"),
        text.rstrip("\n"),
        "",
    ]
    for one in broken:
        with pytest.raises((ProofError, NoteError)):
            check_inclusion(one, keys)
    with pytest.raises(ProofError, match="known key"):
        check_inclusion(text, [bytes(32)])


def test_checkpoints_are_listed_and_each_continues_the_ones_before(live_acme: TenantKit) -> None:
    by = writer(live_acme)
    for run in range(5):
        fill(live_acme, 1, f"r{run}", by=by)
        seal(live_acme)
    reader = live_acme.client("auditor")
    first_page = reader.get("/v1/memory/checkpoints", {"limit": 3}).json()
    second_page = reader.get(
        "/v1/memory/checkpoints", {"limit": 3, "cursor": first_page["nextCursor"]}
    ).json()
    rows = first_page["data"] + second_page["data"]
    assert [row["size"] for row in rows] == sorted({row["size"] for row in rows}, reverse=True)
    assert len(rows) == 5
    assert not second_page["hasMore"]
    verifier = reader.get(f"/v1/memory/checkpoints/{rows[0]['size']}").json()["verifierKeys"][0]
    for row in rows:
        note_is_signed(row["note"], verifier)
        assert row["anchoredAt"] >= row["signedAt"][:10]
    for later in rows:
        for earlier in rows:
            path = f"/v1/memory/checkpoints/{earlier['size']}/consistency/{later['size']}"
            answer = reader.get(path)
            if earlier["size"] > later["size"]:
                assert answer.status_code == 400
                continue
            assert answer.status_code == 200, answer.content
            body = answer.json()
            hashes = [by_tag(hash) for hash in body["hashes"]]
            roots = by_tag(earlier["rootHash"]), by_tag(later["rootHash"])
            assert is_consistent(earlier["size"], later["size"], *roots, hashes)
            old, *lines = body["proof"].split("\n\n")[0].split("\n")
            assert old == f"old {earlier['size']}"
            assert [base64.b64decode(line) for line in lines if line] == hashes
            assert body["proof"].endswith("\n\n" + later["note"]) or not hashes


def test_what_is_not_there_or_not_the_callers_is_refused_alike(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    reader = live_acme.client("auditor")
    assert reader.get("/v1/memory/checkpoints").json() == {"data": [], "hasMore": False}
    unsealed = reader.get("/v1/memory/runs/run-1/proof")
    assert (unsealed.status_code, unsealed.json()["error"]["code"]) == (409, "run-not-sealed")
    seal(live_acme)
    for path in (
        "checkpoints/0",
        "checkpoints/999",
        "checkpoints/x",
        "checkpoints/1/consistency/99",
    ):
        answer = reader.get(f"/v1/memory/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "checkpoint-not-found")
    outsider = live_acme.client("agent", projects=["p2"])
    for query in ({}, {"sequence": 3}):
        hidden = outsider.get("/v1/memory/runs/run-1/proof", query)
        missing = outsider.get("/v1/memory/runs/no-such-run/proof", query)
        assert hidden.status_code == missing.status_code == 404
        assert hidden.json()["error"]["code"] == missing.json()["error"]["code"] == "log-not-found"
    fill(live_acme, 1)
    later = reader.get("/v1/memory/runs/run-1/proof", {"sequence": 8})
    assert later.json()["error"]["code"] == "run-not-sealed"
    with attacker(superuser_url) as session:
        session.execute(
            "DELETE FROM seal_leaf WHERE tenant_id = %s AND leaf_index = 0", [live_acme.id]
        )
    answers = [
        reader.get(f"/v1/memory/runs/{run}/proof") for run in ("run-1", "kindmem.governance")
    ]
    assert "log-damaged" in {one.json().get("error", {}).get("code") for one in answers}


def test_an_append_may_wait_for_its_seal_and_gets_a_receipt(live_acme: TenantKit) -> None:
    client = live_acme.client("agent", projects=["p1"])
    body = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {"n": 1}}
    answer = client.post("/v1/memory/runs/run-1/log?wait=sealed", body, Idempotency_Key="once")
    assert answer.status_code == 201
    entry = answer.json()
    receipt = entry.pop("receipt")
    assert receipt["state"] == "sealed"
    proven = check_inclusion(receipt["proof"], signer().public_keys)
    assert (proven.run_id, proven.sequence) == ("run-1", 0)
    assert "sha256:" + proven.entry_hash.hex() == entry["entryHash"]
    again = client.post("/v1/memory/runs/run-1/log?wait=sealed", body, Idempotency_Key="once")
    assert again.json() == entry  # the kept answer; its proof is asked for at the run
    assert client.post("/v1/memory/runs/run-1/log?wait=soon", body).status_code == 400
    assert "receipt" not in client.post("/v1/memory/runs/run-1/log", body).json()


def test_an_entry_that_can_not_be_sealed_now_stays_stored_and_says_so(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE checkpoint SET root_hash = sha256('x') WHERE tenant_id = %s", [live_acme.id]
        )
    client = live_acme.client("agent", projects=["p1"])
    body = {"kind": "tool-call", "scope": {"projectId": "p1"}}
    entry = client.post("/v1/memory/runs/run-1/log?wait=sealed", body).json()
    assert entry["receipt"] == {"state": "not-sealed", "reason": "seal-refused"}
    assert client.get(f"/v1/memory/log/{entry['id']}").status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n1\n",
        "a\n1\nAAAA\n\n\u2014 a AAAAAAAA\n",
        "a\n01\n" + "A" * 43 + "=\n\n\u2014 a AAAAAAAA\n",
        "a\n-1\n" + "A" * 43 + "=\n\n\u2014 a AAAAAAAA\n",
        "\n1\n" + "A" * 43 + "=\n\n\u2014 a AAAAAAAA\n",
        "a\n1\n" + "A" * 43 + "=\n\n- a AAAAAAAA\n",
        "a\n1\n" + "A" * 43 + "=\n\n\u2014 a AAAA\n",
        "a\n1\n" + "A" * 43 + "=\n\n\u2014 a AAAAAAAA",
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        parse_checkpoint(text)
