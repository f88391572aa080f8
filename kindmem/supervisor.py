"""Keeps the product's processes running until it is asked to stop, then ends them all.

A child that dies is started again, later each time it dies soon; the children never outlive this
process, however it ends. They are in process groups of their own, so that a terminal's Ctrl-C
reaches this process alone, which then stops them in order.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK_SECONDS = 0.25
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
# A child that lived this long starts with a clean record.
_STEADY_SECONDS = 10.0
_STOP_SECONDS = 15.0
# A child that ends by itself this often, without one steady run between, is broken, not unlucky.
_HOPELESS_DEATHS = 8
_PR_SET_PDEATHSIG = 1


class StopRequested(BaseException):
    """A signal asked this process to end; passes through everything that handles errors."""


class ChildFailed(RuntimeError):
    """A child can't be kept running; the message says which and how it ended."""


class StopSignals:
    """The first of the stop signals raises StopRequested; a further one makes `is_urgent` true."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def is_urgent(self) -> bool:
        """True when somebody asked again while everything was being stopped."""
        return self._count > 1

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        # Raised once only: a second one would interrupt the very stopping it asks for.
        if self._count == 1:
            raise StopRequested

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Catch the signals meanwhile."""
        earlier = {number: signal.signal(number, self._received) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


class Child:
    """One command that should always run, from when `waits_for` is true."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        *,
        waits_for: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name = name
        self._waits_for = waits_for
        self._command, self._environ, self._pass_fds = list(command), dict(environ), tuple(pass_fds)
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths = 0
        self._own_ends = 0
        self._started_at = 0.0
        self._start_again_at = 0.0

    def _start(self) -> None:
        self._started_at = time.monotonic()
        self._process = subprocess.Popen(  # noqa: S603 - our own commands
            self._command,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            pass_fds=self._pass_fds,
            process_group=0,
            preexec_fn=_ends_with(os.getpid()) if sys.platform == "linux" else None,
        )

    def death(self) -> str | None:
        """How it ended, told once, when it has ended since it was last asked.

        Raises ChildFailed when it keeps ending soon after each start.
        """
        if self._process is None or (code := self._process.poll()) is None:
            return None
        now = time.monotonic()
        if now - self._started_at > _STEADY_SECONDS:
            self._deaths = self._own_ends = 0
        pause_seconds = min(_FIRST_PAUSE_SECONDS * 2**self._deaths, _LONGEST_PAUSE_SECONDS)
        self._start_again_at = now + pause_seconds
        self._deaths += 1
        self._process = None
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        # Whoever kills it from outside may do so as often as they like.
        self._own_ends += code >= 0
        if self._own_ends >= _HOPELESS_DEATHS:
            raise ChildFailed(
                f"The {self.name} ended {self._own_ends} times soon after its start, last with {how}. "
                "What it said itself is above."
            )
        return how

    def start_when_due(self) -> None:
        """Run the command unless it runs, or must wait after its last end."""
        is_due = time.monotonic() >= self._start_again_at
        if self._process is None and is_due and self._waits_for():
            self._start()

    def has_ended(self) -> bool:
        """True when no process of it is left to wait for."""
        return self._process is None or self._process.poll() is not None

    def ask_to_stop(self) -> None:
        """Ask for a clean end."""
        if not self.has_ended() and self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """End it and what it started, at once."""
        if not self.has_ended() and self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Supervisor:
    """Runs children and looks after them; `tick` is called a few times a second meanwhile."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        tick: Callable[[], None],
        signals: StopSignals,
        say: Callable[[str], None],
    ) -> None:
        self._children, self._tick, self._signals, self._say = children, tick, signals, say

    def run(self) -> None:
        """Run until StopRequested, ChildFailed or what `tick` raises; ends all children first."""
        try:
            while True:
                for child in self._children:
                    if (how := child.death()) is not None:
                        self._say(f"The {child.name} ended ({how}); starting it again")
                    child.start_when_due()
                self._tick()
                time.sleep(_TICK_SECONDS)
        finally:
            self._stop()

    def _stop(self) -> None:
        for child in self._children:
            child.ask_to_stop()
        until = time.monotonic() + _STOP_SECONDS
        while not all(child.has_ended() for child in self._children):
            if self._signals.is_urgent or time.monotonic() > until:
                for child in self._children:
                    child.kill()
            time.sleep(_TICK_SECONDS / 10)


def _ends_with(parent: int) -> Callable[[], None]:
    """What a Linux child runs before its command, to be told when its parent dies."""

    def ask() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # The parent ended before it was watched.
            os._exit(1)

    return ask
