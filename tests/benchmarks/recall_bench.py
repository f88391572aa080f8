"""How fast recall is over HTTP, against the no-op view; and what correcting and forgetting cost.

Run: python -m tests.benchmarks.recall_bench [records in the table ...], such as `10000 1000000`; 10000 by default.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.harness import Load, database, interleaved, ratio, web_server

KEYS = 100
_FILL = """
WITH record AS (
  INSERT INTO memory_record
    (tenant_id, id, subject_type, subject_id, key, authority, source_type, evidence_kind, evidence_ref, observations,
     captured_at, captured_by, level, bindings_text, bindings_hash, route, sensitivity, trust, written_by, written_by_role,
     recorded_at, changed_at, version_from)
  SELECT %(tenant)s::uuid, 'r' || n, 'user', 'u' || n / %(keys)s::int, 'k' || n %% %(keys)s::int, 'preference', 'user_stated',
         'message', 'm', 1, now(), 'bench@1', 'user', '{}', sha256('{}'::bytea), 'fix-value', 'none', 'asserted', 'service:bench',
         'app', now(), now(), now()
  FROM generate_series(%(from)s::int, %(to)s::int - 1) AS n
), value AS (
  INSERT INTO record_value (tenant_id, record_id, value_text)
  SELECT %(tenant)s::uuid, 'r' || n, '"value ' || n || '"' FROM generate_series(%(from)s::int, %(to)s::int - 1) AS n
)
INSERT INTO record_usage (tenant_id, record_id)
SELECT %(tenant)s::uuid, 'r' || n FROM generate_series(%(from)s::int, %(to)s::int - 1) AS n
"""


def fill(tenant_id: Any, start: int, end: int) -> None:
    """Records `start` to `end`, a hundred keys a person, past the actions."""
    from django.db import connection

    from memory.tenancy import tenant_context

    for at in range(start, end, 5_000):
        with tenant_context(tenant_id), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0")
            given = {"tenant": tenant_id, "keys": KEYS, "from": at, "to": min(at + 5_000, end)}
            cursor.execute(_FILL, given)


def analyze(connection_info: str) -> None:
    import psycopg

    with psycopg.connect(connection_info, autocommit=True) as owner:
        for table in ("memory_record", "record_value", "record_usage"):
            owner.execute(f"VACUUM ANALYZE {table}")


class RecallLoad(Load):
    """Each request recalls another person's key."""

    def rate_of(self, people: int, seconds: float) -> float:
        import http.client
        import threading

        until, counts = time.perf_counter() + seconds, [0] * self.clients

        def one(client: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            while time.perf_counter() < until:
                number = counts[client] * self.clients + client
                body = {
                    "key": f"k{number % KEYS}",
                    "context": {"user_id": f"u{number % people}", "trip_id": "T1"},
                }
                connection.request("POST", "/v1/memory/recall", json.dumps(body), headers)
                answer = connection.getresponse()
                if json.loads(answer.read())["decision"] != "apply":
                    raise RuntimeError("recall did not answer")
                counts[client] += 1
            connection.close()

        started = time.perf_counter()
        threads = [threading.Thread(target=one, args=(client,)) for client in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.perf_counter() - started)


def recall_over_http(size: int, token: str, seconds: float = 1.0) -> dict[str, float]:
    figures: dict[str, float] = {}
    people = size // KEYS
    hot = {"key": "k0", "context": {"user_id": "u0"}}
    with web_server() as port:
        for clients in (1, 8, 50):
            load = RecallLoad(port, token, clients)

            def noop(load: Load = load) -> float:
                return load.rate("GET", lambda c, n: "/bench/noop", None, seconds)

            def recall(load: RecallLoad = load) -> float:
                return load.rate_of(people, seconds)

            def one_hot(load: Load = load) -> float:
                return load.rate("POST", lambda c, n: "/v1/memory/recall", hot, seconds)

            measured = interleaved({"noop": noop, "recall": recall, "hot": one_hot}, rounds=3)
            name = f"{size} records, {clients} clients"
            figures[f"recall / noop, {name}"] = ratio(measured, "recall", "noop")
            figures[f"recalls a second, {name}"] = statistics.median(measured["recall"])
            figures[f"recalls of one hot record a second, {name}"] = statistics.median(
                measured["hot"]
            )
    return figures


def acts(tenant: Any, count: int = 40) -> dict[str, float]:
    """Milliseconds of a correction, and of forgetting a record with a hundred descendants, through the API in process."""
    from tests.records.builders import a_record

    app = tenant.client("app", everything=True)

    def timed(work: Callable[[int], Any], times: int) -> list[float]:
        spent = []
        for number in range(times):
            started = time.perf_counter()
            answer = work(number)
            spent.append((time.perf_counter() - started) * 1000)
            if answer.status_code >= 300:
                raise RuntimeError(answer.content)
        return sorted(spent)

    def correct(number: int) -> Any:
        context = {"user_id": "bench", "case": number}
        body = {"key": "bench.key", "new_value": number, "context": context}
        return app.post("/v1/memory/correct", body)

    corrected = timed(correct, count)
    families = 10
    for family in range(families):
        parent: list[str] = []
        for place in range(101):
            record_id = f"f{family}-{place}"
            body = a_record(place, id=record_id, key=f"f{family}.k{place}", derived_from=parent)
            app.post("/v1/memory/records", body)
            parent = [f"f{family}-{place // 2}"]
    forgotten = timed(lambda n: app.post(f"/v1/memory/records/f{n}-0/forget", {}), families)
    return {
        "correct, ms p50": statistics.median(corrected),
        "correct, ms p95": corrected[int(len(corrected) * 0.95)],
        "forget with 100 descendants, ms p50": statistics.median(forgotten),
        "forget with 100 descendants, ms p95": forgotten[-1],
    }


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or [10_000]
    with database():
        from django.conf import settings
        from django.test.utils import setup_test_environment

        from kindmem.postgres.cluster import Cluster
        from tests.builders import make_tenant

        setup_test_environment()  # lets the in-process client's host in
        tenant = make_tenant()
        token = tenant.token("agent", everything=True)
        owner = Cluster(settings.KINDMEM_DATA_DIR).url("kindmem_owner", "kindmem")
        figures, filled = acts(tenant), 0
        for size in sizes:
            fill(tenant.id, filled, size)
            filled = size
            analyze(owner)
            figures |= recall_over_http(size, token)
        for name, figure in figures.items():
            print(f"{name:70} {figure:10.2f}")


if __name__ == "__main__":
    main()
