"""File locks that decide who may start, who uses, and whether anything of a cluster still lives.

flock(2) belongs to the open file: it ends with the last process that holds the descriptor, however
that process dies, and containers that share the folder see it, unlike process ids.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def open_lock(path: Path) -> int:
    """A descriptor on the lock file, made when missing; never inherited unless passed on."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if os.geteuid() == 0:
        # Root may work in the data home of an ordinary user, who must be able to lock it later.
        owner = path.parent.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock alone, waiting for whoever has it."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def taken_alone(path: Path) -> int | None:
    """A descriptor that holds the lock alone, or None when anybody else holds it."""
    descriptor = open_lock(path)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    os.close(descriptor)
    return None


def taken_shared(path: Path) -> int:
    """A descriptor that holds the lock with others, waiting for one that holds it alone."""
    descriptor = open_lock(path)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def is_free(path: Path) -> bool:
    """True when nobody holds the lock."""
    descriptor = taken_alone(path)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True
