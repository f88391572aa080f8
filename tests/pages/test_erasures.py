"""Erasures on the admin's pages: the reach before, the phases meanwhile, and what is honestly left afterwards."""

import json
from datetime import timedelta
from typing import Any

import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.lifecycle.test_erasure import ANN, plant, run
from tests.lifecycle.test_holds import place
from tests.pages.people import Person, person, text_of
from tests.records.builders import body_of

ASK = {"kind": "user", "selector": ANN}


def asked(admin: Person, once: str = "e" * 32) -> Any:
    return admin.post("admin/erasures/new", {**ASK, "start": "1", "once": once})


def test_the_reach_is_counted_before_anything_is_asked_for(acme: TenantKit) -> None:
    plant(acme)
    admin = person(acme, "admin")
    shown = text_of(admin.post("admin/erasures/new", ASK))
    reach = body_of(
        acme.client("admin").post(
            "/v1/memory/erasures/preview", {"subject": {"kind": "user", "id": ANN}}
        ),
        200,
    )
    assert reach == {
        "facts": 2,
        "records": 2,
        "logPayloads": 1,
        "logIdentifiersRetained": 1,
        "held": [],
    }
    assert "What it would reach" in shown
    assert "It can't be undone" in shown
    assert "Nothing erased yet" in text_of(admin.get("admin/erasures/"))


def test_what_was_previewed_is_what_is_erased(acme: TenantKit) -> None:
    plant(acme)
    client = acme.client("admin")
    who = {"subject": {"kind": "user", "id": ANN}}
    reach = body_of(client.post("/v1/memory/erasures/preview", who), 200)
    made = body_of(client.post("/v1/memory/erasures", who), 202)
    run(acme)
    counts = body_of(client.get(f"/v1/memory/erasures/{made['id']}"), 200)["counts"]
    assert counts["facts.fact"] == reach["facts"]
    assert counts["records"] == reach["records"]
    assert counts["log.payloads"] == reach["logPayloads"]
    assert counts["log.identifiersRetained"] == reach["logIdentifiersRetained"]


def test_a_hold_is_shown_before_and_offers_no_button(acme: TenantKit) -> None:
    plant(acme)
    place(acme, subject_ids=(ANN,))
    admin = person(acme, "admin")
    answer = admin.post("admin/erasures/new", ASK)
    assert "an erasure is whole or not at all" in text_of(answer)
    assert 'name="start"' not in answer.content.decode()
    refused = asked(admin)
    assert refused.status_code == 409
    assert "legal hold keeps this" in text_of(refused)
    assert "Nothing erased yet" in text_of(admin.get("admin/erasures/"))


def test_an_erasure_is_followed_from_asking_to_its_end(acme: TenantKit) -> None:
    plant(acme)
    admin = person(acme, "admin")
    page = asked(admin)["Location"]
    waiting = admin.get(page)
    assert "Waits its turn" in text_of(waiting)
    assert 'hx-trigger="every 3s"' in waiting.content.decode()
    assert ANN in text_of(admin.get("admin/erasures/"))
    run(acme)
    done = admin.get(page)
    assert "Erased" in text_of(done)
    assert "Log entries that keep the id" in text_of(done)
    assert "hx-trigger" not in done.content.decode()
    for path in (page, "admin/erasures/", "admin/erasures/ledger"):
        assert ANN not in admin.get(path).content.decode()


def test_the_same_form_sent_twice_asks_for_one_erasure(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    assert asked(admin)["Location"] == asked(admin)["Location"]
    ledger = json.loads(admin.get("admin/erasures/ledger").content)["erasures"]
    assert len(ledger) == 1


def test_one_that_a_hold_stopped_says_so_and_is_tried_again(acme: TenantKit) -> None:
    plant(acme)
    admin = person(acme, "admin")
    page = asked(admin)["Location"]
    place(acme, subject_ids=(ANN,))
    run(acme)
    shown = text_of(admin.get(page))
    assert "A legal hold keeps something in its reach" in shown
    assert "Tried 1 time" in shown
    assert admin.post(f"{page}resume").status_code == 302
    run(acme)
    assert "Tried 2 times" in text_of(admin.get(page))


def test_asking_and_trying_again_want_a_fresh_proof(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    page = asked(admin)["Location"]
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        assert "Is it you?" in text_of(asked(admin, "f" * 32))
        assert "Is it you?" in text_of(admin.post(f"{page}resume"))


def test_the_page_says_what_disk_pages_and_backups_still_hold(
    acme: TenantKit, settings: Any
) -> None:
    admin = person(acme, "admin")
    page = asked(admin)["Location"]
    run(acme)
    shown = text_of(admin.get(page))
    assert "files still hold the bytes" in shown
    assert "until that backup is destroyed" in shown
    settings.KINDMEM_BACKUP_DAYS = 35
    assert "Backups are kept 35 days" in text_of(admin.get(page))
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE page_maintenance SET status = 'done', started_at = now() + interval '1 hour', "
            "finished_at = now() + interval '1 hour', vacuumed_count = 2 WHERE status = 'due'"
        )
    shown = text_of(admin.get(page))
    assert "Cleared by the maintenance of" in shown
    assert "2 tables were too large" in shown


def test_the_ledger_is_what_a_replay_takes(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    asked(admin)
    run(acme)
    ledger = json.loads(admin.get("admin/erasures/ledger").content)
    replayed = body_of(acme.client("admin").post("/v1/memory/erasures/replay", ledger), 200)
    assert replayed["restored"] == [ledger["erasures"][0]["id"]]


def test_many_erasures_are_read_page_by_page_with_few_statements(acme: TenantKit) -> None:
    admin, client = person(acme, "admin"), acme.client("admin")
    for number in range(45):
        body_of(client.post("/v1/memory/erasures", {"factId": f"f{number:02}"}), 202)
    with CaptureQueriesContext(connection) as statements:
        first = admin.get("admin/erasures/").content.decode()
    assert len([one for one in statements if "SAVEPOINT" not in one["sql"]]) <= 12
    assert "<bdi>f44</bdi>" in first
    assert "<bdi>f04</bdi>" not in first
    older = first.rpartition("data-next")[0].rpartition('href="')[2].partition('"')[0]
    second = admin.get(older).content.decode()
    assert "<bdi>f04</bdi>" in second
    assert "<bdi>f05</bdi>" not in second


def test_another_tenants_erasure_does_not_exist(live_acme: TenantKit) -> None:
    page = asked(person(live_acme, "admin"))["Location"]
    other = person(make_tenant(), "admin")
    mine = page.replace(live_acme.slug, other.kit.slug)
    assert other.get(mine).status_code == 404
    assert other.post(f"{mine}resume").status_code == 404
    for role in ("auditor", "person"):
        assert person(live_acme, role).get("admin/erasures/").status_code == 403
