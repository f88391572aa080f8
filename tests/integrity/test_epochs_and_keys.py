"""What operators do to the log of seals: a restore from an older backup, a new signing key, a tenant made anew."""

import io
import json

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from memory.actions.create_tenant import create_tenant
from memory.actions.restore_epoch import restore_epoch
from memory.errors import InvariantViolated, SealRefused
from memory.integrity.anchors import read_anchors
from memory.integrity.checkpoints import stored_checkpoints
from memory.integrity.notes import parse_checkpoint, signers_of
from memory.integrity.signing import signer
from memory.integrity.states import State, Tampering
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.hands import Copy, Hands
from tests.integrity.logs import attacker, fill, leaves, seal, verified_twice
from tests.integrity.test_agmi import Session


def copied(superuser_url: str, tenant: TenantKit) -> Copy:
    with Session(superuser_url, tenant) as hands:
        return hands.copy()


def restored(superuser_url: str, tenant: TenantKit, kept: Copy) -> None:
    with psycopg.connect(superuser_url) as session:
        Hands(session, tenant, keeps_constraints=True).restore(kept)


def test_after_a_restore_nothing_is_sealed_until_an_epoch_begins(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 4)
    seal(live_acme)
    older = copied(superuser_url, live_acme)
    fill(live_acme, 3)
    lost = seal(live_acme).size
    restored(superuser_url, live_acme, older)

    with pytest.raises(SealRefused) as refusal:
        seal(live_acme)
    assert (refusal.value.reason, refusal.value.size) == ("restored", lost)
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert bad.tampering is Tampering.ANCHOR

    out = io.StringIO()
    call_command("restore_epoch", live_acme.slug, "--reason", "disk failed", "--json", stdout=out)

    epoch = json.loads(out.getvalue())
    assert epoch["origin"] == f"kindmem/{live_acme.slug}/1"
    assert epoch["lost"] == lost - epoch["kept"]
    assert verified_twice(live_acme).state is State.VERIFIED
    fill(live_acme, 2)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        origins = {row.origin for row in stored_checkpoints(cursor, live_acme.id)}
    assert origins == {f"kindmem/{live_acme.slug}", f"kindmem/{live_acme.slug}/1"}
    anchors = read_anchors(live_acme.slug)
    assert anchors.epoch == 1
    said = [
        (note.origin, note.size)
        for one in anchors.checkpoints
        if (note := parse_checkpoint(one.note_text))
    ]
    assert len(said) == len(set(said))
    acts = live_acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log", {"limit": 200})
    types = [act["payload"]["type"] for act in acts.json()["data"]]
    assert "log.epoch-started" in types


def test_an_epoch_is_for_restores_only(live_acme: TenantKit, superuser_url: str) -> None:
    fill(live_acme)
    seal(live_acme)
    admin = live_acme.principal("admin")
    with pytest.raises(InvariantViolated):
        restore_epoch(principal=admin, reason="just so")
    older = copied(superuser_url, live_acme)
    fill(live_acme, 1)
    seal(live_acme)
    restored(superuser_url, live_acme, older)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE seal_leaf SET node_hashes = sha256('x') || substr(node_hashes, 33) WHERE tenant_id = %s AND leaf_index = 1",
            [live_acme.id],
        )
    with pytest.raises(SealRefused):
        restore_epoch(principal=admin, reason="a rewritten log is no restore")


def test_a_new_key_is_named_by_a_leaf_that_both_sign_and_old_checkpoints_still_verify(
    live_acme: TenantKit, own_signing_keys: None
) -> None:
    fill(live_acme)
    seal(live_acme)
    old = signer().public_keys[0]
    out = io.StringIO()

    call_command("rotate_signing_key", "--json", stdout=out)

    said = json.loads(out.getvalue())
    new = signer().public_keys[0]
    assert new != old
    assert said["newKeyId"] != said["oldKeyId"]
    [leaf] = [leaf for leaf in leaves(live_acme) if leaf["type"] == "key-rotated"]
    assert leaf["tenantId"] == live_acme.slug
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        newest, first = stored_checkpoints(cursor, live_acme.id)
    assert signers_of(parse_checkpoint(newest.note_text), [new, old]) == [new, old]
    assert signers_of(parse_checkpoint(first.note_text), [new, old]) == [old]
    assert verified_twice(live_acme).state is State.VERIFIED
    assert said["notSealed"] == []
    assert settings.KINDMEM_STATE.signing_keys().previous_seed is None
    fill(live_acme, 1)
    seal(live_acme)
    assert len([leaf for leaf in leaves(live_acme) if leaf["type"] == "key-rotated"]) == 1
    assert verified_twice(live_acme).state is State.VERIFIED


def test_a_tenant_made_anew_is_not_bound_by_what_its_name_anchored_before(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute("UPDATE tenant SET slug = slug || '-old' WHERE id = %s", [live_acme.id])
    again = TenantKit(create_tenant(slug=live_acme.slug), live_acme.slug)
    fill(again, 2)
    seal(again)
    assert verified_twice(again).state is State.VERIFIED
    with tenant_context(again.id), connection.cursor() as cursor:
        [row] = stored_checkpoints(cursor, again.id)
    assert row.origin == f"kindmem/{live_acme.slug}/1"
