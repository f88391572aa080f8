"""`pseudonymiseLogIds`: the log names people by keyed hashes from the start, and asking by their ids still works."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from memory.access import system_principal
from memory.actions.replay_erasures import replay_erasures
from memory.actions.set_log_ids import set_log_ids
from memory.erasure.ledger import whole_ledger
from memory.errors import PermissionDenied
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.lifecycle.test_erasure import ANN, CANARY, ERASURES, RECORDS, plant, rows_that_say, run
from tests.lifecycle.test_holds import place
from tests.records.builders import a_record, body_of, refusal

LOG = "/v1/memory/runs/r1/log"


@pytest.fixture
def hiding(acme: TenantKit) -> TenantKit:
    """A tenant whose log hides people's ids."""
    switch(acme, "on")
    return acme


def switch(kit: TenantKit, choice: str) -> dict[str, object]:
    out = StringIO()
    call_command("pseudonymise_log_ids", kit.slug, choice, "--json", stdout=out)
    said: dict[str, object] = json.loads(out.getvalue())
    return said


def say(app: ApiClient, id: str, *, actor: str | None = None, **scope: str) -> dict[str, object]:
    body = {"id": id, "kind": "user-message", "scope": scope, "payload": {"text": CANARY}}
    return body_of(app.post(LOG, body | ({"actor": actor} if actor else {})), 201)


def test_an_entry_is_stored_with_a_keyed_hash_and_verifies(hiding: TenantKit) -> None:
    app = hiding.client("app", users=[ANN], participants=[ANN], projects=["p1"])

    entry = say(app, "m1", actor=f"user:{ANN}", userId=ANN)
    again = say(app, "m2", actor=ANN, projectId="p1", participantId=ANN)
    tool = say(app, "m3", actor="tool:crm", userId=ANN)

    hidden = entry["scope"]["userId"]  # type: ignore[index]
    assert hidden.startswith("pseudonym:")
    assert (entry["actor"], again["actor"], tool["actor"]) == (f"user:{hidden}", hidden, "tool:crm")
    assert again["scope"] == {"tenantId": "acme", "projectId": "p1", "participantId": hidden}
    assert say(app, "m1", actor=f"user:{ANN}", userId=ANN) == entry, "a retry is the same entry"
    assert rows_that_say(hiding, ANN).keys() <= {"api_key"}
    verified = body_of(hiding.client("auditor").post("/v1/memory/runs/r1/verify", {}), 200)
    assert verified["state"] == "verified-unsealed-tail"


def test_who_was_granted_the_person_reads_by_the_id_and_nobody_else(hiding: TenantKit) -> None:
    app = hiding.client("app", users=[ANN], participants=[ANN], projects=["p1"])
    say(app, "m1", actor=f"user:{ANN}", userId=ANN)
    say(app, "m2", projectId="p1", participantId=ANN)

    assert [one["id"] for one in body_of(app.get(LOG), 200)["data"]] == ["m1", "m2"]
    mine = body_of(app.get(LOG, {"actor": f"user:{ANN}"}), 200)["data"]
    assert [one["id"] for one in mine] == ["m1"]
    runs = body_of(app.get("/v1/memory/runs", {"actor": f"user:{ANN}"}), 200)["data"]
    assert [one["runId"] for one in runs] == ["r1"]
    refusal(hiding.client("app", users=["bob"]).get(LOG), 404, "log-not-found")
    other = {"kind": "user-message", "scope": {"userId": "bob"}}
    refusal(app.post(LOG, other), 403, "permission-denied")


def test_a_persons_word_is_found_under_the_pseudonym(hiding: TenantKit) -> None:
    app, agent = hiding.client("app", users=[ANN]), hiding.client("agent", users=[ANN])
    say(app, "m1", userId=ANN)
    stated = a_record("aisle", subject=ANN, evidence={"kind": "message", "ref": "m1"})

    assert body_of(agent.post(RECORDS, stated), 201)["value"] == "aisle"
    again = a_record(
        "window", subject=ANN, key="travel.other", evidence={"kind": "message", "ref": "m1"}
    )
    refusal(agent.post(RECORDS, again), 422, "evidence-unresolved")


