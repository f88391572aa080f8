"""Each request over HTTP beside its floor: the same SQL statements and the commit, run again as they stand.

`its floor` is a bare WSGI function: the same key look-up, the statements, the commit, by psycopg, without Django. `its statements
behind the product's door` runs them in the product's own middleware and handling of a request, so that what lies between the two
ratios is that door, and what is left is what the request does in Python: reading, checking, hashing, embedding, writing JSON.
Product and floors take turns, each with as many requests; none writes the same thing twice. A batch of log entries is not here,
because its second statement holds what the first one answered: `append` measures it against raw SQL in process.

Run: python -m tests.benchmarks.floor_bench [facts]   (10000 unless said)
"""

import http.client
import itertools
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.benchmarks.append_bench import ENTRY
from tests.benchmarks.breadth_bench import Client, far_cursor, record, warm_up
from tests.benchmarks.filling import SCOPE
from tests.benchmarks.filling import fill as fill_facts
from tests.benchmarks.floors import Statement, numbered, recorded, save
from tests.benchmarks.harness import (
    chosen_sizes,
    database,
    interleaved,
    ratio,
    usual_or_quick,
    web_server,
)
from tests.benchmarks.recall_bench import KEYS
from tests.benchmarks.search_bench import text_maker

ROUNDS = usual_or_quick(3, 1)
REQUESTS = {1: usual_or_quick(60, 3), 8: usual_or_quick(120, 8)}
"""How many of each kind a round, by the number of clients."""
POOL = usual_or_quick(60, 4)
"""As many recordings of what changes nothing that is asked for again."""
WANTED = 0.6
Asked = tuple[str, str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of request. `asked` makes the n-th; `writes`: each may be sent once."""

    name: str
    asked: Callable[[int], Asked]
    writes: bool
    clients: Sequence[int] = (1, 8)
    share: float = 1.0
    """Of the usual count, where one takes long."""

    def requests(self, clients: int) -> int:
        return max(1, int(REQUESTS[clients] * self.share))


class Numbers:
    """Hands out numbers of a kind's requests: new ones where each is used once, the pool's in turn where not."""

    def __init__(self, first: int, count: int, *, once: bool) -> None:
        numbers = range(first, first + count)
        self._next: Iterator[int] = iter(numbers) if once else itertools.cycle(numbers)

    def take(self, count: int) -> list[int]:
        return [next(self._next) for _ in range(count)]


def rate(port: int, token: str, clients: int, asked: Sequence[Asked]) -> float:
    """Answers a second, each client on a connection of its own with its share of the requests."""
    failed: list[str] = []

    def send(mine: Sequence[Asked]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for method, path, body in mine:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status >= 300:
                failed.append(f"{method} {path}: {content!r}")
                break
        connection.close()

    threads = [threading.Thread(target=send, args=(asked[n::clients],)) for n in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    if failed:
        raise RuntimeError(failed[0])
    return len(asked) / took


def kinds(ids: Sequence[str], page: int, far: str, families: Sequence[str]) -> list[Kind]:
    """Every kind of request with a figure of its own. `families`: records that two others are derived from, to be forgotten."""
    make_text = text_maker(11)
    questions = [" ".join(make_text().split()[:5]) for _ in range(POOL)]
    facts = "/v1/memory/facts"

    def fact(type: str) -> Callable[[int], Asked]:
        return lambda n: (
            "POST",
            facts,
            {"type": type, "scope": SCOPE, "content": f"{make_text()} {n}"},
        )

    def retrieve(mode: str) -> Callable[[int], Asked]:
        return lambda n: (
            "POST",
            "/v1/memory/retrieve",
            {"mode": mode, "query": questions[n % POOL], "limit": 10},
        )

    def about(n: int) -> tuple[str, dict[str, Any]]:
        return f"k{n % KEYS}", {"user_id": f"u{n // KEYS}", "trip_id": "T1"}

    def recall(n: int) -> Asked:
        key, context = about(n)
        return "POST", "/v1/memory/recall", {"key": key, "context": context}

    def correct(n: int) -> Asked:
        key, context = about(n)
        body = {"key": key, "new_value": f"value {n} as corrected", "context": context}
        return "POST", "/v1/memory/correct", body

    return [
        Kind("append", lambda n: ("POST", f"/v1/memory/runs/run-{n % 8}/log", ENTRY), writes=True),
        Kind("write a fact with words", fact("worded"), writes=True),
        Kind(
            "write a fact with words and vector",
            fact("note"),
            writes=True,
            clients=(1,),
            share=0.5,
        ),
        Kind("read a fact", lambda n: ("GET", f"{facts}/{ids[n % len(ids)]}", None), writes=False),
        Kind(
            f"list page 1 of {page} facts",
            lambda n: ("GET", f"{facts}?limit={page}", None),
            writes=False,
        ),
        Kind(
            f"list page 500 of {page} facts",
            lambda n: ("GET", f"{facts}?limit={page}&cursor={far}", None),
            writes=False,
        ),
        Kind("retrieve by keyword", retrieve("keyword"), writes=False),
        Kind("retrieve by meaning", retrieve("semantic"), writes=False),
        Kind("retrieve by both", retrieve("both"), writes=False),
        Kind("remember", lambda n: ("POST", "/v1/memory/records", record(n, [])), writes=True),
        Kind("recall", recall, writes=False),
        Kind("correct", correct, writes=True),
        Kind(
            "forget with two derived records",
            lambda n: ("POST", f"/v1/memory/records/{families[n]}/forget", {}),
            writes=True,
            clients=(1,),
            share=0.5,
        ),
    ]


def needed(kind: Kind) -> int:
    """How many of its requests one side sends."""
    return ROUNDS * sum(kind.requests(clients) for clients in kind.clients)


def remembered_families(client: Any, count: int) -> list[str]:
    """Records of which two others are derived each."""
    ids = []
    for number in range(count):
        first = 1_000_000 + 3 * number
        parent = client.post("/v1/memory/records", record(first, [])).json()["id"]
        for child in (first + 1, first + 2):
            client.post("/v1/memory/records", record(child, [parent]))
        ids.append(parent)
    return ids


def until_loaded(client: Any) -> None:
    """Until this process has the model that reads questions."""
    until = time.monotonic() + 120
    asked = {"mode": "semantic", "query": "w1"}
    while client.post("/v1/memory/retrieve", asked).status_code >= 300:
        if time.monotonic() > until:
            raise RuntimeError("the model did not load")
        time.sleep(0.2)


def beside_floors(port: int, token: str, kind: Kind, given: dict[str, Numbers]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for clients in kind.clients:
        count = kind.requests(clients)

        def ours(clients: int = clients, count: int = count) -> float:
            asked = [kind.asked(number) for number in given["ours"].take(count)]
            return rate(port, token, clients, asked)

        def floor(which: str, clients: int = clients, count: int = count) -> float:
            numbers = given[which].take(count)
            asked = numbered(name_in_path(kind), numbers, is_bare=which == "bare")
            return rate(port, token, clients, asked)

        measured = interleaved(
            {"ours": ours, "bare": lambda: floor("bare"), "door": lambda: floor("door")}, ROUNDS
        )
        of = f"{clients} client{'s'[: clients != 1]}"
        figures[f"{kind.name}, {of}: / its floor (want >= {WANTED})"] = ratio(
            measured, "ours", "bare"
        )
        figures[f"{kind.name}, {of}: / its statements behind the product's door"] = ratio(
            measured, "ours", "door"
        )
        figures[f"{kind.name}, {of}: a second"] = sorted(measured["ours"])[ROUNDS // 2]
    return figures


def name_in_path(kind: Kind) -> str:
    return kind.name.replace(" ", "-")


def recordings_of(client: Any, kind: Kind) -> list[list[Statement]]:
    """What the floors run: for a write as many as both send, for the rest a pool."""
    count = 2 * needed(kind) if kind.writes else POOL
    return [recorded(client, *kind.asked(number)) for number in range(count)]


def numbers_of(kind: Kind) -> dict[str, Numbers]:
    if not kind.writes:
        return {side: Numbers(0, POOL, once=False) for side in ("bare", "door", "ours")}
    count = needed(kind)
    sides = ("bare", "door", "ours")
    return {side: Numbers(n * count, count, once=True) for n, side in enumerate(sides)}


def at_size(size: int) -> Iterator[tuple[str, float]]:
    from django.conf import settings
    from django.test.utils import setup_test_environment

    from kindmem.postgres.cluster import Cluster
    from memory.actions.declare_type import Declaration, declare_type
    from memory.tenancy import tenant_context
    from tests.benchmarks.recall_bench import fill as fill_records
    from tests.benchmarks.search_bench import execute, vacuum
    from tests.builders import ApiClient, make_tenant

    setup_test_environment()  # lets the in-process client's host in
    tenant = make_tenant()
    with tenant_context(tenant.id):
        declare_type(
            principal=tenant.principal("admin"),
            type="worded",
            declaration=Declaration(keyword=True, semantic=False),
        )
    fill_facts(tenant, size, seed=1)
    cluster = Cluster(settings.KINDMEM_DATA_DIR)
    fill_records(cluster.url(dbname="kindmem"), tenant.id, size)
    vacuum()
    with tenant_context(tenant.id):
        wanted = {"t": tenant.id}
        ids = [
            row[0]
            for row in execute(
                "SELECT id FROM fact WHERE tenant_id = %(t)s::uuid LIMIT 1000", wanted
            )
        ]
    token = tenant.token("app", everything=True)
    client = ApiClient(token)
    until_loaded(client)
    page = max(1, min(50, size // 500 - 1))
    families = remembered_families(client, 3 * ROUNDS * REQUESTS[1] // 2 + 3)
    with web_server() as port:
        far = quote(far_cursor(Client(port, token), page))
    every = kinds(ids, page, far, families)
    with tempfile.TemporaryDirectory() as folder:
        recordings = {name_in_path(kind): recordings_of(client, kind) for kind in every}
        save(Path(folder) / "recordings", recordings)
        with web_server() as port:
            warm_up(Client(port, token))
            for kind in every:
                yield from beside_floors(port, token, kind, numbers_of(kind)).items()


def main() -> None:
    with database():
        for size in chosen_sizes((usual_or_quick(10_000, 600),)):
            for name, figure in at_size(size):
                print(f"{name:75} {figure:10.2f}", flush=True)


if __name__ == "__main__":
    main()
