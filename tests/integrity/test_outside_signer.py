"""Checkpoints may be signed by a key service: the setting names a function, and the state folder's key signs nothing then."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection

from memory.actions.rotate_signing_key import rotate_signing_key
from memory.errors import InvariantViolated
from memory.integrity.anchors import read_anchors
from memory.integrity.notes import verifier_key
from memory.integrity.signing import Signer, SignerSettingError, chosen_signer, state_signer
from memory.integrity.states import State
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.completeness.sources import ROOT
from tests.integrity.hands import OtherSigner
from tests.integrity.logs import fill, seal, verified_twice
from tests.integrity.test_bundle import checked, exported
from tests.integrity.test_proof import note_is_signed

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def key_service() -> Signer:
    """What an installation with a key service names in KINDMEM_SIGNER."""
    return OtherSigner((KEY.public_key().public_bytes_raw(),), KEY.sign)


NO_FUNCTION = "a constant"


def test_the_key_service_signs_and_everybody_verifies_by_its_key(
    live_acme: TenantKit, settings: Any, tmp_path: Path
) -> None:
    settings.KINDMEM_SIGNER = f"{__name__}.key_service"
    fill(live_acme, 4)
    seal(live_acme)
    (anchor,) = read_anchors(live_acme.slug).checkpoints
    reader = live_acme.client("auditor")
    [head] = reader.get("/v1/memory/checkpoints").json()["data"]
    told = reader.get(f"/v1/memory/checkpoints/{head['size']}").json()
    key = verifier_key(f"kindmem/{live_acme.slug}", key_service().public_keys[0])
    assert told["verifierKeys"] == [key]
    note_is_signed(head["note"], key)
    note_is_signed(anchor.note_text, key)
    assert verified_twice(live_acme).state is State.VERIFIED
    assert checked(exported(live_acme, tmp_path))[1]["state"] == "unanchored"

    settings.KINDMEM_SIGNER = "memory.integrity.signing.state_signer"
    assert not set(state_signer().public_keys) & set(key_service().public_keys)
    assert verified_twice(live_acme).state is State.TAMPERED, (
        "the state folder's key vouches for it"
    )
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        # Closed: the worker's jobs in other tests have no business with another signer's log.
        cursor.execute("UPDATE tenant SET closed_at = now() WHERE id = %s::uuid", [live_acme.id])


def test_a_key_service_rotates_its_own_keys(settings: Any) -> None:
    settings.KINDMEM_SIGNER = f"{__name__}.key_service"
    with pytest.raises(InvariantViolated) as refused:
        rotate_signing_key()
    assert refused.value.invariant == "signer-rotates-its-own-keys"


@pytest.mark.parametrize(
    "named",
    ["no.such.module", "memory.integrity.signing.nobody", "signer", f"{__name__}.NO_FUNCTION"],
)
def test_a_setting_that_names_no_function_is_refused(named: str, settings: Any) -> None:
    settings.KINDMEM_SIGNER = named
    with pytest.raises(SignerSettingError, match=r"^KINDMEM_SIGNER: "):
        chosen_signer()


def test_nothing_starts_with_a_setting_that_names_no_function() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "witness", "--help"],
        cwd=ROOT,
        env={**os.environ, "KINDMEM_SIGNER": "no.such.module"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("KINDMEM_SIGNER: ")
    assert "Traceback" not in done.stderr
