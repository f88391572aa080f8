"""Ids are version 7, in order within a process, and different in forked workers."""

import itertools
import os
import threading
import time
import uuid

import pytest

from memory import ids


def test_an_id_is_a_version_7_uuid_that_carries_the_time_in_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ids never go back within a process, also after a test that travelled ahead in time.
    monkeypatch.setattr(ids, "_last_ms", 0)
    before = time.time_ns() // 1_000_000
    made = ids.new_id()
    after = time.time_ns() // 1_000_000

    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert before <= made.int >> 80 <= after


def test_ids_of_one_process_are_strictly_increasing() -> None:
    made = [ids.new_id() for _ in range(20_000)]

    assert all(earlier < later for earlier, later in itertools.pairwise(made))


def test_ids_stay_in_order_when_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = ids.new_id()
    monkeypatch.setattr(ids.time, "time_ns", lambda: 1_000_000_000)

    assert newest < ids.new_id() < ids.new_id()


def test_a_full_counter_moves_on_to_the_next_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    ids.new_id()
    monkeypatch.setattr(ids, "_counter", (1 << 42) - 1)
    monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
    ms_before = ids._last_ms

    assert ids.new_id().int >> 80 == ms_before + 1


def test_threads_never_share_an_id() -> None:
    made: list[uuid.UUID] = []

    def make() -> None:
        made.extend([ids.new_id() for _ in range(5_000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 20_000


def test_a_forked_worker_starts_with_its_own_counter_and_a_free_lock() -> None:
    read_end, write_end = os.pipe()
    with ids._lock:
        child = os.fork()
        if child == 0:
            os.write(write_end, ids.new_id().bytes)
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        from_child = uuid.UUID(bytes=answer.read())
    os.waitpid(child, 0)

    assert from_child.version == 7
    assert from_child != ids.new_id()


def test_the_text_form_is_lower_case_and_36_characters() -> None:
    text = ids.new_text_id()

    assert str(uuid.UUID(text)) == text
    assert len(text) == 36
