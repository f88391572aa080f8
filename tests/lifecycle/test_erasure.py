"""Erasures: every place that names a person is cleared, whatever cuts it off; a hold refuses it, a replay finds them again."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from django.db import connection
from kindgi.client import Kindgi

from memory.access import system_principal
from memory.actions.append_log_entries import append_log_entries
from memory.actions.run_erasure import run_due_erasures, run_erasure
from memory.erasure.ledger import ErasureView, unfinished
from memory.fact_shape import Subject
from memory.housekeeping import JOBS
from memory.log_entry import NewEntry
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.kindgi.server import served
from tests.lifecycle.facts import count, write
from tests.lifecycle.test_holds import place
from tests.records.builders import a_record, body_of, refusal

RECORDS, FACTS, ERASURES = "/v1/memory/records", "/v1/memory/facts", "/v1/memory/erasures"
CANARY = "zebrafinch"
"""In everything that the person said or that was said of them."""
ANN = "ann-quillfeather"
"""The person's id; it stays in hashed fields of the log, and nowhere else."""


def run(kit: TenantKit) -> int:
    return run_due_erasures(system_principal(kit.id, kit.slug, id="eraser"))


def plant(kit: TenantKit) -> ApiClient:
    """The person in every place that this product keeps of them, and somebody else beside."""
    app = kit.client("app", projects=["p1"], users=[ANN, "bob"], participants=[ANN], threads=["t1"])
    fact = body_of(
        app.post(
            FACTS,
            {
                "type": "note",
                "scope": {"userId": ANN, "projectId": "p1"},
                "content": {"said": f"{CANARY} one"},
            },
            Idempotency_Key="k1",
        ),
        201,
    )
    body_of(app.post(f"{FACTS}/{fact['id']}/supersede", {"content": f"{CANARY} two"}), 200)
    write(kit, content=f"{CANARY} three", subjects=(Subject("external", ANN),))
    write(kit, content="someone else's")
    body_of(
        app.post(
            "/v1/memory/runs/r1/log",
            {
                "id": "m1",
                "kind": "user-message",
                "scope": {"userId": ANN},
                "payload": {"text": f"I like {CANARY}"},
            },
            Idempotency_Key="k2",
        ),
        201,
    )
    evidence = {"kind": "message", "ref": f"message of {ANN}"}
    first = body_of(
        app.post(
            RECORDS,
            a_record(f"{CANARY} seat", subject=ANN, bindings={"trip": CANARY}, evidence=evidence),
            Idempotency_Key="k3",
        ),
        201,
    )
    body_of(
        app.post(
            f"{RECORDS}/{first['id']}/correct",
            {
                "key": "travel.seat",
                "new_value": f"{CANARY} window",
                "context": {"trip": CANARY},
                "reason": f"because of {CANARY}",
            },
        ),
        201,
    )
    body_of(app.post(RECORDS, a_record("aisle", subject="bob")), 201)
    return app


def rows_that_say(kit: TenantKit, word: str) -> dict[str, int]:
    """Every table of the database, row by row as text: how many rows say the word."""
    said: dict[str, int] = {}
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
            " AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" x WHERE position(%s IN lower(x::text)) > 0', [word]
            )
            (found,) = cursor.fetchone()
            if found:
                said[table] = found
    return said


def test_after_an_erasure_no_table_says_what_the_person_said_or_who_they_are(
    acme: TenantKit,
) -> None:
    plant(acme)
    before = rows_that_say(acme, CANARY)
    assert {"fact_content", "record_value", "log_entry", "posting", "idempotency_key"} <= set(
        before
    )
    admin = acme.client("admin")
    asked = body_of(admin.post(ERASURES, {"subject": {"kind": "user", "id": ANN}}), 202)
    assert asked["selector"] == {"subject": {"kind": "user", "id": ANN}}
    assert run(acme) == 1
    done = body_of(admin.get(f"{ERASURES}/{asked['id']}"), 200)
    assert (done["status"], done["phase"], "selector" in done) == ("completed", "done", False)
    assert rows_that_say(acme, CANARY) == {}
    assert rows_that_say(acme, ANN) == {"log_entry": 1}
    counts = done["counts"]
    assert (counts["facts.fact"], counts["facts.fact_revision"]) == (2, 3)
    assert (counts["records"], counts["log.payloads"]) == (2, 1)
    assert counts["log.identifiersRetained"] == 1
    assert counts["idempotencyAnswers"] >= 1
    assert count(acme, "fact") == 1
    assert count(acme, "memory_record", "status = 'active'") == 1


def test_what_was_answered_before_is_withheld(acme: TenantKit) -> None:
    app = plant(acme)
    body = {
        "id": "m1",
        "kind": "user-message",
        "scope": {"userId": ANN},
        "payload": {"text": f"I like {CANARY}"},
    }
    body_of(
        acme.client("admin").post(ERASURES, {"subject": {"kind": "participant", "id": ANN}}), 202
    )
    run(acme)
    refusal(
        app.post("/v1/memory/runs/r1/log", body, Idempotency_Key="k2"),
        409,
        "idempotency-key-replay-withheld",
    )


