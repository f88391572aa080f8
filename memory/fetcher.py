"""The one way out: every request to an address that somebody configured goes through `fetch`.

Refresh handlers, policy sources and webhooks name addresses; none of them may reach this machine,
its network or a cloud's metadata, hold a thread for long, or fill its memory. So: https on port
443 to a named host; the name is resolved once and every address must be public
(`fetch_rules`); the connection goes to a checked address, with the name in SNI and Host; no
redirect, no proxy, no decompression; one deadline over everything, waiting included; a bound on
size and on how many fetches run at once; never inside a database transaction.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import httpcore

from memory.fetch_rules import (
    FetchError,
    FetchFailed,
    FetchRefused,
    FetchTimeout,
    FetchTooLarge,
    Target,
    checked_headers,
    is_loopback,
    is_public,
    parse_target,
)

TIMEOUT_SECONDS = 2.0
MAX_BYTES = 65_536
MAX_ADDRESSES = 16
AT_ONCE = 8
# More than fetches: a resolver that hangs keeps its place after its fetch has given up.
RESOLVING_AT_ONCE = 32

__all__ = [
    "FetchError",
    "FetchFailed",
    "FetchRefused",
    "FetchTimeout",
    "FetchTooLarge",
    "Fetched",
    "fetch",
]

Resolver = Callable[[str, int], Sequence[str]]
_running = threading.BoundedSemaphore(AT_ONCE)
_resolving = threading.BoundedSemaphore(RESOLVING_AT_ONCE)


@dataclass(frozen=True)
class Fetched:
    """An answer of any status but a redirect; header names in lower case, body as it was sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Deadline:
    def __init__(self, seconds: float, host: str) -> None:
        self._ends = time.monotonic() + seconds
        self._host = host

    def left(self) -> float:
        """Seconds left, more than 0; raises FetchTimeout."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> FetchTimeout:
        return FetchTimeout("the deadline passed", self._host)


def fetch(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    method: Literal["GET", "POST"] = "GET",
    content: bytes = b"",
    timeout_seconds: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_BYTES,
    allow_loopback: bool = False,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    in_transaction: Callable[[], bool] | None = None,
) -> Fetched:
    """Fetch one address under all the rules of this file and return the whole answer.

    `allow_loopback` is the development setting: plain http and any port, and then only where
    every address is loopback. `resolver(host, port)` gives addresses as text and raises OSError;
    it runs in a thread. Raises FetchRefused, FetchTimeout, FetchTooLarge or FetchFailed.
    """
    if (in_transaction or is_in_transaction)():
        raise FetchRefused("in-transaction")
    if method not in ("GET", "POST"):
        raise FetchRefused("method")
    target = parse_target(url, allow_loopback=allow_loopback)
    sent = checked_headers(headers or {}, target.host)
    deadline = _Deadline(timeout_seconds, target.host)
    if not _running.acquire(timeout=deadline.left()):
        raise deadline.passed()
    try:
        addresses = _checked_addresses(
            target, resolver or resolve, deadline, allow_loopback=allow_loopback
        )
        return _exchange(
            target,
            method,
            sent,
            content,
            backend=_CheckedBackend(addresses, deadline, target.host),
            ssl_context=ssl_context or _trusted(),
            max_bytes=max_bytes,
        )
    finally:
        _running.release()


def is_in_transaction() -> bool:
    """Whether this thread holds a transaction open on any database connection."""
    from django.db import connections

    return any(connection.in_atomic_block for connection in connections.all(initialized_only=True))


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name, as the system's resolver gives them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _checked_addresses(
    target: Target, resolver: Resolver, deadline: _Deadline, *, allow_loopback: bool
) -> list[str]:
    if target.literal is not None:
        return [target.literal]
    addresses = _resolved(target, resolver, deadline)
    if not addresses:
        raise FetchFailed("the name has no address", target.host)
    if allow_loopback and all(is_loopback(address) for address in addresses):
        return addresses[:MAX_ADDRESSES]
    if not all(is_public(address) for address in addresses):
        raise FetchRefused("address", target.host)
    if target.scheme != "https":
        raise FetchRefused("scheme", target.host)
    if target.port != 443:
        raise FetchRefused("port", target.host)
    return addresses[:MAX_ADDRESSES]


def _resolved(target: Target, resolver: Resolver, deadline: _Deadline) -> list[str]:
    """Resolve in a thread: the system's resolver takes no time limit and can't be stopped."""
    if not _resolving.acquire(timeout=deadline.left()):
        raise deadline.passed()
    found: list[list[str]] = []
    errors: list[Exception] = []
    is_done = threading.Event()

    def ask() -> None:
        try:
            found.append(list(resolver(target.host, target.port)))
        except (OSError, UnicodeError) as error:
            errors.append(error)
        finally:
            _resolving.release()
            is_done.set()

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    if not is_done.wait(deadline.left()):
        raise deadline.passed()
    if not found:
        raise FetchFailed("the name does not resolve", target.host) from next(iter(errors), None)
    return found[0]


# -- the exchange --------------------------------------------------------------------------------


def _exchange(
    target: Target,
    method: str,
    headers: Sequence[tuple[str, str]],
    content: bytes,
    *,
    backend: _CheckedBackend,
    ssl_context: ssl.SSLContext,
    max_bytes: int,
) -> Fetched:
    url = httpcore.URL(
        scheme=target.scheme,
        host=target.host,
        port=None if target.port == _usual_port(target.scheme) else target.port,
        target=target.path,
    )
    pool = httpcore.ConnectionPool(
        ssl_context=ssl_context, max_connections=1, retries=0, network_backend=backend
    )
    try:
        with (
            pool,
            pool.stream(method, url, headers=list(headers), content=content or None) as answer,
        ):
            found = _answer_headers(answer, target.host, max_bytes)
            body = bytearray()
            for piece in answer.iter_stream():
                body += piece
                if len(body) > max_bytes:
                    raise FetchTooLarge(f"more than {max_bytes} bytes", target.host)
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchFailed("does not speak HTTP", target.host) from error
    return Fetched(answer.status, found, bytes(body))


def _usual_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _answer_headers(answer: httpcore.Response, host: str, max_bytes: int) -> dict[str, str]:
    if 300 <= answer.status < 400 and answer.status != 304:
        raise FetchRefused("redirect", host)
    if answer.status < 200:
        raise FetchFailed("answered no final status", host)
    found: dict[str, str] = {}
    for raw_name, raw_value in answer.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    if found.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise FetchRefused("content-encoding", host)
    announced = found.get("content-length", "")
    if announced.isdigit() and int(announced) > max_bytes:
        raise FetchTooLarge(f"more than {max_bytes} bytes", host)
    return found


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked, whatever host it is asked for."""

    def __init__(self, addresses: Sequence[str], deadline: _Deadline, host: str) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._host = host

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: OSError | None = None
        for place, address in enumerate(self._addresses):
            # One silent address must not use up the time of the others.
            share = self._deadline.left() / (len(self._addresses) - place)
            try:
                connected = socket.create_connection((address, port), share)
            except OSError as error:
                failure = error
                continue
            return _TimedStream(connected, self._deadline, self._host)
        if isinstance(failure, TimeoutError):
            raise self._deadline.passed() from failure
        raise FetchFailed("can't be connected to", self._host) from failure


class _TimedStream(httpcore.NetworkStream):
    """A socket on which every wait ends with the deadline of the whole fetch."""

    def __init__(self, connected: socket.socket, deadline: _Deadline, host: str) -> None:
        self._socket = connected
        self._deadline = deadline
        self._host = host

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            self._socket.settimeout(self._deadline.left())
            return self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise self._deadline.passed() from error
        except OSError as error:
            raise FetchFailed("closed the connection", self._host) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        try:
            while rest:
                self._socket.settimeout(self._deadline.left())
                rest = rest[self._socket.send(rest) :]
        except TimeoutError as error:
            raise self._deadline.passed() from error
        except OSError as error:
            # The answer may be there all the same; httpcore goes on to read it.
            raise httpcore.WriteError(str(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            self._socket.settimeout(self._deadline.left())
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except TimeoutError as error:
            self.close()
            raise self._deadline.passed() from error
        except OSError as error:
            self.close()
            raise FetchFailed("TLS could not be agreed on", self._host) from error
        return _TimedStream(secured, self._deadline, self._host)

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        return None


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """The certificate authorities of httpx's bundle, or of SSL_CERT_FILE where that is set."""
    import httpx

    return httpx.create_ssl_context()
