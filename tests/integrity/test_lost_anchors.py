"""An anchor file that is lost, or an older one: no tampering, and no silent healing either; an epoch says what happened."""

import io
import json
import shutil
from pathlib import Path

import pytest
from django.core.management import call_command

from memory.actions.restore_epoch import restore_epoch
from memory.errors import InvariantViolated, SealRefused
from memory.integrity.anchors import anchor_path, read_anchors
from memory.integrity.states import State
from tests.builders import TenantKit
from tests.integrity.logs import fill, seal, verified_twice
from tests.integrity.test_epochs_and_keys import copied, restored
from tests.integrity.test_forged_leaves import acts_of
from tests.integrity.test_receipts import judged
from tests.pages.people import person


def epoch(tenant: TenantKit, reason: str = "the disk of the state folder failed") -> str:
    out = io.StringIO()
    call_command("restore_epoch", tenant.slug, "--reason", reason, "--json", stdout=out)
    return str(json.loads(out.getvalue())["origin"])


@pytest.mark.parametrize("epochs_before", [0, 1, 2])
def test_a_lost_anchor_file_reads_as_unanchored_and_an_epoch_goes_on(
    epochs_before: int, live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 3)
    seal(live_acme)
    for _ in range(epochs_before):
        older = copied(superuser_url, live_acme)
        fill(live_acme, 1)
        seal(live_acme)
        restored(superuser_url, live_acme, older)
        epoch(live_acme, "a restore")
    anchor_path(live_acme.slug).unlink()

    assert verified_twice(live_acme).state is State.UNANCHORED
    code, told = judged(live_acme, "--run", "run-1")
    assert (code, told["state"]) == (15, "unanchored")
    assert "restore_epoch" in told["nextStep"]
    fill(live_acme, 2)
    for _ in range(3):
        with pytest.raises(SealRefused) as refusal:
            seal(live_acme)
    assert refusal.value.reason == "lost"
    assert not anchor_path(live_acme.slug).exists(), "no file begins anew by itself"
    assert [one["reason"] for one in acts_of(live_acme, "seal.refused")] == ["lost"]
    page = person(live_acme, "auditor").get("audit/health/").content.decode()
    assert "The anchor file is lost" in page

    assert epoch(live_acme) == f"kindmem/{live_acme.slug}/{epochs_before + 1}"

    assert verified_twice(live_acme).state is State.VERIFIED
    fill(live_acme, 1)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    lines = [json.loads(line) for line in anchor_path(live_acme.slug).read_text().splitlines()]
    assert lines[0]["reason"] == "the disk of the state folder failed"
    assert judged(live_acme)[0] in (0, 14)
    page = person(live_acme, "auditor").get("audit/health/").content.decode()
    assert "The anchor file is lost" not in page


def test_a_copy_of_the_file_that_is_put_back_needs_no_epoch(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    fill(live_acme, 3)
    seal(live_acme)
    path = anchor_path(live_acme.slug)
    kept = Path(shutil.copy(path, tmp_path / "copy"))
    path.unlink()
    fill(live_acme, 1)
    with pytest.raises(SealRefused):
        seal(live_acme)
    shutil.copy(kept, path)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    with pytest.raises(InvariantViolated):
        restore_epoch(principal=live_acme.principal("admin"), reason="nothing is lost")


def test_an_older_anchor_file_beside_a_newer_database_vouches_only_as_far_as_it_goes(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    fill(live_acme, 3)
    seal(live_acme)
    path = anchor_path(live_acme.slug)
    kept = Path(shutil.copy(path, tmp_path / "copy"))
    fill(live_acme, 3, "later")
    seal(live_acme)
    shutil.copy(kept, path)
    assert verified_twice(live_acme).state is State.VERIFIED
    assert verified_twice(live_acme, "later").state is State.UNANCHORED
    fill(live_acme, 1)
    with pytest.raises(SealRefused) as refusal:
        seal(live_acme)
    assert refusal.value.reason == "lost"
    epoch(live_acme)
    assert verified_twice(live_acme, "later").state is State.VERIFIED
    assert read_anchors(live_acme.slug).epoch == 1
