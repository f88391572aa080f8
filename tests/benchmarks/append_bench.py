"""How fast an append is, over HTTP and in process, against what could be had at the most.

Run: python -m tests.benchmarks.append_bench
"""

import time
from collections.abc import Callable

from tests.benchmarks.harness import (
    Load,
    database,
    interleaved,
    ratio,
    usual_or_quick,
    web_server,
)

ENTRY = {
    "kind": "tool-call",
    "scope": {"projectId": "p1"},
    "actor": "agent:booker",
    "payload": {
        "name": "search_flights",
        "arguments": {"from": "LIS", "to": "BER", "on": "2026-05-20"},
        "n": 17,
    },
}


def over_http(seconds: float) -> dict[str, float]:
    from tests.builders import make_tenant

    tenant = make_tenant()
    token = tenant.token("agent", projects=["p1"])
    figures: dict[str, float] = {}
    with web_server() as port:
        for clients in (1, 8, 50):
            load = Load(port, token, clients)

            def rate(
                method: str, path: Callable[[int, int], str], body: object, load: Load = load
            ) -> Callable[[], float]:
                return lambda: load.rate(method, path, body, seconds)

            measured = interleaved(
                {
                    "plain": rate("GET", lambda c, n: "/bench/plain", None),
                    "noop": rate("GET", lambda c, n: "/bench/noop", None),
                    "insert": rate("POST", lambda c, n: "/bench/insert", ENTRY),
                    "append": rate("POST", lambda c, n: f"/v1/memory/runs/own-{c}/log", ENTRY),
                    "append one run": rate("POST", lambda c, n: "/v1/memory/runs/hot/log", ENTRY),
                }
            )
            figures[f"noop / plain, {clients} clients"] = ratio(measured, "noop", "plain")
            figures[f"insert / noop, {clients} clients"] = ratio(measured, "insert", "noop")
            figures[f"append / (noop + insert), {clients} clients"] = ratio(
                measured, "append", "insert"
            )
            figures[f"append to one run / (noop + insert), {clients} clients"] = ratio(
                measured, "append one run", "insert"
            )
            figures[f"append a second, {clients} clients"] = sorted(measured["append"])[2]
            figures[f"noop a second, {clients} clients"] = sorted(measured["noop"])[2]
    return figures


def in_process(count: int, batches: int) -> dict[str, float]:
    from django.db import connection, transaction

    from memory.actions import append_log_entries as module
    from memory.ids import new_text_id
    from memory.log_entry import NewEntry, prepare_entry
    from memory.tenancy import SET_TENANT, tenant_context
    from tests.builders import make_tenant

    tenant = make_tenant()
    principal = tenant.principal("agent", projects=["p1"])
    scope = {"tenantId": tenant.slug, "projectId": "p1"}

    def new() -> NewEntry:
        return NewEntry(
            kind="tool-call",
            scope=scope,
            id=new_text_id(),
            actor="agent:b",
            payload=ENTRY["payload"],
        )

    def timed(work: Callable[[], None], times: int) -> float:
        started = time.perf_counter()
        for _ in range(times):
            work()
        return times / (time.perf_counter() - started)

    def action() -> None:
        with tenant_context(tenant.id):
            module.append_log_entries(principal=principal, run_id="action", entries=[new()])

    prepared = [prepare_entry(new(), run_id="raw", hash_version=1) for _ in range(count * 10)]

    def parameters() -> dict[str, object]:
        one = prepared.pop()
        return {
            "tenant": principal.tenant_id, "run": "raw", "before": one.pieces.before, "after": one.pieces.after,
            "id": one.entry.id, "kind": one.entry.kind, "scope": one.scope_text, "actor": one.entry.actor,
            "payload": one.payload_text, "salt": None, "content_hash": one.content_hash, "version": 1, "cause": None,
            "writer": "service:x", "writer_role": "agent",
        }  # fmt: skip

    def statement() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(SET_TENANT, [str(tenant.id)])
            cursor.execute(module._APPEND_ONE, parameters())
            cursor.fetchone()

    measured = interleaved(
        {"action": lambda: timed(action, count), "statement": lambda: timed(statement, count)}
    )
    figures = {"in process: append / its statement": ratio(measured, "action", "statement")}
    figures["in process: appends a second"] = sorted(measured["action"])[2]

    def batch() -> None:
        with tenant_context(tenant.id):
            module.append_log_entries(
                principal=principal, run_id="batch", entries=[new() for _ in range(100)]
            )

    state = {"n": 0, "head": bytes(32)}

    def raw_batch() -> None:
        """What PostgreSQL takes for 100 ready rows: head and rows in one statement, hashes made up."""
        start, at = state["n"], None
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(SET_TENANT, [str(tenant.id)])
            if start == 0:
                cursor.execute(module._APPEND_ONE, {**parameters(), "run": "rawbatch"})
                _, _, _, head = cursor.fetchone()
                state.update(n=1, head=bytes(head))
                return
            cursor.execute(module._LOCK_HEAD, {"tenant": principal.tenant_id, "run": "rawbatch"})
            at = cursor.fetchone()[2]
            hashes = [state["head"], *[(start + n).to_bytes(32, "big") for n in range(1, 101)]]
            rows = [fixed[n % 50] for n in range(100)]
            cursor.execute(
                module._APPEND_MANY,
                {
                    "tenant": principal.tenant_id, "run": "rawbatch", "first": start, "next": start + 100,
                    "head": hashes[-1], "prev": hashes[-2], "at": at, "version": 1, "writer": "service:x",
                    "writer_role": "agent", "sequences": list(range(start, start + 100)),
                    "ids": [f"rb-{start + n}" for n in range(100)], "kinds": ["tool-call"] * 100,
                    "scopes": [one.scope_text for one in rows], "actors": ["agent:b"] * 100,
                    "payloads": [one.payload_text for one in rows], "salts": [None] * 100,
                    "content_hashes": [one.content_hash for one in rows], "prev_hashes": hashes[:-1],
                    "entry_hashes": hashes[1:], "causes": [None] * 100,
                },
            )  # fmt: skip
        state.update(n=start + 100, head=hashes[-1])

    fixed = [prepare_entry(new(), run_id="rawbatch", hash_version=1) for _ in range(50)]
    prepared += [prepare_entry(new(), run_id="rawbatch", hash_version=1)]
    raw_batch()
    measured = interleaved(
        {"batch": lambda: timed(batch, batches), "raw": lambda: timed(raw_batch, batches)}
    )
    figures["in process: batch of 100 / raw batch"] = ratio(measured, "batch", "raw")
    figures["in process: entries a second in batches of 100"] = sorted(measured["batch"])[2] * 100
    return figures


def main() -> None:
    with database():
        figures = in_process(usual_or_quick(300, 10), usual_or_quick(20, 2))
        figures |= over_http(usual_or_quick(15, 1) / 10)
        for name, figure in figures.items():
            print(f"{name:75} {figure:10.2f}")


if __name__ == "__main__":
    main()
