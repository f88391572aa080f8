"""A database and its keys belong together: with others nothing runs, and no folder is filled with new ones."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from kindmem import state as keys
from kindmem.management.commands.doctor import examine
from kindmem.state import load_or_create
from memory.installation_keys import OtherKeys, check_keys, claim_keys
from memory.management.command import Refused
from tests.builders import TenantKit
from tests.commands.commands import told
from tests.import_runs.transcripts import ROOT


@pytest.fixture
def other_keys(tmp_path: Path, settings: Any) -> Path:
    """A state folder of another installation, in the settings."""
    settings.KINDMEM_STATE = load_or_create(tmp_path / "other")
    settings.KINDMEM_STATE_DIR = tmp_path / "other"
    return tmp_path / "other"


@pytest.fixture
def no_keys(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder that doesn't exist, as manage.py finds it."""
    monkeypatch.setattr(keys, "_is_kept_later", True)
    settings.KINDMEM_STATE = load_or_create(tmp_path / "none")
    return tmp_path / "none"


@pytest.fixture
def unclaimed(live_db: None, superuser_url: str, settings: Any) -> Iterator[None]:
    """The database as an older release left it; claimed by the run's own keys afterwards."""
    own = settings.KINDMEM_STATE

    def forget() -> None:
        with psycopg.connect(superuser_url) as connection:
            connection.execute("DELETE FROM installation_keys")

    forget()
    yield
    forget()
    settings.KINDMEM_STATE = own
    claim_keys()


def test_the_keys_it_was_set_up_with_are_its_own(db: None) -> None:
    claim_keys()
    check_keys()


def test_a_command_with_other_keys_is_refused_by_the_folders_name_before_it_does_anything(
    acme: TenantKit, other_keys: Path
) -> None:
    with pytest.raises(Refused, match=rf"{other_keys} is not the one .* KINDMEM_STATE_DIR") as said:
        told("create_tenant", "globex")
    assert said.value.code == "other-keys"


@pytest.mark.parametrize("command", ["work", "migrate"])
def test_the_worker_and_migrations_do_not_run_with_other_keys(
    live_db: None, other_keys: Path, command: str
) -> None:
    with pytest.raises(CommandError, match=f"{other_keys} is not the one"):
        call_command(command)


def test_up_does_not_serve_with_other_keys(
    live_db: None, other_keys: Path, app_conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", app_conninfo)
    with pytest.raises(CommandError, match=f"{other_keys} is not the one"):
        call_command("up", port=0)


def test_doctor_says_that_the_keys_are_not_this_databases(
    live_db: None, other_keys: Path, app_conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", app_conninfo)
    wrong = {found.check: found.message for found in examine() if not found.is_ok}
    assert wrong["keys"].startswith("these keys are not this database's: ")
    assert str(other_keys) in wrong["keys"]


@pytest.mark.parametrize("words", [["create_tenant", "x"], ["doctor"], ["shell", "-c", "1"]])
def test_a_forgotten_state_folder_is_not_filled_with_keys(
    live_db: None, app_conninfo: str, tmp_path: Path, words: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": app_conninfo,
            "KINDMEM_STATE_DIR": str(tmp_path / "wrong"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{tmp_path}/wrong is not the one that this database was set up with" in (
        done.stdout + done.stderr
    )
    assert not (tmp_path / "wrong").exists()


def test_a_web_server_does_not_start_with_a_forgotten_state_folder(
    live_db: None, app_conninfo: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gunicorn", "--config", "python:kindmem.web_server"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": app_conninfo,
            "KINDMEM_STATE_DIR": str(tmp_path / "wrong"),
            "KINDMEM_BIND": "127.0.0.1:0",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert f"{tmp_path}/wrong is not the one" in done.stderr
    assert not (tmp_path / "wrong").exists()


def test_a_folder_that_lacks_one_key_is_not_filled_up(
    db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_is_kept_later", True)
    for name in ("peppers", "secret_key", "fingerprint_key", "signing_keys"):
        (tmp_path / name).write_text((settings.KINDMEM_STATE.directory / name).read_text())
    settings.KINDMEM_STATE = load_or_create(tmp_path)
    with pytest.raises(OtherKeys, match="it has no sealing_key"):
        claim_keys()
    assert not (tmp_path / "sealing_key").exists()


def test_an_installation_that_never_claimed_its_keys_does_so_once(
    unclaimed: None, settings: Any, tmp_path: Path
) -> None:
    claim_keys()
    own = settings.KINDMEM_STATE
    settings.KINDMEM_STATE = load_or_create(tmp_path)
    with pytest.raises(OtherKeys):
        claim_keys()
    settings.KINDMEM_STATE = own
    check_keys()


def test_a_database_in_use_that_never_claimed_its_keys_is_not_given_new_ones(
    unclaimed: None, live_acme: TenantKit, no_keys: Path
) -> None:
    with pytest.raises(OtherKeys, match=r"it has no keys\)"):
        claim_keys()
    assert not no_keys.exists()


def test_keys_that_another_process_made_meanwhile_are_taken(
    db: None, no_keys: Path, settings: Any
) -> None:
    own = Path(os.environ["KINDMEM_STATE_DIR"])
    no_keys.mkdir()
    for path in own.iterdir():
        if path.is_file():
            (no_keys / path.name).write_bytes(path.read_bytes())
    claim_keys()
    assert settings.KINDMEM_STATE.missing == ()
    assert settings.KINDMEM_STATE.fingerprint_key == load_or_create(own).fingerprint_key


def test_keys_in_memory_are_written_down_when_they_are_kept(no_keys: Path, settings: Any) -> None:
    held = settings.KINDMEM_STATE
    assert not no_keys.exists()
    assert set(held.missing) == {
        *("peppers", "secret_key", "fingerprint_key", "sealing_key", "signing_keys")
    }
    kept = held.kept()
    assert (kept.missing, kept.lack) == ((), "")
    assert load_or_create(no_keys) == replace(kept, missing=())


def test_a_refusal_of_up_is_one_json_line(app_conninfo: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--port", "0", "--json"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": app_conninfo,
            "KINDMEM_STATE_DIR": str(tmp_path / "wrong"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"]["code"] == "other-keys"
