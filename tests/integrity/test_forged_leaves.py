"""A leaf that somebody put past the last signed head: named by every verifier, told once, never signed, and no end of sealing."""

import io
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from memory.actions.run_verifications import run_verifications
from memory.errors import SealRefused
from memory.integrity.leaves import (
    erasure_text,
    hash_version_changed_text,
    run_closed_text,
    seal_text,
)
from memory.integrity.merkle import leaf_hash
from memory.integrity.states import State, Tampering
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, leaves, seal, verified_twice
from tests.integrity.test_bundle import checked, exported
from tests.integrity.test_receipts import judged
from tests.pages.people import person

SEALS = "kindmem.seals"


def put(session: psycopg.Connection[Any], tenant: TenantKit, index: int, text: str) -> None:
    """A leaf as the table's owner puts it: with its right hash, past every check."""
    session.execute(
        "ALTER TABLE seal_leaf DROP CONSTRAINT IF EXISTS seal_leaf_of_seal_has_range,"
        " DROP CONSTRAINT IF EXISTS seal_leaf_type_is_known"
    ) if "odd" in text else None
    records = leaf_hash(b"x") * 2 if '"seal/v1"' in text else None
    session.execute(
        "INSERT INTO seal_leaf (tenant_id, leaf_index, leaf_text, leaf_hash, node_hashes, record_hashes)"
        " VALUES (%s, %s, %s, %s, '', %s)",
        [tenant.id, index, text, leaf_hash(text.encode()), records],
    )


def forged_texts(tenant: TenantKit) -> dict[str, str]:
    slug, wrong = tenant.slug, bytes(32)
    return {
        "a seal of other entries": seal_text(
            slug,
            "run-1",
            from_sequence=4,
            to_sequence=5,
            head_hash=wrong,
            record_hashes=[leaf_hash(b"x"), leaf_hash(b"x")],
        ),
        "a seal of no run": seal_text(
            slug,
            "nowhere",
            from_sequence=0,
            to_sequence=1,
            head_hash=wrong,
            record_hashes=[leaf_hash(b"x"), leaf_hash(b"x")],
        ),
        "an erasure": erasure_text(slug, "run-1", entry_id="x", sequence=1, attested_by="y"),
        "an end": run_closed_text(slug, "run-1", to_sequence=3, head_hash=wrong),
        "a hash version": hash_version_changed_text(slug, 1, 2),
        "an id that is none": json.dumps({"type": "erasure", "runId": 5, "attestedBy": "\ud800"}),
    }


KINDS = [
    "a seal of other entries",
    "a seal of no run",
    "an erasure",
    "an end",
    "a hash version",
    "an id that is none",
]


