"""How fast facts are written, read, listed and searched over HTTP, against the view that does nothing, as there are more of them.

Run: python -m tests.benchmarks.facts_bench [facts …]   (10000 unless said)
"""

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from tests.benchmarks.harness import (
    Load,
    chosen_sizes,
    database,
    interleaved,
    ratio,
    usual_or_quick,
    web_server,
)

CLIENTS = (1, 8)
FAR_PAGE = 150
PAGE = usual_or_quick(50, 1)
WORDS = ("booking", "seat", "window", "baggage", "refund", "upgrade", "delay", "lounge")


def content(number: int) -> dict[str, Any]:
    return {
        "said": f"The {WORDS[number % 8]} of case {number} goes with the {WORDS[number // 8 % 8]}.",
        "case": number,
    }


def fill(tenant: Any, count: int) -> list[str]:
    """Facts of a type without vectors, as an application writes them; their ids."""
    from memory.actions.declare_type import Declaration, declare_type
    from memory.actions.write_fact import write_fact
    from memory.fact_shape import FactDraft, FactView
    from memory.tenancy import tenant_context

    app, admin = tenant.principal("app", projects=["p1"]), tenant.principal("admin")
    with tenant_context(tenant.id):
        declare_type(
            principal=admin, type="note", declaration=Declaration(keyword=True, semantic=False)
        )
    scope = {"projectId": "p1"}
    ids = []
    for first in range(0, count, 500):
        with tenant_context(tenant.id):
            for number in range(first, min(first + 500, count)):
                draft = FactDraft(type="note", scope=scope, content=content(number))
                written = write_fact(principal=app, draft=draft)
                assert isinstance(written, FactView)
                ids.append(written.id)
    return ids


def far_cursor(port: int, token: str) -> str:
    """Where page FAR_PAGE begins, by going through all before it."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    cursor = ""
    for _ in range(FAR_PAGE - 1):
        path = f"/v1/memory/facts?limit={PAGE}" + (f"&cursor={quote(cursor)}" if cursor else "")
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        cursor = json.loads(connection.getresponse().read())["nextCursor"]
    connection.close()
    return cursor


def over_http(count: int, seconds: float) -> dict[str, float]:
    from tests.builders import make_tenant

    tenant = make_tenant()
    ids = fill(tenant, count)
    token = tenant.token("app", projects=["p1"])
    written = {"type": "note", "scope": {"projectId": "p1"}, "content": content(7)}
    question = {"mode": "keyword", "query": "refund of case 4711", "limit": 10}
    figures: dict[str, float] = {}
    with web_server() as port:
        cursor = quote(far_cursor(port, token))
        for clients in CLIENTS:
            load = Load(port, token, clients)

            def rate(
                method: str, path: Callable[[int, int], str], body: object = None, load: Load = load
            ) -> Callable[[], float]:
                return lambda: load.rate(method, path, body, seconds)

            def some(client: int, number: int) -> str:
                return f"/v1/memory/facts/{ids[(client * 7919 + number * 104729) % count]}"

            far = f"/v1/memory/facts?limit={PAGE}&cursor={cursor}"
            measured = interleaved(
                {
                    "noop": rate("GET", lambda c, n: "/bench/noop"),
                    "insert": rate("POST", lambda c, n: "/bench/insert", written),
                    "write": rate("POST", lambda c, n: "/v1/memory/facts", written),
                    "read": rate("GET", some),
                    "first page": rate("GET", lambda c, n: f"/v1/memory/facts?limit={PAGE}"),
                    "far page": rate("GET", lambda c, n, far=far: far),
                    "keyword": rate("POST", lambda c, n: "/v1/memory/retrieve", question),
                }
            )
            of = f"{count} facts, {clients} clients"
            figures[f"write with words / (noop + insert), {of}"] = ratio(
                measured, "write", "insert"
            )
            figures[f"read by id / noop, {of}"] = ratio(measured, "read", "noop")
            figures[f"page 1 of {PAGE} / noop, {of}"] = ratio(measured, "first page", "noop")
            figures[f"page {FAR_PAGE} / page 1, {of}"] = ratio(measured, "far page", "first page")
            figures[f"keyword search / noop, {of}"] = ratio(measured, "keyword", "noop")
            figures[f"writes a second, {of}"] = sorted(measured["write"])[2]
            figures[f"reads a second, {of}"] = sorted(measured["read"])[2]
    return figures


def main() -> None:
    with database():
        for count in chosen_sizes((usual_or_quick(10_000, 300),)):
            for name, figure in over_http(count, usual_or_quick(10, 1) / 10).items():
                print(f"{name:75} {figure:10.2f}", flush=True)


if __name__ == "__main__":
    main()
