"""Finds the server's processes: those whose current folder is the cluster's data folder.

A pid file alone proves nothing: after a crash or a reboot its number may belong to anyone. Where
there is no /proc the command line, which names the data folder, stands in for the current folder.
"""

import os
import subprocess
from pathlib import Path

from kindmem.postgres.system_user import ServerUser

_PROC = Path("/proc")


def postmaster_pid(pgdata: Path, user: ServerUser) -> int | None:
    """The pid that postmaster.pid names, when that process really runs this data folder."""
    lines = pid_file_lines(pgdata)
    if not lines or not lines[0].strip().isdigit():
        return None
    pid = int(lines[0])
    return pid if _works_in(pid, pgdata, user) else None


def pid_file_lines(pgdata: Path) -> list[str]:
    """The lines of postmaster.pid; empty when there is none. Line 8 is the server's status."""
    try:
        return (pgdata / "postmaster.pid").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def processes_of(pgdata: Path, user: ServerUser) -> list[int]:
    """Every living process that works in this data folder, orphans of a killed server included."""
    if _PROC.is_dir():
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
        owned = [pid for pid in pids if _owner(pid) == user.uid]
        return [pid for pid in owned if _works_in(pid, pgdata, user)]
    listed = subprocess.run(
        ["/bin/ps", "-axo", "pid=,command="], capture_output=True, text=True, check=True
    )
    rows = (line.split(None, 1) for line in listed.stdout.splitlines())
    return [int(row[0]) for row in rows if len(row) == 2 and f"-D {pgdata}" in row[1]]


def _works_in(pid: int, pgdata: Path, user: ServerUser) -> bool:
    if not _PROC.is_dir():
        return pid in processes_of(pgdata, user)
    link = f"/proc/{pid}/cwd"
    try:
        return os.readlink(link) == str(pgdata)
    except PermissionError:
        # Root without CAP_SYS_PTRACE (the usual container) may not look; the owner may.
        if _owner(pid) != user.uid or not user.is_other:
            return False
        seen = subprocess.run(  # noqa: S603 - no word of it comes from a request
            ["/bin/readlink", link],
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            **user.credentials,
        )
        return seen.stdout.rstrip("\n") == str(pgdata)
    except OSError:
        return False


def _owner(pid: int) -> int | None:
    try:
        return (_PROC / str(pid)).stat().st_uid
    except OSError:
        return None
