"""The disk is full, and later has room again: what was acknowledged is there, what was not is done once when it is repeated.

On a file system of its own, in memory and small. Collected only where one can be mounted, which takes root: `conftest.py`.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kindmem.postgres.binaries import copied_for_server, find_binaries
from kindmem.postgres.cluster import Cluster
from tests.faults.product import Lost, Product, Told, Wire, product
from tests.postgres.test_up import eventually

pytestmark = [pytest.mark.faults, pytest.mark.full]

SIZE = "300m"
LARGE = "x" * 60_000
MOST_WRITES = 2_000


@pytest.fixture
def small_disk() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kindmem-full-"))
    folder.chmod(0o711)
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=711", "tmpfs", disk], check=True
    )
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)
        shutil.rmtree(folder)


@pytest.fixture
def running(small_disk: Path) -> Iterator[Product]:
    major = os.environ.get("KINDMEM_TEST_POSTGRES")
    programs = copied_for_server(find_binaries(int(major) if major else None), small_disk.parent)
    home = small_disk / "data"
    with product(home, str(programs.bin_dir)) as made:
        yield made
    Cluster(home).stop()


def fill(disk: Path) -> Path:
    """A file that leaves no room."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * (1 << 20))
                file.flush()
        except OSError:
            pass
    return ballast


def write(wire: Wire, number: int, text: str = LARGE) -> Told | None:
    body = {"type": "file", "scope": {"projectId": "p1"}, "content": {"n": number, "text": text}}
    try:
        return wire.ask("POST", "/v1/memory/facts", body, key=f"key-{number}")
    except Lost:
        return None


def test_what_was_acknowledged_before_the_disk_was_full_is_there_and_the_rest_is_done_once(
    running: Product, small_disk: Path
) -> None:
    acknowledged, refused = [], []
    with running.wire() as wire:
        for number in range(5):
            told = write(wire, number)
            assert told is not None
            assert told.status == 201
            acknowledged.append(number)
        ballast = fill(small_disk)
        for number in itertools.count(5):
            assert number < MOST_WRITES, "the disk was never full"
            told = write(wire, number)
            if told is not None and told.status == 201:
                acknowledged.append(number)
                continue
            assert told is None or told.status in (500, 503), told
            refused.append(number)
            if len(refused) == 5:
                break
        ballast.unlink()
        eventually(wire.is_served)
        for number in refused:
            eventually(lambda number=number: is_written(wire, number))
        found = Counter(fact["content"]["n"] for fact in wire.pages("/v1/memory/facts"))
    assert found == Counter([*acknowledged, *refused])
    report = running.manage("verify_log", running.slug)
    assert report["state"] in ("verified", "verified-unsealed-tail", "nothing-to-verify"), report


def is_written(wire: Wire, number: int) -> bool:
    told = write(wire, number)
    return told is not None and told.status == 201
