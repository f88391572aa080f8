"""The embedded server starts once, is shared, survives what happens to it, or says what to do."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from kindmem.postgres import cluster as cluster_module
from kindmem.postgres import home as data_home
from kindmem.postgres.cluster import Cluster, socket_dir
from kindmem.postgres.errors import ClusterError

pytestmark = pytest.mark.usefixtures("shared_programs")

START_AND_TELL = """
import sys
from pathlib import Path
from kindmem.postgres.cluster import Cluster
cluster = Cluster(Path(sys.argv[1]))
sys.stdin.readline()
cluster.start()
print((cluster.pgdata / "postmaster.pid").read_text().split()[0])
"""
BORROW_AND_WAIT = """
import sys
from pathlib import Path
from kindmem.postgres.cluster import Cluster
with Cluster(Path(sys.argv[1])).borrowed():
    print("in", flush=True)
    sys.stdin.readline()
"""


def pid_of(cluster: Cluster) -> int:
    return int((cluster.pgdata / "postmaster.pid").read_text().split()[0])


def has_ended(pid: int) -> bool:
    """True when there is no such process, or only its name until somebody reaps it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def kill_server(cluster: Cluster) -> None:
    """SIGKILL to the postmaster alone; returns when it is gone, its children may not be."""
    server = pid_of(cluster)
    os.kill(server, signal.SIGKILL)
    while not has_ended(server):
        time.sleep(0.001)


