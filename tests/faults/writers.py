"""Clients that write without pause and, whatever happens to the server, repeat each request with its key until it is answered.

Each write says a word of its own, so that whoever reads afterwards can tell a write that is missing from one that is there twice.
"""

import itertools
import threading
import time
from dataclasses import dataclass
from typing import Any

from tests.faults.product import Lost, Product, Told

_PATIENCE_SECONDS = 90.0
_PAUSE_SECONDS = 0.05
# Not yet: the server is away, or a twin of this request is still running there.
_TRY_AGAIN = (409, 429, 503)
HOT_RUN = "hot"


@dataclass(frozen=True)
class Acknowledged:
    """A write and the answer that acknowledged it. `attempts`: how often it was sent."""

    path: str
    body: Any
    key: str
    word: str
    told: Told
    attempts: int


class Writer(threading.Thread):
    """Writes facts, next revisions and log entries until it is told to stop; ends with the last one acknowledged."""

    def __init__(self, product: Product, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"writer-{number}")
        self._wire = product.wire()
        self._number, self._should_stop = number, stop
        self.acknowledged: list[Acknowledged] = []
        self.unexpected: list[str] = []

    def run(self) -> None:
        with self._wire:
            for turn in itertools.count():
                if self._should_stop.is_set() or self.unexpected:
                    return
                self._write(turn)

    def _write(self, turn: int) -> None:
        word = f"w{self._number}-{turn}"
        run = HOT_RUN if turn % 2 else f"own-{self._number}"
        scope = {"projectId": "p1"}
        entry = {"kind": "tool-call", "scope": scope, "payload": {"word": word}}
        if self._number % 2:
            self._until_acknowledged(word, f"/v1/memory/runs/{run}/log", entry)
        elif turn % 3 == 0:
            fact = {"type": "note", "scope": scope, "content": {"word": word}}
            self._until_acknowledged(word, "/v1/memory/facts", fact)
        elif turn % 3 == 1:
            body = {"entries": [entry, entry | {"payload": {"word": f"{word}b"}}]}
            self._until_acknowledged(word, f"/v1/memory/runs/{run}/log/batch", body)
        else:
            fact_id = next(
                one.told.json()["id"] for one in reversed(self.acknowledged) if is_fact(one)
            )
            path = f"/v1/memory/facts/{fact_id}/supersede"
            self._until_acknowledged(word, path, {"content": {"word": word}})

    def _until_acknowledged(self, word: str, path: str, body: Any) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        for attempt in itertools.count(1):
            try:
                told = self._wire.ask("POST", path, body, key=f"key-{word}")
            except Lost:
                told = None
            if told is not None and told.status < 300:
                self.acknowledged.append(
                    Acknowledged(path, body, f"key-{word}", word, told, attempt)
                )
                return
            if told is not None and told.status not in _TRY_AGAIN:
                self.unexpected.append(f"{path}: {told.status} {told.body!r}")
                return
            if time.monotonic() > until:
                self.unexpected.append(f"{path}: nobody answered")
                return
            time.sleep(_PAUSE_SECONDS)


def is_fact(one: Acknowledged) -> bool:
    return one.path == "/v1/memory/facts"
