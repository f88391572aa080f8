"""How fast recall is over HTTP, against the no-op view; and what correcting and forgetting cost.

Run: python -m tests.benchmarks.recall_bench [records in the table ...], such as `10000 1000000`; 10000 by default. One tenant
has 10,000 of them. What is beyond is another tenant's, whose recalls are measured, too.
"""

import http.client
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.harness import (
    TICK_SECONDS,
    Load,
    database,
    interleaved,
    ratio,
    server_cpu_seconds,
    usual_or_quick,
    web_server,
)

KEYS = 100
OF_ONE_TENANT = usual_or_quick(10_000, 500)
_ENVELOPES = """
INSERT INTO memory_record
  (tenant_id, id, subject_type, subject_id, key, authority, source_type, evidence_kind, evidence_ref, observations,
   captured_at, captured_by, level, bindings_text, bindings_hash, route, sensitivity, trust, written_by, written_by_role,
   recorded_at, changed_at, version_from)
SELECT %(tenant)s::uuid, 'r' || n, 'user', 'u' || n / %(keys)s::int, 'k' || n %% %(keys)s::int, 'preference', 'user_stated',
       'message', 'm', 1, now(), 'bench@1', 'user', '{}', sha256('{}'::bytea), 'fix-value', 'none', 'asserted', 'service:bench',
       'app', now(), now(), now()
FROM generate_series(0, %(count)s::int - 1) AS n
"""
_VALUES = """
INSERT INTO record_value (tenant_id, record_id, value_text)
SELECT %(tenant)s::uuid, 'r' || n, '"value ' || n || '"' FROM generate_series(0, %(count)s::int - 1) AS n
"""
_USAGE = """
INSERT INTO record_usage (tenant_id, record_id)
SELECT %(tenant)s::uuid, 'r' || n FROM generate_series(0, %(count)s::int - 1) AS n
"""


def fill(superuser: str, tenant_id: Any, count: int) -> None:
    """So many records of one tenant, a hundred keys a person: in bulk, past the actions and the triggers."""
    import psycopg

    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in (_ENVELOPES, _VALUES, _USAGE):
            connection.execute(statement, {"tenant": tenant_id, "keys": KEYS, "count": count})
        for table in ("memory_record", "record_value", "record_usage"):
            connection.execute(f"VACUUM ANALYZE {table}")
        connection.execute("CHECKPOINT")


