"""Decides, before settings load, whether a command may run on these folders, and when it keeps keys.

What is refused here is refused before a folder, a key or a cluster is made: a mistyped path, a data
folder that can't be used, keys that would lie with the data.
"""

import os
from pathlib import Path

from kindmem.postgres.cluster import Cluster
from kindmem.postgres.embedded import is_embedded
from kindmem.postgres.errors import ClusterError

# Commands that don't look into the database.
_ELSEWHERE = frozenset(
    (
        *("check", "collectstatic", "compilemessages", "diffsettings", "findstatic", "help"),
        *("makemessages", "makemigrations", "spectacular", "version", "--version", "witness"),
    )
)
# Commands that start the database, and stop it, themselves.
_THEMSELVES = frozenset(("doctor", "restore", "up", "upgrade_database"))
# Commands that may be the first on a data folder.
_FIRST = frozenset(("create_tenant", "migrate", "restore", "seed_demo", "up"))


def needs_database(command: str) -> bool:
    """Whether manage.py starts the embedded database for the command."""
    return command not in _ELSEWHERE | _THEMSELVES


def refuse_unusable(command: str, data: Path, state: Path) -> None:
    """Look at the folders that the command would use. Raises ClusterError; nothing was made then."""
    if not is_embedded() or command in _ELSEWHERE or command == "doctor":
        return
    if _lies_in(state, data):
        raise ClusterError(
            f"The state folder {state} lies inside the data folder {data}, so whoever copies the "
            "data would have the keys too. Name another place in KINDMEM_STATE_DIR."
        )
    if command not in _FIRST and (absent := absence(data)):
        raise ClusterError(absent)
    Cluster(data).prepare()


def absence(data: Path) -> str | None:
    """That there is no installation in the data folder; None when there is, or something odd."""
    try:
        if Cluster(data).pgdata.is_dir() or (data.exists() and not data.is_dir()):
            return None
    except OSError:
        return None
    return (
        f"There is no installation in {data}; `python manage.py up` makes one. Another folder is "
        "named with --data-dir or KINDMEM_DATA_DIR."
    )


def _lies_in(inner: Path, outer: Path) -> bool:
    real = Path(os.path.realpath(outer))
    return Path(os.path.realpath(inner)).is_relative_to(real)
