"""Threads that start together on real connections, for races that meet at a barrier instead of sleeping."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work(n)` in `count` threads that start together; their results, or the error that each raised."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def one(number: int) -> None:
        try:
            barrier.wait(timeout=30)
            results[number] = work(number)
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


Together = Callable[[Callable[[int], Any]], list[Any]]
"""Runs `work(n)` in some threads that start together, as `at_once` does."""


@contextmanager
def crew(count: int) -> Iterator[Together]:
    """Threads that stay, each with its connection, for many races one after the other."""
    barrier = threading.Barrier(count)
    asked: list[queue.SimpleQueue[Callable[[int], Any] | None]] = [
        queue.SimpleQueue() for _ in range(count)
    ]
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def one(number: int) -> None:
        try:
            while (work := asked[number].get()) is not None:
                try:
                    barrier.wait(timeout=30)
                    done.put((number, work(number)))
                except Exception as error:
                    done.put((number, error))
        finally:
            connection.close()

    def together(work: Callable[[int], Any]) -> list[Any]:
        for each in asked:
            each.put(work)
        results = dict(done.get(timeout=60) for _ in range(count))
        return [results[number] for number in range(count)]

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield together
    finally:
        for each in asked:
            each.put(None)
        for thread in threads:
            thread.join(timeout=60)
