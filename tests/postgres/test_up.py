"""`up` on a real data folder: it serves, mends what is killed, says what is in the way, and ends."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kindmem.management.commands.up import _has_newer_loopback
from kindmem.postgres.bootstrap import bootstrap
from kindmem.postgres.cluster import Cluster

PROJECT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 120.0


@dataclass
class Up:
    """A running `up`, and what it said when it was ready."""

    process: subprocess.Popen[str]
    home: Path
    said: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.said["url"])

    def get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return dict(json.load(answer))

    def is_well(self) -> bool:
        try:
            return bool(self.get("/readyz")["status"] == "ok")
        except OSError:
            return False

    def child(self, word: str) -> int | None:
        """The pid of the child whose command line has this word."""
        for pid in children_of(self.process.pid):
            if word in command_line(pid):
                return pid
        return None

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.process.communicate()
        return self.process.returncode


def environment(home: Path, programs: str, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL",)}
    own = {"KINDMEM_DATA_DIR": str(home), "KINDMEM_STATE_DIR": f"{home}-state"}
    return {**kept, **own, "KINDMEM_PG_BIN": programs, **more}


def manage(*words: str) -> list[str]:
    return [sys.executable, str(PROJECT / "manage.py"), *words]


def start_up(
    home: Path, environ: dict[str, str], *words: str, demo: str | None = "--no-demo"
) -> Up:
    """Run `up` on any free port and wait until it says that it serves."""
    news = home.with_name(f"{home.name}.said")
    with news.open("w") as stderr:
        process = subprocess.Popen(
            manage("up", "--port", "0", "--json", *([demo] if demo else []), *words),
            env=environ,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    too_late = threading.Timer(_PATIENCE_SECONDS, process.terminate)
    too_late.start()
    said = process.stdout.readline()
    too_late.cancel()
    assert said, news.read_text()
    return Up(process, home, json.loads(said))


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def children_of(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or command_line(pid) == ""


@pytest.fixture(scope="module")
def up(worker_folder: Path, programs: str) -> Iterator[Up]:
    """A product that was started on a folder that didn't exist; leave it well."""
    home = worker_folder / "up"
    running = start_up(home, environment(home, programs))
    yield running
    running.stop(signal.SIGTERM)
    Cluster(home).stop()
    shutil.rmtree(home)


def test_a_first_start_makes_the_tables_and_serves_with_a_worker(up: Up) -> None:
    assert up.get("/livez") == {"status": "ok"}
    eventually(up.is_well)
    assert up.said["dataDir"] == str(up.home)
    assert up.said["demo"] is None
    assert not (up.home / "demo-pending").exists()


def test_it_goes_by_a_name_and_answers_by_both_numbers_of_this_machine(up: Up) -> None:
    port = int(up.url.removeprefix("http://localhost:"))
    hosts = ["localhost", "127.0.0.1", *(["[::1]"] if _has_newer_loopback() else [])]
    for host in hosts:
        with urllib.request.urlopen(f"http://{host}:{port}/account/login/", timeout=60) as page:
            assert page.status == 200


def test_a_second_start_on_the_same_data_says_where_the_first_one_is(up: Up, settings: Any) -> None:
    settings.KINDMEM_DATA_DIR = up.home
    with pytest.raises(CommandError, match=f"already running on .* at {up.url} .process"):
        call_command("up", port=0)


def test_a_killed_web_server_is_replaced_and_refuses_nobody_meanwhile(up: Up) -> None:
    killed = up.child("gunicorn")
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    # The socket is the supervisor's: this request waits for the next server.
    assert up.get("/livez") == {"status": "ok"}
    eventually(lambda: up.child("gunicorn") not in (None, killed))


