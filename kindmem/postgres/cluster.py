"""One PostgreSQL cluster in a data home: made, started, shared between processes, stopped.

Whoever comes first starts the server and everybody else uses it. Starting and stopping happen under
one file lock. The server and all its children inherit a second lock, so that even an orphan of a
killed server, or one in another container, keeps a new server off the same files.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from kindmem.postgres import home as data_home
from kindmem.postgres import locks
from kindmem.postgres.binaries import Binaries, copied_for_server, find_binaries, is_from_wheel
from kindmem.postgres.errors import ClusterError
from kindmem.postgres.processes import pid_file_lines, postmaster_pid, processes_of
from kindmem.postgres.server_settings import FIXED, server_conf
from kindmem.postgres.system_user import ServerUser, server_user

SUPERUSER = "postgres"
_POLL_SECONDS = 0.01
_NEWS_AFTER_SECONDS = 3.0
_ORPHAN_PATIENCE_SECONDS = 5.0
_FAST_STOP_SECONDS = 60.0
_LOG_LIMIT_BYTES = 16 * 1024 * 1024
# Object ids below this belong to the databases that initdb makes.
_FIRST_USER_DATABASE = 16384


def _silent(message: str) -> None:
    """Report progress to nobody."""


def socket_dir(data_dir: Path) -> Path:
    """The folder to give libpq as `host` for the cluster in `data_dir`, running or not."""
    return data_home.socket_dir(Path(os.path.realpath(data_dir)))


class Cluster:
    """The cluster in `data_dir`; any number of these objects, in any process, share one server.

    `major` picks programs of that version; `settings` are given to the server that this object
    starts and override everything. `say` is told, in sentences, what takes long.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        major: int | None = None,
        settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] = _silent,
    ) -> None:
        self.home = Path(os.path.realpath(data_dir))
        self.pgdata = self.home / "postgres"
        self.log_path = self.home / "log" / "postgres.log"
        self._major = major
        self._settings = dict(settings or {})
        self._say = say

    @property
    def socket_dir(self) -> Path:
        """The folder to give libpq as `host`."""
        return socket_dir(self.home)

    def url(self, role: str = SUPERUSER, dbname: str = "postgres") -> str:
        """A libpq URL over the socket; no password, the folder is what keeps others out."""
        folder = quote(str(self.socket_dir), safe="/")
        return f"postgresql://{quote(role)}@/{quote(dbname)}?host={folder}&port=5432"

    def prepare(self) -> None:
        """Make the data home, or refuse it; starts nothing."""
        data_home.prepare_home(self.home, self._user)

    def is_running(self) -> bool:
        """True when the server runs and takes connections."""
        return self._pid() is not None and self._status() == "ready"

    def start(self) -> None:
        """Run the server until stop(); returns when it takes connections, at once if it does.

        Raises ClusterError, whose message says what to do.
        """
        self.prepare()
        with locks.exclusive(self._start_lock):
            self._stops_when_idle.unlink(missing_ok=True)
            self._start()

    def stop(self) -> None:
        """Stop the server, whoever uses it; returns when every process of it is gone."""
        if not data_home.is_prepared(self.home):
            return
        with locks.exclusive(self._start_lock):
            self._stop()

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        """Use the server; if a borrower had to start it, the last borrower stops it."""
        self.prepare()
        use = locks.taken_shared(self._users_lock)
        try:
            with locks.exclusive(self._start_lock):
                if not self.is_running():
                    self._stops_when_idle.touch(mode=0o600)
                self._start()
            yield
        finally:
            os.close(use)
            with locks.exclusive(self._start_lock):
                if self._stops_when_idle.exists() and locks.is_free(self._users_lock):
                    self._stop()

    def restart_if_down(self) -> bool:
        """Start the server again if it died under its users; True when it had to."""
        with locks.exclusive(self._start_lock):
            if self.is_running():
                return False
            self._start()
        return True

    # Paths and who is who

    @property
    def _start_lock(self) -> Path:
        return self.home / "start.lock"

    @property
    def _users_lock(self) -> Path:
        return self.home / "users.lock"

    @property
    def _alive_lock(self) -> Path:
        return self.home / "alive.lock"

    @property
    def _stops_when_idle(self) -> Path:
        return self.home / "stops-when-idle"

    @cached_property
    def _user(self) -> ServerUser:
        return server_user(self.pgdata)

    @cached_property
    def binaries(self) -> Binaries:
        """The programs of this cluster, where its server's user can run them."""
        found = find_binaries(self._major)
        if self._user.is_other and is_from_wheel(found):
            return copied_for_server(found, self.home)
        return found

    def _pid(self) -> int | None:
        return postmaster_pid(self.pgdata, self._user) if self.pgdata.is_dir() else None

    def _status(self) -> str:
        lines = pid_file_lines(self.pgdata)
        return lines[7].strip() if len(lines) > 7 else "starting"

    # Starting

    def _start(self) -> None:
        patience = _Patience(self._say, "Waiting for PostgreSQL, which is starting or stopping")
        while self._pid() is not None:
            if self._status() == "ready":
                return
            patience.wait()
        self._outlive_orphans()
        data_home.prepare_socket_dir(self.home, self._user)
        self._remove_leftovers()
        if self._needs_initdb():
            self._initdb()
        self._check_version()
        self._spawn()

    def _needs_initdb(self) -> bool:
        if (self.pgdata / "global" / "pg_control").is_file():
            return False
        if not self.pgdata.exists():
            return True
        databases = [entry.name for entry in (self.pgdata / "base").glob("[0-9]*")]
        if any(int(name) >= _FIRST_USER_DATABASE for name in databases):
            raise ClusterError(
                f"{self.pgdata} holds databases but no global/pg_control: it is damaged. "
                "Restore it from a backup; nothing was changed."
            )
        # initdb was interrupted before it was done: nothing was ever stored in there.
        aside = self.home / f"postgres-unfinished-{time.time_ns()}"
        self.pgdata.rename(aside)
        shutil.rmtree(aside)
        return True

    def _initdb(self) -> None:
        self._say("Making the database cluster")
        # Made beside its place and renamed when done, so that it is there whole or not at all.
        unfinished = self.home / "postgres-unfinished"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        data_home.make_private(unfinished, self._user)
        if self.binaries.major >= 17:
            locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        else:
            locale = ["--locale=C.UTF-8" if os.path.isdir("/proc") else "--locale=C"]
        command = [
            self.binaries.program("initdb"),
            f"--pgdata={unfinished}",
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            *locale,
            "--data-checksums",
            "--auth-local=trust",
            "--auth-host=reject",
            "--no-instructions",
            "--set=listen_addresses=",
        ]
        made = subprocess.run(  # noqa: S603 - no word of it comes from a request
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env=_environment(),
            check=False,
            **self._user.credentials,
        )
        if made.returncode != 0:
            raise ClusterError(
                f"initdb could not make the cluster in {self.home}: {made.stderr.strip()}"
            )
        unfinished.rename(self.pgdata)

    def _check_version(self) -> None:
        stored = int((self.pgdata / "PG_VERSION").read_text())
        if stored != self.binaries.major:
            raise ClusterError(
                f"The data in {self.home} was written by PostgreSQL {stored}; the programs here "
                f"are {self.binaries.version}. Run `python manage.py upgrade_database` to bring "
                f"the data over, or set KINDMEM_PG_BIN to the programs of PostgreSQL {stored}."
            )

    def _spawn(self) -> None:
        conf = self._written_conf()
        settings = {**FIXED, "config_file": str(conf), **self._settings}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        postgres = [
            self.binaries.program("postgres"),
            "-D",
            str(self.pgdata),
            "-k",
            str(self.socket_dir),
        ]
        self._rotate_log()
        alive = locks.taken_alone(self._alive_lock)
        if alive is None:
            raise ClusterError(f"Another server of {self.home} came up meanwhile. Try again.")
        try:
            with self.log_path.open("ab") as log:
                logged_bytes = log.tell()
                # The shell leaves at once, so the server belongs to nobody who might have to reap
                # it; in a session of its own it doesn't hear the terminal's Ctrl-C.
                subprocess.run(  # noqa: S603 - no word of it comes from a request
                    ["/bin/sh", "-c", '"$@" </dev/null &', "sh", *postgres, *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env=_environment(),
                    pass_fds=(alive,),
                    start_new_session=True,
                    umask=0o077,
                    check=True,
                    **self._user.credentials,
                )
        finally:
            os.close(alive)
        self._wait_until_ready(logged_bytes)

    def _wait_until_ready(self, logged_bytes: int) -> None:
        patience = _Patience(self._say, "Waiting for PostgreSQL to recover from an earlier crash")
        while not self.is_running():
            if locks.is_free(self._alive_lock):
                with self.log_path.open("rb") as log:
                    log.seek(logged_bytes)
                    words = log.read().decode(errors="replace").strip()
                raise ClusterError(
                    f"PostgreSQL did not start in {self.home}. It said: {words[-2000:]}"
                )
            patience.wait()

    def _written_conf(self) -> Path:
        path = self.home / "server.conf"
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.write_text(server_conf(self.binaries.major))
        fresh.chmod(0o644)
        return fresh.replace(path)

    def _rotate_log(self) -> None:
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_LIMIT_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))

    # What an earlier server left

    def _outlive_orphans(self) -> None:
        """Wait until the children of a killed server are gone; end those that stay."""
        patience = _Patience(self._say, "Waiting for the remains of a killed PostgreSQL to end")
        while not locks.is_free(self._alive_lock) or processes_of(self.pgdata, self._user):
            if patience.seconds > _ORPHAN_PATIENCE_SECONDS:
                orphans = processes_of(self.pgdata, self._user)
                if not orphans:
                    raise ClusterError(
                        f"The data in {self.home} is in use by a PostgreSQL server that can't be "
                        "seen from here, probably in another container. Stop that one first."
                    )
                for pid in orphans:
                    _signal(pid, signal.SIGKILL)
            patience.wait()

    def _remove_leftovers(self) -> None:
        """Remove pid files of a server known to be dead: any live process may have its number."""
        (self.pgdata / "postmaster.pid").unlink(missing_ok=True)
        socket = self.socket_dir / data_home.SOCKET_NAME
        socket.unlink(missing_ok=True)
        socket.with_name(f"{socket.name}.lock").unlink(missing_ok=True)

    # Stopping

    def _stop(self) -> None:
        self._stops_when_idle.unlink(missing_ok=True)
        patience = _Patience(self._say, "Waiting for PostgreSQL to stop")
        told: dict[int, signal.Signals] = {}
        while (pid := self._pid()) is not None or not locks.is_free(self._alive_lock):
            wish = signal.SIGINT if patience.seconds < _FAST_STOP_SECONDS else signal.SIGQUIT
            # A server that has just been started has no pid file yet, so it may be told later.
            if pid is not None and told.get(pid) != wish:
                _signal(pid, wish)
                told[pid] = wish
            patience.wait()


class _Patience:
    """Polling without a ceiling that says now and then what it waits for."""

    def __init__(self, say: Callable[[str], None], news: str) -> None:
        self._say, self._news = say, news
        self._since = self._told = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def wait(self) -> None:
        now = time.monotonic()
        if now - self._told > _NEWS_AFTER_SECONDS:
            self._told = now
            self._say(f"{self._news} ({self.seconds:.0f} s)")
        time.sleep(_POLL_SECONDS)


def _environment() -> dict[str, str]:
    # Locale, time zone and PG* variables of whoever starts it must not decide how it runs.
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
