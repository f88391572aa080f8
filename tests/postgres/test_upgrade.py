"""The embedded database of an older PostgreSQL is brought over whole, or stays where it is."""

import json
import subprocess
from pathlib import Path

import pytest

from kindmem.backups.programs import ProgramFailed
from kindmem.backups.upgrading import upgrade
from kindmem.postgres.cluster import Cluster
from kindmem.postgres.errors import ClusterError
from tests.postgres.test_up import environment, manage


def silent(text: str, **counts: object) -> None:
    """Nobody watches."""


def run(home: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    given = environment(home, more.pop("KINDMEM_PG_BIN", ""))
    return subprocess.run(
        manage(*words, "--data-dir", str(home)),
        env={**given, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def older(reachable: Path) -> Path:
    """A data home whose installation PostgreSQL 16 wrote, with a tenant."""
    home = reachable / "data"
    old = Cluster(home, major=16)
    old.prepare()
    programs = str(old.binaries.bin_dir)
    made = run(home, "create_tenant", "acme", KINDMEM_PG_BIN=programs)
    assert made.returncode == 0, made.stderr
    return home


def test_the_data_of_an_older_postgresql_is_refused_until_it_is_brought_over(older: Path) -> None:
    refused = run(older, "verify_log", "acme")
    assert refused.returncode == 1
    assert "upgrade_database" in refused.stderr
    done = run(older, "upgrade_database", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["before"], told["after"]) == (16, 18)
    assert (Path(told["aside"]) / "PG_VERSION").read_text().strip() == "16"
    works = run(older, "create_api_key", "acme", "--name", "k", "--role", "agent")
    assert works.returncode == 0, works.stderr
    again = run(older, "upgrade_database", "--json")
    assert json.loads(again.stdout)["aside"] is None
    left = {one.name for one in older.iterdir()}
    assert "upgrading" not in left
    assert not [name for name in left if name.endswith(".dump")]


@pytest.mark.full
def test_one_that_fails_leaves_the_old_data_in_its_place(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kindmem.backups import upgrading

    def fail(*_: object) -> None:
        raise ProgramFailed("no room")

    monkeypatch.setattr(upgrading, "load", fail)
    with pytest.raises(ProgramFailed):
        upgrade(older, silent)
    assert (older / "postgres" / "PG_VERSION").read_text().strip() == "16"
    assert not (older / "upgrading").exists()


@pytest.mark.full
def test_one_in_use_is_refused(older: Path) -> None:
    with Cluster(older, major=16).borrowed(), pytest.raises(ClusterError, match="in use"):
        upgrade(older, silent)


@pytest.mark.full
def test_a_server_of_ones_own_is_not_ours_to_upgrade(older: Path) -> None:
    refused = run(older, "upgrade_database", DATABASE_URL="postgresql://x@127.0.0.1:1/x")
    assert refused.returncode == 1
    assert "server of your own" in refused.stderr
