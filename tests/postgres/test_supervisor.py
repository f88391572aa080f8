"""The supervisor keeps its children running, ends them when asked, and never leaves them behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kindmem import supervisor as supervisor_module
from kindmem.supervisor import Child, ChildFailed, StopRequested, StopSignals, Supervisor

LIVES = 'echo $$ >> "$0"; exec sleep 600'
LIVES_ON = 'trap "" TERM; echo $$ >> "$0"; while :; do sleep 1; done'
DIES = 'echo $$ >> "$0"'
# A parent that is killed with its child running.
PARENT = """
import os, sys
from kindmem.supervisor import Child, ChildFailed, StopSignals, Supervisor
child = Child("sleeper", ["sh", "-c", sys.argv[1], sys.argv[2]], os.environ)
Supervisor([child], tick=lambda: None, signals=StopSignals(), say=print).run()
"""


def starts(note: Path) -> list[int]:
    """The process ids that a child wrote down, one a start."""
    return [int(line) for line in note.read_text().split()] if note.exists() else []


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def run_until(
    child: Child, is_enough: Callable[[], bool], signals: StopSignals, said: list[str]
) -> None:
    """Supervise the child until the condition holds, then ask for the end as a terminal would."""

    def tick() -> None:
        if is_enough():
            os.kill(os.getpid(), signal.SIGINT)

    with signals.caught(), pytest.raises(StopRequested):
        Supervisor([child], tick=tick, signals=signals, say=said.append).run()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(supervisor_module, "_FIRST_PAUSE_SECONDS", 0.02)


def test_a_child_that_is_killed_is_started_again_and_ended_with_the_rest(tmp_path: Path) -> None:
    note, said, killed = tmp_path / "pids", list[str](), list[int]()

    def killed_once() -> bool:
        if starts(note) and not killed:
            killed.extend(starts(note))
            os.kill(killed[0], signal.SIGKILL)
        return len(starts(note)) >= 2

    run_until(
        Child("sleeper", ["sh", "-c", LIVES, str(note)], os.environ),
        killed_once,
        StopSignals(),
        said,
    )
    assert said == ["The sleeper ended (signal SIGKILL); starting it again"]
    assert len(starts(note)) == 2
    assert all(is_gone(pid) for pid in starts(note))


def test_a_child_that_dies_at_once_is_started_again_later_each_time(tmp_path: Path) -> None:
    note, said, moments = tmp_path / "pids", list[str](), list[float]()

    def four_times() -> bool:
        if len(starts(note)) > len(moments):
            moments.append(time.monotonic())
        return len(moments) >= 4

    run_until(
        Child("fly", ["sh", "-c", DIES, str(note)], os.environ), four_times, StopSignals(), said
    )
    assert "The fly ended (exit code 0); starting it again" in said
    # 20, 40, 80 ms: at least their sum.
    assert moments[3] - moments[0] >= 0.13


def test_a_child_that_never_stays_is_given_up_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "_HOPELESS_DEATHS", 3)
    note = tmp_path / "pids"
    child = Child("fly", ["sh", "-c", DIES, str(note)], os.environ)
    with pytest.raises(ChildFailed, match=r"The fly ended 3 times .* exit code 0"):
        Supervisor([child], tick=lambda: None, signals=StopSignals(), say=print).run()
    assert len(starts(note)) == 3


def test_a_child_waits_for_what_it_waits_for(tmp_path: Path) -> None:
    note, ticks = tmp_path / "pids", list[int]()
    child = Child(
        "sleeper", ["sh", "-c", LIVES, str(note)], os.environ, waits_for=lambda: len(ticks) > 5
    )

    def started() -> bool:
        ticks.append(len(starts(note)))
        return ticks[-1] == 1

    run_until(child, started, StopSignals(), [])
    assert ticks[:5] == [0] * 5


def test_a_second_signal_ends_children_that_do_not_listen(tmp_path: Path) -> None:
    note, signals = tmp_path / "pids", StopSignals()
    child = Child("deaf", ["sh", "-c", LIVES_ON, str(note)], os.environ)
    asked = child.ask_to_stop

    def asked_twice() -> None:
        asked()
        os.kill(os.getpid(), signal.SIGTERM)

    child.ask_to_stop = asked_twice  # type: ignore[method-assign]
    begun = time.monotonic()
    run_until(child, lambda: bool(starts(note)), signals, [])
    assert signals.is_urgent
    assert time.monotonic() - begun < supervisor_module._STOP_SECONDS / 2
    assert all(is_gone(pid) for pid in starts(note))


def test_a_child_that_does_not_end_in_time_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "_STOP_SECONDS", 0.1)
    note = tmp_path / "pids"
    child = Child("deaf", ["sh", "-c", LIVES_ON, str(note)], os.environ)
    run_until(child, lambda: bool(starts(note)), StopSignals(), [])
    assert all(is_gone(pid) for pid in starts(note))


def test_what_a_tick_raises_ends_the_children_too(tmp_path: Path) -> None:
    note = tmp_path / "pids"

    def tick() -> None:
        if starts(note):
            raise ZeroDivisionError

    child = Child("sleeper", ["sh", "-c", LIVES, str(note)], os.environ)
    with pytest.raises(ZeroDivisionError):
        Supervisor([child], tick=tick, signals=StopSignals(), say=print).run()
    assert all(is_gone(pid) for pid in starts(note))


def test_children_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, LIVES, str(note)], cwd=Path(__file__).parents[2]
    )
    while not starts(note):
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    while not is_gone(starts(note)[0]):
        time.sleep(0.01)
    assert len(starts(note)) == 1
