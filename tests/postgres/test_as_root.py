"""As root the server runs as an unprivileged user, and nothing outside our folder is changed.

Collected only as root: for anyone else the server's user is the same as ours.
"""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from kindmem.postgres.cluster import Cluster
from kindmem.postgres.errors import ClusterError

PACKAGE = Path(__file__).parents[2] / "kindmem"
START_AND_STOP = """
import sys
from pathlib import Path
from kindmem.postgres.cluster import Cluster
cluster = Cluster(Path(sys.argv[1]))
cluster.start()
print(cluster.pgdata.stat().st_uid, cluster.is_running())
cluster.stop()
print(cluster.is_running())
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_server_runs_as_an_unprivileged_user_from_programs_it_can_read(home: Path) -> None:
    cluster = Cluster(home)
    cluster.start()
    server = int((cluster.pgdata / "postmaster.pid").read_text().split()[0])
    uid = Path(f"/proc/{server}").stat().st_uid
    assert uid != 0
    assert cluster.pgdata.stat().st_uid == uid
    assert os.readlink(f"/proc/{server}/exe").startswith(f"{home}/bin-")
    # Root comes in through the other user's private folder.
    with psycopg.connect(cluster.url()) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("postgres",)


def test_a_private_parent_is_refused_by_name_and_keeps_its_mode(reachable: Path) -> None:
    private = reachable / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(ClusterError, match=f"can't enter {private}"):
        Cluster(private / "below" / "data").start()
    assert mode_of(private) == 0o700
    assert list(private.iterdir()) == []


def test_an_empty_private_folder_given_as_data_home_becomes_passable_itself(
    reachable: Path,
) -> None:
    # What `--data-dir "$(mktemp -d)"` gives.
    home = reachable / "given"
    home.mkdir(mode=0o700)
    cluster = Cluster(home)
    cluster.start()
    try:
        assert mode_of(home) == 0o711
        assert mode_of(cluster.pgdata) == 0o700
    finally:
        cluster.stop()


def test_root_without_the_right_to_look_into_processes_still_finds_its_server(made: Path) -> None:
    # The usual container: root, but not CAP_SYS_PTRACE.
    Cluster(made).start()
    code = (
        "import sys; from pathlib import Path; from kindmem.postgres.cluster import Cluster;"
        "print(Cluster(Path(sys.argv[1])).is_running())"
    )
    told = subprocess.run(
        ["setpriv", "--bounding-set=-sys_ptrace", sys.executable, "-c", code, str(made)],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        check=True,
    )
    assert told.stdout == "True\n"


def started_by_nobody(
    reachable: Path, programs: str, home: Path
) -> "subprocess.CompletedProcess[str]":
    """Start and stop on this data home as an ordinary user."""
    user = pwd.getpwnam("nobody")
    # Interpreter and code where that user can read them, as the programs are.
    code = reachable / "code" / "kindmem"
    code.mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", code)
    shutil.copytree(PACKAGE / "postgres", code / "postgres")
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable
    return subprocess.run(
        [python, "-c", START_AND_STOP, str(home)],
        capture_output=True,
        text=True,
        cwd=code.parent,
        env={"KINDMEM_PG_BIN": programs, "PATH": "/usr/bin:/bin"},
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=(),
        check=False,
    )


def test_an_ordinary_user_runs_the_server_as_themselves(reachable: Path, programs: str) -> None:
    user = pwd.getpwnam("nobody")
    own = reachable / "own"
    own.mkdir()
    os.chown(own, user.pw_uid, user.pw_gid)
    told = started_by_nobody(reachable, programs, own / "data")
    assert (told.stdout, told.stderr) == (f"{user.pw_uid} True\nFalse\n", "")
    assert mode_of(own / "data") == 0o700


@pytest.mark.parametrize("place", ["theirs", "theirs/below"])
def test_a_folder_that_an_ordinary_user_may_not_write_is_refused_by_name(
    reachable: Path, programs: str, place: str
) -> None:
    (reachable / "theirs").mkdir(mode=0o755)
    told = started_by_nobody(reachable, programs, reachable / place)
    assert told.stdout == ""
    refusal = told.stderr.strip().splitlines()[-1]
    assert refusal.startswith("kindmem.postgres.errors.ClusterError: ")
    assert str(reachable / place) in refusal
    assert "--data-dir" in refusal
    assert list((reachable / "theirs").iterdir()) == []
    assert mode_of(reachable / "theirs") == 0o755


def test_root_starts_the_data_of_an_ordinary_user_as_that_user(
    made_once: Path, reachable: Path, shared_programs: None
) -> None:
    made = reachable / "made"
    subprocess.run(["cp", "-a", str(made_once), str(made)], check=True)
    nobody = pwd.getpwnam("nobody")
    for folder, _, files in os.walk(made):
        for path in [Path(folder), *(Path(folder) / name for name in files)]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    cluster = Cluster(made)
    cluster.start()
    server = int((cluster.pgdata / "postmaster.pid").read_text().split()[0])
    runner = Path(f"/proc/{server}").stat().st_uid
    cluster.stop()
    assert runner == nobody.pw_uid
    assert (made / "start.lock").stat().st_uid == nobody.pw_uid
