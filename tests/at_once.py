"""Threads that start together on real connections, for races that meet at a barrier instead of sleeping."""

import threading
from collections.abc import Callable
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
