"""What tests of the integrity share."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from memory.actions import rotate_signing_key as rotate_module
from tests.builders import TenantKit


@pytest.fixture
def own_signing_keys(live_acme: TenantKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that the test may change, and no other tenant: other tests go on with the keys that they began with."""
    keys = Path(shutil.copy(settings.KINDMEM_STATE.signing_keys_path, tmp_path / "signing_keys"))
    monkeypatch.setattr(
        settings, "KINDMEM_STATE", replace(settings.KINDMEM_STATE, signing_keys_path=keys)
    )
    monkeypatch.setattr(rotate_module, "all_tenants", lambda: [(live_acme.id, live_acme.slug)])