class Killed(BaseException):
    """Stands for a process that ends between two steps."""


def test_an_erasure_cut_off_after_any_step_goes_on_to_the_same_end(live_acme: TenantKit) -> None:
    plant(live_acme)
    admin = live_acme.client("admin")
    body_of(admin.post(ERASURES, {"subject": {"kind": "user", "id": ANN}}), 202)
    principal = system_principal(live_acme.id, live_acme.slug, id="eraser")
    with tenant_context(live_acme.id):
        (erasure_id,) = unfinished(live_acme.id)

    def kill(erasure: ErasureView) -> None:
        if erasure.status != "completed":
            raise Killed

    steps = 0
    while steps < 40:
        steps += 1
        try:
            done = run_erasure(principal=principal, erasure_id=erasure_id, on_step=kill)
            break
        except Killed:
            continue
    assert done.status == "completed"
    assert steps > 7
    assert done.counts["facts.fact"] == 2
    assert count(live_acme, "destroyed_fact") == 2
    assert rows_that_say(live_acme, CANARY) == {}


def test_a_hold_in_reach_refuses_an_erasure_whole(acme: TenantKit) -> None:
    plant(acme)
    held = write(acme, subjects=(Subject("external", ANN),))
    place(acme, fact_ids=(held.id,))
    before = rows_that_say(acme, CANARY)
    admin = acme.client("admin")
    answer = admin.post(ERASURES, {"subject": {"kind": "user", "id": ANN}})
    assert refusal(answer, 409, "legal-hold")["ids"] == [held.id]
    assert rows_that_say(acme, CANARY) == before


@pytest.mark.parametrize(
    "scope", [{"run_ids": ("r1",)}, {"subject_ids": (ANN,)}], ids=["run", "subject"]
)
def test_a_hold_on_records_or_runs_refuses_too(acme: TenantKit, scope: dict[str, Any]) -> None:
    plant(acme)
    place(acme, **scope)
    refusal(
        acme.client("admin").post(ERASURES, {"subject": {"kind": "user", "id": ANN}}),
        409,
        "legal-hold",
    )


def test_a_hold_placed_while_it_waits_stops_it_and_is_said(acme: TenantKit) -> None:
    plant(acme)
    admin = acme.client("admin")
    asked = body_of(admin.post(ERASURES, {"subject": {"kind": "user", "id": ANN}}), 202)
    place(acme, subject_ids=(ANN,))
    run(acme)
    stopped = body_of(admin.get(f"{ERASURES}/{asked['id']}"), 200)
    assert (stopped["lastError"], stopped["attempts"]) == ("legal-hold", 1)
    assert count(acme, "fact") == 3


def test_nothing_new_is_written_about_the_person_meanwhile(acme: TenantKit) -> None:
    app = plant(acme)
    body_of(acme.client("admin").post(ERASURES, {"subject": {"kind": "user", "id": ANN}}), 202)
    code = "erasure-in-progress"
    fact = {"type": "note", "scope": {"projectId": "p1"}, "content": 1}
    refusal(app.post(FACTS, {**fact, "scope": {"userId": ANN}}), 409, code)
    refusal(app.post(FACTS, {**fact, "subjects": [{"kind": "user", "id": ANN}]}), 409, code)
    refusal(app.post(RECORDS, a_record("x", subject=ANN, key="other.key")), 409, code)
    entry = {"kind": "user-message", "scope": {"userId": ANN}, "payload": 1}
    refusal(app.post("/v1/memory/runs/r2/log", entry), 409, code)
    refusal(app.post("/v1/memory/runs/r2/log/batch", {"entries": [entry, entry]}), 409, code)
    body_of(app.post(FACTS, fact), 201)
    run(acme)
    body_of(app.post(FACTS, {**fact, "scope": {"projectId": "p1"}}), 201)


def test_a_fact_and_a_conversation_are_erased_alone(acme: TenantKit) -> None:
    app = plant(acme)
    fact = write(acme, content="parrotfish")
    in_thread = body_of(
        app.post(
            FACTS,
            {"type": "n", "scope": {"projectId": "p1", "threadId": "t1"}, "content": "hoopoe"},
        ),
        201,
    )
    admin = acme.client("admin")
    body_of(admin.post(ERASURES, {"factId": fact.id}), 202)
    body_of(admin.post(ERASURES, {"conversationId": "t1"}), 202)
    assert run(acme) == 2
    assert rows_that_say(acme, "parrotfish") == rows_that_say(acme, "hoopoe") == {}
    assert count(acme, "fact", f"id IN ('{fact.id}', '{in_thread['id']}')") == 0
    assert count(acme, "fact") == 3


