"""`work`: the worker. Runs the queue (kindmem/worker.py) until a signal ends it."""

import asyncio
import logging
import signal
import threading
from types import FrameType
from typing import Any

import structlog
from django.db import Error as DatabaseError
from django.db import connections

from kindmem.worker import QueueRunner
from memory.installation_keys import OtherKeys, claim_keys
from memory.integrity.timestamps import chosen_authorities
from memory.integrity.witnesses import chosen_witnesses
from memory.management.command import Refused, ToldCommand

_NAP_SECONDS = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

log = structlog.get_logger(__name__)


class Command(ToldCommand):
    """Run the background work until a signal ends it."""

    help = "Run the background work until a signal ends it."

    def handle(self, *args: Any, **options: Any) -> None:
        _quiet_libraries()
        stop = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            stop.set()

        for number in _SIGNALS:
            signal.signal(number, end)
        _await_keys(stop)
        connections.close_all()
        if not stop.is_set():
            asyncio.run(_run())


async def _run() -> None:
    stop = asyncio.Event()
    outside = {"witness": chosen_witnesses(), "stamp": chosen_authorities()}
    also = [name for name, chosen in outside.items() if chosen]
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    await QueueRunner(stop, also=also).run()


def _quiet_libraries() -> None:
    """Their words quote errors, and errors may quote what is remembered; ours name the kind."""
    for name in ("procrastinate", "psycopg.pool", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


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
            stop.wait(_NAP_SECONDS)
        else:
            return
