"""What is left of texts that were forgotten, and of a retired value that an agent repeats: counts, all of which should be 0.

Texts are remembered of one person, each with a word that nobody else says, and forgotten through the API. Then every way to read
is asked for them, every row of every table is read as text, and after the documented maintenance (`maintain_pages`) so are the
files of the database. An agent then says again and again, each time from another run, what the person corrected.

Run: python -m tests.benchmarks.forget_bench
"""

import json
import secrets
from typing import Any

from tests.benchmarks.harness import database, usual_or_quick

TEXTS = usual_or_quick(200, 5)
REPEATED = usual_or_quick(100, 5)
ANN = {"user_id": "ann"}
_TABLES = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_FILES = """
SELECT pg_relation_filepath(c.oid) FROM pg_class c WHERE c.relkind IN ('r', 'i', 't', 'm')
AND pg_relation_filepath(c.oid) IS NOT NULL AND pg_relation_size(c.oid) > 0
"""


def taken(answer: Any) -> Any:
    if answer.status_code >= 300:
        raise RuntimeError(answer.content)
    return json.loads(answer.content)


def found_by_reading(clients: list[Any], ids: list[str], words: list[str]) -> int:
    """Of how many words some way to read says one."""
    answers = []
    for client in clients:
        page = {"limit": 200}
        answers.append(client.get("/v1/memory/records", page).content)
        for status in ("active", "superseded", "expired", "tombstoned"):
            answers.append(client.get("/v1/memory/records", {**page, "status": status}).content)
        for number, (record_id, word) in enumerate(zip(ids, words, strict=True)):
            asked = {"key": f"note.n{number}", "context": ANN}
            answers.append(client.post("/v1/memory/recall", asked).content)
            answers.append(client.get(f"/v1/memory/records/{record_id}").content)
            answers.append(client.get(f"/v1/memory/records/{record_id}/history").content)
            for mode in ("keyword", "semantic", "both"):
                asked = {"mode": mode, "query": f"{word} something"}
                hits = client.post("/v1/memory/retrieve", asked).json().get("data", [])
                answers.append(json.dumps(hits).encode())
    said = b"\n".join(answers)
    return sum(word.encode() in said for word in words)


def found_by_selecting(superuser: Any, words: list[str]) -> int:
    """Of how many words some row of some table says one, as text or as bytes in hexadecimal."""
    needles = [*words, *(word.encode().hex() for word in words)]
    found: set[str] = set()
    for (table,) in superuser.execute(_TABLES).fetchall():
        rows = superuser.execute(
            f"SELECT n FROM unnest(%s::text[]) AS n WHERE EXISTS (SELECT FROM {table} t WHERE strpos(t::text, n) > 0)",
            [needles],
        )
        found |= {row[0] for row in rows}
    return sum(word in found or word.encode().hex() in found for word in words)


def found_in_files(superuser: Any, words: list[str]) -> int:
    """In how many files of tables and indexes one of the words stands; dead rows and free space included."""
    superuser.execute("CHECKPOINT")
    return sum(
        any(word.encode() in data for word in words)
        for (path,) in superuser.execute(_FILES).fetchall()
        for (data,) in superuser.execute("SELECT pg_read_binary_file(%s)", [path]).fetchall()
    )


def forgetting(tenant: Any, superuser: Any) -> dict[str, float]:
    from memory.actions.maintain_pages import maintain_pages
    from tests.records.builders import a_record

    app = tenant.client("app", users=["ann"])
    clients = [app, tenant.client("agent", users=["ann"]), tenant.client("admin")]
    words = [f"canary{secrets.token_hex(8)}" for _ in range(TEXTS)]
    ids = []
    for number, word in enumerate(words):
        body = a_record(f"{word} something that ann said", key=f"note.n{number}")
        ids.append(taken(app.post("/v1/memory/records", body))["id"])
    before = found_by_selecting(superuser, words)
    for one in ids:
        taken(app.post(f"/v1/memory/records/{one}/forget", {}))
    figures = {
        f"texts selectable before, of {TEXTS} (want >= {TEXTS})": before,
        f"texts found by any way to read after forgetting {TEXTS} (at most 0)": found_by_reading(
            clients, ids, words
        ),
        f"texts selectable in any table after forgetting {TEXTS} (at most 0)": found_by_selecting(
            superuser, words
        ),
    }
    figures["files that say one of them before the maintenance"] = found_in_files(superuser, words)
    maintain_pages()
    figures["files that say one of them after the maintenance (at most 0)"] = found_in_files(
        superuser, words
    )
    return {name: float(figure) for name, figure in figures.items()}


def repeating(tenant: Any) -> dict[str, float]:
    from tests.records.builders import an_inference
    from tests.records.conftest import Memory

    app = Memory(tenant.client("app", users=["ann"]))
    agent = Memory(tenant.client("agent", users=["ann"]))
    app.remember("aisle")
    everywhere = {**ANN, "broaden_to": {"level": "user", "bindings": {}}}
    app.correct("window", context=everywhere, broaden=True)
    won = 0
    for number in range(REPEATED):
        body = an_inference("aisle", evidence=agent.thinks(f"run-{number}"), observations=50)
        agent.client.post("/v1/memory/records", body)
        won += app.recall()["value"] != "window"
        won += agent.recall()["value"] != "window"
    return {
        f"recalls that an agent won by repeating a retired value {REPEATED} times (at most 0)": won
    }


def main() -> None:
    with database():
        import psycopg
        from django.conf import settings
        from django.test.utils import setup_test_environment

        from kindmem.postgres.cluster import Cluster
        from tests.builders import make_tenant

        setup_test_environment()  # lets the in-process client's host in
        cluster = Cluster(settings.KINDMEM_DATA_DIR)
        with psycopg.connect(cluster.url(dbname="kindmem"), autocommit=True) as superuser:
            figures = forgetting(make_tenant(), superuser)
        for name, figure in {**figures, **repeating(make_tenant())}.items():
            print(f"{name:85} {figure:10.2f}")


if __name__ == "__main__":
    main()