def test_a_replay_after_a_restore_erases_again_what_came_back(acme: TenantKit) -> None:
    plant(acme)
    admin = acme.client("admin")
    body_of(admin.post(ERASURES, {"subject": {"kind": "user", "id": ANN}}), 202)
    body_of(admin.post(ERASURES, {"factId": "never-there"}), 202)
    run(acme)
    ledger = body_of(admin.get(f"{ERASURES}/export"), 200)["data"]
    assert ANN not in json.dumps(ledger)
    # What comes back below is as if it had been written before.
    ledger = [{**one, "completedAt": "2099-01-01T00:00:00Z"} for one in ledger]
    write(acme, content="came back", subjects=(Subject("user", ANN),))
    unknown = {**ledger[0], "id": "0190a3a0-0000-7000-8000-000000000000", "keyId": "another"}
    bare = {k: v for k, v in unknown.items() if k not in ("selectorHmac", "keyId")}
    answer = body_of(admin.post(f"{ERASURES}/replay", {"erasures": [*ledger, unknown, bare]}), 200)
    assert answer["replayed"] == [ledger[0]["id"]]
    assert answer["restored"] == [ledger[1]["id"]]
    assert [one["reason"] for one in answer["unmatched"]] == ["unknown-key", "no-keyed-hash"]
    assert run(acme) == 1
    assert rows_that_say(acme, "came back") == {}


def test_only_an_admin_erases_and_one_selector_is_named(acme: TenantKit) -> None:
    for role in ("agent", "app", "auditor"):
        refusal(acme.client(role).post(ERASURES, {"factId": "f"}), 403, "permission-denied")
    admin = acme.client("admin")
    for body in (
        {},
        {"factId": "f", "conversationId": "c"},
        {"subject": {"kind": "team", "id": "x"}},
    ):
        refusal(admin.post(ERASURES, body), 400, "bad-input")
    first = body_of(admin.post(ERASURES, {"factId": "f"}), 202)
    assert body_of(admin.post(ERASURES, {"factId": "f"}), 202)["id"] == first["id"]
    refusal(admin.get(f"{ERASURES}/nothing"), 404, "erasure-not-found")


def test_the_public_client_runs_an_erasure_from_request_to_replay(live_acme: TenantKit) -> None:
    write(live_acme, content="x", subjects=(Subject("external", ANN),))
    with (
        served() as url,
        Kindgi(
            url,
            token=live_acme.token("admin"),
            http_client=httpx.Client(trust_env=False),
            max_retries=0,
        ) as client,
    ):
        made = client.memory.create_erasure(subject={"kind": "external", "id": ANN})
        assert made.status == "pending"
        assert made.matchable
        {name: call for name, _, call in JOBS}["run-erasures"]()
        done = client.memory.get_erasure(made.id)
        assert (done.status, done.phase, done.selector) == ("completed", "done", None)
        assert client.memory.resume_erasure(made.id).status == "completed"
        assert [one.id for one in client.memory.list_erasures().data] == [made.id]
        ledger = client.memory.export_erasures()
        assert ledger.data[0].selector_hmac is not None
        again = client.memory.replay_erasures(
            erasures=[
                one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in ledger.data
            ]
        )
        assert again.restored == [made.id]


@pytest.mark.parametrize("hash_version", [1, 2])
def test_an_erased_run_says_which_payloads_went_and_is_not_called_tampered(
    acme: TenantKit, hash_version: int
) -> None:
    tenant = {"tenantId": acme.slug}
    app = replace(acme.principal("app", users=[ANN]), hash_version=hash_version)
    with tenant_context(acme.id):
        append_log_entries(
            principal=app,
            run_id="r9",
            entries=[
                NewEntry(
                    kind="user-message", scope={**tenant, "userId": ANN}, id="e9", payload=CANARY
                ),
                NewEntry(
                    kind="agent-message",
                    scope={**tenant, "sessionId": "s"},
                    id="e10",
                    payload="kept",
                ),
            ],
        )
    made = body_of(
        acme.client("admin").post(ERASURES, {"subject": {"kind": "user", "id": ANN}}), 202
    )
    run(acme)
    done = body_of(acme.client("admin").get(f"{ERASURES}/{made['id']}"), 200)
    assert done["status"] == "completed"
    assert (done["counts"]["log.payloads"], done["counts"]["log.identifiersRetained"]) == (1, 1)
    report = body_of(acme.client("auditor").post("/v1/memory/runs/r9/verify", {}), 200)
    assert report["state"] == {1: "linkage-only", 2: "erased-attested"}[hash_version], report
    entries = body_of(acme.client("admin").get("/v1/memory/runs/r9/log"), 200)["data"]
    attestation = entries[-1]
    assert attestation["payload"]["logEntryId"] == "e9"
    assert attestation["payload"]["reasonCode"] == "erasure"
    assert ANN not in json.dumps(attestation)
