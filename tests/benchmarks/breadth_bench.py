"""What the other benchmarks leave out, at each of several sizes, and how each figure grows from one size to the next.

Run: python -m tests.benchmarks.breadth_bench [size …]   (1000 10000 100000 unless said; `--sizes` of the whole run says it too)

Two tenants share the tables, one with 99 % of the facts and one with 1 %. Vectors are generated, and what is beyond 10,000 facts
is inserted in bulk; the question's vector is the built-in model's. Over HTTP with one client: facts written, read, listed at page
1 and page 500, found by keyword, by meaning and both, as the large tenant and as the small one; records remembered, corrected,
forgotten with what was derived; a run exported. Then SQL statements a request, and bytes a fact and an entry with all indexes.
"""

import http.client
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from tests.benchmarks.filling import SCOPE, fill
from tests.benchmarks.harness import (
    chosen_sizes,
    database,
    interleaved,
    ratio,
    usual_or_quick,
    web_server,
)
from tests.benchmarks.search_bench import execute, text_maker, vacuum

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (600, 700)
SHARE = 100
"""One in so many facts is the small tenant's."""
FAR_PAGE = 500
ROUNDS = 3
USER = "u1"
GROWTH_MOST = 1.5
Asked = tuple[str, str, Any]
FACT_TABLES = (
    *("fact", "fact_revision", "fact_content", "fact_document", "posting", "fact_embedding"),
    *("fact_subject", "fact_cause", "fact_words"),
)
LOG_TABLES = ("log_entry", "log_payload", "run_head")


class Client:
    """One connection; each answer must be a success."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(content)
        return content

    def rate(self, requests: Iterator[Asked], seconds: float, most: int = 10_000) -> float:
        """Answers a second."""
        begun, count = time.perf_counter(), 0
        while count < most and time.perf_counter() - begun < seconds:
            self.ask(*next(requests))
            count += 1
        return count / (time.perf_counter() - begun)


def warm_up(client: Client) -> None:
    """Until the web server's workers have loaded the model that reads questions."""
    in_a_row, until = 0, time.monotonic() + 120
    while in_a_row < 10:
        try:
            client.ask("POST", "/v1/memory/retrieve", {"mode": "semantic", "query": "w1"})
            in_a_row += 1
        except RuntimeError:
            in_a_row = 0
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def far_cursor(client: Client, page: int) -> str:
    cursor = ""
    for _ in range(FAR_PAGE - 1):
        path = f"/v1/memory/facts?limit={page}" + (f"&cursor={quote(cursor)}" if cursor else "")
        cursor = json.loads(client.ask("GET", path))["nextCursor"]
    return cursor


def record(number: int, derived_from: list[str]) -> dict[str, Any]:
    """What the tests of every route remember, under a key of its own."""
    from tests.api.makers import Place, record_body
    from tests.builders import ApiClient

    lineage = {"lineage": {"derived_from": derived_from}} if derived_from else {}
    return record_body(
        Place(ApiClient(), user=USER), key=f"seat.{number}", value=f"aisle {number}", **lineage
    )


def of_records(client: Client, seconds: float) -> dict[str, float]:
    """Remembered, corrected, and forgotten together with two that were derived."""
    numbers = itertools.count()
    ids: list[str] = []
    kept: list[int] = []
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds and count < 300:
        kept.append(next(numbers))
        parent = json.loads(client.ask("POST", "/v1/memory/records", record(kept[-1], [])))
        ids.append(parent["id"])
        count += 1
    remembered = count / (time.perf_counter() - began)
    for one in ids:
        for _ in range(2):
            client.ask("POST", "/v1/memory/records", record(next(numbers), [one]))

    def corrections() -> Iterator[Asked]:
        for number in itertools.count():
            of = number % len(ids)
            context = {"user_id": USER, "trip_id": f"t{number}"}
            yield (
                "POST",
                "/v1/memory/correct",
                {"key": f"seat.{kept[of]}", "new_value": f"window {number}", "context": context},
            )

    corrected = client.rate(corrections(), seconds, most=len(ids))
    began = time.perf_counter()
    for one in ids:
        client.ask("POST", f"/v1/memory/records/{one}/forget", {})
    forgotten = len(ids) / (time.perf_counter() - began)
    return {
        "records remembered a second": remembered,
        "corrections a second": corrected,
        "records forgotten with two derived ones a second": forgotten,
    }


