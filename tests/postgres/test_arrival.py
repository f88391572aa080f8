"""Folders that a command can't use are refused by their own name, and nothing is made in or beside them."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from kindmem import arrival
from kindmem.postgres.errors import ClusterError
from tests.postgres.test_up import environment, manage


def told(home: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """The command on this data folder, with the state folder that goes with it unless named."""
    env = {**environment(home, ""), **environ}
    env.pop("KINDMEM_PG_BIN")
    if "KINDMEM_STATE_DIR" not in environ:
        env.pop("KINDMEM_STATE_DIR")
    return subprocess.run(manage(*words), env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("place", ["/proc/kindmem", "file/below"])
def test_a_data_folder_that_can_not_be_made_is_named_and_no_keys_are_made(
    reachable: Path, place: str
) -> None:
    (reachable / "file").write_text("")
    done = told(reachable / place, "up", "--port", "0")
    assert done.returncode == 1
    assert f"The data folder {reachable / place} can't be used" in done.stderr
    assert "--data-dir" in done.stderr
    assert "KINDMEM_STATE_DIR" not in done.stderr
    assert [path.name for path in reachable.iterdir()] == ["file"]


def test_a_data_folder_below_one_that_can_not_be_looked_into_is_refused(
    reachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shut(path: Path, **more: bool) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", shut)
    with pytest.raises(ClusterError, match=r"The data folder .* can't be used: Permission denied"):
        arrival.refuse_unusable("up", reachable / "data", reachable / "state")


@pytest.mark.parametrize("place", ["data/keys", "data", "link/keys"])
def test_keys_that_would_lie_with_the_data_are_refused_before_anything_is_made(
    reachable: Path, place: str
) -> None:
    (reachable / "link").symlink_to("data")
    done = told(
        reachable / "data",
        *("up", "--port", "0", "--json"),
        KINDMEM_STATE_DIR=str(reachable / place),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "lies inside the data folder" in json.loads(done.stderr)["error"]["message"]
    assert not (reachable / "data").exists()


@pytest.mark.parametrize("words", [["verify_log", "acme"], ["work"], ["shell"], ["doctor"]])
def test_a_mistyped_data_folder_is_not_made(reachable: Path, words: list[str]) -> None:
    done = told(reachable / "mistyped", *words)
    assert done.returncode == 1
    said = f"There is no installation in {reachable}/mistyped; `python manage.py up` makes one"
    assert said in done.stdout + done.stderr
    assert list(reachable.iterdir()) == []


def test_a_start_that_is_refused_leaves_no_keys(reachable: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = told(reachable / "data", "up", "--port", str(taken.getsockname()[1]), "--json")
    assert done.returncode == 1
    assert "already in use" in json.loads(done.stderr)["error"]["message"]
    assert not (reachable / "data-state").exists()


@pytest.mark.parametrize("command", sorted(arrival._FIRST))
def test_what_may_come_first_makes_the_data_folder(reachable: Path, command: str) -> None:
    arrival.refuse_unusable(command, reachable / "data", reachable / "state")
    assert (reachable / "data").is_dir()


def test_with_a_server_of_ones_own_the_data_folder_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://kindmem_app@db/kindmem")
    arrival.refuse_unusable("verify_log", Path("/proc/kindmem"), Path("/proc/kindmem/state"))
    assert not os.path.exists("/proc/kindmem")


@pytest.mark.parametrize("command", ["up", "work", "doctor"])
def test_the_data_folder_is_in_each_ones_help(reachable: Path, command: str) -> None:
    done = told(reachable / "data", command, "--help")
    assert done.returncode == 0
    assert "--data-dir DIR" in done.stdout
    assert "--json" in done.stdout
    assert list(reachable.iterdir()) == []