def run_python(code: str, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_a_second_start_uses_the_running_server_and_stop_ends_it(made: Path) -> None:
    cluster = Cluster(made)
    assert not cluster.is_running()
    cluster.start()
    first = pid_of(cluster)
    Cluster(made).start()
    assert pid_of(cluster) == first
    cluster.stop()
    assert not cluster.is_running()
    assert has_ended(first)


def test_data_survives_a_stop_and_the_log_holds_no_statement(made: Path) -> None:
    cluster = Cluster(made)
    cluster.start()
    with psycopg.connect(cluster.url()) as connection:
        connection.execute("CREATE TABLE kept (word text UNIQUE)")
        connection.execute("INSERT INTO kept VALUES ('xyzzy')")
    with (
        psycopg.connect(cluster.url()) as connection,
        pytest.raises(psycopg.errors.UniqueViolation),
    ):
        connection.execute("INSERT INTO kept VALUES ('xyzzy')")
    cluster.stop()
    cluster.start()
    with psycopg.connect(cluster.url()) as connection:
        assert connection.execute("SELECT word FROM kept").fetchone() == ("xyzzy",)
    log = cluster.log_path.read_text()
    assert "duplicate key" in log
    assert "xyzzy" not in log


def test_the_server_is_durable_speaks_utf8_and_listens_on_its_private_socket_only(
    made: Path,
) -> None:
    cluster = Cluster(made)
    cluster.start()
    query = (
        "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name "
        "IN ('data_checksums', 'fsync', 'full_page_writes', 'synchronous_commit', 'listen_addresses')"
    )
    with psycopg.connect(cluster.url()) as connection:
        shown = connection.execute(query).fetchone()
        lowered = connection.execute("SELECT lower('ÄÖ'), 'a' < 'B'").fetchone()
    assert shown == (
        "data_checksums=on fsync=on full_page_writes=on listen_addresses= synchronous_commit=on",
    )
    # Code-point order with Unicode case folding, whatever the environment's locale.
    assert lowered == ("äö", False)
    assert cluster.socket_dir.stat().st_mode & 0o777 == 0o700


def test_four_starters_at_once_make_one_server(home: Path) -> None:
    starters = [run_python(START_AND_TELL, home) for _ in range(4)]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    pids = {starter.communicate()[0].strip() for starter in starters}
    assert [starter.returncode for starter in starters] == [0, 0, 0, 0]
    assert pids == {str(pid_of(Cluster(home)))}


def test_the_last_borrower_stops_what_a_borrower_started(made: Path) -> None:
    cluster = Cluster(made)
    with cluster.borrowed():
        other = run_python(BORROW_AND_WAIT, made)
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
    assert cluster.is_running()
    other.communicate("\n")
    assert other.returncode == 0
    assert not cluster.is_running()


def test_a_borrower_leaves_running_what_was_started_to_stay(made: Path) -> None:
    cluster = Cluster(made)
    cluster.start()
    with cluster.borrowed():
        pass
    assert cluster.is_running()


def test_a_borrower_that_is_killed_leaves_the_stopping_to_the_next(made: Path) -> None:
    cluster = Cluster(made)
    killed = run_python(BORROW_AND_WAIT, made)
    assert killed.stdout is not None
    killed.stdout.readline()
    killed.kill()
    killed.communicate()
    assert cluster.is_running()
    with cluster.borrowed():
        pass
    assert not cluster.is_running()


def test_acknowledged_writes_survive_kill_9_of_the_server(made: Path) -> None:
    cluster = Cluster(made)
    cluster.start()
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
        kill_server(cluster)
        cluster.start()
    with psycopg.connect(cluster.url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_a_busy_orphan_of_a_killed_server_is_ended_before_a_new_one_starts(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_ORPHAN_PATIENCE_SECONDS", 0.2)
    cluster = Cluster(made)
    cluster.start()
    with closing(psycopg.connect(cluster.url(), autocommit=True)) as connection:
        orphan = connection.info.backend_pid
        # Never looks up from its work, so it doesn't notice that its server is gone.
        connection.pgconn.send_query(
            b"DO $$ DECLARE n bigint := 0; BEGIN LOOP n := n + 1; END LOOP; END $$"
        )
        kill_server(cluster)
        cluster.start()
    assert cluster.is_running()
    assert has_ended(orphan)


def test_restart_if_down_acts_only_when_the_server_died(made: Path) -> None:
    cluster = Cluster(made)
    cluster.start()
    assert cluster.restart_if_down() is False
    kill_server(cluster)
    assert cluster.restart_if_down() is True
    assert cluster.is_running()


def test_pid_files_that_name_a_living_stranger_do_not_block_the_start(made: Path) -> None:
    cluster = Cluster(made)
    cluster.start()
    pid_file = cluster.pgdata / "postmaster.pid"
    socket_lock = cluster.socket_dir / f"{data_home.SOCKET_NAME}.lock"
    left = {path: path.read_text() for path in (pid_file, socket_lock)}
    server = pid_of(cluster)
    cluster.stop()
    for path, text in left.items():
        path.write_text(text.replace(str(server), str(os.getpid()), 1))
    assert not cluster.is_running()
    cluster.start()
    assert cluster.is_running()
    assert pid_of(cluster) != os.getpid()


def test_an_initdb_that_was_killed_half_way_is_made_anew(home: Path) -> None:
    # As a killed initdb leaves it: a version, folders, no control file; and one beside its place.
    for name in ("postgres", "postgres-unfinished"):
        (home / name / "base" / "1").mkdir(parents=True)
        (home / name / "PG_VERSION").write_text("18\n")
    (home / data_home.MARKER).write_text("")
    cluster = Cluster(home)
    cluster.start()
    assert cluster.is_running()
    assert list(home.glob("postgres-*")) == []


def test_a_damaged_cluster_with_databases_is_refused_and_left_alone(made: Path) -> None:
    cluster = Cluster(made)
    cluster.start()
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE precious")
    cluster.stop()
    control = cluster.pgdata / "global" / "pg_control"
    control.rename(control.with_suffix(".lost"))
    with pytest.raises(ClusterError, match="damaged"):
        cluster.start()
    control.with_suffix(".lost").rename(control)
    cluster.start()
    with psycopg.connect(cluster.url(dbname="precious")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_data_of_another_major_version_names_the_command_that_brings_it_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KINDMEM_PG_BIN")
    older = Cluster(home, major=16)
    older.start()
    older.stop()
    with pytest.raises(ClusterError, match=r"PostgreSQL 16; .* upgrade_database"):
        Cluster(home).start()
    older.start()
    assert older.is_running()


def test_what_the_server_says_when_it_does_not_start_is_passed_on(made: Path) -> None:
    with pytest.raises(ClusterError, match="max_connections"):
        Cluster(made, settings={"max_connections": "many"}).start()


def test_a_path_too_long_for_a_socket_gets_a_short_private_one(reachable: Path) -> None:
    home = reachable / ("long" * 20) / "data"
    cluster = Cluster(home)
    try:
        cluster.start()
        assert not cluster.socket_dir.is_relative_to(home)
        assert cluster.socket_dir.stat().st_mode & 0o777 == 0o700
        assert socket_dir(home) == cluster.socket_dir
        with psycopg.connect(cluster.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        cluster.stop()
        cluster.socket_dir.rmdir()


def test_a_socket_folder_that_others_may_enter_is_refused(reachable: Path) -> None:
    home = reachable / ("long" * 20) / "squatted"
    cluster = Cluster(home)
    cluster.socket_dir.mkdir(mode=0o755)
    try:
        with pytest.raises(ClusterError, match="nobody else may enter"):
            cluster.start()
    finally:
        cluster.socket_dir.rmdir()


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(reachable: Path) -> None:
    (reachable / "thesis.txt").write_text("years of work")
    with pytest.raises(ClusterError, match=r"not empty.*thesis\.txt"):
        Cluster(reachable).start()
    assert [entry.name for entry in reachable.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(reachable: Path) -> None:
    (reachable / "data").write_text("")
    with pytest.raises(ClusterError, match="--data-dir"):
        Cluster(reachable / "data").start()


def test_data_in_use_by_a_server_out_of_sight_is_refused(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another container that shares the folder: its lock is seen, its processes are not.
    monkeypatch.setattr(cluster_module, "_ORPHAN_PATIENCE_SECONDS", 0.1)
    cluster = Cluster(made)
    cluster.start()
    monkeypatch.setattr(cluster_module, "postmaster_pid", lambda *_: None)
    monkeypatch.setattr(cluster_module, "processes_of", lambda *_: [])
    with pytest.raises(ClusterError, match="in use by a PostgreSQL server that can't be seen"):
        Cluster(made).start()
    monkeypatch.undo()
    assert cluster.is_running()


def test_the_url_reaches_the_server_whatever_the_environment_says(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(made)
    cluster.start()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PGPORT", str(free.getsockname()[1]))
        monkeypatch.setenv("PGHOST", "127.0.0.1")
        with psycopg.connect(cluster.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
