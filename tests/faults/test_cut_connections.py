"""A connection ends between a commit and its answer: a repeat with the same key gives the first answer, and nothing is doubled.

The web server is the real one. One proxy stands between the client and it, another between it and the database.
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings

from kindmem.postgres.cluster import Cluster
from tests.api.makers import Place, record_body
from tests.builders import ApiClient, make_tenant
from tests.conftest import test_cluster
from tests.faults.product import Lost, Told, Wire
from tests.faults.proxies import Cut, database_proxy, web_proxy
from tests.postgres.test_up import PROJECT, eventually

pytestmark = pytest.mark.faults

SCOPE = {"projectId": "p1"}


@dataclass
class Served:
    """A web server between two proxies, and a client on each side of the first."""

    near: Wire
    behind: Wire
    answer: Cut
    commit: Cut


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[Served]:
    with django_db_blocker.unblock():
        token = make_tenant().token("app", everything=True, may=["read", "write", "append"])
    folder = Path(tempfile.mkdtemp(prefix="kindmem-proxy-"))
    cluster: Cluster = test_cluster()
    with database_proxy(folder, cluster.socket_dir) as commit, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        name = quote(settings.DATABASES["default"]["NAME"])
        url = f"postgresql://kindmem_app@/{name}?host={quote(str(folder))}&port=5432"
        server = _web_server(listener.fileno(), url)
        try:
            with (
                web_proxy(address) as (near, answer),
                Wire(near, token, keeps=False) as client,
                Wire(address, token, keeps=False) as behind,
            ):
                eventually(behind.is_served)
                yield Served(client, behind, answer, commit)
        finally:
            server.terminate()
            server.wait()
    (folder / ".s.PGSQL.5432").unlink()
    folder.rmdir()


def _web_server(descriptor: int, database_url: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--config", "python:kindmem.web_server"),
            *("--chdir", str(PROJECT), "--bind", f"fd://{descriptor}"),
        ],
        env={**os.environ, "DATABASE_URL": database_url, "PYTHONPATH": str(PROJECT)},
        pass_fds=[descriptor],
    )


@dataclass(frozen=True)
class Write:
    """A write of a word, and the list in which that word is to be found once."""

    path: str
    body: Any
    listed: str
    word: str

    def is_there(self, wire: Wire) -> int:
        """How often the word is in the list."""
        return wire.ask("GET", self.listed).body.count(f'"{self.word}"'.encode())


def a_write(kind: str, wire: Wire, word: str) -> Write:
    fact = {"type": "note", "scope": SCOPE, "content": {"word": word}}
    entry = {"kind": "tool-call", "scope": SCOPE, "payload": {"word": word}}
    facts, run = "/v1/memory/facts", f"/v1/memory/runs/run-{word}/log"
    if kind == "fact":
        return Write(facts, fact, f"{facts}?limit=200", word)
    if kind == "revision":
        made = wire.ask("POST", facts, fact | {"content": "before"}).json()
        at = f"{facts}/{made['id']}"
        return Write(f"{at}/supersede", {"content": {"word": word}}, f"{at}/revisions", word)
    if kind == "entry":
        return Write(run, entry, run, word)
    if kind == "batch":
        return Write(f"{run}/batch", {"entries": [entry]}, run, word)
    records = "/v1/memory/records"
    return Write(records, _record(word), f"{records}?key=seat.{word}", word)


def _record(word: str) -> dict[str, Any]:
    return record_body(Place(ApiClient()), key=f"seat.{word}", value=word)


KINDS = ["fact", "revision", "entry", "batch", "record"]


def sent(wire: Wire, write: Write) -> Told:
    return wire.ask("POST", write.path, write.body, key=f"key-{write.word}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_lost_its_answer_gets_the_first_one_again(served: Served, kind: str) -> None:
    write = a_write(kind, served.behind, f"client_{kind}")
    for _ in range(2):
        served.answer.arm("answer")
        with pytest.raises(Lost):
            sent(served.near, write)
        assert served.answer.is_taken()
        assert write.is_there(served.behind) == 1
    first = sent(served.near, write)
    assert first.status in (200, 201), first.body
    assert first.is_replayed
    assert sent(served.behind, write).body == first.body
    assert write.is_there(served.behind) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_lost_the_word_of_its_commit_owns_up_and_the_repeat_does_it_once(
    served: Served, kind: str
) -> None:
    write = a_write(kind, served.behind, f"made_{kind}")
    served.commit.arm("commit made")
    unsure = sent(served.behind, write)
    assert served.commit.is_taken()
    assert (unsure.status, unsure.json()["error"]["code"]) == (503, "unavailable")
    first = sent(served.behind, write)
    assert first.status in (200, 201), first.body
    assert first.is_replayed
    assert sent(served.behind, write).body == first.body
    assert write.is_there(served.behind) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_never_reached_the_database_is_done_by_the_repeat(
    served: Served, kind: str
) -> None:
    write = a_write(kind, served.behind, f"asked_{kind}")
    served.commit.arm("commit asked")
    unsure = sent(served.behind, write)
    assert served.commit.is_taken()
    assert (unsure.status, unsure.json()["error"]["code"]) == (503, "unavailable")
    assert write.is_there(served.behind) == 0
    first = sent(served.behind, write)
    assert first.status in (200, 201), first.body
    assert not first.is_replayed
    again = sent(served.behind, write)
    assert (again.is_replayed, again.body) == (True, first.body)
    assert write.is_there(served.behind) == 1
