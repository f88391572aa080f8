"""Decides who the database server runs as.

PostgreSQL refuses to run as root, so root hands it to an unprivileged system user: the owner of
existing data, else `kindmem` (made when the system can make users), else `nobody`. Anyone else runs
the server as themselves. Permissions outside our own folder are looked at, never changed.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from kindmem.postgres.errors import ClusterError

NAME = "kindmem"


class Credentials(TypedDict, total=False):
    """Keyword arguments of subprocess that make a child run as the server's user."""

    user: int
    group: int
    extra_groups: Sequence[int]


@dataclass(frozen=True)
class ServerUser:
    """Who runs the server; `is_other` when that is not who runs this process."""

    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """True when this process is root and the server must be somebody else."""
        return self.uid != os.geteuid()

    @property
    def credentials(self) -> Credentials:
        """What subprocess needs to run a child as this user; empty when it is us."""
        if not self.is_other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": ()}

    @property
    def name(self) -> str:
        """The login name, or the number where the system has no name for it."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)


def server_user(pgdata: Path) -> ServerUser:
    """The user that runs the server over `pgdata`, which need not exist yet."""
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid())
    if pgdata.is_dir() and (owner := pgdata.stat()).st_uid != 0:
        return ServerUser(owner.st_uid, owner.st_gid)
    entry = _existing(NAME) or _created(NAME) or _existing("nobody")
    if entry is None:
        raise ClusterError(
            "PostgreSQL does not run as root, and this system has no user to run it as. "
            f"Make one (useradd --system {NAME}), or run kindmem as an ordinary user."
        )
    return ServerUser(entry.pw_uid, entry.pw_gid)


def check_reachable(path: Path, user: ServerUser) -> None:
    """Refuse a folder that the server's user can't enter; say which parent shuts it out.

    The kernel is asked, by a child running as that user, because access lists and mount options
    say more than the permission bits.
    """
    if not user.is_other:
        return
    if _can_enter(path, user):
        return
    folders = [*reversed(path.parents), path]
    shut = next((folder for folder in folders if not _can_enter(folder, user)), path)
    raise ClusterError(
        f"The database runs as the system user {user.name}, which can't enter {shut}. "
        f"Put the data elsewhere (--data-dir /var/lib/kindmem), or let others pass through that "
        f"folder (chmod o+x {shut}), or run kindmem as an ordinary user."
    )


def _can_enter(folder: Path, user: ServerUser) -> bool:
    entered = subprocess.run(  # noqa: S603 - no word of it comes from a request
        ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)],
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
        **user.credentials,
    )
    return entered.returncode == 0


def _existing(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _created(name: str) -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    command = [useradd, "--system", "--no-create-home", "--home-dir", "/nonexistent"]
    # A second starter may be making the same user: what counts is whether it exists afterwards.
    subprocess.run(  # noqa: S603 - no word of it comes from a request
        [*command, "--shell", "/usr/sbin/nologin", name],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return _existing(name)