def test_after_an_erasure_no_table_knows_the_id_and_none_is_counted_as_kept(
    hiding: TenantKit,
) -> None:
    plant(hiding)
    admin = hiding.client("admin")
    seen = body_of(admin.post(f"{ERASURES}/preview", {"subject": {"kind": "user", "id": ANN}}), 200)
    assert (seen["logPayloads"], seen["logIdentifiersRetained"]) == (1, 0)

    admin.post(ERASURES, {"subject": {"kind": "user", "id": ANN}})
    run(hiding)

    [erasure] = body_of(admin.get(ERASURES), 200)["data"]
    assert (erasure["status"], erasure["counts"]["log.payloads"]) == ("completed", 1)
    assert "log.identifiersRetained" not in erasure["counts"]
    assert rows_that_say(hiding, ANN) == {}
    assert rows_that_say(hiding, CANARY) == {}


def test_while_an_erasure_runs_nothing_is_appended_about_the_person(hiding: TenantKit) -> None:
    app = hiding.client("app", users=[ANN, "bob"])
    say(app, "m1", userId=ANN)
    hiding.client("admin").post(ERASURES, {"subject": {"kind": "external", "id": ANN}})

    body = {"kind": "user-message", "scope": {"userId": ANN}}
    refusal(app.post(LOG, body), 409, "erasure-in-progress")
    say(app, "m2", userId="bob")


def test_a_replay_finds_who_is_nowhere_but_under_a_pseudonym(hiding: TenantKit) -> None:
    admin = system_principal(hiding.id, hiding.slug)
    for kind in ("participant", "external", "user"):
        hiding.client("admin").post(ERASURES, {"subject": {"kind": kind, "id": ANN}})
        run(hiding)
        with tenant_context(hiding.id):
            line = next(one for one in whole_ledger(hiding.id) if one.kind == kind).ledger_entry()
        # As if the backup were older than the erasure: the entry is there again, and was written before.
        line["completedAt"] = "2099-01-01T00:00:00Z"
        say(hiding.client("app", users=[ANN]), f"m-{kind}", userId=ANN)
        with tenant_context(hiding.id):
            replay = replay_erasures(principal=admin, entries=[line])
        assert list(replay.replayed) == [line["id"]]
        run(hiding)
        with tenant_context(hiding.id), connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM log_entry WHERE payload_text LIKE '%zebrafinch%'")
            assert cursor.fetchone() == (0,), kind


def test_a_hold_on_the_person_keeps_the_payloads_that_a_pseudonym_names(hiding: TenantKit) -> None:
    app = hiding.client("app", users=[ANN], threads=["t1"])
    say(app, "m1", userId=ANN, threadId="t1")
    place(hiding, subject_ids=(ANN,))

    asked = hiding.client("admin").post(ERASURES, {"conversationId": "t1"})
    assert refusal(asked, 409, "legal-hold")["ids"] == ["m1"]


def test_what_was_written_before_and_after_is_found_together(hiding: TenantKit) -> None:
    app = hiding.client("app", users=[ANN])
    switch(hiding, "off")
    say(app, "plain", userId=ANN)
    switch(hiding, "on")
    say(app, "hidden", userId=ANN)
    assert switch(hiding, "off") == {"pseudonymiseLogIds": False, "changed": True}
    assert switch(hiding, "off") == {"pseudonymiseLogIds": False, "changed": False}

    assert [one["id"] for one in body_of(app.get(LOG), 200)["data"]] == ["plain", "hidden"]
    hiding.client("admin").post(ERASURES, {"subject": {"kind": "user", "id": ANN}})
    run(hiding)
    [erasure] = body_of(hiding.client("admin").get(ERASURES), 200)["data"]
    assert erasure["counts"]["log.payloads"] == 2
    assert erasure["counts"]["log.identifiersRetained"] == 1, "only the plain one"


@pytest.mark.parametrize("role", ["agent", "app", "auditor"])
def test_only_an_admin_chooses(acme: TenantKit, role: str) -> None:
    with pytest.raises(PermissionDenied), tenant_context(acme.id):
        set_log_ids(principal=acme.principal(role), pseudonymise=True)  # type: ignore[arg-type]
