"""Jobs that wait on machines of others run beside the worker's own, so that they hold nothing up."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import connections


class Beside:
    """A job in a thread of its own, one turn at a time: a call while the last one still runs does nothing.

    What a turn raised is raised by the call after it.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")
        self._turn: Future[None] | None = None

    def __call__(self) -> None:
        if self._turn is not None:
            if not self._turn.done():
                return
            turn, self._turn = self._turn, None
            turn.result()
        self._turn = self._threads.submit(self._run)

    def wait(self, seconds: float) -> None:
        """Until the running turn is over. Raises TimeoutError."""
        if self._turn is not None:
            self._turn.exception(seconds)

    def _run(self) -> None:
        try:
            self._call()
        finally:
            connections.close_all()
