"""Runs handlers in bounded time: all of a call's together within one deadline, and few at once in the whole process.

A handler runs in a thread, because one that hangs can't be stopped: its answer is no longer waited for, and its place stays
taken until it ends, so that hanging handlers never use up the process. Of the places few are for one source, and not all for one
tenant: what hangs takes those of its own kind, and the other sources of its tenant, and other tenants, have theirs.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import structlog

from memory.refresh.handler import Fetched, Handler, RefreshError, RefreshRequest, Unchanged

AT_ONCE: Final = 16
OF_ONE_TENANT: Final = 8
OF_ONE_SOURCE: Final = 4

log = structlog.get_logger("kindmem.refresh")


@dataclass(frozen=True, slots=True)
class Failed:
    """The source could not be looked at. `code`: kebab-case."""

    code: str


Found = Unchanged | Fetched | Failed


class _Places:
    """How many handlers run: in all, of each tenant, of each source."""

    def __init__(self) -> None:
        self._freed = threading.Condition()
        self._taken: Counter[tuple[str, ...]] = Counter()

    def take(self, request: RefreshRequest) -> bool:
        """Whether there was a place. It is given back with `give_back`."""
        with self._freed:
            if any(self._taken[key] >= most for key, most in _bounds(request)):
                return False
            self._taken.update(key for key, _ in _bounds(request))
            return True

    def give_back(self, request: RefreshRequest) -> None:
        with self._freed:
            self._taken.subtract(key for key, _ in _bounds(request))
            self._taken += Counter()  # what is at nothing is forgotten
            self._freed.notify_all()

    def wait(self, deadline: float) -> bool:
        """Until one was given back, or for a moment; whether there is time left."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        with self._freed:
            self._freed.wait(min(left, _LONGEST_WAIT_SECONDS))
        return True


def _bounds(request: RefreshRequest) -> tuple[tuple[tuple[str, ...], int], ...]:
    source = (request.tenant, request.source_kind, _host(request.uri))
    return (((), AT_ONCE), ((request.tenant,), OF_ONE_TENANT), (source, OF_ONE_SOURCE))


def _host(uri: str | None) -> str:
    try:
        return urlsplit(uri or "").netloc
    except ValueError:
        return ""


_LONGEST_WAIT_SECONDS: Final = 0.1
"""A place may be given back between the look and the wait."""
_places = _Places()


def look_at_all(asked: Sequence[tuple[Handler, RefreshRequest]], *, seconds: float) -> list[Found]:
    """What each handler found, in order; Failed for one that is not done in time."""
    deadline = time.monotonic() + seconds
    looks = [_Look(handler, request, deadline) for handler, request in asked]
    waiting = [look for look in looks if not look.begin()]
    while waiting and _places.wait(deadline):
        waiting = [look for look in waiting if not look.begin()]
    return [look.result(deadline) for look in looks]


class _Look:
    def __init__(self, handler: Handler, request: RefreshRequest, deadline: float) -> None:
        self._asked = (handler, request, deadline)
        self._is_done = threading.Event()
        self._found: Found = Failed("refresh-busy")

    def begin(self) -> bool:
        """Whether it has a place and runs."""
        if not _places.take(self._asked[1]):
            return False
        self._found = Failed("refresh-timeout")
        threading.Thread(target=self._run, args=self._asked, name="refresh", daemon=True).start()
        return True

    def _run(self, handler: Handler, request: RefreshRequest, deadline: float) -> None:
        found: Found
        try:
            found = handler(request, max(0.0, deadline - time.monotonic()))
            if not isinstance(found, Unchanged | Fetched):
                found = Failed("refresh-handler-broken")
        except RefreshError as error:
            found = Failed(error.code)
        except Exception as error:  # noqa: BLE001, RUF100  # a handler is not our code: whatever it raises is its failure
            log.warning("refresh handler raised", error=type(error).__name__)
            found = Failed("refresh-handler-broken")
        finally:
            _places.give_back(request)
        self._found = found
        self._is_done.set()

    def result(self, deadline: float) -> Found:
        if self._is_done.wait(max(0.0, deadline - time.monotonic())):
            return self._found
        return self._found if isinstance(self._found, Failed) else Failed("refresh-timeout")
