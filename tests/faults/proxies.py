"""Proxies that pass everything on, and end a connection at one chosen moment: as an answer, or the word of a commit, comes by."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_STARTUP_LENGTH = struct.Struct("!I")
Connect = Callable[[], socket.socket]
Ends = Callable[[bytes], bool]
"""Whether the connection ends instead of passing these bytes on."""


class Cut:
    """Armed by a test, taken once by a proxy. What `is_taken` waits for is the cut having been made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: str | None = None
        self._taken = threading.Event()

    def arm(self, moment: str) -> None:
        with self._lock:
            self._armed = moment
            self._taken.clear()

    def take(self, moment: str) -> bool:
        """True for the one who is to cut here."""
        with self._lock:
            if self._armed != moment:
                return False
            self._armed = None
        self._taken.set()
        return True

    def is_taken(self) -> bool:
        return self._taken.wait(10)


@contextlib.contextmanager
def web_proxy(address: str) -> Iterator[tuple[str, Cut]]:
    """In front of a web server at host:port; its own address. The moment `answer` is when an answer begins."""
    host, _, port = address.rpartition(":")
    cut = Cut()

    def connect() -> socket.socket:
        return socket.create_connection((host, int(port)))

    def to_client() -> Ends:
        return lambda data: cut.take("answer")

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        _proxy(listener, connect, lambda: _never, to_client),
    ):
        yield f"127.0.0.1:{listener.getsockname()[1]}", cut


@contextlib.contextmanager
def database_proxy(folder: Path, server_folder: Path) -> Iterator[Cut]:
    """A socket in `folder` in front of the PostgreSQL whose socket is in `server_folder`.

    The moment `commit asked` is before the server sees a COMMIT, `commit made` when it has made it and says so.
    """
    cut = Cut()

    def connect() -> socket.socket:
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(str(server_folder / ".s.PGSQL.5432"))
        return connected

    def to_server() -> Ends:
        messages = _Messages(has_startup=True)
        return lambda data: any(
            kind == b"Q" and text == b"COMMIT\0" and cut.take("commit asked")
            for kind, text in messages.of(data)
        )

    def to_client() -> Ends:
        messages = _Messages(has_startup=False)
        return lambda data: any(
            kind == b"C" and text == b"COMMIT\0" and cut.take("commit made")
            for kind, text in messages.of(data)
        )

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / ".s.PGSQL.5432"))
        listener.listen()
        with _proxy(listener, connect, to_server, to_client):
            yield cut


class _Messages:
    """Cuts a stream of PostgreSQL's protocol into messages: (kind, text)."""

    def __init__(self, *, has_startup: bool) -> None:
        self._rest = b""
        self._awaits_startup = has_startup

    def of(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._rest += data
        while True:
            head = 0 if self._awaits_startup else 1
            if len(self._rest) < head + 4:
                return
            (length,) = _STARTUP_LENGTH.unpack_from(self._rest, head)
            if len(self._rest) < head + length:
                return
            kind, text = self._rest[:head], self._rest[head + 4 : head + length]
            self._rest = self._rest[head + length :]
            self._awaits_startup = False
            yield kind, text


def _never(data: bytes) -> bool:
    return False


@contextlib.contextmanager
def _proxy(
    listener: socket.socket,
    connect: Connect,
    to_server: Callable[[], Ends],
    to_client: Callable[[], Ends],
) -> Iterator[None]:
    pairs: list[tuple[socket.socket, socket.socket]] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = connect()
            pairs.append((client, server))
            for source, target, ends in (
                (client, server, to_server()),
                (server, client, to_client()),
            ):
                pump = threading.Thread(target=_pump, args=(source, target, ends))
                threads.append(pump)
                pump.start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        for pair in pairs:
            _end(*pair)
        for thread in threads:
            thread.join()
        for pair in pairs:
            for one in pair:
                one.close()


def _pump(source: socket.socket, target: socket.socket, ends: Ends) -> None:
    with contextlib.suppress(OSError):
        while (data := source.recv(65_536)) and not ends(data):
            target.sendall(data)
    _end(source, target)


def _end(*connections: socket.socket) -> None:
    for one in connections:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
