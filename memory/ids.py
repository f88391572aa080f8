"""Ids that the server makes: UUID version 7, in order within a process.

The first 48 bits are milliseconds, so new rows land at the end of a B-tree; a 42-bit counter
behind them keeps the order of ids made within one millisecond, also when the clock steps back.
The last 32 bits are random in every id. Nothing may rest on the order of ids of two processes.
"""

import os
import threading
import time
import uuid

PATH_SUFFIXES = {
    "fact": ("supersede", "verify", "revisions", "refresh"),
    "record": ("correct", "confirm", "forget", "explain", "history"),
}
"""What the API says after the id of a fact or record: an id that ends so could not be told from what is asked of another one."""

_COUNTER_BITS = 42
_COUNTER_START_BITS = 41  # the top bit starts at 0, so a millisecond has room for 2^41 ids
_TAIL_BITS = 32

_lock = threading.Lock()
_last_ms = 0
_counter = 0


def new_id() -> uuid.UUID:
    """Return a UUIDv7 greater than every earlier one of this process (RFC 9562 §6.2, method 1)."""
    global _last_ms, _counter
    random = int.from_bytes(os.urandom(10))
    tail = random & ((1 << _TAIL_BITS) - 1)
    with _lock:
        now_ms = time.time_ns() // 1_000_000
        if now_ms > _last_ms:
            _last_ms = now_ms
            _counter = (random >> _TAIL_BITS) & ((1 << _COUNTER_START_BITS) - 1)
        else:
            _counter += 1
            if _counter >> _COUNTER_BITS:
                _last_ms += 1
                _counter = 0
        ms, counter = _last_ms, _counter
    high_counter, low_counter = counter >> 30, counter & ((1 << 30) - 1)
    return uuid.UUID(
        int=ms << 80 | 0x7 << 76 | high_counter << 64 | 0b10 << 62 | low_counter << 32 | tail
    )


def new_text_id() -> str:
    """Return a new id as the wire writes it: 36 lower-case characters."""
    return str(new_id())


def is_addressable(kind: str, id: str) -> bool:
    """Whether the API's paths can name this id, and no other thing by it. kind: `fact` or `record`."""
    _, slash, last = id.rpartition("/")
    if slash and last in PATH_SUFFIXES[kind]:
        return False
    return kind != "record" or "/routes/" not in id


def _start_afresh_in_child() -> None:
    """A forked worker inherits no held lock and no counter of its parent."""
    global _lock, _last_ms, _counter
    _lock = threading.Lock()
    _last_ms = 0
    _counter = 0


os.register_at_fork(after_in_child=_start_afresh_in_child)
