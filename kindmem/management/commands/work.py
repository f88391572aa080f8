"""`work`: the worker. Runs what is due again and again, and shows that it is alive.

What is due comes from `memory.housekeeping.JOBS`: (name, every so many seconds, what to call). A
job that fails for a reason the product knows is logged and tried again at its next time; a bug ends
the worker, which its supervisor starts again.
"""

import signal
import threading
import time
from types import FrameType
from typing import Any

import structlog
from django.db import Error as DatabaseError
from django.db import connections

from kindmem.heartbeat import beat
from memory.errors import DomainError
from memory.housekeeping import JOBS
from memory.installation_keys import OtherKeys, claim_keys
from memory.management.command import Refused, ToldCommand

_HEARTBEAT_SECONDS = 5.0
_LONGEST_NAP_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Command(ToldCommand):
    """Run the background work until a signal ends it."""

    help = "Run the background work until a signal ends it."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, end)
        _await_keys(stop)
        rounds = [("heartbeat", _HEARTBEAT_SECONDS, beat), *JOBS]
        due_at = dict.fromkeys((name for name, _, _ in rounds), 0.0)
        while not stop.is_set():
            for name, every_seconds, call in rounds:
                if stop.is_set() or time.monotonic() < due_at[name]:
                    continue
                due_at[name] = time.monotonic() + every_seconds
                try:
                    call()
                except (DatabaseError, DomainError, OSError) as error:
                    # The kind of error only: its text could quote what is remembered.
                    log.warning("job_failed", job=name, error=type(error).__name__)
                    connections.close_all()
            stop.wait(_LONGEST_NAP_SECONDS)
        connections.close_all()


def _await_keys(stop: threading.Event) -> None:
    """Return when the keys are known to be this database's, which may be down at first. Raises Refused."""
    while not stop.is_set():
        try:
            claim_keys()
        except OtherKeys as error:
            raise Refused(str(error), code="other-keys") from error
        except DatabaseError as error:
            log.warning("keys_not_compared", error=type(error).__name__)
            connections.close_all()
            stop.wait(_LONGEST_NAP_SECONDS)
        else:
            return