def of_facts(port: int, size: int, large: Any, small: Any, seconds: float) -> dict[str, float]:
    page = max(1, min(50, size // FAR_PAGE - 1))
    words = text_maker(7)
    clients = {"99 %": Client(port, large), "1 %": Client(port, small)}
    far = quote(far_cursor(clients["99 %"], page))
    for client in clients.values():
        warm_up(client)

    def question(mode: str) -> Iterator[Asked]:
        while True:
            body = {"mode": mode, "query": " ".join(words().split()[:5]), "limit": 10}
            yield "POST", "/v1/memory/retrieve", body

    def same(method: str, path: str, body: Any = None) -> Iterator[Asked]:
        return itertools.repeat((method, path, body))

    of_large = clients["99 %"]
    measures: dict[str, Callable[[], float]] = {
        "noop": lambda: of_large.rate(same("GET", "/bench/noop"), seconds),
        "page 1": lambda: of_large.rate(same("GET", f"/v1/memory/facts?limit={page}"), seconds),
        f"page {FAR_PAGE}": lambda: of_large.rate(
            same("GET", f"/v1/memory/facts?limit={page}&cursor={far}"), seconds
        ),
    }
    for whose, client in clients.items():
        for mode in ("keyword", "semantic", "both"):
            measures[f"{mode}, {whose} tenant"] = lambda client=client, mode=mode: client.rate(  # type: ignore[misc]
                question(mode), seconds
            )
    measured = interleaved(measures, ROUNDS)
    figures = {f"page {FAR_PAGE} / page 1 of {page}": ratio(measured, f"page {FAR_PAGE}", "page 1")}
    for name in measures:
        if name != "noop":
            figures[f"{name}: a second"] = sorted(measured[name])[ROUNDS // 2]
            figures[f"{name} / noop"] = ratio(measured, name, "noop")
    return figures


def of_log(client: Client, size: int, seconds: float) -> dict[str, float]:
    """A run of so many entries, at most 10,000, appended in batches, read and exported as a bundle."""
    count = min(size, 10_000)
    entry = {"kind": "tool-call", "scope": SCOPE, "payload": {"n": 1}}
    run = f"run-{size}"
    began = time.perf_counter()
    for first in range(0, count, 500):
        body = {"entries": [entry] * min(500, count - first)}
        client.ask("POST", f"/v1/memory/runs/{run}/log/batch", body)
    appended = count / (time.perf_counter() - began)
    call_seal()
    began = time.perf_counter()
    exported = len(client.ask("POST", f"/v1/memory/runs/{run}/export", {}))
    took = time.perf_counter() - began
    return {
        "entries a second in batches of 500 over HTTP": appended,
        "entries exported a second": count / took,
        "bytes of a bundle an entry": exported / count,
    }


def call_seal() -> None:
    from django.core.management import call_command
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        call_command("seal", SEALED[0], stdout=nowhere, stderr=nowhere)


SEALED: list[str] = []
"""The slug of the tenant whose log is sealed."""


def statements(token: str, slug: str) -> dict[str, float]:
    """SQL statements that one request of each kind asks, its transaction's begin and commit not counted."""
    from django.conf import settings

    from tests.builders import ApiClient

    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    client = ApiClient(token)
    fact = client.post("/v1/memory/facts", {"type": "note", "scope": SCOPE, "content": "x"}).json()
    kept = client.post("/v1/memory/records", record(10_001, [])).json()
    context = {"user_id": USER, "trip_id": "t"}
    asked: dict[str, Asked] = {
        "write a fact": (
            "POST",
            "/v1/memory/facts",
            {"type": "note", "scope": SCOPE, "content": "y"},
        ),
        "read a fact": ("GET", f"/v1/memory/facts/{fact['id']}", None),
        "list facts": ("GET", "/v1/memory/facts?limit=50", None),
        "retrieve by keyword": (
            "POST",
            "/v1/memory/retrieve",
            {"mode": "keyword", "query": "w1 w2"},
        ),
        "retrieve by both": ("POST", "/v1/memory/retrieve", {"mode": "both", "query": "w1 w2"}),
        "append": ("POST", "/v1/memory/runs/s/log", {"kind": "tool-call", "scope": SCOPE}),
        "remember": ("POST", "/v1/memory/records", record(10_002, [])),
        "recall": ("POST", "/v1/memory/recall", {"key": kept["key"], "context": context}),
        "correct": (
            "POST",
            "/v1/memory/correct",
            {"key": kept["key"], "new_value": "window", "context": context},
        ),
        "forget": ("POST", f"/v1/memory/records/{kept['id']}/forget", {}),
    }
    figures = {}
    for name, (method, path, body) in asked.items():
        with counted() as count:
            answer = client.request(method, path, body)
        if answer.status_code >= 300:
            raise RuntimeError(answer.content)
        figures[f"SQL statements: {name}"] = float(count[0])
    return figures


@contextmanager
def counted() -> Iterator[list[int]]:
    from django.db import connection

    count = [0]

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        count[0] += 1
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        yield count


def bytes_each() -> dict[str, float]:
    """On disk with indexes and what updates left, over what is there."""
    from django.db import connections

    def total(tables: tuple[str, ...]) -> float:
        rows = execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::float8 FROM pg_class"
            " WHERE relkind = 'r' AND relname = ANY (%(t)s::text[])",
            {"t": list(tables)},
        )
        return float(rows[0][0])

    def count(table: str) -> float:
        (row,) = execute("SELECT reltuples FROM pg_class WHERE relname = %(t)s::text", {"t": table})
        return max(float(row[0]), 1.0)

    vacuum()
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE log_entry")
    return {
        "bytes a fact with its words and vector": total(FACT_TABLES) / count("fact"),
        "bytes a log entry": total(LOG_TABLES) / count("log_entry"),
    }


def at_size(size: int, seconds: float) -> dict[str, float]:
    from tests.builders import make_tenant

    large, small = make_tenant(), make_tenant()
    SEALED[:] = [large.slug]
    fill(large, size - size // SHARE, seed=1)
    fill(small, max(size // SHARE, 10), seed=2)
    vacuum()
    grants: dict[str, Any] = {"projects": ["p1"], "may": ["read", "write", "append", "tenant-wide"]}
    app = {**grants, "users": [USER]}
    figures: dict[str, float] = {}
    with web_server() as port:
        token = large.token("app", **app)
        figures |= of_facts(port, size, token, small.token("app", **grants), seconds)
        figures |= of_records(Client(port, token), seconds)
        figures |= of_log(
            Client(port, large.token("admin", may=["read", "write", "append"])), size, seconds
        )
    figures |= statements(token, large.slug)
    figures |= bytes_each()
    return figures


def growth(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """How much dearer each is at the larger size: rates fall, bytes and statements rise."""
    rates = {name: before[name] / after[name] for name in before if name.endswith("a second")}
    sizes = {
        name: after[name] / before[name]
        for name in before
        if name.startswith(("bytes a", "SQL statements")) and before[name]
    }
    return {**rates, **sizes}


def main() -> None:
    sizes = chosen_sizes(usual_or_quick(SIZES, QUICK_SIZES))
    seconds = 1.0 if sizes[-1] >= 1_000 else 0.2
    known: dict[int, dict[str, float]] = {}
    for size in sizes:
        # A database each: what another size left would be in the way.
        known[size] = measured_alone(size, seconds)
        for name, figure in known[size].items():
            print(f"{name}, {size} facts      {figure:10.2f}", flush=True)
    for before, after in itertools.pairwise(sizes):
        for name, figure in growth(known[before], known[after]).items():
            wish = f"   (at most {GROWTH_MOST})" if before >= 100_000 else ""
            print(f"growth of {name}, {before} to {after}      {figure:10.2f}{wish}", flush=True)


def measured_alone(size: int, seconds: float) -> dict[str, float]:
    """In a process of its own, since Django is set up on one database."""
    import subprocess

    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.breadth_bench",
        "--one",
        str(size),
        str(seconds),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        with database():
            print(json.dumps(at_size(int(sys.argv[2]), float(sys.argv[3]))))
    else:
        main()
