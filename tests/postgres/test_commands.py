"""Operator commands bring the database they need, and `doctor` names what is wrong."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kindmem.management.commands.doctor import Finding, examine
from kindmem.postgres.cluster import Cluster
from kindmem.state import load_or_create
from memory.integrity.anchors import writing_anchors
from tests.postgres.test_up import environment, manage


def test_a_command_on_a_new_folder_makes_what_it_needs_and_stops_the_database_after_it(
    worker_folder: Path, programs: str
) -> None:
    home = worker_folder / "commanded"
    told = subprocess.run(
        manage("create_tenant", "acme", "--data-dir", str(home)),
        env=environment(worker_folder / "commanded", programs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "acme" in told.stdout
    assert (worker_folder / "commanded-state" / "fingerprint_key").is_file()
    assert not Cluster(home).is_running()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["doctor", "--data-dir"], "--data-dir needs a path"),
        (["showmigrations", "--data-dir", "/etc/hostname"], "is not a folder"),
    ],
)
def test_what_stands_in_the_way_of_a_command_is_one_sentence(
    programs: str, tmp_path: Path, words: list[str], said: str
) -> None:
    told = subprocess.run(
        manage(*words),
        env=environment(tmp_path / "data", programs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def wrong(findings: list[Finding]) -> dict[str, str]:
    return {found.check: found.message for found in findings if not found.is_ok}


def test_doctor_names_keys_that_others_may_read(
    tmp_path: Path, settings: Any, reachable: Path
) -> None:
    settings.KINDMEM_STATE_DIR = load_or_create(tmp_path / "state").directory
    settings.KINDMEM_DATA_DIR = Path("/etc/hostname")
    (tmp_path / "state" / "sealing_key").chmod(0o644)
    said = wrong(list(examine()))
    assert said["keys"].endswith(f"chmod go-rwx {tmp_path}/state/sealing_key")
    assert said["database"].startswith("/etc/hostname is not a folder")


def test_doctor_names_keys_that_lie_with_the_data(tmp_path: Path, settings: Any) -> None:
    settings.KINDMEM_STATE_DIR = load_or_create(tmp_path / "data" / "keys").directory
    settings.KINDMEM_DATA_DIR = tmp_path / "data"
    assert "KINDMEM_STATE_DIR" in wrong(list(examine()))["keys"]


def test_doctor_finds_nothing_wrong_with_the_anchors_that_the_product_makes(
    tmp_path: Path, settings: Any
) -> None:
    settings.KINDMEM_STATE_DIR = load_or_create(tmp_path / "state").directory
    settings.KINDMEM_ANCHOR_DIR = tmp_path / "state" / "anchors"
    settings.KINDMEM_DATA_DIR = Path("/etc/hostname")
    with writing_anchors("acme"):
        pass
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "state").rglob("*/")}
    assert modes == {0o700}
    assert "keys" not in wrong(list(examine()))


def test_doctor_names_what_up_would_refuse_and_ends_with_1(
    cluster: Cluster, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.KINDMEM_STATE_DIR = load_or_create(tmp_path / "state").directory
    monkeypatch.setenv("DATABASE_URL", cluster.url("kindmem_owner", "kindmem"))
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json", stdout=out)
    assert ended.value.code == 1
    findings = {seen["check"]: seen for seen in json.loads(out.getvalue())["findings"]}
    assert "owns the database" in findings["promises"]["message"]
    with pytest.raises(CommandError, match="1 of 4 need something done"):
        call_command("doctor", stdout=out)


def test_a_server_of_ones_own_is_prepared_by_one_command(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "kindmem.postgres.bootstrap"]
    done = subprocess.run(
        [*command, cluster.url(), "prepared"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == 0
    assert "DATABASE_OWNER_URL" in done.stdout
    refused = subprocess.run(
        [*command, cluster.url("kindmem_app", "kindmem"), "prepared"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
