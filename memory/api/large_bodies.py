"""Bodies larger than most routes take have their turn one by one.

Read, one has up to fifty times its size in memory. A worker whose threads all held one grew by more than a gigabyte.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from django.conf import settings

from memory.errors import Unavailable

PATIENCE_SECONDS: Final = 10.0
_TURN = threading.Lock()


@contextlib.contextmanager
def in_turn(size_bytes: int) -> Iterator[None]:
    """Hold the turn of this process while such a body is read and answered. Raises Unavailable when it doesn't come in time."""
    if size_bytes <= settings.KINDMEM_BODY_MAX_BYTES:
        yield
        return
    if not _TURN.acquire(timeout=PATIENCE_SECONDS):
        raise Unavailable
    try:
        yield
    finally:
        _TURN.release()
