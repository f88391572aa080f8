"""`up`: the whole product on one machine, until Ctrl-C.

Decides the order of a start (port, database, roles, refusals, tables, demo, processes), so that
whatever is wrong is said before anything serves, and that a start that was cut short is finished by
the next one.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command, get_commands
from django.core.management.base import CommandError, CommandParser
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from kindmem.postgres import locks
from kindmem.postgres.bootstrap import bootstrap
from kindmem.postgres.checks import refusals
from kindmem.postgres.cluster import Cluster
from kindmem.postgres.embedded import embedded_database, has_tables, is_embedded
from kindmem.postgres.errors import ClusterError
from kindmem.postgres.urls import DATABASE_NAME, app_url
from kindmem.supervisor import Child, ChildFailed, StopRequested, StopSignals, Supervisor
from memory.installation_keys import OtherKeys, check_keys, claim_keys
from memory.management.command import Refused, ToldCommand

DEMO_COMMAND = "seed_demo"
UP_LOCK = "up.lock"
_BACKLOG = 512
_DATABASE_PAUSE_SECONDS = 2.0
_NEWS_SECONDS = 20.0


class Command(ToldCommand):
    """The whole product on one machine: database, web server, worker."""

    help = "Run the whole product on this machine until Ctrl-C."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="0 takes any free one")
        parser.add_argument("--host", default="localhost", help="the address to listen on")
        demo = parser.add_mutually_exclusive_group()
        demo.add_argument("--demo", action="store_true", default=None, help="make the demo tenant")
        demo.add_argument("--no-demo", action="store_false", dest="demo")

    def handle(self, *args: Any, **options: Any) -> None:
        self._as_json = bool(options["json"])
        signals = StopSignals()
        with signals.caught():
            try:
                self._up(signals, options)
            except StopRequested:
                self._say("Stopped")
            except (ClusterError, ChildFailed) as error:
                raise CommandError(str(error)) from error
            except OtherKeys as error:
                raise Refused(str(error), code="other-keys") from error

    def _up(self, signals: StopSignals, options: dict[str, Any]) -> None:
        with ExitStack() as stack:
            if is_embedded():
                stack.enter_context(self._only_one())
            listeners = _listeners(stack, options["host"], options["port"])
            url = _url(listeners[0])
            cluster = stack.enter_context(
                embedded_database(settings.KINDMEM_DATA_DIR, self._say_progress)
            )
            is_first = cluster is not None and not has_tables(cluster)
            if is_first:
                # Remembered until it is done, in case this start is cut short.
                _demo_marker().touch()
            self._check_database(cluster)
            check_keys()
            self._migrate(cluster)
            claim_keys()
            connections.close_all()
            environ = {**os.environ}
            environ.setdefault("KINDMEM_BASE_URL", url)
            environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")
            demo = self._demo(options["demo"], environ, as_json=options["json"])
            run = _Run(self, url, cluster, demo, as_json=options["json"])
            Supervisor(
                [_web_server(listeners, environ), _worker(environ, run)],
                tick=run.tick,
                signals=signals,
                say=self._say,
            ).run()

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Hold the data folder for this `up`; say where the other one is when there is one."""
        Cluster(settings.KINDMEM_DATA_DIR).prepare()
        held = locks.taken_alone(settings.KINDMEM_DATA_DIR / UP_LOCK)
        if held is None:
            note = _address_note()
            where = f"at {note.read_text().strip()}" if note.exists() else "and still starting"
            raise CommandError(
                f"kindmem is already running on {settings.KINDMEM_DATA_DIR}, {where}. Stop that "
                "one first, or give this one data of its own with --data-dir."
            )
        try:
            _address_note().unlink(missing_ok=True)
            yield
        finally:
            _address_note().unlink(missing_ok=True)
            os.close(held)

    def _check_database(self, cluster: Cluster | None) -> None:
        self._say_progress("Checking the database")
        if cluster is not None:
            # Again on each start: a newer release may want other rights.
            bootstrap(cluster.url(), DATABASE_NAME)
        refused = refusals(
            os.environ.get("DATABASE_URL") or app_url(settings.KINDMEM_DATA_DIR),
            expects_citus=settings.KINDMEM_CITUS,
        )
        if refused:
            reasons = "\n".join(f"  - {reason}" for reason in refused)
            raise CommandError(f"kindmem does not start on this database:\n{reasons}")

    def _migrate(self, cluster: Cluster | None) -> None:
        if cluster is None and not os.environ.get("DATABASE_OWNER_URL"):
            _refuse_unmigrated()
            return
        if _unapplied("owner"):
            self._say_progress("Bringing the tables up to date")
            call_command("migrate", database="owner", verbosity=0, interactive=False)
            connections.close_all()

    def _demo(self, wish: bool | None, environ: dict[str, str], *, as_json: bool) -> str:
        """Make the demo tenant when it is wanted; what it printed."""
        marker = _demo_marker()
        is_wanted = marker.exists() if wish is None else wish
        said = ""
        if is_wanted and DEMO_COMMAND in get_commands():
            self._say_progress("Making the demo tenant")
            command = [*_manage(DEMO_COMMAND), *(["--json"] if as_json else [])]
            made = subprocess.run(  # noqa: S603 - our own command
                command, env=environ, stdout=subprocess.PIPE, text=True, check=False
            )
            if made.returncode != 0:
                raise CommandError(
                    "The demo tenant could not be made (see above). Start with --no-demo to do "
                    "without it."
                )
            said = made.stdout.strip()
        marker.unlink(missing_ok=True)
        return said

    def _say(self, message: str) -> None:
        self.stderr.write(message)

    def _say_progress(self, message: str) -> None:
        # Whoever reads JSON finds nothing else on stderr when the start is refused.
        if not self._as_json:
            self.stderr.write(f"{message} …")


