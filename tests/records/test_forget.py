"""Forgetting: a tombstone at once, everything derived along, and no way back in."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction

from memory import housekeeping
from memory.models import MemoryRecord, PendingAct, RecordValue, SealedCopy
from memory.records import clock, fingerprints
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.records.builders import a_record, an_inference, body_of, refusal, valid
from tests.records.conftest import ANN, RECORDS, Memory, governance

SECRET = "+49 170 5550199"


def test_a_forgotten_record_is_a_tombstone_and_nothing_finds_it(app: Memory, admin: Memory) -> None:
    record = app.remember(SECRET, key="contact.phone")
    receipt = app.forget(record["id"])
    assert receipt["tombstoned"] == [record["id"]]
    assert receipt["held"] == []
    assert receipt["undo_until"] is None
    stone = valid(app.get(record["id"]))
    assert stone["value"] is None
    assert stone["lifecycle"]["status"] == "deleted"
    assert stone["lifecycle"]["deleted_reason"] == "user-requested"
    assert app.recall("contact.phone")["decision"] == "none"
    assert app.list() == []
    assert app.list(status="deleted") == [stone]
    assert SECRET not in str(app.explain(record["id"]))
    assert SECRET not in str(app.history(record["id"]))
    entry = governance(admin)[-1]
    assert (entry["type"], entry["tombstoned"]) == ("record.forgotten", [record["id"]])


def test_forgetting_takes_along_what_was_derived_through_cycles_and_diamonds(app: Memory) -> None:
    app.remember("a", key="k.a", id="a")
    app.remember("b", key="k.b", id="b", derived_from=["a", "d"])
    app.remember("c", key="k.c", id="c", derived_from=["a"])
    app.remember("d", key="k.d", id="d", derived_from=["b", "c"])
    app.remember("e", key="k.e", id="e", derived_from=["d"])
    app.remember("f", key="k.f", id="f")
    receipt = app.forget("a")
    assert receipt["tombstoned"] == ["a", "b", "c", "d", "e"]
    assert [one["id"] for one in app.list()] == ["f"]
    explained = app.explain("e")
    assert explained["reason"] == "derived-from-forgotten"
    assert set(explained["dead_ancestors"]) == {"a", "b", "c", "d"}


def test_a_chain_of_two_hundred_is_forgotten_whole(app: Memory) -> None:
    previous: list[str] = []
    for number in range(200):
        app.remember(number, key=f"k{number}", id=f"r{number:03}", derived_from=previous)
        previous = [f"r{number:03}"]
    assert app.forget("r000")["tombstone_count"] == 200
    assert app.list() == []


def test_earlier_versions_of_what_is_forgotten_go_with_it(app: Memory) -> None:
    first = app.remember("aisle", bindings={"trip_id": "T1"})
    second = app.correct("window")["record"]
    assert set(app.forget(second["id"])["tombstoned"]) == {first["id"], second["id"]}
    assert app.get(first["id"])["value"] is None


def test_the_same_said_in_two_places_is_forgotten_in_one(app: Memory) -> None:
    one = app.remember("aisle", bindings={"project_id": "p1"})
    two = app.remember("aisle", bindings={"project_id": "p2"})
    app.forget(one["id"])
    assert app.recall(context={**ANN, "project_id": "p2"})["record_id"] == two["id"]
    assert app.recall(context={**ANN, "project_id": "p1"})["decision"] == "ask"


def test_forgetting_twice_answers_with_the_first_receipt(app: Memory) -> None:
    record = app.remember("aisle")
    first = app.forget(record["id"])
    again = app.forget(record["id"])
    assert again["number"] == first["number"]
    assert again["tombstoned"] == [record["id"]]


def test_what_does_not_exist_or_is_not_the_callers_is_not_forgotten(
    acme: TenantKit, app: Memory
) -> None:
    record = app.remember("aisle")
    refusal(app.client.post(f"{RECORDS}/nothing/forget", {}), 404, "record-not-found")
    stranger = acme.client("app", users=["bob"])
    refusal(stranger.post(f"{RECORDS}/{record['id']}/forget", {}), 404, "record-not-found")
    assert app.recall()["value"] == "aisle"


def test_a_reason_is_kept_on_the_tombstone_and_out_of_the_log(app: Memory, admin: Memory) -> None:
    record = app.remember("aisle")
    app.forget(record["id"], reason="moved to another airline")
    assert app.get(record["id"])["lifecycle"]["deleted_reason"] == "moved to another airline"
    assert "airline" not in str(governance(admin)[-1])


def test_an_agents_write_of_a_forgotten_key_waits_with_the_same_answer_whatever_the_value(
    app: Memory, agent: Memory
) -> None:
    """M29."""
    app.forget(app.remember(SECRET, key="contact.phone")["id"])
    shapes = []
    for value in (SECRET, f" {SECRET} ", "0815", {"number": SECRET}):
        body = an_inference(value, key="contact.phone")
        answer = body_of(agent.client.post(RECORDS, body), 202)
        shapes.append({**answer, "id": ""})
    assert shapes == [{"review": "pending", "id": ""}] * 4
    assert agent.recall("contact.phone")["decision"] == "none"
    assert agent.list() == []


def test_an_app_brings_the_forgotten_value_back_only_by_a_newer_word(app: Memory) -> None:
    body = a_record(SECRET, key="contact.phone")
    app.forget(body_of(app.client.post(RECORDS, body), 201)["id"])
    refusal(app.client.post(RECORDS, body), 409, "forgotten")
    again = {"key": "contact.phone", "captured_at": body["source"]["captured_at"]}
    refusal(app.client.post(RECORDS, a_record(SECRET.upper() + " ", **again)), 409, "forgotten")
    copy = a_record(SECRET, key="contact.phone", source_type="system_record")
    refusal(app.client.post(RECORDS, copy), 409, "forgotten")
    app.remember("another number", key="contact.phone", source_type="system_record")
    app.remember(SECRET, key="contact.phone", level="task")


def test_the_id_of_a_tombstone_is_not_used_again(app: Memory) -> None:
    body = a_record(id="r1")
    body_of(app.client.post(RECORDS, body), 201)
    app.forget("r1")
    refusal(app.client.post(RECORDS, body), 409, "id-reused")
    refusal(app.client.post(RECORDS, a_record(id="r1", key="other")), 409, "id-reused")


def test_nothing_is_derived_from_a_tombstone(app: Memory) -> None:
    app.remember(id="r1")
    app.forget("r1")
    details = refusal(
        app.client.post(RECORDS, a_record(key="k", derived_from=["r1", "r2"])),
        422,
        "lineage-forgotten",
    )
    assert details == {"ids": ["r1"]}


def test_a_parent_that_comes_later_is_obeyed(app: Memory) -> None:
    app.remember("child", key="k.child", id="child", derived_from=["parent"])
    app.remember("parent", key="k.parent", id="parent")
    assert app.forget("parent")["tombstoned"] == ["child", "parent"]


def test_a_retried_request_does_not_bring_the_value_back(app: Memory) -> None:
    body = a_record(SECRET, key="contact.phone")
    record = body_of(app.client.post(RECORDS, body, Idempotency_Key="k1"), 201)
    asked = {"key": "contact.phone", "new_value": "0815", "context": {**ANN, "call": 1}}
    corrected = app.client.post("/v1/memory/correct", asked, Idempotency_Key="k2")
    assert SECRET in corrected.content.decode()
    assert body_of(app.client.post(RECORDS, body, Idempotency_Key="k1"), 201) == record
    app.forget(record["id"])
    for path, same, key in ((RECORDS, body, "k1"), ("/v1/memory/correct", asked, "k2")):
        refusal(
            app.client.post(path, same, Idempotency_Key=key), 409, "idempotency-key-replay-withheld"
        )


@pytest.mark.parametrize(
    "spelled", ["Zoe\u0308", " zoË ", "\u200bZoë", "Ｚｏë", "Z\u00ado\u0065\u0308"]
)
def test_a_forgotten_value_does_not_come_back_in_another_spelling(
    app: Memory, spelled: str
) -> None:
    """Composed or not, wide or narrow, with what nobody sees between: it is the same word."""
    app.forget(app.remember("Zoë", key="k.name")["id"])
    body = a_record(spelled, key="k.name", source_type="system_record")
    refusal(app.client.post(RECORDS, body), 409, "forgotten")


def test_what_waited_for_review_of_the_same_thing_is_forgotten_too(
    app: Memory, agent: Memory, acme: TenantKit, superuser_url: str
) -> None:
    record = app.remember("aisle")
    waits = body_of(agent.client.post(RECORDS, an_inference("window")), 202)["id"]
    asked = {"new_value": SECRET, "context": {"trip_id": "T1"}}
    body_of(agent.client.post(f"{RECORDS}/{record['id']}/correct", asked), 202)
    receipt = app.forget(record["id"])
    assert receipt["tombstoned"] == [record["id"]]
    assert receipt["tombstone_count"] == 2
    with tenant_context(acme.id):
        assert MemoryRecord.objects.get(id=waits).status == "deleted"
        act = PendingAct.objects.get(record_id=record["id"])
        assert (act.body_text, act.decision) == (None, "forgotten")


def test_no_table_holds_the_forgotten_text(live_acme: TenantKit, superuser_url: str) -> None:
    app = Memory(live_acme.client("app", users=["ann"]))
    secret = f"{SECRET} {live_acme.slug}"
    record = app.remember(secret, key="contact.phone", retain=True)
    child = app.remember({"summary": f"calls {secret}"}, key="s", derived_from=[record["id"]])
    app.correct(secret + " home", key="contact.phone")
    correction = app.list(key="contact.phone", level="instance")[0]
    app.forget(correction["id"])
    app.forget(record["id"])
    assert app.get(child["id"])["value"] is None
    with psycopg.connect(superuser_url) as database:
        tables = database.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            found = database.execute(
                f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s", [f"%{secret}%"]
            ).fetchone()
            assert found == (0,), table


def test_a_held_record_is_forgotten_at_once_and_kept_sealed(acme: TenantKit, app: Memory) -> None:
    held = app.remember(SECRET, key="contact.phone")
    other = app.remember("x", key="k.other", derived_from=[held["id"]])
    with tenant_context(acme.id):
        MemoryRecord.objects.filter(id=held["id"]).update(hold_count=1)
    receipt = app.forget(held["id"])
    assert set(receipt["tombstoned"]) == {held["id"], other["id"]}
    assert receipt["held"] == [{"record_id": held["id"], "reason": "legal-hold"}]
    assert app.explain(held["id"])["held"] is True
    assert app.recall("contact.phone")["decision"] == "none"
    with tenant_context(acme.id):
        assert not RecordValue.objects.exists()
        copy = SealedCopy.objects.get()
        assert (copy.record_id, copy.purpose) == (held["id"], "hold")
        assert SECRET.encode() not in bytes(copy.ciphertext)
        with (
            pytest.raises(IntegrityError, match="legal hold"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute("DELETE FROM sealed_copy WHERE tenant_id = %s", [acme.id])


def test_superseding_what_is_held_is_refused(acme: TenantKit, app: Memory) -> None:
    held = app.remember("aisle", bindings={"trip_id": "T1"})
    with tenant_context(acme.id):
        MemoryRecord.objects.filter(id=held["id"]).update(hold_count=1)
    body = {"key": "travel.seat", "new_value": "window", "context": {**ANN, "trip_id": "T1"}}
    details = refusal(app.client.post("/v1/memory/correct", body), 409, "legal-hold")
    assert details == {"ids": [held["id"]]}
    assert app.recall(context={**ANN, "trip_id": "T1"})["value"] == "aisle"
    refusal(
        app.client.post(RECORDS, a_record("window", bindings={"trip_id": "T1"})), 409, "legal-hold"
    )


def test_expiry_of_what_is_held_stops_its_use_and_seals_it(acme: TenantKit, app: Memory) -> None:
    held = app.remember("aisle", valid_until="2026-01-01")
    listening = app.remember("x", key="k.listening", revalidate_on=["moved"])
    with tenant_context(acme.id):
        MemoryRecord.objects.update(hold_count=1, changed_at=clock.now())
    assert app.recall()["decision"] == "none"
    assert app.emit("moved", **ANN) == [listening["id"]]
    for one in (held, listening):
        assert app.get(one["id"])["value"] is None
    with tenant_context(acme.id):
        assert {copy.record_id for copy in SealedCopy.objects.all()} == {
            held["id"],
            listening["id"],
        }


@pytest.mark.parametrize("count", [3])
def test_ids_of_records_the_caller_may_not_see_are_counted_and_not_named(
    acme: TenantKit, app: Memory, count: int
) -> None:
    record = app.remember("aisle")
    for number in range(count):
        app.remember(number, key=f"k{number}", subject="bob", derived_from=[record["id"]])
    narrow = Memory(acme.client("app", users=["ann"]))
    receipt: dict[str, Any] = narrow.forget(record["id"])
    assert receipt["tombstoned"] == [record["id"]]
    assert receipt["tombstone_count"] == 1 + count
    assert app.list(subject_id="bob") == []


def test_no_work_in_the_background_brings_it_back(live_acme: TenantKit) -> None:
    """Re-indexing, filling in vectors, sweeping, expiring: the value is nowhere afterwards."""
    app = Memory(live_acme.client("app", users=["ann"]))
    record = app.remember(SECRET, key="contact.phone")
    app.forget(record["id"])
    for work in (
        housekeeping.reindex,
        housekeeping.fill_in_vectors,
        housekeeping.sweep,
        housekeeping.expire,
        housekeeping.destroy_undo_copies,
    ):
        work()
    assert app.list(q=SECRET) == []
    assert app.get(record["id"])["value"] is None
    assert app.recall("contact.phone")["decision"] == "none"
    with tenant_context(live_acme.id):
        assert not RecordValue.objects.exists()


def test_a_digest_of_the_forgotten_takes_a_key_that_is_not_in_the_database(
    acme: TenantKit, app: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the database can't test a guess."""
    app.forget(app.remember(SECRET, key="contact.phone")["id"])
    about = (acme.id, "user", "ann", "contact.phone")
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT digest FROM forgotten_fingerprint")
        kept = {bytes(row[0]) for row in cursor.fetchall()}
    assert {fingerprints.of_value(*about, SECRET), fingerprints.of_key(*about)} == kept
    monkeypatch.setattr(
        settings, "KINDMEM_STATE", replace(settings.KINDMEM_STATE, fingerprint_key=b"a guess" * 5)
    )
    assert not {fingerprints.of_value(*about, SECRET), fingerprints.of_key(*about)} & kept
