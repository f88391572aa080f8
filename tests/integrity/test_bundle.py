"""An auditor checks a bundle on a machine that has nothing but Python; whatever was touched is named."""

import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command

from memory.api.views import integrity as views
from memory.integrity import verify_bundle
from memory.integrity.anchors import anchor_path
from memory.integrity.signing import signer
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, seal, writer

Parts = dict[str, bytes]


def exported(tenant: TenantKit, folder: Path, run: str = "run-1") -> Path:
    path = folder / f"{run}.zip"
    answer = tenant.client("auditor").post(f"/v1/memory/runs/{run}/export")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/zip"
    path.write_bytes(b"".join(answer))
    return path


def checked(path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    out, stdout = io.StringIO(), sys.stdout
    sys.stdout = out
    try:
        code = verify_bundle.main([str(path), "--json", *options])
    finally:
        sys.stdout = stdout
    return code, json.loads(out.getvalue() or "{}")


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def signed_again(parts: Parts, folder: Path, *, by: Ed25519PrivateKey | None = None) -> Path:
    """The parts as a bundle whose manifest fits them; signed again with the product's key, or with another."""
    import base64

    files = {
        name: {"sha256": verify_bundle.tag(data), "bytes": len(data)}
        for name, data in parts.items()
        if name not in ("manifest.json", "envelope.json")
    }
    manifest = {**json.loads(parts["manifest.json"]), "files": files}
    data = json.dumps(manifest).encode()
    sign, public = signer().sign, signer().public_keys[0]
    if by is not None:
        sign, public = by.sign, by.public_key().public_bytes_raw()
    import hashlib

    envelope = json.loads(parts["envelope.json"]) | {
        "signature": base64.b64encode(sign(data)).decode(),
        "publicKey": base64.b64encode(public).decode(),
        "signingKeyId": hashlib.sha256(public).hexdigest()[:16],
    }
    return written(
        {**parts, "manifest.json": data, "envelope.json": json.dumps(envelope).encode()}, folder
    )


def written(parts: Parts, folder: Path) -> Path:
    path = folder / "changed.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        for name, data in parts.items():
            bundle.writestr(name, data)
    return path


@pytest.fixture
def sealed(live_acme: TenantKit) -> TenantKit:
    fill(live_acme, 4)
    fill(live_acme, 4, by=writer(live_acme, hash_version=2))
    fill(live_acme, 2, "other")
    seal(live_acme)
    return live_acme


def test_a_bundle_is_checked_offline_by_its_own_checker_in_plain_python(
    sealed: TenantKit, tmp_path: Path
) -> None:
    path = exported(sealed, tmp_path)
    script = tmp_path / "verify_bundle.py"
    script.write_bytes(parts_of(path)["verify_bundle.py"])
    key = json.loads(parts_of(path)["manifest.json"])["verifierKeys"][0]
    anchor = shutil.copy(anchor_path(sealed.slug), tmp_path / "anchors.jsonl")

    told = subprocess.run(
        # -I -S: no site packages, no environment; what an auditor's bare machine has.
        [sys.executable, "-I", "-S", script, path, "--key", key, "--anchor", anchor],
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0, told.stdout + told.stderr
    assert "pure Python" in told.stdout
    assert "verified: Intact" in told.stdout
    for step in range(1, 9):
        if step != 7:  # nothing was erased
            assert f"\n{step}. " in "\n" + told.stdout
    code, answer = checked(path)
    assert (code, answer["state"], answer["entries"]) == (15, "unanchored", 8)
    assert checked(path, "--anchor", str(anchor), "--pure")[0] == 0


def test_a_large_bundle_is_streamed_from_its_file(
    sealed: TenantKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = checked(exported(sealed, tmp_path))
    monkeypatch.setattr("memory.api.views.integrity._ANSWERED_WHOLE_BYTES", 0)
    assert checked(exported(sealed, tmp_path)) == whole


def test_an_unsealed_tail_and_an_unsealed_run_say_so(sealed: TenantKit, tmp_path: Path) -> None:
    fill(sealed, 3)
    code, answer = checked(exported(sealed, tmp_path))
    assert (code, answer["state"], answer["unsealed"]) == (14, "verified-unsealed-tail", 3)


def line_edit(line: int, old: bytes, new: bytes) -> Callable[[Parts], None]:
    def edit(parts: Parts) -> None:
        lines = parts["entries.jsonl"].split(b"\n")
        assert old in lines[line]
        lines[line] = lines[line].replace(old, new)
        parts["entries.jsonl"] = b"\n".join(lines)

    return edit


def without_line(name: str, line: int) -> Callable[[Parts], None]:
    def edit(parts: Parts) -> None:
        lines = parts[name].split(b"\n")
        del lines[line]
        parts[name] = b"\n".join(lines)

    return edit


def note_edit(parts: Parts) -> None:
    lines = parts["checkpoint.txt"].split(b"\n")
    lines[1] = str(int(lines[1]) + 1).encode()
    parts["checkpoint.txt"] = b"\n".join(lines)


EDITS: list[tuple[str, Callable[[Parts], None], str, object]] = [
    ("payload", line_edit(3, b'"n":3', b'"n":4'), "content", 3),
    ("payload of version 2", line_edit(7, b'"n":3', b'"n":4'), "content", 7),
    ("salt", line_edit(7, b'"payloadSalt":"', b'"payloadSalt":"A'), "content", 7),
    ("actor", line_edit(2, b"agent:booker", b"agent:hooker"), "content", 2),
    ("scope", line_edit(2, b'"projectId":"p1"', b'"projectId":"p2"'), "content", 2),
    ("order", lambda parts: swap(parts, 2, 3), "gap", 2),
    ("an entry is gone", without_line("entries.jsonl", 3), "gap", 3),
    ("the last entries are gone", without_line("entries.jsonl", 7), "gap", 7),
    ("a seal is gone", without_line("seals.jsonl", 0), "content", None),
    ("checkpoint", note_edit, "checkpoint", "checkpoint.txt"),
]


def swap(parts: Parts, one: int, other: int) -> None:
    lines = parts["entries.jsonl"].split(b"\n")
    lines[one], lines[other] = lines[other], lines[one]
    parts["entries.jsonl"] = b"\n".join(lines)


def test_whatever_is_touched_is_named_also_when_the_manifest_is_signed_again(
    sealed: TenantKit, tmp_path: Path
) -> None:
    path = exported(sealed, tmp_path)
    original = parts_of(path)
    for name, edit, kind, place in EDITS:
        parts = dict(original)
        edit(parts)
        code, answer = checked(written(parts, tmp_path))
        assert (code, answer["firstBad"]["class"]) == (10, "content"), name  # a checksum
        code, answer = checked(signed_again(parts, tmp_path))
        if name == "a seal is gone":
            assert answer["state"] == "verified-unsealed-tail", name
            continue
        assert (code, answer["firstBad"]["class"], answer["firstBad"]["place"]) == (
            10,
            kind,
            place,
        ), (
            name,
            answer,
        )


def test_a_rewritten_run_does_not_fit_its_seals(
    sealed: TenantKit, tmp_path: Path, superuser_url: str
) -> None:
    from tests.integrity.test_agmi import Session

    with Session(superuser_url, sealed) as hands:
        rows = hands.edited("run-1", 3, payload_text='{"n":"forged"}')
        hands.replace("run-1", hands.rehashed("run-1", rows, 3))
    path = exported(sealed, tmp_path)
    assert json.loads(parts_of(path)["manifest.json"])["verification"]["state"] == "tampered"
    code, answer = checked(path)
    assert (code, answer["firstBad"]["class"]) == (10, "seal")


def test_an_edited_cause_does_not_fit_its_seal(
    sealed: TenantKit, tmp_path: Path, superuser_url: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET caused_by = id WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 1",
            [sealed.id],
        )
    code, answer = checked(exported(sealed, tmp_path))
    assert (code, answer["firstBad"]["class"]) == (10, "seal")


def test_another_signer_is_not_the_key_that_was_given(sealed: TenantKit, tmp_path: Path) -> None:
    path = exported(sealed, tmp_path)
    parts = parts_of(path)
    key = json.loads(parts["manifest.json"])["verifierKeys"][0]
    assert checked(path, "--key", key)[1]["state"] == "unanchored"
    forged = signed_again(parts, tmp_path, by=Ed25519PrivateKey.generate())
    assert checked(forged, "--key", key)[0] == 10
    envelope = json.loads(parts["envelope.json"])
    parts["envelope.json"] = json.dumps({**envelope, "algorithm": "rsa"}).encode()
    assert checked(written(parts, tmp_path))[0] == 2
    (tmp_path / "no.zip").write_bytes(b"PK no")
    assert checked(tmp_path / "no.zip")[0] == 2


def test_another_history_is_shown_by_the_anchor_and_a_cut_tail_by_receipts(
    sealed: TenantKit, tmp_path: Path
) -> None:
    path = exported(sealed, tmp_path)
    line = json.loads(anchor_path(sealed.slug).read_text())
    lines = line["note"].split("\n")
    lines[2] = "A" * 43 + "="
    anchor = tmp_path / "anchor"
    anchor.write_text(json.dumps({**line, "note": "\n".join(lines)}))
    code, answer = checked(path, "--anchor", str(anchor))
    assert (code, answer["firstBad"]["class"]) == (10, "anchor")
    tail = fill(sealed, 1)[0]
    receipts = tmp_path / "receipts"
    receipts.write_text(
        json.dumps(
            {
                "runId": "run-1",
                "sequence": tail.sequence,
                "entryHash": "sha256:" + tail.entry_hash.hex(),
            }
        )
    )
    code, answer = checked(path, "--receipts", str(receipts))
    assert (code, answer["firstBad"]["class"]) == (10, "gap")
    assert checked(exported(sealed, tmp_path), "--receipts", str(receipts))[0] == 14


def test_the_command_writes_the_same_and_the_export_is_logged(
    sealed: TenantKit, tmp_path: Path
) -> None:
    out = io.StringIO()
    path = tmp_path / "by-command.zip"
    call_command(
        "export_evidence", sealed.slug, "--run", "run-1", "--out", str(path), "--json", stdout=out
    )
    assert json.loads(out.getvalue())["entries"] == 8
    assert checked(path)[1]["state"] == "unanchored"
    assert parts_of(path)["entries.jsonl"] == parts_of(exported(sealed, tmp_path))["entries.jsonl"]
    acts = sealed.client("auditor").get("/v1/memory/runs/kindmem.governance/log", {"limit": 200})
    exports = [
        act["payload"]
        for act in acts.json()["data"]
        if act["payload"]["type"] == "evidence.exported"
    ]
    assert [(act["runId"], act["entries"]) for act in exports] == [("run-1", 8)] * 2


def test_only_admins_and_auditors_export(sealed: TenantKit) -> None:
    agent = sealed.client("agent", everything=True)
    assert agent.post("/v1/memory/runs/run-1/export").status_code == 403
    assert sealed.client("auditor").post("/v1/memory/runs/none/export").status_code == 404


def test_a_run_of_more_entries_than_a_request_exports_names_the_command(
    sealed: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "EXPORTED_AT_MOST", 1)
    told = sealed.client("auditor").post("/v1/memory/runs/run-1/export")
    assert (told.status_code, told.json()["error"]["code"]) == (413, "export-too-large")
    assert told.json()["error"]["details"] == {"limitEntries": 1}


def test_no_cell_of_the_reading_copy_is_a_formula(live_acme: TenantKit, tmp_path: Path) -> None:
    client = live_acme.client("agent", everything=True)
    body = {"kind": "tool-call", "scope": {}, "actor": '=HYPERLINK("http://x")', "payload": "+1"}
    assert client.post("/v1/memory/runs/run-1/log", body).status_code == 201
    text = parts_of(exported(live_acme, tmp_path))["entries.csv"].decode()
    assert "'=HYPERLINK" in text
    assert not any(
        cell.startswith(("=", "+", "@")) for cell in text.replace("\r\n", ",").split(",")
    )


def test_ed25519_in_plain_python_agrees_with_the_library() -> None:
    for number in range(8):
        key = Ed25519PrivateKey.generate()
        public, message = key.public_key().public_bytes_raw(), b"m" * number
        signature = key.sign(message)
        assert verify_bundle.ed25519_in_python(public, signature, message)
        assert not verify_bundle.ed25519_in_python(public, signature, message + b"x")
        assert not verify_bundle.ed25519_in_python(public, signature[:-1] + b"\xff", message)
        assert not verify_bundle.ed25519_in_python(public, bytes(64), message)
    # RFC 8032, 7.1, test 2.
    assert verify_bundle.ed25519_in_python(
        bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
        bytes.fromhex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
        bytes.fromhex("72"),
    )