class _Run:
    """What is watched while the product runs: the first answer, and the embedded database."""

    def __init__(
        self, command: Command, url: str, cluster: Cluster | None, demo: str, *, as_json: bool
    ) -> None:
        self._command, self._url, self._cluster, self._demo = command, url, cluster, demo
        self._as_json = as_json
        self.is_announced = False
        self._next_look_at = 0.0
        self._next_news_at = time.monotonic() + _NEWS_SECONDS

    def tick(self) -> None:
        if self._cluster is not None and time.monotonic() >= self._next_look_at:
            self._look_after(self._cluster)
        if self.is_announced:
            return
        status = _status(self._url)
        if status is not None and status < 500:
            self.is_announced = True
            self._announce()
        elif time.monotonic() >= self._next_news_at:
            self._next_news_at = time.monotonic() + _NEWS_SECONDS
            how = "does not answer yet" if status is None else f"answers with HTTP {status}"
            self._command.stderr.write(f"The web server {how}; what it says itself is above")

    def _look_after(self, cluster: Cluster) -> None:
        if cluster.is_running():
            return
        self._command.stderr.write("The database ended; starting it again")
        try:
            cluster.restart_if_down()
        except ClusterError as error:
            # Perhaps the disk is full: the web server says 503 until somebody makes room.
            self._command.stderr.write(f"{error} Trying again.")
            self._next_look_at = time.monotonic() + _DATABASE_PAUSE_SECONDS

    def _announce(self) -> None:
        if self._cluster is not None:
            _address_note().write_text(f"{self._url} (process {os.getpid()})\n")
        data = str(settings.KINDMEM_DATA_DIR) if self._cluster is not None else None
        state = str(settings.KINDMEM_STATE_DIR)
        if self._as_json:
            demo = json.loads(self._demo) if self._demo else None
            up = {"url": self._url, "dataDir": data, "stateDir": state, "demo": demo}
            self._command.stdout.write(json.dumps(up))
        else:
            lines = [
                "",
                f"kindmem is up at {self._url}",
                f"  API description  {self._url}/v1/docs",
                f"  data             {data or 'the server in DATABASE_URL'}",
                f"  keys             {state}  (back this folder up too, apart from the data)",
                *(["", self._demo] if self._demo else []),
                "",
                "Ctrl-C stops it.",
            ]
            self._command.stdout.write("\n".join(lines))
        self._command.stdout.flush()


def _listeners(stack: ExitStack, host: str, port: int) -> list[socket.socket]:
    """The listening sockets; held here so that they stay open while a web server is replaced.

    `localhost` is both loopback addresses: browsers try the newer one first, and another program may answer there.
    """
    if host != "localhost":
        return [stack.enter_context(_listener(host, port))]
    first = stack.enter_context(_listener("127.0.0.1", port))
    if not _has_newer_loopback():
        return [first]
    return [first, stack.enter_context(_listener("::1", first.getsockname()[1]))]


def _has_newer_loopback() -> bool:
    """Whether this machine speaks IPv6 with itself."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@contextmanager
def _listener(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            raise CommandError(
                f"Can't listen on {host}, port {port}: {error.strerror}. Something else may use "
                f"it; choose another, for example --port {port + 1 if port < 65535 else 8000}."
            ) from error
        except OverflowError as error:
            raise CommandError("A port is a number from 0 to 65535.") from error
        yield listener


def _url(listener: socket.socket) -> str:
    """Where a browser on this machine goes. By name where there is one: a passkey belongs to a name, not to a number."""
    host, port = listener.getsockname()[:2]
    if host in ("127.0.0.1", "::1", "0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _status(url: str) -> int | None:
    """The HTTP status of /livez; None while nobody answers."""
    host = url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=2)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _web_server(listeners: list[socket.socket], environ: dict[str, str]) -> Child:
    descriptors = [listener.fileno() for listener in listeners]
    binds = [word for number in descriptors for word in ("--bind", f"fd://{number}")]
    command = [sys.executable, "-m", "gunicorn", "--config", "python:kindmem.web_server"]
    return Child(
        "web server",
        [*command, "--chdir", str(settings.BASE_DIR), *binds],
        {**environ, "PYTHONPATH": _python_path(environ)},
        pass_fds=descriptors,
    )


def _worker(environ: dict[str, str], run: _Run) -> Child:
    # After the first answer: on a small machine the two would only slow each other down.
    return Child("worker", _manage("work"), environ, waits_for=lambda: run.is_announced)


def _manage(command: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), command]


def _python_path(environ: dict[str, str]) -> str:
    """The path with the project in it: gunicorn reads its settings before it changes folder."""
    known = environ.get("PYTHONPATH")
    return f"{settings.BASE_DIR}{os.pathsep}{known}" if known else str(settings.BASE_DIR)


def _unapplied(alias: str) -> list[str]:
    """The names of the migrations that this release has and the database has not."""
    executor = MigrationExecutor(connections[alias])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    connections.close_all()
    return [str(migration) for migration, _ in plan]


def _refuse_unmigrated() -> None:
    if unapplied := _unapplied("default"):
        raise CommandError(
            f"{len(unapplied)} migrations are not applied (the first is {unapplied[0]}), and "
            "the role in DATABASE_URL rightly can't apply them. Set DATABASE_OWNER_URL to the URL "
            "of kindmem_owner and start again, or run `DATABASE_OWNER_URL=… python manage.py "
            "migrate` once."
        )


def _address_note() -> Path:
    return Path(settings.KINDMEM_DATA_DIR) / "up.address"


def _demo_marker() -> Path:
    return Path(settings.KINDMEM_DATA_DIR) / "demo-pending"
