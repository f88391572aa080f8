"""Runs the worker's queue until it is asked to stop: procrastinate's loops, and what keeps them true to us.

Two loops in one process: `near` for work on our own database, `far` for what waits on machines of others. Beside them every
second a look for what is due, every few seconds a heartbeat, and jobs whose worker died go back to the queue. Nothing is listened
for: behind a pooler in transaction mode nothing could be. A lost database ends the loops, which begin anew when it is back. A job
that does not end in time when the worker stops is given back; it may be cut off anywhere.
"""

import asyncio
import os
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import psycopg
import structlog
from procrastinate import App
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker
from psycopg_pool import PoolClosed, PoolTimeout

from kindmem.heartbeat import BEAT
from kindmem.work_app import SLOW, Running, due, everything, make_app, of_the_installation
from memory.work import OF_THE_INSTALLATION, WORKS, Queue

THREADS: Final[dict[Queue, int]] = {"near": 3, "far": 4, "slow": 3}
GRACE_SECONDS: Final = 4.0
SILENT_SECONDS: Final = 12
_POLL_SECONDS: Final[dict[Queue, float]] = {"near": 0.4, "far": 1.0, "slow": 2.0}
_TICK_SECONDS = 1.0
_BEAT_SECONDS = 3.0
_PAUSE_SECONDS = 0.5

_LOST = (ConnectorException, psycopg.Error, PoolTimeout, PoolClosed, OSError)

log = structlog.get_logger("kindmem.worker")


class QueueRunner:
    """The loops of one process, until `stop` is set. `also`: work of the installation that is wanted here."""

    def __init__(self, stop: asyncio.Event, *, also: Sequence[str]) -> None:
        self._stop = stop
        self._also = also
        self._running = Running()
        self._looked_at: dict[str, float] = {}
        self._suspects: set[int] = set()
        self._is_first = True

    async def run(self) -> None:
        """Return when every job came to an end; where one does not in time, the process ends here."""
        threads = ThreadPoolExecutor(sum(THREADS.values()), thread_name_prefix="work")
        asyncio.get_running_loop().set_default_executor(threads)
        while not self._stop.is_set():
            try:
                await self._serve()
            except _LOST as error:
                log.warning("database_lost", error=type(error).__name__)
                self._running.connected += 1
                await self._nap(_PAUSE_SECONDS)

    async def _serve(self) -> None:
        app = make_app(self._running)
        async with app.open_async():
            if self._is_first:
                # Older than what a look goes back, and still unsealed: only a full round finds it.
                await _ask(app, *everything(["seal"]))
                self._is_first = False
            workers = [_loop(app, queue) for queue in THREADS]
            loops = [asyncio.create_task(worker.run()) for worker in workers]
            sides = [
                asyncio.create_task(self._look(app)),
                asyncio.create_task(self._beat(app, workers)),
            ]
            stopped = asyncio.create_task(self._stop.wait())
            await asyncio.wait([*loops, *sides, stopped], return_when=asyncio.FIRST_COMPLETED)
            for worker in workers:
                worker.stop()
            for task in (*sides, stopped):
                task.cancel()
            _, unended = await asyncio.wait(
                loops, timeout=GRACE_SECONDS if self._stop.is_set() else None
            )
            if unended:
                await self._give_back(app, workers)
                # Whatever would be closed or waited for from here on waits for their threads.
                _end_process()
            outcomes = await asyncio.gather(*loops, *sides, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    async def _look(self, app: App) -> None:
        """Ask for what is due, each kind at its own pace."""
        fast = [name for name in WORKS if name not in SLOW and name not in OF_THE_INSTALLATION]
        while True:
            if works := [name for name in fast if self._is_time(name)]:
                await _ask(app, *due(works))
            if works := [name for name in self._also if self._is_time(name)]:
                await _ask(app, *of_the_installation(works))
            await asyncio.sleep(_TICK_SECONDS)

    def _is_time(self, work: str) -> bool:
        now = time.monotonic()
        # A tick comes a little late; it must not cost a whole further one.
        if now - self._looked_at.get(work, -1e9) < WORKS[work].every_seconds - 0.1:
            return False
        self._looked_at[work] = now
        return True

    async def _beat(self, app: App, workers: list[Worker]) -> None:
        """Say that we live, and take back what nobody runs: of dead workers, and of ours where its end could not be told."""
        while True:
            await _ask(app, BEAT, {"name": "worker"})
            own = [worker.worker_id for worker in workers if worker.worker_id is not None]
            answer = await app.connector.execute_query_one_async(
                "SELECT take_back_work(%(own)s::bigint[], %(lost)s::bigint[], %(silent)s::int) AS ours",
                own=own,
                lost=sorted(self._suspects - self._running.jobs),
                silent=SILENT_SECONDS,
            )
            # Suspect: ours by the queue, of no thread, now and at the next look.
            self._suspects = set(answer["ours"]) - self._running.jobs
            await asyncio.sleep(_BEAT_SECONDS)

    async def _give_back(self, app: App, workers: list[Worker]) -> None:
        """Leave unended jobs to the next worker at once: it takes up what has no worker."""
        own = [worker.worker_id for worker in workers if worker.worker_id is not None]
        log.warning("jobs_cut_off", jobs=len(self._running.jobs))
        await _ask(app, _GIVE_BACK, {"own": own})

    async def _nap(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return


_GIVE_BACK = "DELETE FROM procrastinate_workers WHERE id = ANY (%(own)s::bigint[])"


def _loop(app: App, queue: Queue) -> Worker:
    return Worker(
        app,
        queues=[queue],
        name=queue,
        concurrency=THREADS[queue],
        fetch_job_polling_interval=_POLL_SECONDS[queue],
        abort_job_polling_interval=30.0,
        listen_notify=False,
        delete_jobs="successful",
        install_signal_handlers=False,
        update_heartbeat_interval=3.0,
        stalled_worker_timeout=float(SILENT_SECONDS),
    )


def _ask(app: App, statement: Any, parameters: dict[str, Any]) -> Coroutine[Any, Any, None]:
    coroutine: Coroutine[Any, Any, None] = app.connector.execute_query_async(
        statement, **parameters
    )
    return coroutine


def _end_process() -> None:
    """End at once, with threads that still run."""
    os._exit(0)
