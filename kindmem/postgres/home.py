"""Decides what a usable data home is, and lays it out.

    <home>/.kindmem        says that the folder is ours; written before anything else
    <home>/postgres/       the cluster, owned by the server's user, 0700
    <home>/run/            its socket, 0700 (a short path below /tmp when this one is too long)
    <home>/log/            the server's log
    <home>/bin-*/          as root: the server's programs
    <home>/*.lock          see locks.py

A folder that holds anything else is refused, so that a mistyped path harms nothing.
"""

import errno
import hashlib
import os
import stat
from pathlib import Path

from kindmem.postgres.errors import ClusterError
from kindmem.postgres.system_user import ServerUser, check_reachable

MARKER = ".kindmem"
SOCKET_NAME = ".s.PGSQL.5432"
# sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL included.
SOCKET_PATH_LIMIT_BYTES = 103


def prepare_home(home: Path, user: ServerUser) -> None:
    """Make the data home, or refuse it saying what is wrong; safe to run at the same time twice."""
    try:
        existing = next(folder for folder in [home, *home.parents] if folder.exists())
        if existing != home:
            if not existing.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "Not a folder", str(existing))
            check_reachable(existing, user)
            _make(home, existing)
        _check_ours(home)
        if user.is_other:
            check_reachable(home.parent, user)
            _let_server_pass(home, user)
        (home / "log").mkdir(mode=0o700, exist_ok=True)
    except ClusterError:
        raise
    except OSError as error:
        raise ClusterError(
            f"The data folder {home} can't be used: {error.strerror} ({error.filename}). "
            "Give another one with --data-dir or KINDMEM_DATA_DIR."
        ) from error


def is_prepared(home: Path) -> bool:
    """True when the folder is a data home already."""
    return (home / MARKER).is_file()


def socket_dir(home: Path) -> Path:
    """The folder of the server's socket: in the data home unless the path would be too long."""
    own = home / "run"
    if len(os.fsencode(own / SOCKET_NAME)) <= SOCKET_PATH_LIMIT_BYTES:
        return own
    # The same for everybody who shares the data, so not below a per-session runtime folder.
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path("/tmp") / f"kindmem-{digest}"  # noqa: S108 - made 0700 and checked below


def prepare_socket_dir(home: Path, user: ServerUser) -> Path:
    """Make the socket's folder, private to the server's user; refuse one laid by somebody else."""
    folder = socket_dir(home)
    make_private(folder, user)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid or found.st_mode & 0o077:
        raise ClusterError(
            f"{folder} must be a folder of the user {user.name} that nobody else may enter. "
            "Remove it, or give a shorter --data-dir."
        )
    return folder


def make_private(folder: Path, user: ServerUser) -> None:
    """Make a folder with mode 0700 that belongs to the server's user, unless it exists."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    if user.is_other:
        os.chown(folder, user.uid, user.gid)


def _make(home: Path, existing: Path) -> None:
    missing = [folder for folder in reversed(home.parents) if folder.is_relative_to(existing)]
    for folder in [folder for folder in missing if folder != existing]:
        folder.mkdir(exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)


def _check_ours(home: Path) -> None:
    if not home.is_dir():
        raise ClusterError(f"{home} is not a folder. Give another one with --data-dir.")
    if not os.access(home, os.W_OK | os.X_OK):
        raise ClusterError(
            f"The data folder {home} can't be written by this user (it belongs to uid "
            f"{home.stat().st_uid}). Run as its owner, or give another one with --data-dir."
        )
    if is_prepared(home):
        return
    strangers = {entry.name for entry in home.iterdir()} - {MARKER, "lost+found"}
    if strangers:
        raise ClusterError(
            f"{home} is not empty and not a kindmem data folder (it holds {min(strangers)!r}). "
            "Give an empty or a new one with --data-dir."
        )
    (home / MARKER).write_text("A kindmem data folder, layout 1.\n")


def _let_server_pass(home: Path, user: ServerUser) -> None:
    # Our own folder: others may pass through it, not list it; what lies in it is private itself.
    found = home.stat()
    if found.st_uid == 0 and found.st_mode & 0o011 != 0o011:
        home.chmod(stat.S_IMODE(found.st_mode) | 0o011)
    check_reachable(home, user)
