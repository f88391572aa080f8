"""Web workers, the web server and the database are killed while clients write: what was acknowledged is there, once.

Laws 1 to 4 of durability: an acknowledged write survives; nothing is acknowledged before it is committed; a request that was
not answered resolves by its key to one outcome; every run is gapless, unforked and headed by its last entry.
"""

import collections
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kindmem.postgres.binaries import copied_for_server, find_binaries
from kindmem.postgres.cluster import Cluster
from tests.faults.product import Product, Wire, product
from tests.faults.writers import Acknowledged, Writer, is_fact
from tests.postgres.test_up import children_of, eventually, is_gone

pytestmark = pytest.mark.faults

WRITERS = 8


@pytest.fixture
def running() -> Iterator[Product]:
    """In a folder that the database's unprivileged user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="kindmem-load-"))
    folder.chmod(0o711)
    major = os.environ.get("KINDMEM_TEST_POSTGRES")
    programs = copied_for_server(find_binaries(int(major) if major else None), folder)
    home = folder / "data"
    with product(home, str(programs.bin_dir)) as made:
        yield made
    Cluster(home).stop()
    shutil.rmtree(folder)


def _web_workers(running: Product) -> set[int]:
    master = running.up.child("gunicorn")
    return set() if master is None else set(children_of(master))


def kill_a_web_worker(running: Product) -> None:
    eventually(lambda: bool(_web_workers(running)))
    killed = min(_web_workers(running))
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: is_gone(killed) and len(_web_workers(running)) >= 2)


def kill_the_web_server(running: Product) -> None:
    eventually(lambda: running.up.child("gunicorn") is not None)
    killed = running.up.child("gunicorn")
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: running.up.child("gunicorn") not in (None, killed))


def kill_the_database(running: Product) -> None:
    home = running.up.home
    eventually(lambda: Cluster(home).is_running())
    killed = int((home / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: Cluster(home).is_running() and is_gone(killed))


KILLS: list[Callable[[Product], None]] = [
    kill_a_web_worker,
    kill_the_web_server,
    kill_the_database,
]


def written_while(
    running: Product, kills: list[Callable[[Product], None]], *, pause: Callable[[], float]
) -> list[Acknowledged]:
    """What the writers were acknowledged from before the first kill until after the last one."""
    stop = threading.Event()
    writers = [Writer(running, number, stop) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for kill in kills:
            time.sleep(pause())  # the load goes on meanwhile
            kill(running)
        with running.wire() as served:
            eventually(served.is_served)
        time.sleep(pause())
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [said for writer in writers for said in writer.unexpected] == []
    return [one for writer in writers for one in writer.acknowledged]


def assert_all_is_there_once(running: Product, acknowledged: list[Acknowledged]) -> None:
    with running.wire() as wire:
        facts = wire.pages("/v1/memory/facts")
        words = collections.Counter(word for fact in facts for word in _of_revisions(wire, fact))
        entry_ids: list[str] = []
        for head in wire.pages("/v1/memory/runs"):
            entries = _entries_of_whole_run(wire, head["runId"])
            entry_ids += [entry["id"] for entry in entries]
            if not head["runId"].startswith("kindmem."):
                words.update(entry["payload"]["word"] for entry in entries)
    assert len(set(entry_ids)) == len(entry_ids)
    assert collections.Counter(fact["id"] for fact in facts) == collections.Counter(
        one.told.json()["id"] for one in acknowledged if is_fact(one)
    )
    assert words == collections.Counter(word for one in acknowledged for word in _words(one))


def _of_revisions(wire: Wire, fact: dict[str, Any]) -> list[str]:
    """The words of a fact's revisions, which follow each other without a gap."""
    revisions = wire.ask("GET", f"/v1/memory/facts/{fact['id']}/revisions").json()["data"]
    assert [one["version"] for one in revisions] == list(range(len(revisions), 0, -1))
    return [one["content"]["word"] for one in revisions]


def _entries_of_whole_run(wire: Wire, run: str) -> list[dict[str, Any]]:
    entries = wire.pages(f"/v1/memory/runs/{run}/log")
    assert [entry["sequence"] for entry in entries] == list(range(len(entries)))
    report = wire.ask("POST", f"/v1/memory/runs/{run}/verify", {}).json()
    assert report["state"] in ("verified", "verified-unsealed-tail", "unanchored"), report
    return entries


def _words(one: Acknowledged) -> list[str]:
    return [one.word, f"{one.word}b"] if one.path.endswith("/batch") else [one.word]


def assert_each_answer_can_be_had_again(running: Product, acknowledged: list[Acknowledged]) -> None:
    with running.wire() as wire:
        for one in acknowledged:
            again = wire.ask("POST", one.path, one.body, key=one.key)
            assert (again.status, again.body) == (one.told.status, one.told.body)
            assert again.is_replayed


def assert_chains_are_whole(running: Product) -> None:
    """By the verifier in Python and the one in SQL, over every run and the seals."""
    for verifier in ((), ("--sql",)):
        found = running.manage("verify_log", running.slug, *verifier)
        assert found["state"] in ("verified", "verified-unsealed-tail"), found


def test_what_was_acknowledged_survives_every_kill_once(running: Product) -> None:
    acknowledged = written_while(running, KILLS, pause=lambda: 1.5)
    assert len(acknowledged) > 10 * WRITERS
    assert any(one.attempts > 1 for one in acknowledged)
    assert_all_is_there_once(running, acknowledged)
    assert_each_answer_can_be_had_again(running, random.sample(acknowledged, 60))
    assert_all_is_there_once(running, acknowledged)
    assert_chains_are_whole(running)


@pytest.mark.full
def test_what_was_acknowledged_survives_a_dozen_kills_at_any_moment(running: Product) -> None:
    chance = random.Random(815)
    kills = [chance.choice(KILLS) for _ in range(12)]
    acknowledged = written_while(running, kills, pause=lambda: chance.uniform(0.2, 2.0))
    assert_all_is_there_once(running, acknowledged)
    assert_each_answer_can_be_had_again(running, acknowledged[:300])
    assert_all_is_there_once(running, acknowledged)
    assert_chains_are_whole(running)
