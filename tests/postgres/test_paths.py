"""Where data and keys lie: chosen by hand, by the environment, or by who runs it."""

import os
from pathlib import Path

import pytest

from kindmem.postgres.paths import data_dir, state_dir, take_data_dir


@pytest.mark.parametrize(
    ("uid", "environ", "data", "state"),
    [
        (0, {}, "/var/lib/kindmem", "/var/lib/kindmem-state"),
        (0, {"XDG_DATA_HOME": "/x"}, "/var/lib/kindmem", "/var/lib/kindmem-state"),
        (
            1000,
            {"HOME": "/home/ada"},
            "/home/ada/.local/share/kindmem",
            "/home/ada/.local/state/kindmem",
        ),
        (
            1000,
            {"HOME": "/home/ada", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s"},
            "/d/kindmem",
            "/s/kindmem",
        ),
        (
            1000,
            {"HOME": "/home/ada", "XDG_DATA_HOME": "not/absolute"},
            "/home/ada/.local/share/kindmem",
            "/home/ada/.local/state/kindmem",
        ),
        (1000, {"KINDMEM_DATA_DIR": "/srv/memory"}, "/srv/memory", "/srv/memory-state"),
        (
            0,
            {"KINDMEM_DATA_DIR": "/srv/memory", "KINDMEM_STATE_DIR": "/keys"},
            "/srv/memory",
            "/keys",
        ),
    ],
)
def test_data_and_state_have_their_places(
    monkeypatch: pytest.MonkeyPatch, uid: int, environ: dict[str, str], data: str, state: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert (data_dir(environ), state_dir(environ)) == (Path(data), Path(state))


@pytest.mark.parametrize("words", [["--data-dir", "here"], ["--data-dir=here"]])
def test_the_option_moves_from_the_command_line_into_the_environment(words: list[str]) -> None:
    environ: dict[str, str] = {}
    rest = take_data_dir(["manage.py", "up", *words, "--port", "1"], environ)
    assert rest == ["manage.py", "up", "--port", "1"]
    assert environ == {"KINDMEM_DATA_DIR": str(Path.cwd() / "here")}


@pytest.mark.parametrize("words", [["--data-dir"], ["--data-dir="], ["--data-dir", "--json"]])
def test_the_option_without_a_path_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match="--data-dir needs a path"):
        take_data_dir(["manage.py", "up", *words], {})
