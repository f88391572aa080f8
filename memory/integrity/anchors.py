"""The anchor file: the heads of a tenant's log of seals, written down outside the database.

One file a tenant of an instance, JSON lines, only ever appended to: `{"at", "epoch", "note", "size"}`
for a checkpoint and `{"afterSize", "at", "epoch", "reason"}` where an operator began a new epoch after
a restore. Whoever writes it holds the file's lock; a line that a crash cut short is skipped.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings

from memory.canonical import canonical
from memory.hashing import timestamp_text
from memory.integrity.notes import NoteError, parse_checkpoint
from memory.private_folder import make_private

_EPOCH: Final = re.compile("(.+)/([1-9][0-9]{0,8})", re.ASCII)
_TAIL_BYTES: Final = 1 << 14
"""Enough for several of the longest lines."""


@dataclass(frozen=True, slots=True)
class Anchored:
    """One checkpoint in the file."""

    epoch: int
    size: int
    root_hash: bytes
    note_text: str
    at: str


@dataclass(frozen=True, slots=True)
class AnchorFile:
    """What the file says. `checkpoints` are those that still bind, oldest first: an epoch that began
    after a restore leaves out what lay beyond the restored log."""

    epoch: int = 0
    checkpoints: tuple[Anchored, ...] = ()
    began_after: int = 0
    """How many leaves the log had when the present epoch began."""

    @property
    def reaches(self) -> int:
        """Up to where the file knows the log: a signed head beyond it was written down in a file that is lost."""
        return max(self.began_after, self.last.size if self.last else 0)

    @property
    def last(self) -> Anchored | None:
        return self.checkpoints[-1] if self.checkpoints else None


def anchor_path(tenant_slug: str) -> Path:
    """Where this instance writes down the heads of a tenant's log."""
    instance = quote(settings.KINDMEM_INSTANCE, safe="")
    folder: Path = settings.KINDMEM_ANCHOR_DIR
    return folder / instance / f"{tenant_slug}.jsonl"


def origin_of(tenant_slug: str, epoch: int) -> str:
    """The name that a checkpoint is signed under."""
    origin = f"{settings.KINDMEM_INSTANCE}/{tenant_slug}"
    return f"{origin}/{epoch}" if epoch else origin


def epoch_of(origin: str, tenant_slug: str) -> int | None:
    """The epoch that an origin of this tenant's log names; None for another log's."""
    base, found = origin_of(tenant_slug, 0), _EPOCH.fullmatch(origin)
    if origin == base:
        return 0
    return int(found[2]) if found and found[1] == base else None


def read_anchors(tenant_slug: str) -> AnchorFile:
    """The file as it is now; empty when there is none."""
    try:
        text = anchor_path(tenant_slug).read_text("utf-8")
    except FileNotFoundError:
        return AnchorFile()
    return _parsed(text)


def read_newest_anchor(tenant_slug: str) -> AnchorFile:
    """The file's epoch and its last binding checkpoint, without reading a long file whole."""
    try:
        with anchor_path(tenant_slug).open("rb") as file:
            return _newest(file.fileno(), anchor_path(tenant_slug))
    except FileNotFoundError:
        return AnchorFile()


def _newest(descriptor: int, path: Path) -> AnchorFile:
    end = os.lseek(descriptor, 0, os.SEEK_END)
    start = max(0, end - _TAIL_BYTES)
    tail = os.pread(descriptor, _TAIL_BYTES, start).decode("utf-8", "ignore")
    if start:
        tail = tail.partition("\n")[2]
        if '"reason":' in tail or '"note":' not in tail:
            # Which checkpoints an epoch's begin leaves standing, only the whole file says.
            tail = path.read_text("utf-8")
    read = _parsed(tail)
    last = read.last
    epoch = max(read.epoch, last.epoch if last else 0)
    return AnchorFile(epoch, read.checkpoints[-1:], read.began_after)


def _parsed(text: str) -> AnchorFile:
    epoch = after = 0
    binding: list[Anchored] = []
    for line in text.split("\n"):
        try:
            said = json.loads(line)
            if "note" in said:
                note = parse_checkpoint(said["note"])
                binding.append(
                    Anchored(
                        int(said["epoch"]), note.size, note.root_hash, said["note"], said["at"]
                    )
                )
            else:
                epoch, after = int(said["epoch"]), int(said["afterSize"])
                binding = [one for one in binding if one.size <= after]
        except (ValueError, KeyError, TypeError, NoteError):
            continue  # the empty end, or a line that a crash cut short
    return AnchorFile(epoch, tuple(binding), after)


def begin_anchors(tenant_slug: str) -> None:
    """A tenant is made: heads that another tenant of this name anchored earlier don't bind it. Raises OSError."""
    if not anchor_path(tenant_slug).exists():
        return
    with writing_anchors(tenant_slug) as writer:
        earlier = writer.newest()
        if earlier.checkpoints:
            writer.begin_epoch(earlier.epoch + 1, 0, "a tenant was made anew under this name")


class AnchorWriter:
    """The file, locked for writing."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def newest(self) -> AnchorFile:
        """As `read_newest_anchor`."""
        return _newest(self._descriptor, self._path)

    def add_checkpoint(self, epoch: int, note_text: str, at: str | None = None) -> str:
        """Append a checkpoint; on disk when this returns. `at`: by the database's clock; the moment that the line says."""
        size = parse_checkpoint(note_text).size
        return self.append({"epoch": epoch, "size": size, "note": note_text}, at)

    def begin_epoch(self, epoch: int, after_size: int, reason: str) -> None:
        """Append that a new epoch begins after the first `after_size` leaves, and why."""
        self.append({"epoch": epoch, "afterSize": after_size, "reason": reason})

    def append(self, said: dict[str, Any], at: str | None = None) -> str:
        """Append one line, with the moment, which is returned; on disk by then."""
        moment = at or timestamp_text(datetime.now(UTC))
        line = canonical({**said, "at": moment}) + "\n"
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
            line = "\n" + line  # after a line that a crash cut short
        os.write(self._descriptor, line.encode())
        os.fsync(self._descriptor)
        return moment


@contextmanager
def writing_anchors(tenant_slug: str) -> Iterator[AnchorWriter]:
    """Hold the file's lock; the file is made when there is none. Raises OSError."""
    path = anchor_path(tenant_slug)
    make_private(path.parent)
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_new:
            _sync_folder(path.parent)
        yield AnchorWriter(path, descriptor)
    finally:
        os.close(descriptor)


def stamps_path(tenant_slug: str) -> Path:
    """Where the time stamps of a tenant's checkpoints are written down, beside its anchors."""
    return anchor_path(tenant_slug).with_suffix(".stamps.jsonl")


def keep_stamp(
    tenant_slug: str, *, size: int, note_text: str, authority: str, answer: str, stamped_at: str
) -> None:
    """Append a time stamp (base64 of a TimeStampResp) with what was stamped; on disk when this returns. Raises OSError."""
    path = stamps_path(tenant_slug)
    make_private(path.parent)
    said = {
        "size": size,
        "note": note_text,
        "authority": authority,
        "stamp": answer,
        "stampedAt": stamped_at,
    }
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        AnchorWriter(path, descriptor).append(said)
    finally:
        os.close(descriptor)
    if is_new:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
