"""Faults that real users of comparable systems reported with walls between tenants: those that no test of one part holds whole.

Docstrings name the rows of the list.
"""

from typing import Any

import psycopg

from memory.access import system_principal
from memory.actions.run_erasure import run_due_erasures
from tests.api.isolation import checksums, member_client
from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.db.test_catalog import tenant_tables
from tests.records.builders import a_record, body_of

FACTS = "/v1/memory/facts"


def speak(kit: TenantKit, person: str) -> None:
    """Facts, entries and records of one person."""
    app = kit.client("app", projects=["p1"], users=[person])
    scope = {"projectId": "p1", "userId": person}
    body_of(app.post(FACTS, {"type": "note", "scope": scope, "content": f"of {person}"}), 201)
    entry = {"kind": "user-message", "scope": scope, "payload": f"of {person}"}
    body_of(app.post(f"/v1/memory/runs/of-{person}/log", entry), 201)
    body_of(app.post("/v1/memory/records", a_record(f"of {person}", subject=person)), 201)


def rows_of(superuser_url: str, kit: TenantKit, word: str) -> set[tuple[str, str]]:
    """Every row of the tenant that says the word, as (table, row)."""
    found: set[tuple[str, str]] = set()
    with psycopg.connect(superuser_url) as connection:
        for table in sorted(tenant_tables()):
            rows = connection.execute(
                f"SELECT x::text FROM {table} x WHERE tenant_id = %s AND position(%s IN x::text) > 0",
                [kit.id, word],
            )
            found |= {(table, row[0]) for row in rows.fetchall()}
    return found


def test_erasing_one_person_touches_no_row_of_another_or_of_another_tenant(
    live_acme: TenantKit, superuser_url: str
) -> None:
    """S7: a filtered delete reset the whole store."""
    other = make_tenant()
    for kit in (live_acme, other):
        for person in ("ann-quill", "bob-quill"):
            speak(kit, person)
    theirs = checksums(superuser_url, other.id)
    bobs = rows_of(superuser_url, live_acme, "bob-quill")
    assert {"fact", "fact_content", "log_entry", "memory_record"} <= {table for table, _ in bobs}
    selector = {"subject": {"kind": "user", "id": "ann-quill"}}
    body_of(live_acme.client("admin").post("/v1/memory/erasures", selector), 202)
    run_due_erasures(system_principal(live_acme.id, live_acme.slug, id="eraser"))
    assert rows_of(superuser_url, live_acme, "of ann-quill") == set()
    assert bobs <= rows_of(superuser_url, live_acme, "bob-quill")
    assert checksums(superuser_url, other.id) == theirs


def test_tenants_that_ask_at_once_in_many_threads_each_see_their_own(live_db: None) -> None:
    """S20: another tenant's rows came, at random."""
    kits = [make_tenant(), make_tenant()]
    clients: list[tuple[str, str, ApiClient]] = []
    for kit in kits:
        canary = f"canary{kit.slug.replace('-', '')}"
        app = kit.client("app", projects=["p1"])
        body = {"type": "note", "scope": {"projectId": "p1"}, "content": canary}
        fact = str(body_of(app.post(FACTS, {**body, "id": "same"}), 201)["id"])
        assert fact == "same"
        clients += [(kit.slug, canary, app), (kit.slug, canary, member_client(kit, "admin"))]

    def ask(number: int) -> list[Any]:
        _, canary, client = clients[number % len(clients)]
        wrong = []
        for turn in range(25):
            path = (f"{FACTS}/same", FACTS, "/v1/memory/me")[turn % 3]
            text = client.get(path).content.decode()
            others = [one for _, one, _ in clients if one != canary]
            if any(other in text for other in others) or (turn % 3 < 2 and canary not in text):
                wrong.append((path, text))
        return wrong

    assert at_once(8, ask) == [[]] * 8