def test_a_killed_database_and_a_killed_worker_are_started_again(up: Up) -> None:
    eventually(lambda: up.child("manage.py work") is not None)
    worker = up.child("manage.py work")
    assert worker is not None
    server = int((up.home / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: Cluster(up.home).is_running() and is_gone(server))
    eventually(lambda: up.child("manage.py work") not in (None, worker))
    eventually(up.is_well)


def test_doctor_shares_the_running_database_and_finds_all_well(up: Up, programs: str) -> None:
    eventually(up.is_well)
    told = subprocess.run(
        manage("doctor", "--json"),
        env=environment(up.home, programs),
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(told.stdout)
    assert [seen for seen in answer["findings"] if not seen["ok"]] == []
    assert (told.returncode, answer["ok"]) == (0, True)
    assert Cluster(up.home).is_running()


def test_nothing_outlives_up_however_it_ends_and_the_data_is_kept(
    worker_folder: Path, programs: str
) -> None:
    home = worker_folder / "ended"
    running = start_up(home, environment(home, programs))
    eventually(lambda: running.child("manage.py work") is not None)
    children = children_of(running.process.pid)
    running.stop(signal.SIGKILL)
    eventually(lambda: all(is_gone(pid) for pid in children))
    cluster_made_at = (home / "postgres" / "PG_VERSION").stat().st_mtime_ns
    running = start_up(home, environment(home, programs))
    children = children_of(running.process.pid)
    assert children
    assert running.stop(signal.SIGINT) == 0
    assert all(is_gone(pid) for pid in children)
    assert not Cluster(home).is_running()
    assert not (home / "up.address").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2]))).close()
    assert (home / "postgres" / "PG_VERSION").stat().st_mtime_ns == cluster_made_at


def asked(url: str, path: str, token: str) -> dict[str, Any]:
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return dict(json.load(answer))


def test_a_first_start_shows_what_it_does_and_prints_address_sign_ins_and_keys_once(
    worker_folder: Path, programs: str
) -> None:
    home = worker_folder / "shown"
    environ = {**environment(home, programs), "PYTHONUNBUFFERED": "1"}
    news = worker_folder / "shown.said"
    with news.open("w") as stderr:
        process = subprocess.Popen(
            manage("up", "--port", "0"),
            env=environ,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if line.startswith("Ctrl-C stops it"):
            break
    try:
        for step in ("Checking the database", "Bringing the tables up to date", "Making the demo"):
            assert step in news.read_text()
        (url,) = re.findall(r"kindmem is up at (http://\S+)", told)
        assert len(set(re.findall(r"\S+@\S+", told))) >= 5
        token = re.findall(r"kmk_[a-z0-9]{10}_[A-Za-z0-9_-]{43}", told)[0]
        assert asked(url, "/v1/memory/facts", token)["data"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0
    again = start_up(home, environment(home, programs), demo=None)
    try:
        assert again.said["demo"] is None
        assert asked(again.url, "/v1/memory/facts", token)["data"]
    finally:
        assert again.stop(signal.SIGTERM) == 0
        shutil.rmtree(home)


def test_a_server_of_ones_own_is_migrated_by_its_owner_and_served(
    cluster: Cluster, worker_folder: Path, programs: str
) -> None:
    bootstrap(cluster.url(), "served")
    home = worker_folder / "unused"
    app = {"DATABASE_URL": cluster.url("kindmem_app", "served")}
    refused = subprocess.run(
        manage("up", "--port", "0"),
        env=environment(home, programs, **app),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "migrations are not applied" in refused.stderr
    assert "Set DATABASE_OWNER_URL" in refused.stderr
    owner = {"DATABASE_OWNER_URL": cluster.url("kindmem_owner", "served")}
    running = start_up(home, environment(home, programs, **app, **owner))
    try:
        eventually(running.is_well)
        assert running.said["dataDir"] is None
    finally:
        assert running.stop(signal.SIGTERM) == 0
    assert not home.exists()


def test_a_taken_port_is_named_with_another_to_choose(reachable: Path, settings: Any) -> None:
    settings.KINDMEM_DATA_DIR = reachable / "data"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"port {port}: Address already in use.*--port "):
            call_command("up", port=port)
    assert not (reachable / "data" / "postgres").exists()


def test_a_role_above_row_level_security_is_refused_with_every_reason(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", cluster.url("postgres", "kindmem"))
    with pytest.raises(CommandError, match=r"does not start on this database:\n  - .*superuser"):
        call_command("up", port=0)


def test_a_data_folder_that_can_not_be_used_is_refused(reachable: Path, settings: Any) -> None:
    (reachable / "file").write_text("")
    settings.KINDMEM_DATA_DIR = reachable / "file" / "data"
    with pytest.raises(CommandError, match="--data-dir"):
        call_command("up", port=0)