@dataclass
class RecallLoad:
    """Recalls of any of a tenant's records, each as likely as the others, by so many clients at once."""

    port: int
    token: str
    clients: int
    count: int
    asked: list[int] = field(default_factory=list)

    def rate(self, seconds: float) -> float:
        """Answers a second."""
        until, counts = time.perf_counter() + seconds, [0] * self.clients
        self.asked = self.asked or [0] * self.clients

        def one(client: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            while counts[client] == 0 or time.perf_counter() < until:
                # Steps of a prime near the golden section: neighbours in time are no neighbours in the table.
                number = (self.asked[client] * self.clients + client) * 618_033_989 % self.count
                self.asked[client] += 1
                body = {
                    "key": f"k{number % KEYS}",
                    "context": {"user_id": f"u{number // KEYS}", "trip_id": "T1"},
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


def costing(measure: Callable[[], float], costs: list[float]) -> Callable[[], float]:
    """The measure; what each answer cost the server in milliseconds of its processors is added to `costs`."""

    def measured() -> float:
        started, before = time.perf_counter(), server_cpu_seconds()
        rate = measure()
        spent, elapsed = server_cpu_seconds() - before, time.perf_counter() - started
        # The system counts in ticks; less than one is one.
        costs.append(max(spent, TICK_SECONDS) * 1000 / max(rate * elapsed, 1))
        return rate

    return measured


def recall_over_http(
    table: int, tokens: dict[int, str], seconds: float, rounds: int = 5
) -> dict[str, float]:
    """Figures by name. `tokens`: a key by the number of records of its tenant."""
    figures: dict[str, float] = {}
    hot = {"key": "k0", "context": {"user_id": "u0"}}
    with web_server() as port:
        for clients in (1, 8, 50):
            load = Load(port, next(iter(tokens.values())), clients)

            def noop(load: Load = load) -> float:
                return load.rate("GET", lambda c, n: "/bench/noop", None, seconds)

            def one_hot(load: Load = load) -> float:
                return load.rate("POST", lambda c, n: "/v1/memory/recall", hot, seconds)

            measures: dict[str, Callable[[], float]] = {"noop": noop, "hot": one_hot}
            for count, token in tokens.items():
                recalls = RecallLoad(port, token, clients, count)
                measures[str(count)] = lambda recalls=recalls: recalls.rate(seconds)
            costs: dict[str, list[float]] = {name: [] for name in measures}
            measured = interleaved(
                {name: costing(measure, costs[name]) for name, measure in measures.items()},
                rounds=rounds,
            )
            for count in tokens:
                name = f"{count} of {table} records, {clients} clients"
                figures[f"CPU of a recall / of the no-op, {name}"] = ratio(
                    costs, str(count), "noop"
                )
                figures[f"recall / noop, {name}"] = ratio(measured, str(count), "noop")
                figures[f"recalls a second, {name}"] = statistics.median(measured[str(count)])
            name = f"{table} records, {clients} clients"
            figures[f"recalls of one hot record a second, {name}"] = statistics.median(
                measured["hot"]
            )
    return figures


def blocks_of_a_recall(tenant: Any, count: int, asked: int = 200) -> float:
    """How many blocks of 8 KB the database looks at for one recall, on average: the same however busy the machine is."""
    from django.db import connection

    from memory.access import system_principal
    from memory.actions.recall import recall
    from memory.queries.recall_candidates import Question
    from memory.records.bindings import read_context
    from memory.tenancy import tenant_context

    looked_at: list[int] = []

    def explained(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "memory_record" in sql or "record_usage" in sql:
            cursor = context["cursor"].cursor
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
            plan = cursor.fetchone()[0][0]["Plan"]
            looked_at.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        return execute(sql, params, many, context)

    principal = system_principal(tenant.id, tenant.slug)
    for number in range(asked):
        one = number * 618_033_989 % count
        context = read_context({"user_id": f"u{one // KEYS}"})
        question = Question(context=context, keys=[f"k{one % KEYS}"])
        with tenant_context(tenant.id), connection.execute_wrapper(explained):
            recall(principal=principal, question=question)
    return sum(looked_at) / asked


def acts(tenant: Any, count: int, families: int) -> dict[str, float]:
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
    sizes = sorted({int(one) for one in sys.argv[1:]} or {OF_ONE_TENANT})
    with database():
        from django.conf import settings
        from django.test.utils import setup_test_environment

        from kindmem.postgres.cluster import Cluster
        from tests.builders import make_tenant

        setup_test_environment()  # lets the in-process client's host in
        tenant = make_tenant()
        superuser = Cluster(settings.KINDMEM_DATA_DIR).url(dbname="kindmem")
        figures = acts(tenant, usual_or_quick(40, 3), usual_or_quick(10, 1))
        fill(superuser, tenant.id, OF_ONE_TENANT)
        tokens = {OF_ONE_TENANT: tenant.token("agent", everything=True)}
        tenants = {OF_ONE_TENANT: tenant}
        for size in sizes:
            if size > OF_ONE_TENANT:
                other, count = make_tenant(), size - sum(tokens)
                fill(superuser, other.id, count)
                tokens[count], tenants[count] = other.token("agent", everything=True), other
            for count, one in tenants.items():
                name = f"blocks looked at for a recall, {count} of {size} records"
                figures[name] = blocks_of_a_recall(one, count)
            figures |= recall_over_http(size, tokens, usual_or_quick(10, 1) / 10)
        for clients in (1, 8, 50) if len(sizes) > 1 else ():
            name = "recall / noop, {count} of {size} records, {clients} clients"
            first = figures[name.format(count=OF_ONE_TENANT, size=sizes[0], clients=clients)]
            cost = "CPU of a recall / of the no-op, {count} of {size} records, {clients} clients"
            cheap = figures[cost.format(count=OF_ONE_TENANT, size=sizes[0], clients=clients)]
            for count in tokens:
                last = figures[name.format(count=count, size=sizes[-1], clients=clients)]
                pair = f"{count} of {sizes[-1]} / {OF_ONE_TENANT} of {sizes[0]}, {clients} clients"
                figures[f"rate, {pair}"] = last / first
                dear = figures[cost.format(count=count, size=sizes[-1], clients=clients)]
                figures[f"recalls for the same CPU, {pair}"] = cheap / dear
        for name, figure in figures.items():
            print(f"{name:75} {figure:10.2f}")


if __name__ == "__main__":
    main()
