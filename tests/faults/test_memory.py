"""Bodies that are made to fill the memory: each is answered, the worker lives, and it is not much larger afterwards.

Three times as many at once as the server has threads, as large as a route takes, in the shapes that cost most to read. What was
refused is garbage at once: once it waited for the collector, and a worker grew by a gigabyte and more.
"""

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.web_server import HOST, JSON, Web, exchange, fact_body, message
from tests.postgres.test_up import children_of

pytestmark = pytest.mark.faults

AT_ONCE = 12
MIB = 1 << 20
GROWTH_BYTES = 400 * MIB
"""What one worker with four threads may grow by, its first use of everything included: about 80 a thread while a body is read."""
BATCH_GROWTH_BYTES = 800 * MIB
"""The same for batches, whose bodies may be eight times as large, and have their turn one by one."""
BATCH = "/v1/memory/runs/bomb/log/batch"


def filled(start: bytes, piece: bytes, end: bytes, size: int) -> bytes:
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


def _entries(size: int) -> bytes:
    one = b'{"kind":"tool-call","scope":{},"payload":[%b]},' % b",".join([b"1"] * 4000)
    return filled(b'{"entries":[', one, one[:-1] + b"]}", size)


BOMBS: dict[str, Callable[[int], bytes]] = {
    "many small numbers": lambda size: filled(b'{"content":[', b"1,", b"1]}", size),
    "many empty objects": lambda size: filled(b'{"content":[', b"{},", b"{}]}", size),
    "many keys": lambda size: b"{" + b",".join(b'"k%d":1' % n for n in range(size // 12)) + b"}",
    "deep": lambda size: filled(b'{"content":', b"[", b"1", size),
    "one long text": lambda size: filled(b'{"content":"', b"x", b'"}', size),
    "escapes": lambda size: filled(b'{"content":"', b"\\u0001", b'"}', size),
    "a long number": lambda size: filled(b'{"content":', b"9", b"}", size),
    "more than is taken": lambda size: b" " * (size + 1),
}


def the_worker() -> int:
    """The process id of the one worker of the web server that this test started."""
    (master,) = [pid for pid in children_of(os.getpid()) if "gunicorn" in _words_of(pid)]
    (worker,) = children_of(master)
    return worker


def _words_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def resident_bytes(pid: int) -> int:
    found = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert found is not None
    return int(found[1]) * 1024


def asked_at_once(web: Web, path: str, body: bytes, count: int) -> list[int]:
    """The status that each of many senders at once is told; 0 where the connection ended first."""
    found = [0] * count
    heads = (HOST, web.key, JSON, f"Content-Length: {len(body)}", "Connection: close")
    sent = message("POST", path, *heads, body=body)

    def send(number: int) -> None:
        replies = exchange(web.port, sent, seconds=120)
        found[number] = replies[0].status if replies else 0

    threads = [threading.Thread(target=send, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def survives(
    web: Web, path: str, body: bytes, *, growth_bytes: int, also: int, count: int = AT_ONCE
) -> None:
    web.ask(web.post(f"Content-Length: {len(fact_body())}", "Connection: close", body=fact_body()))
    worker = the_worker()
    before = resident_bytes(worker)
    told = asked_at_once(web, path, body, count)
    # One that is refused before it was read to its end may find the connection gone.
    assert set(told) <= {0, 400, 413, 429, 503, also}, told
    assert told.count(0) < count
    assert the_worker() == worker, "the worker was replaced"
    assert resident_bytes(worker) - before < growth_bytes
    (alive,) = web.ask(message("GET", "/v1/memory/me", HOST, web.key, "Connection: close"))
    assert alive.status == 200
    assert json.loads(alive.body)["role"] == "admin"


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_that_is_made_to_fill_the_memory_is_answered_and_leaves_no_mark(
    name: str, web: Web
) -> None:
    body = BOMBS[name](MIB)
    survives(web, "/v1/memory/facts", body, growth_bytes=GROWTH_BYTES, also=400)


@pytest.mark.full
def test_batches_as_large_as_they_may_be_are_taken_by_the_same_worker(web: Web) -> None:
    survives(web, BATCH, _entries(8 * MIB), growth_bytes=BATCH_GROWTH_BYTES, also=201, count=4)


def test_of_many_unknown_fields_a_refusal_names_some(web: Web) -> None:
    body = BOMBS["many keys"](MIB)
    (told,) = web.ask(web.post(f"Content-Length: {len(body)}", "Connection: close", body=body))
    assert told.status == 400
    assert 10 < len(json.loads(told.body)["error"]["details"]["issues"]) <= 20
