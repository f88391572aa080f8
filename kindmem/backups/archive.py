"""The file of a backup: a tar with `manifest.json`, `ledgers.json` and `database.dump`, there whole or not at all.

It holds everything that the database holds, and no key: with it alone nobody signs in, opens a sealed copy or makes a seal. Whom
it is readable by is its owner alone (0600).
"""

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

FORMAT = 1
_MANIFEST, _LEDGERS, _DUMP = "manifest.json", "ledgers.json", "database.dump"
_CHUNK_BYTES = 1 << 20


class NoBackup(RuntimeError):
    """The file is none of ours, or damaged; the message says which."""


@contextmanager
def unfinished_dump(out: Path) -> Iterator[Path]:
    """A path beside the backup's for its dump, gone afterwards."""
    folder = tempfile.mkdtemp(prefix=".kindmem-backup-", dir=out.parent)
    try:
        yield Path(folder) / _DUMP
    finally:
        for part in Path(folder).iterdir():
            part.unlink()
        os.rmdir(folder)


def write(out: Path, manifest: dict[str, Any], ledgers: dict[str, Any], dump: Path) -> int:
    """Write the backup; its size in bytes. The dump's size and sum are added to the manifest."""
    manifest = {
        "format": FORMAT,
        **manifest,
        "dumpBytes": dump.stat().st_size,
        "dumpSha256": _sum_of(dump.open("rb")),
    }
    descriptor, unfinished = tempfile.mkstemp(prefix=".kindmem-backup-", dir=out.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                for name, said in ((_MANIFEST, manifest), (_LEDGERS, ledgers)):
                    data = (json.dumps(said, indent=1, ensure_ascii=False) + "\n").encode()
                    part = tarfile.TarInfo(name)
                    part.size, part.mode = len(data), 0o600
                    tar.addfile(part, io.BytesIO(data))
                tar.add(dump, _DUMP, filter=_nameless)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, out)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    return out.stat().st_size


def _nameless(part: tarfile.TarInfo) -> tarfile.TarInfo:
    part.uid = part.gid = 0
    part.uname = part.gname = ""
    part.mode = 0o600
    return part


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The manifest and the ledgers. Raises NoBackup."""
    try:
        with tarfile.open(path) as tar:
            manifest, ledgers = (_json(tar, name) for name in (_MANIFEST, _LEDGERS))
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise NoBackup(f"{path} is not a backup of kindmem, or is damaged.") from error
    if manifest.get("format") != FORMAT:
        raise NoBackup(f"{path} has a form that this version does not read.")
    return manifest, ledgers


def take_dump(path: Path, manifest: dict[str, Any], target: Path) -> None:
    """Put the dump of a backup into a file. Raises NoBackup when it is not the one that was written."""
    with tarfile.open(path) as tar:
        part = tar.extractfile(_DUMP)
        if part is None:
            raise NoBackup(f"{path} holds no dump.")
        with target.open("wb") as file:
            while chunk := part.read(_CHUNK_BYTES):
                file.write(chunk)
    if _sum_of(target.open("rb")) != manifest["dumpSha256"]:
        raise NoBackup(f"{path} is damaged: its dump is not the one that was written.")


def _json(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    part = tar.extractfile(name)
    if part is None:
        raise KeyError(name)
    said: dict[str, Any] = json.loads(part.read())
    return said


def _sum_of(file: IO[bytes]) -> str:
    summed = sha256()
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            summed.update(chunk)
    return summed.hexdigest()
