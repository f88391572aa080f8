"""Decides where the database, and the keys that must lie outside it, are kept.

As root the data home is not under root's home: the database runs as an unprivileged system user,
which can't enter a private home. A data home chosen by hand has its state folder beside it, so that
two installations never share keys.
"""

import os
from collections.abc import Mapping
from pathlib import Path

DATA_DIR_VARIABLE = "KINDMEM_DATA_DIR"
STATE_DIR_VARIABLE = "KINDMEM_STATE_DIR"


def data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The absolute path of the data home; it need not exist yet."""
    if chosen := environ.get(DATA_DIR_VARIABLE):
        return _absolute(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/kindmem")
    return _xdg(environ, "XDG_DATA_HOME", ".local/share") / "kindmem"


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The absolute path of the folder for keys and anchors; it need not exist yet."""
    if chosen := environ.get(STATE_DIR_VARIABLE):
        return _absolute(chosen)
    if environ.get(DATA_DIR_VARIABLE):
        home = data_dir(environ)
        return home.with_name(f"{home.name}-state")
    if os.geteuid() == 0:
        return Path("/var/lib/kindmem-state")
    return _xdg(environ, "XDG_STATE_HOME", ".local/state") / "kindmem"


def take_data_dir(argv: list[str], environ: dict[str, str] | os._Environ[str]) -> list[str]:
    """Move `--data-dir X` (or `--data-dir=X`) from argv into the environment; the rest of argv.

    Raises ValueError when the option comes without a path.
    """
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--data-dir":
            value = next(words, "")
        elif word.startswith("--data-dir="):
            value = word.partition("=")[2]
        else:
            rest.append(word)
            continue
        if not value or value.startswith("--"):
            raise ValueError("--data-dir needs a path, for example --data-dir /srv/kindmem")
        environ[DATA_DIR_VARIABLE] = str(_absolute(value))
    return rest


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _xdg(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    # The XDG base directory specification: a relative value is to be ignored.
    value = environ.get(variable, "")
    if value.startswith("/"):
        return Path(value)
    return Path(environ.get("HOME") or os.path.expanduser("~")) / fallback