def acts_of(tenant: TenantKit, type: str) -> list[dict[str, Any]]:
    acts = tenant.client("auditor").get("/v1/memory/runs/kindmem.governance/log", {"limit": 200})
    return [one["payload"] for one in acts.json()["data"] if one["payload"]["type"] == type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_leaf_is_named_told_once_and_can_be_dropped(
    kind: str, live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 4)
    fill(live_acme, 3, "other")
    size = seal(live_acme).size
    fill(live_acme, 2)
    text = forged_texts(live_acme)[kind]
    with attacker(superuser_url) as session:
        if kind == "an id that is none":
            text = text.replace("\\ud800", "y")
        put(session, live_acme, size, text)

    for _ in range(3):
        with pytest.raises(SealRefused) as refusal:
            seal(live_acme)
    assert (refusal.value.reason, refusal.value.size) == ("leaf", size)
    told = [one for one in acts_of(live_acme, "seal.refused") if one["runId"] == SEALS]
    assert told == [
        {
            "type": "seal.refused",
            "runId": SEALS,
            "firstBad": {"class": "checkpoint", "sequence": size},
            "reason": "leaf",
        }
    ]

    for verifier in ((), ("--sql",)):
        code, answer = judged(live_acme, *verifier)
        assert (code, answer["state"]) == (10, "tampered")
        bad = answer["firstBad"]
        assert (bad["runId"], bad["sequence"], bad["class"]) == (SEALS, size, "checkpoint")
        assert "--drop-unsigned" in answer["nextStep"]
        states = {one["runId"]: one["state"] for one in answer["runs"]}
        assert states["other"] == "verified", "what is signed stands, and nobody else is accused"
        assert states["run-1"] == ("tampered" if '"run-1"' in text else "verified-unsealed-tail")
    page = person(live_acme, "auditor").get("audit/health/")
    assert "The log of seals is broken" in page.content.decode()

    out = io.StringIO()
    call_command("seal", live_acme.slug, "--drop-unsigned", stdout=out)

    assert "1 leaves" in out.getvalue()
    assert text not in [json.dumps(leaf) for leaf in leaves(live_acme)]
    assert acts_of(live_acme, "seal.leaves-dropped")[0]["from"] == size
    assert judged(live_acme)[1]["state"] in ("verified", "verified-unsealed-tail")
    assert verified_twice(live_acme).state is State.VERIFIED
    page = person(live_acme, "auditor").get("audit/health/")
    assert "The log of seals is broken" not in page.content.decode()


def test_nothing_is_dropped_where_every_leaf_is_the_servers(live_acme: TenantKit) -> None:
    fill(live_acme, 4)
    size = seal(live_acme).size
    out = io.StringIO()
    call_command("seal", live_acme.slug, "--drop-unsigned", stdout=out)
    assert out.getvalue().startswith("0 leaves")
    assert len(leaves(live_acme)) >= size


def test_the_workers_verification_of_everything_names_it_and_one_of_another_run_does_not(
    live_acme: TenantKit, superuser_url: str
) -> None:
    from memory.access import system_principal
    from memory.actions.ask_verification import ask_verification
    from memory.queries.verification_jobs import verification_job

    fill(live_acme, 4)
    fill(live_acme, 3, "other")
    size = seal(live_acme).size
    with attacker(superuser_url) as session:
        put(session, live_acme, size, forged_texts(live_acme)["an end"])
    auditor = live_acme.principal("auditor")
    with tenant_context(live_acme.id):
        everything = ask_verification(principal=auditor)
        other = ask_verification(principal=auditor, run_id="other")
    while run_verifications(system_principal(live_acme.id, live_acme.slug, id="verifier")):
        continue
    with tenant_context(live_acme.id):
        found, of_other = (verification_job(auditor, one.id) for one in (everything, other))
    assert (found.state, of_other.state) == ("tampered", "verified")
    assert found.first_bad is not None
    assert (found.first_bad["runId"], found.first_bad["sequence"]) == (SEALS, size)


def test_a_bundle_names_a_forged_leaf_about_its_run(
    live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    fill(live_acme, 4)
    size = seal(live_acme).size
    fill(live_acme, 2)
    assert checked(exported(live_acme, tmp_path))[0] == 14
    for kind in ("a seal of other entries", "an erasure", "an end"):
        with attacker(superuser_url) as session:
            session.execute(
                "DELETE FROM seal_leaf WHERE tenant_id = %s AND leaf_index >= %s",
                [live_acme.id, size],
            )
            put(session, live_acme, size, forged_texts(live_acme)[kind])
        code, told = checked(exported(live_acme, tmp_path))
        assert code == 10, kind
        assert told["firstBad"]["place"] == f"leaf {size}"


def test_a_bundle_made_while_honest_leaves_wait_for_their_signature_is_clean(
    live_acme: TenantKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory.actions import seal_tenant as module

    fill(live_acme, 4)
    seal(live_acme)
    fill(live_acme, 2)
    monkeypatch.setattr(module, "sign_and_anchor", lambda *given: None)
    seal(live_acme)
    report = verified_twice(live_acme)
    assert (report.state, report.unsealed) == (State.VERIFIED_UNSEALED_TAIL, 2)
    assert judged(live_acme)[0] == 14
    assert checked(exported(live_acme, tmp_path))[0] == 14


def test_moments_of_the_log_of_seals_are_those_of_the_anchor_file(
    live_acme: TenantKit, superuser_url: str
) -> None:
    for _ in range(3):
        fill(live_acme, 2)
        seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    for change, place in (
        ("checkpoint SET signed_at = signed_at - interval '2 hours' WHERE size = {0}", 0),
        ("anchor SET anchored_at = anchored_at + interval '2 hours' WHERE size = {0}", 0),
        ("seal_leaf SET appended_at = appended_at - interval '2 hours' WHERE leaf_index = {0}", 1),
    ):
        with attacker(superuser_url) as session:
            first, second = session.execute(
                "SELECT (array_agg(size ORDER BY size))[1:2] FROM checkpoint WHERE tenant_id = %s",
                [live_acme.id],
            ).fetchone()[0]  # type: ignore[index]  # three were signed
            sql = "UPDATE " + change.format(second if place == 0 else first)
            back = sql.replace("+ ", "# ").replace("- interval", "+ interval").replace("# ", "- ")
            assert session.execute(sql + " AND tenant_id = %s", [live_acme.id]).rowcount
            session.commit()
            bad = verified_twice(live_acme).first_bad
            assert bad is not None, change
            assert (bad.run_id, bad.sequence, bad.tampering) == (SEALS, first, Tampering.CHECKPOINT)
            session.execute(back + " AND tenant_id = %s", [live_acme.id])
            session.commit()
    assert verified_twice(live_acme).state is State.VERIFIED


def test_checkpoints_that_were_deleted_are_named_and_given_back_by_the_anchor_file(
    live_acme: TenantKit, superuser_url: str
) -> None:
    sizes = []
    for _ in range(4):
        fill(live_acme, 2)
        sizes.append(seal(live_acme).size)

    def delete(which: str) -> None:
        with attacker(superuser_url) as session:
            for table in ("anchor", "checkpoint"):
                session.execute(
                    f"DELETE FROM {table} WHERE tenant_id = %s AND size {which}", [live_acme.id]
                )

    delete(f"> {sizes[0]}")
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.run_id, bad.sequence, bad.tampering) == (SEALS, sizes[0], Tampering.CHECKPOINT)
    fill(live_acme, 2)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    told = [one for one in acts_of(live_acme, "seal.refused") if one["runId"] == SEALS]
    assert [one["reason"] for one in told] == ["gone"]
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM checkpoint WHERE tenant_id = %s::uuid", [live_acme.id])
        assert cursor.fetchone()[0] == 5

    delete(f"= {sizes[1]}")
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.run_id, bad.sequence, bad.tampering) == (SEALS, sizes[0], Tampering.CHECKPOINT)
