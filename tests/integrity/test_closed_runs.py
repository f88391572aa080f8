"""A closed run ends where its leaf says: the product refuses more, and every verifier names what was put after it."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection

from memory.actions.append_log_entries import append_log_entries
from memory.actions.close_run import close_run
from memory.actions.erase_payloads import erase_payloads
from memory.actions.seal_tenant import seal_tenant
from memory.errors import LogNotFound, PermissionDenied, RunClosed, RunReserved, SealRefused
from memory.integrity.leaves import run_closed_text
from memory.integrity.seal_log import NewLeaf, StoredTree
from memory.integrity.states import State, Tampering
from memory.log_entry import NewEntry
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.hands import hands_on
from tests.integrity.logs import RUN, attacker, fill, leaves, seal, verified_twice, writer
from tests.integrity.test_bundle import checked, exported


def close(tenant: TenantKit, run: str = RUN) -> int:
    with tenant_context(tenant.id):
        return close_run(principal=tenant.principal("admin"), run_id=run).to_sequence


def closings(tenant: TenantKit) -> list[dict[str, object]]:
    return [leaf for leaf in leaves(tenant) if leaf["type"] == "run-closed"]


def test_a_closed_run_takes_no_more_and_its_leaf_says_where_it_ends(live_acme: TenantKit) -> None:
    stored = fill(live_acme, 4)
    seal(live_acme)
    stored += fill(live_acme, 2)

    assert close(live_acme) == 5
    sealed = seal(live_acme)

    assert closings(live_acme) == [
        {
            "type": "run-closed",
            "tenantId": live_acme.slug,
            "runId": RUN,
            "toSequence": 5,
            "headHash": "sha256:" + stored[-1].entry_hash.hex(),
        }
    ]
    assert verified_twice(live_acme).state is State.VERIFIED
    with pytest.raises(RunClosed):
        fill(live_acme, 2)
    with pytest.raises(RunClosed):
        fill(live_acme, 1)
    assert verified_twice(live_acme).to_sequence == 5
    assert seal(live_acme).size == sealed.size + 1, "the record of governance, and no second leaf"
    assert len(closings(live_acme)) == 1
    answer = live_acme.client("agent", projects=["p1"]).post(
        f"/v1/memory/runs/{RUN}/log", {"kind": "tool-call", "scope": {"projectId": "p1"}}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run-closed")


def test_a_worker_that_looks_only_at_what_moved_sees_a_run_that_was_closed(
    live_acme: TenantKit,
) -> None:
    fill(live_acme, 4)
    since = seal(live_acme).looked_at
    close(live_acme)
    seal_tenant(tenant_id=live_acme.id, tenant_slug=live_acme.slug, since=since)
    assert len(closings(live_acme)) == 1


def test_who_may_not_close_and_what_can_not_be_closed(live_acme: TenantKit) -> None:
    fill(live_acme, 2)
    with tenant_context(live_acme.id), pytest.raises(PermissionDenied):
        close_run(principal=live_acme.principal("agent", everything=True), run_id=RUN)
    with pytest.raises(RunReserved):
        close(live_acme, "kindmem.governance")
    with pytest.raises(LogNotFound):
        close(live_acme, "no-such-run")
    close(live_acme)
    with pytest.raises(RunClosed):
        close(live_acme)


def test_the_command_closes_and_seals_and_the_act_is_logged(live_acme: TenantKit) -> None:
    fill(live_acme, 3)
    out = io.StringIO()
    call_command("close_run", live_acme.slug, "--run", RUN, "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["runId"], told["toSequence"]) == (RUN, 2)
    assert len(closings(live_acme)) == 1
    acts = live_acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log", {"limit": 200})
    payloads = [act["payload"] for act in acts.json()["data"]]
    assert {"type": "run.closed", "runId": RUN, "toSequence": 2} in payloads


def test_an_entry_put_after_the_end_is_named_by_every_verifier(
    live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    fill(live_acme, 4)
    close(live_acme)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute("UPDATE run_head SET closed_at = NULL WHERE run_id = %s", [RUN])
    fill(live_acme, 2)

    for is_sealed in (False, True):
        if is_sealed:
            seal(live_acme)
        bad = verified_twice(live_acme).first_bad
        assert bad is not None
        assert (bad.tampering, bad.sequence) == (Tampering.SEAL, 4)
        code, told = checked(exported(live_acme, tmp_path))
        assert (code, told["firstBad"]["class"], told["firstBad"]["place"]) == (10, "seal", 4)


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_payload_of_a_closed_run_can_still_be_erased(
    is_sealed: bool, live_acme: TenantKit, tmp_path: Path
) -> None:
    stored = fill(live_acme, 4, by=writer(live_acme, hash_version=2))
    close(live_acme)
    seal(live_acme)
    with tenant_context(live_acme.id):
        erase_payloads(
            principal=live_acme.principal("admin"),
            entry_ids=[stored[1].id],
            reason_code="subject-request",
        )
    if is_sealed:
        seal(live_acme)

    report = verified_twice(live_acme)
    assert (report.state, report.first_bad, report.erased) == (State.ERASED_ATTESTED, None, 1)
    assert checked(exported(live_acme, tmp_path))[0] == 13
    with pytest.raises(RunClosed):
        fill(live_acme, 1)
    assert len(closings(live_acme)) == 1


def test_a_leaf_of_closing_that_nobody_asked_for_is_never_signed(live_acme: TenantKit) -> None:
    stored = fill(live_acme, 4)
    seal(live_acme)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        tree = StoredTree(cursor, live_acme.id)
        text = run_closed_text(live_acme.slug, RUN, to_sequence=3, head_hash=stored[-1].entry_hash)
        tree.append(tree.compact_range(tree.size()), [NewLeaf(text)])
    with pytest.raises(SealRefused) as refusal:
        seal(live_acme)
    assert refusal.value.reason == "leaf"


def test_a_leaf_of_retiring_excuses_nothing(live_acme: TenantKit, superuser_url: str) -> None:
    """The product never removes entries; the kind of leaf that would say so is known, never made, and no excuse."""
    fill(live_acme, 4)
    seal(live_acme)
    text = json.dumps(
        {"runId": RUN, "tenantId": live_acme.slug, "toSequence": 3, "type": "run-retired"},
        separators=(",", ":"),
    )
    with hands_on(superuser_url, live_acme) as hands:
        log = hands.sealed_log()
        tree = StoredTree(hands.cursor, live_acme.id).compact_range(log.size)
        StoredTree(hands.cursor, live_acme.id).append(tree, [NewLeaf(text)])
        hands.replace(RUN, [])
        bad = hands.report(RUN).first_bad
        assert bad is not None
        assert (bad.tampering, bad.sequence) == (Tampering.SEAL, 0)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        tree = StoredTree(cursor, live_acme.id)
        tree.append(tree.compact_range(tree.size()), [NewLeaf(text)])
    with pytest.raises(SealRefused):
        seal(live_acme)


def test_the_database_itself_refuses_to_move_a_closed_run(live_acme: TenantKit) -> None:
    fill(live_acme, 2)
    close(live_acme)
    scope = {"tenantId": live_acme.slug, "projectId": "p1"}
    entry = NewEntry(kind="tool-call", scope=scope, id="late", payload=1)
    with tenant_context(live_acme.id), pytest.raises(RunClosed):
        append_log_entries(principal=writer(live_acme), run_id=RUN, entries=[entry])
    moved = "UPDATE run_head SET next_sequence = 3, entry_count = 3 WHERE tenant_id = %s::uuid AND run_id = %s"
    with pytest.raises(IntegrityError, match="the run is closed"), tenant_context(live_acme.id):
        connection.cursor().execute(moved, [live_acme.id, RUN])
    both = moved.replace("SET ", "SET closed_at = NULL, ")
    with pytest.raises(IntegrityError, match="only moves forward"), tenant_context(live_acme.id):
        connection.cursor().execute(both, [live_acme.id, RUN])
