"""Erased payloads: of version 2 the run still verifies whole, of version 1 only its links; nothing is erased unattested."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from memory.actions.erase_payloads import ErasureEffect, erase_payloads, erasure_effect
from memory.actions.set_hash_version import set_hash_version
from memory.errors import BadInput, PermissionDenied, RunReserved
from memory.integrity.states import State, Tampering
from memory.log_entry import StoredEntry
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, leaves, seal, verified_twice, writer
from tests.integrity.test_bundle import checked, exported


def erase(tenant: TenantKit, *entries: StoredEntry) -> ErasureEffect:
    with tenant_context(tenant.id):
        return erase_payloads(
            principal=tenant.principal("admin"),
            entry_ids=[entry.id for entry in entries],
            reason_code="subject-request",
        )


def test_an_erased_payload_of_version_2_stays_attested_before_and_after_the_next_seal(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    entries = fill(live_acme, by=writer(live_acme, hash_version=2))
    seal(live_acme)

    assert erase(live_acme, entries[3]) == ErasureEffect(still_provable=1, linkage_only=0)

    reader = live_acme.client("auditor")
    body = reader.get(f"/v1/memory/log/{entries[3].id}").json()
    assert "payload" not in body
    assert "payloadSalt" not in body
    assert body["payloadErasedAt"]
    word = reader.get(
        "/v1/memory/runs/run-1/log", {"sinceSequence": 8, "reveal": "routine-audit"}
    ).json()["data"][0]
    assert (word["kind"], word["causedByLogId"]) == ("event-emitted", entries[3].id)
    assert word["payload"]["type"] == "payload.erased"
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED
    assert checked(exported(live_acme, tmp_path))[0] == 13
    seal(live_acme)
    report = verified_twice(live_acme)
    assert (report.state, report.erased, report.unsealed) == (State.ERASED_ATTESTED, 1, 0)
    [leaf] = [leaf for leaf in leaves(live_acme) if leaf["type"] == "erasure"]
    assert (leaf["logEntryId"], leaf["sequence"]) == (entries[3].id, 3)
    assert leaf["attestedBy"] == word["id"]
    assert checked(exported(live_acme, tmp_path))[0] == 13


def test_version_1_says_before_what_is_lost_and_keeps_its_links(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    entries = fill(live_acme)
    seal(live_acme)
    with tenant_context(live_acme.id):
        effect = erasure_effect(live_acme.principal("admin"), [entries[3].id, entries[5].id])
    assert effect == ErasureEffect(still_provable=0, linkage_only=1)  # entry 5 has no payload
    assert effect.warning is not None
    assert "no longer be checked" in effect.warning
    assert ErasureEffect(2, 0).warning is None

    erase(live_acme, entries[3], entries[5])

    assert verified_twice(live_acme).state is State.LINKAGE_ONLY
    seal(live_acme)
    assert verified_twice(live_acme).state is State.LINKAGE_ONLY
    assert checked(exported(live_acme, tmp_path))[0] == 12


def test_a_payload_that_is_gone_without_a_leaf_is_tampering(
    live_acme: TenantKit, superuser_url: str
) -> None:
    entries = fill(live_acme, by=writer(live_acme, hash_version=2))
    erase(live_acme, entries[2])
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET payload_text = NULL, payload_salt = NULL, payload_erased_at = now()"
            " WHERE tenant_id = %s AND id = %s",
            [live_acme.id, entries[4].id],
        )
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.tampering, bad.sequence) == (Tampering.CONTENT, 4)


@pytest.mark.parametrize("route", ["log", "log/batch"])
def test_nobody_but_the_server_attests_an_erasure(acme: TenantKit, route: str) -> None:
    client = acme.client("agent", everything=True)
    for kind in ("event-emitted", "tool-result"):
        entry = {
            "kind": kind,
            "scope": {},
            "payload": {"logEntryId": "x", "reasonCode": "r", "type": "payload.erased"},
        }
        body = {"entries": [entry, entry]} if route == "log/batch" else entry
        answer = client.post(f"/v1/memory/runs/run-1/{route}", body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invariant-violated")
    assert client.get("/v1/memory/runs/run-1/log").status_code == 404


def test_kept_answers_that_held_the_payload_are_withheld(live_acme: TenantKit) -> None:
    client = live_acme.client("agent", everything=True)
    body = {"kind": "tool-call", "scope": {}, "payload": {"secret": 1}}
    sent = client.post("/v1/memory/runs/run-1/log", body, Idempotency_Key="k").json()
    with tenant_context(live_acme.id):
        erase_payloads(
            principal=live_acme.principal("admin"), entry_ids=[sent["id"]], reason_code="r"
        )
    again = client.post("/v1/memory/runs/run-1/log", body, Idempotency_Key="k")
    assert again.json()["error"]["code"] == "idempotency-key-replay-withheld"


def test_who_may_erase_and_what(live_acme: TenantKit) -> None:
    entries = fill(live_acme)
    governance = live_acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()
    admin = live_acme.principal("admin")
    with tenant_context(live_acme.id):
        with pytest.raises(PermissionDenied):
            erase_payloads(
                principal=live_acme.principal("agent", everything=True),
                entry_ids=[entries[0].id],
                reason_code="r",
            )
        with pytest.raises(BadInput):
            erase_payloads(principal=admin, entry_ids=[entries[0].id], reason_code="free text")
    with tenant_context(live_acme.id), pytest.raises(RunReserved):
        erase_payloads(principal=admin, entry_ids=[governance["data"][0]["id"]], reason_code="r")
    assert erase(live_acme, entries[0]) == ErasureEffect(0, 1)
    assert erase(live_acme, entries[0]) == ErasureEffect(0, 0)
    word = (
        live_acme.client("auditor")
        .get("/v1/memory/runs/run-1/log", {"sinceSequence": 8, "reveal": "routine-audit"})
        .json()
    )
    with tenant_context(live_acme.id):
        attestation = [word["data"][0]["id"]]
        effect = erase_payloads(principal=admin, entry_ids=attestation, reason_code="r")
    assert effect == ErasureEffect(0, 0)


def test_a_change_of_hash_version_is_a_leaf_and_chains_mix(live_acme: TenantKit) -> None:
    fill(live_acme, 2)
    seal(live_acme)
    for choice, changed in (("on", True), ("on", False)):
        out = io.StringIO()
        call_command("erasable_payloads", live_acme.slug, choice, "--json", stdout=out)
        assert json.loads(out.getvalue())["changed"] is changed
    client = live_acme.client("agent", everything=True)
    new = client.post(
        "/v1/memory/runs/run-1/log", {"kind": "tool-call", "scope": {}, "payload": 1}
    ).json()
    assert new["hashVersion"] == 2
    seal(live_acme)
    changes = [leaf for leaf in leaves(live_acme) if leaf["type"] == "hash-version-changed"]
    assert [(leaf["oldVersion"], leaf["newVersion"]) for leaf in changes] == [(1, 2)]
    assert verified_twice(live_acme).state is State.VERIFIED
    seal(live_acme)
    assert len([leaf for leaf in leaves(live_acme) if leaf["type"] == "hash-version-changed"]) == 1
    with tenant_context(live_acme.id), pytest.raises(BadInput):
        set_hash_version(principal=live_acme.principal("admin"), hash_version=3)
