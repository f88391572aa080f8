"""What a bundle's manifest and envelope say: what was asked for, how much it is, whole, with every file's checksum, by whom."""

import base64
import csv
import hashlib
import io
import json
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from memory.integrity.signing import signer
from tests.builders import TenantKit
from tests.integrity.logs import fill, seal
from tests.integrity.test_bundle import checked, exported, parts_of, written


def test_the_manifest_names_what_is_in_the_bundle_and_that_nothing_was_left_out(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    stored = fill(live_acme, 5)
    seal(live_acme)
    parts = parts_of(exported(live_acme, tmp_path))
    manifest = json.loads(parts["manifest.json"])
    assert manifest["filter"] == {"runId": "run-1"}
    assert manifest["range"] == {"from": 0, "to": 4}
    assert (manifest["tenantId"], manifest["runId"]) == (live_acme.slug, "run-1")
    assert (manifest["entries"], manifest["truncated"]) == (5, False)
    assert manifest["headHash"] == "sha256:" + stored[-1].entry_hash.hex()
    assert manifest["verification"]["state"] == "verified"
    assert manifest["exportedBy"].startswith("service:")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", manifest["exportedAt"])
    sums = {
        name: {"sha256": "sha256:" + hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in parts.items()
        if name not in ("manifest.json", "envelope.json")
    }
    assert manifest["files"] == sums
    lines = parts["entries.jsonl"].decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [one.id for one in stored]
    rows = list(csv.DictReader(io.StringIO(parts["entries.csv"].decode("utf-8-sig"))))
    assert len(rows) == 5


def test_the_envelope_signs_the_exact_bytes_of_the_manifest(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    fill(live_acme, 2)
    seal(live_acme)
    parts = parts_of(exported(live_acme, tmp_path))
    envelope = json.loads(parts["envelope.json"])
    assert set(envelope) == {
        *("bundle", "bundleSchemaVersion", "algorithm", "signingKeyId", "signature"),
        *("publicKey", "canonicalization", "exportedAt"),
    }
    assert (envelope["algorithm"], envelope["canonicalization"]) == ("ed25519", "sorted-key-json")
    public_key = base64.b64decode(envelope["publicKey"])
    assert public_key == signer().public_keys[0]
    Ed25519PublicKey.from_public_bytes(public_key).verify(
        base64.b64decode(envelope["signature"]), parts["manifest.json"]
    )
    assert envelope["exportedAt"] == json.loads(parts["manifest.json"])["exportedAt"]

    # The same JSON, written another way, is not what was signed.
    spaced = json.dumps(json.loads(parts["manifest.json"]), indent=1).encode()
    code, answer = checked(written({**parts, "manifest.json": spaced}, tmp_path))
    assert (code, answer["state"]) == (10, "tampered")


def test_the_page_in_the_bundle_says_of_every_file_what_it_is_and_what_is_not_proven(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    fill(live_acme, 2)
    seal(live_acme)
    parts = parts_of(exported(live_acme, tmp_path))
    page = parts["README.md"].decode()
    assert [name for name in parts if f"`{name}`" not in page and name != "README.md"] == []
    proves, does_not = page.split("## What it proves")[1].split("## What it does not prove")
    assert proves.count("\n- ") >= 3
    assert "was true" in does_not or "is true" in does_not
    assert "unsealed" in does_not
