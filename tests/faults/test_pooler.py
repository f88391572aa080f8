"""Behind PgBouncer in transaction mode every tenant's requests share one database session: nothing of one stays for the next."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings

from kindmem.postgres.system_user import server_user
from tests.api.web_server import gunicorn
from tests.builders import make_tenant
from tests.conftest import test_cluster
from tests.faults.product import Wire
from tests.postgres.test_up import eventually
from tests.worker.processes import worker

pytestmark = [pytest.mark.faults, pytest.mark.full]

TURNS = 1_000
_PORT = 6432

_SETTINGS = """
[databases]
{name} = host={server} port=5432 dbname={name}

[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
unix_socket_mode = 0777
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 1
min_pool_size = 0
reserve_pool_size = 0
server_reset_query =
logfile = {folder}/log
"""


@dataclass
class Pooled:
    """A web server whose every database connection is one session's turn, and a client of each of two tenants."""

    conninfo: str
    wires: tuple[Wire, Wire]
    slugs: tuple[str, str]


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.fail("PgBouncer is not installed: run .ci/pgbouncer, which make test-all does")
    return found


@pytest.fixture(scope="module")
def pooler(django_db_setup: None) -> Iterator[str]:
    """A libpq URL of the app role through PgBouncer with a pool of one."""
    cluster = test_cluster()
    name = settings.DATABASES["default"]["NAME"]
    folder = Path(tempfile.mkdtemp(prefix="kindmem-pooler-"))
    folder.chmod(0o755)
    (folder / "users").write_text('"kindmem_app" ""\n')
    (folder / "settings").write_text(
        _SETTINGS.format(name=name, server=cluster.socket_dir, folder=folder, port=_PORT)
    )
    user = server_user(cluster.pgdata)  # it refuses root, and the server's socket is its user's
    if user.is_other:
        shutil.chown(folder, user.uid, user.gid)
    process = subprocess.Popen(
        [_program(), "--quiet", str(folder / "settings")], **user.credentials
    )
    try:
        eventually(lambda: _takes_connections(folder / f".s.PGSQL.{_PORT}"))
        yield f"postgresql://kindmem_app@/{name}?host={folder}&port={_PORT}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _takes_connections(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.fixture(scope="module")
def pooled(
    pooler: str, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pooled]:
    with django_db_blocker.unblock():
        kits = make_tenant(), make_tenant()
        tokens = [kit.token("app", everything=True) for kit in kits]
    errors = tmp_path_factory.mktemp("pooled") / "errors"
    with gunicorn(pooler, errors, KINDMEM_PREPARE_THRESHOLD="0") as port:
        address = f"127.0.0.1:{port}"
        with Wire(address, tokens[0]) as one, Wire(address, tokens[1]) as other:
            yield Pooled(pooler, (one, other), (kits[0].slug, kits[1].slug))
    assert "Traceback" not in errors.read_text()


def _turn(pooled: Pooled, place: int, word: str) -> None:
    """One tenant writes and reads, and is told nothing but its own."""
    wire, slug = pooled.wires[place], pooled.slugs[place]
    fact = {"type": "note", "scope": {"projectId": "p1"}, "content": {"of": slug, "word": word}}
    told = wire.ask("POST", "/v1/memory/facts", fact, key=f"key-{word}")
    assert told.status == 201, told.body
    newest = wire.ask("GET", "/v1/memory/facts?limit=5").json()["data"]
    assert newest[0]["id"] == told.json()["id"]
    assert {(one["scope"]["tenantId"], one["content"]["of"]) for one in newest} == {(slug, slug)}


def test_two_tenants_that_take_turns_on_one_session_never_see_each_other(pooled: Pooled) -> None:
    for turn in range(TURNS):
        _turn(pooled, turn % 2, f"turn-{turn}")
    for place, wire in enumerate(pooled.wires):
        facts = wire.pages("/v1/memory/facts")
        assert {fact["content"]["word"] for fact in facts} == {
            f"turn-{turn}" for turn in range(place, TURNS, 2)
        }
        searched = {"mode": "keyword", "query": "turn", "limit": 200}
        found = wire.ask("POST", "/v1/memory/retrieve", searched).json()["results"]
        assert {one["fact"]["scope"]["tenantId"] for one in found} == {pooled.slugs[place]}


def test_two_tenants_at_once_wait_for_the_one_session_and_never_see_each_other(
    pooled: Pooled,
) -> None:
    failures: list[BaseException] = []

    def work(place: int) -> None:
        try:
            for turn in range(100):
                _turn(pooled, place, f"at-once-{place}-{turn}")
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_session_keeps_no_tenant_between_transactions(pooled: Pooled) -> None:
    _turn(pooled, 0, "last")
    with psycopg.connect(pooled.conninfo, prepare_threshold=None, autocommit=True) as session:
        backends = {session.execute("SELECT pg_backend_pid()").fetchone() for _ in range(3)}
        assert len(backends) == 1
        kept = session.execute("SELECT current_setting('kindmem.tenant_id', true)").fetchone()
        assert kept in ((None,), ("",))
        with pytest.raises(psycopg.Error):
            session.execute("SELECT count(*) FROM fact")
        prepared = session.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert prepared == (0,)


def test_a_request_that_is_refused_leaves_nothing_of_it_to_the_next(pooled: Pooled) -> None:
    one, other = pooled.wires
    fact = {"type": "note", "scope": {"projectId": "p1"}, "content": "x", "id": "taken"}
    assert one.ask("POST", "/v1/memory/facts", fact).status == 201
    for _ in range(20):
        assert one.ask("POST", "/v1/memory/facts", fact).status == 409
        assert other.ask("GET", "/v1/memory/facts/taken").status == 404
        assert one.ask("GET", "/v1/memory/facts/taken").status == 200


def test_the_worker_works_on_one_session_that_it_shares_with_everybody(
    pooled: Pooled, tmp_path: Path
) -> None:
    wire = pooled.wires[0]
    with worker(pooled.conninfo, tmp_path, KINDMEM_PREPARE_THRESHOLD="0") as running:
        entry = {"kind": "tool-call", "scope": {"projectId": "p1"}}
        assert wire.ask("POST", "/v1/memory/runs/pooled-run/log", entry).status == 201
        eventually(
            lambda: (
                wire.ask("POST", "/v1/memory/runs/pooled-run/verify", {}).json()["state"]
                == "verified"
            )
        )
        assert running.stop() < 15
    assert "database_lost" not in running.said.read_text()
