"""Erasures that a hold stops, what is refused while one runs, how far a replay reaches, and what is left nowhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memory.access import system_principal
from memory.actions.create_member import create_member
from memory.errors import ErasureInProgress
from memory.fact_shape import Subject
from memory.housekeeping import keep_ledgers
from memory.ledgers import ledger_path, read_ledger
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.import_records.files import file_of, imported, whole
from tests.lifecycle.facts import age, count, value, write
from tests.lifecycle.people import member
from tests.lifecycle.test_erasure import (
    ANN,
    CANARY,
    ERASURES,
    FACTS,
    RECORDS,
    plant,
    rows_that_say,
    run,
)
from tests.lifecycle.test_holds import place, release
from tests.lifecycle.test_sweep import sweep
from tests.pages.people import person, text_of
from tests.records.builders import a_record, body_of, refusal

WHO = {"subject": {"kind": "user", "id": ANN}}
ENTRY = {"kind": "user-message", "scope": {"userId": ANN}, "payload": "said"}


def asked(admin: ApiClient, body: dict[str, Any] = WHO) -> str:
    return str(body_of(admin.post(ERASURES, body), 202)["id"])


def seen(admin: ApiClient, erasure_id: str) -> dict[str, Any]:
    found: dict[str, Any] = body_of(admin.get(f"{ERASURES}/{erasure_id}"), 200)
    return found


def due_now(kit: TenantKit) -> None:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE erasure SET next_at = now() WHERE tenant_id = %s::uuid", [kit.id])


def governance(kit: TenantKit, type: str) -> list[dict[str, Any]]:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT payload_text FROM log_entry WHERE run_id = 'kindmem.governance' ORDER BY sequence"
        )
        payloads = [json.loads(row[0]) for row in cursor.fetchall()]
    return [one for one in payloads if one["type"] == type]


def test_one_that_a_hold_stops_waits_lets_others_write_and_goes_on_after_the_release(
    acme: TenantKit,
) -> None:
    app, admin = plant(acme), acme.client("admin")
    erasure_id = asked(admin)
    hold = place(acme, subject_ids=(ANN,))
    for _ in range(2):
        run(acme)
        due_now(acme)
    stopped = seen(admin, erasure_id)
    assert (stopped["status"], stopped["lastError"]) == ("pending", "legal-hold")
    assert len(governance(acme, "erasure.held-up")) == 1
    newer = a_record("written meanwhile", subject=ANN, key="other.key")
    made = body_of(app.post(RECORDS, newer), 201)["id"]
    body_of(app.post("/v1/memory/runs/r5/log", ENTRY), 201)
    later = write(acme, content="later", subjects=(Subject("external", ANN),))
    release(acme, hold, member(acme), member(acme))
    run(acme)
    done = seen(admin, erasure_id)
    assert (done["status"], "lastError" in done) == ("completed", False)
    assert rows_that_say(acme, CANARY) == {}
    assert body_of(admin.get(f"{RECORDS}/{made}"), 200)["value"] == "written meanwhile"
    assert count(acme, "fact", f"id = '{later.id}'") == 1
    assert count(acme, "log_entry", "run_id = 'r5' AND payload_text IS NOT NULL") == 1


def test_one_that_a_hold_stops_is_cancelled_with_what_the_hold_keeps_counted(
    acme: TenantKit,
) -> None:
    app, admin = plant(acme), acme.client("admin")
    erasure_id = asked(admin)
    running = admin.post(f"{ERASURES}/{erasure_id}/cancel", {})
    refusal(running, 409, "erasure-not-held-up")
    place(acme, subject_ids=(ANN,))
    run(acme)
    refusal(app.post(f"{ERASURES}/{erasure_id}/cancel", {}), 403, "permission-denied")
    cancelled = body_of(admin.post(f"{ERASURES}/{erasure_id}/cancel", {}), 200)
    assert (cancelled["status"], "selector" in cancelled) == ("cancelled", False)
    assert cancelled["counts"]["held"] >= 4
    [told] = governance(acme, "erasure.cancelled")
    assert (told["erasureId"], told["counts"]) == (erasure_id, cancelled["counts"])
    assert ANN not in json.dumps(told)
    due_now(acme)
    assert run(acme) == 0
    body_of(app.post(RECORDS, a_record("new", subject=ANN, key="other.key")), 201)
    ledger = body_of(admin.get(f"{ERASURES}/export"), 200)["data"]
    assert [one["status"] for one in ledger] == ["cancelled"]
    replayed = body_of(admin.post(f"{ERASURES}/replay", {"erasures": ledger}), 200)
    assert (replayed["replayed"], replayed["restored"]) == ([], [erasure_id])
    assert run(acme) == 0


def _remember_again(app: ApiClient, record_id: str, fact_id: str) -> Any:
    return app.post(RECORDS, a_record("seat", id=record_id, subject=ANN, key="k.seat"))


def _same_slot(app: ApiClient, record_id: str, fact_id: str) -> Any:
    return app.post(RECORDS, a_record("seat", subject=ANN, key="k.seat"))


WRITES: dict[str, Callable[[ApiClient, str, str], Any]] = {
    "remember": _remember_again,
    "same-slot": _same_slot,
    "confirm": lambda app, record, fact: app.post(f"{RECORDS}/{record}/confirm", {}),
    "correct": lambda app, record, fact: app.post(
        f"{RECORDS}/{record}/correct",
        {"key": "k.seat", "new_value": "x", "context": {"user_id": ANN, "trip": "T1"}},
    ),
    "forget": lambda app, record, fact: app.post(f"{RECORDS}/{record}/forget", {}),
    "route": lambda app, record, fact: app.post(
        f"{RECORDS}/{record}/routes/dispute", {"statement": "no"}
    ),
    "emit": lambda app, record, fact: app.post(
        "/v1/memory/events", {"type": "moved", "user_id": ANN}
    ),
    "delete-fact": lambda app, record, fact: app.delete(f"{FACTS}/{fact}"),
    "supersede-fact": lambda app, record, fact: app.post(
        f"{FACTS}/{fact}/supersede", {"content": 2}
    ),
    "verify-fact": lambda app, record, fact: app.post(f"{FACTS}/{fact}/verify", {}),
    "log": lambda app, record, fact: app.post("/v1/memory/runs/r7/log", ENTRY),
    "log-by-actor": lambda app, record, fact: app.post(
        "/v1/memory/runs/r7/log",
        {**ENTRY, "scope": {"projectId": "p1"}, "actor": f"user:{ANN}"},
    ),
    "page-link": lambda app, record, fact: app.post("/v1/memory/page-links", {"subject": ANN}),
}


@pytest.mark.parametrize("path", WRITES)
def test_no_way_of_writing_passes_while_the_person_is_erased(acme: TenantKit, path: str) -> None:
    app = acme.client("app", users=[ANN], projects=["p1"])
    record = body_of(app.post(RECORDS, a_record("seat", id="seat", subject=ANN, key="k.seat")), 201)
    fact = body_of(app.post(FACTS, {"type": "note", "scope": {"userId": ANN}, "content": 1}), 201)
    asked(acme.client("admin"))
    refusal(WRITES[path](app, record["id"], fact["id"]), 409, "erasure-in-progress")


def test_no_import_key_member_or_proposal_names_the_person_while_they_are_erased(
    acme: TenantKit, tmp_path: Path
) -> None:
    admin = acme.client("admin")
    agent = acme.client("agent", projects=["p1"], users=[ANN])
    checked = write(acme, content=1, subjects=(Subject("external", ANN),))
    body_of(acme.client("app", projects=["p1"]).post(f"{FACTS}/{checked.id}/verify", {}), 200)
    asked(admin)
    line = whole("seat", subject=ANN, key="k.seat")
    answer = imported(acme, file_of(tmp_path, line), refused=1)
    assert answer["refusals"][0]["code"] == "erasure-in-progress"
    key = {"name": "k", "role": "agent", "grants": {"users": [ANN]}, "abilities": ["read"]}
    refusal(admin.post("/v1/memory/keys", key), 409, "erasure-in-progress")
    # Without the erasure it would wait for review.
    proposed = agent.post(f"{FACTS}/{checked.id}/supersede", {"content": 2})
    refusal(proposed, 409, "erasure-in-progress")
    with pytest.raises(ErasureInProgress), tenant_context(acme.id):
        create_member(
            principal=system_principal(acme.id, acme.slug, id="tests"),
            email="ann@example.org",
            role="person",
            subject=ANN,
        )


@pytest.mark.parametrize("actor", [ANN, f"user:{ANN}", f"participant:{ANN}"])
def test_what_names_the_person_as_actor_alone_is_counted_before_and_erased(
    acme: TenantKit, actor: str
) -> None:
    app, admin = acme.client("app", projects=["p1"]), acme.client("admin")
    said = {"kind": "user-message", "scope": {"projectId": "p1"}, "payload": CANARY}
    body_of(app.post("/v1/memory/runs/r1/log", {**said, "actor": actor}), 201)
    body_of(app.post("/v1/memory/runs/r1/log", {**said, "actor": "user:bob", "payload": 1}), 201)
    reach = body_of(admin.post(f"{ERASURES}/preview", WHO), 200)
    assert (reach["logPayloads"], reach["logIdentifiersRetained"]) == (1, 1)
    erasure_id = asked(admin)
    run(acme)
    counts = seen(admin, erasure_id)["counts"]
    assert (counts["log.payloads"], counts["log.identifiersRetained"]) == (1, 1)
    assert rows_that_say(acme, CANARY) == {}
    assert count(acme, "log_entry", "run_id = 'r1' AND payload_text = '1'") == 1


def test_a_member_whose_number_is_somebodys_id_keeps_what_they_wrote(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    number = str(admin.user_id)
    body = {"kind": "event-emitted", "scope": {"projectId": "p1"}, "payload": "mine"}
    answer = admin.browser.post(
        "/v1/memory/runs/r1/log",
        json.dumps({**body, "actor": f"user:{number}"}),
        content_type="application/json",
        headers={"Kindmem-Tenant": acme.slug},
    )
    assert answer.status_code == 201, answer.content
    asked(acme.client("admin"), {"subject": {"kind": "user", "id": number}})
    run(acme)
    assert value(acme, "SELECT payload_text FROM log_entry WHERE run_id = 'r1'") == '"mine"'


def test_a_replay_on_a_server_in_use_leaves_what_was_written_since(live_acme: TenantKit) -> None:
    plant(live_acme)
    admin = live_acme.client("admin")
    erasure_id = asked(admin)
    run(live_acme)
    ledger = body_of(admin.get(f"{ERASURES}/export"), 200)["data"]
    again = live_acme.client("app", users=[ANN])
    made = body_of(again.post(RECORDS, a_record("back", subject=ANN, key="other.key")), 201)["id"]
    fact = body_of(
        again.post(FACTS, {"type": "note", "scope": {"userId": ANN}, "content": "back"}), 201
    )["id"]
    body_of(again.post("/v1/memory/runs/r8/log", ENTRY), 201)
    for _ in range(2):
        replayed = body_of(admin.post(f"{ERASURES}/replay", {"erasures": ledger}), 200)
        assert replayed["replayed"] == [erasure_id]
        # Nobody's writes wait for it.
        body_of(again.post("/v1/memory/runs/r8/log", ENTRY), 201)
        run(live_acme)
        ledger = body_of(admin.get(f"{ERASURES}/export"), 200)["data"]
        assert seen(admin, erasure_id)["status"] == "completed"
    assert body_of(again.get(f"{RECORDS}/{made}"), 200)["value"] == "back"
    body_of(again.get(f"{FACTS}/{fact}"), 200)
    assert count(live_acme, "log_entry", "run_id = 'r8' AND payload_text IS NULL") == 0


def test_no_key_of_a_retry_and_no_scope_of_a_released_hold_names_the_person_afterwards(
    live_acme: TenantKit, settings: Any, tmp_path: Path
) -> None:
    settings.KINDMEM_LEDGER_DIR = tmp_path / "ledgers"
    app = plant(live_acme)
    fact = {"type": "note", "scope": {"projectId": "p1"}, "content": 1}
    body_of(app.post(FACTS, fact, Idempotency_Key=f"{ANN} {CANARY}"), 201)
    assert "idempotency_key" in rows_that_say(live_acme, CANARY)
    assert value(live_acme, "SELECT count(*) FROM idempotency_key WHERE key LIKE '%%ann%%'") == 0
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        # As it was kept before keys were digests.
        cursor.execute(
            "UPDATE idempotency_key SET key = %s WHERE id = (SELECT id FROM idempotency_key LIMIT 1)",
            [f"{ANN} {CANARY}"],
        )
        # As when they were refused something on their own page.
        cursor.execute(
            "INSERT INTO hold_refusal (tenant_id, id, act, asked_by, item_ids, log_entry_id)"
            " VALUES (%s::uuid, gen_random_uuid(), 'forget', %s, '{}', 'e')",
            [live_acme.id, f"user:{ANN}"],
        )
    hold = place(live_acme, subject_ids=(ANN, "bob"))
    release(live_acme, hold, member(live_acme), member(live_acme))
    assert ANN in ledger_path(live_acme.slug).read_text()
    asked(live_acme.client("admin"))
    run(live_acme)
    keep_ledgers()
    assert rows_that_say(live_acme, CANARY) == {}
    assert set(rows_that_say(live_acme, ANN)) == {"log_entry"}
    assert "bob" in value(live_acme, "SELECT scope_text FROM legal_hold")
    text = ledger_path(live_acme.slug).read_text()
    assert (ANN in text, "bob" in text) == (False, True)


def test_a_retry_of_a_request_that_was_answered_before_keys_were_digests_is_answered_with_it(
    acme: TenantKit,
) -> None:
    app = acme.client("app", projects=["p1"])
    fact = {"type": "note", "scope": {"projectId": "p1"}, "content": 1}
    first = body_of(app.post(FACTS, fact, Idempotency_Key="k1"), 201)
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_key SET key = 'k1'")
    assert body_of(app.post(FACTS, fact, Idempotency_Key="k1"), 201) == first
    assert count(acme, "fact") == 1


def test_a_completed_erasure_and_a_placed_hold_are_in_the_ledger_before_they_are_told(
    live_acme: TenantKit, settings: Any, tmp_path: Path
) -> None:
    settings.KINDMEM_LEDGER_DIR = tmp_path / "ledgers"
    plant(live_acme)
    hold = place(live_acme, fact_ids=("nothing",))
    assert [one["id"] for one in read_ledger(live_acme.slug)["holds"]] == [str(hold.id)]
    admin = live_acme.client("admin")
    erasure_id = asked(admin)
    assert read_ledger(live_acme.slug)["erasures"][0]["status"] == "pending"
    run(live_acme)
    [line] = read_ledger(live_acme.slug)["erasures"]
    assert (line["id"], line["status"]) == (erasure_id, "completed")
    assert line == body_of(admin.get(f"{ERASURES}/export"), 200)["data"][0]
    release(live_acme, hold, member(live_acme), member(live_acme))
    assert "releasedAt" in read_ledger(live_acme.slug)["holds"][0]


def test_an_erasure_is_not_told_as_completed_while_the_ledger_can_not_be_written(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> bool:
        raise OSError(28, "No space left on device")

    plant(acme)
    admin = acme.client("admin")
    erasure_id = asked(admin)
    with monkeypatch.context() as patched:
        patched.setattr("memory.actions.run_erasure.write_ledger", full)
        run(acme)
    stopped = seen(admin, erasure_id)
    assert (stopped["status"], stopped["lastError"]) == ("running", "ledger-unwritable")
    due_now(acme)
    run(acme)
    assert seen(admin, erasure_id)["status"] == "completed"


def test_what_reaches_nothing_says_so(acme: TenantKit) -> None:
    admin = acme.client("admin")
    nobody = {"subject": {"kind": "user", "id": "nobody-here"}}
    assert body_of(admin.post(ERASURES, nobody), 202)["reachesNothing"] is True
    plant(acme)
    assert "reachesNothing" not in body_of(admin.post(ERASURES, WHO), 202)
    run(acme)
    who = person(acme, "admin")
    page = who.post(
        "admin/erasures/new",
        {"kind": "user", "selector": "nobody-else", "start": "1", "once": "e" * 32},
    )["Location"]
    run(acme)
    assert "Nothing was here under this id" in text_of(who.get(page))


def test_the_page_of_one_that_a_hold_stops_says_so_and_cancels_it(acme: TenantKit) -> None:
    plant(acme)
    who = person(acme, "admin")
    page = who.post(
        "admin/erasures/new", {"kind": "user", "selector": ANN, "start": "1", "once": "e" * 32}
    )["Location"]
    assert "Cancel the erasure" not in text_of(who.get(page))
    who.post(f"{page}cancel")
    assert "No hold stops it any more" in text_of(who.get(page))
    place(acme, subject_ids=(ANN,))
    run(acme)
    shown = text_of(who.get(page))
    assert "Waits for the release of a hold" in shown
    assert "Cancel the erasure" in shown
    assert who.post(f"{page}cancel").status_code == 302
    shown = text_of(who.get(page))
    assert "The erasure is cancelled" in shown
    assert "Left to legal holds" in shown
    assert "Try it again now" not in shown


def test_a_sweep_takes_what_is_due_and_not_held_though_an_erasure_waits(acme: TenantKit) -> None:
    due = write(acme, content="due", subjects=(Subject("external", ANN),))
    held = write(acme, content="held", subjects=(Subject("external", ANN),))
    asked(acme.client("admin"))
    place(acme, fact_ids=(held.id,))
    age(acme, due.id)
    assert sweep(acme).erasing == 1
    run(acme)
    assert sweep(acme).destroyed == 1
