"""Runs handlers in bounded time: all of a call's together within one deadline, and few at once in the whole process.

A handler runs in a thread, because one that hangs can't be stopped: its answer is no longer waited for, and its place stays
taken until it ends, so that hanging handlers never use up the process.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from memory.refresh.handler import Fetched, Handler, RefreshError, RefreshRequest, Unchanged

AT_ONCE = 16

log = structlog.get_logger("kindmem.refresh")
_places = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Failed:
    """The source could not be looked at. `code`: kebab-case."""

    code: str


Found = Unchanged | Fetched | Failed


def look_at_all(asked: Sequence[tuple[Handler, RefreshRequest]], *, seconds: float) -> list[Found]:
    """What each handler found, in order; Failed for one that is not done in time."""
    deadline = time.monotonic() + seconds
    looks = [_Look(handler, request, deadline) for handler, request in asked]
    return [look.result(deadline) for look in looks]


class _Look:
    def __init__(self, handler: Handler, request: RefreshRequest, deadline: float) -> None:
        self._is_done = threading.Event()
        self._found: Found = Failed("refresh-timeout")
        if not _places.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._found = Failed("refresh-busy")
            self._is_done.set()
            return
        threading.Thread(
            target=self._run, args=(handler, request, deadline), name="refresh", daemon=True
        ).start()

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
            _places.release()
        self._found = found
        self._is_done.set()

    def result(self, deadline: float) -> Found:
        if self._is_done.wait(max(0.0, deadline - time.monotonic())):
            return self._found
        return Failed("refresh-timeout")
