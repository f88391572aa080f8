"""The keys outside the database are made once, whole, private, and never shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kindmem.state import StateError, load_or_create

LOAD_AND_TELL = """
import sys
from pathlib import Path
from kindmem.state import load_or_create
sys.stdin.readline()
state = load_or_create(Path(sys.argv[1]))
print(state.secret_key, state.peppers[1].hex(), state.fingerprint_key.hex())
"""


def test_keys_are_made_once_with_private_files(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"
    first = load_or_create(folder)
    assert load_or_create(folder) == first
    assert folder.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    names = ["fingerprint_key", "peppers", "sealing_key", "secret_key", "signing_keys"]
    assert files == dict.fromkeys(names, 0o600)
    keys = [first.fingerprint_key, first.sealing_key, first.peppers[1]]
    assert [len(key) for key in keys] == [32, 32, 32]
    assert len(set(keys)) == 3
    assert len(first.secret_key) >= 50


def test_no_key_is_in_the_repr(tmp_path: Path) -> None:
    state = load_or_create(tmp_path)
    shown = repr(state)
    assert state.secret_key not in shown
    assert repr(state.sealing_key) not in shown
    assert repr(state.peppers[1]) not in shown


def test_four_first_starts_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", LOAD_AND_TELL, str(tmp_path / "state")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    told = {starter.communicate()[0] for starter in starters}
    assert len(told) == 1
    assert len(told.pop().split()) == 3


def test_an_older_pepper_stays_when_a_newer_one_is_current(tmp_path: Path) -> None:
    first = load_or_create(tmp_path)
    stored = json.loads((tmp_path / "peppers").read_text())
    stored["peppers"]["2"] = (tmp_path / "sealing_key").read_text().strip()
    stored["current"] = 2
    (tmp_path / "peppers").write_text(json.dumps(stored))
    second = load_or_create(tmp_path)
    assert second.current_pepper == 2
    assert second.peppers == {1: first.peppers[1], 2: first.sealing_key}


@pytest.mark.parametrize(
    "name", ["peppers", "fingerprint_key", "sealing_key", "secret_key", "signing_keys"]
)
@pytest.mark.parametrize("text", ["", "{}", "c2hvcnQ="])
def test_a_damaged_key_file_is_refused_and_never_replaced(
    tmp_path: Path, name: str, text: str
) -> None:
    load_or_create(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(StateError, match="damaged"):
        load_or_create(tmp_path)
    assert (tmp_path / name).read_text() == text


def test_a_new_signing_key_signs_and_the_old_ones_still_verify(tmp_path: Path) -> None:
    state = load_or_create(tmp_path)
    first = state.signing_keys()
    assert (first.previous_seed, len(first.public_keys)) == (None, 1)
    state.rotate_signing_key()
    second = state.signing_keys()
    assert second.seed != first.seed
    assert second.previous_seed == first.seed
    assert second.public_keys[1:] == first.public_keys
    state.rotate_signing_key()
    state.drop_previous_signing_seed()
    third = state.signing_keys()
    assert third.previous_seed is None
    assert third.public_keys[1:] == second.public_keys
    assert (tmp_path / "signing_keys").stat().st_mode & 0o777 == 0o600
    assert repr(third.seed) not in repr(third)


def test_signing_keys_may_lie_in_a_file_of_their_own(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    state = load_or_create(tmp_path / "state", elsewhere / "keys")
    assert load_or_create(tmp_path / "state", elsewhere / "keys").signing_keys() == (
        state.signing_keys()
    )
    assert not (tmp_path / "state" / "signing_keys").exists()


def test_a_folder_that_can_not_be_made_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="KINDMEM_STATE_DIR"):
        load_or_create(tmp_path / "file" / "state")
