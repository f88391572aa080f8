"""More of what somebody with full write access to the database tries against the log of seals: each is named."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory.actions import seal_tenant as module
from memory.actions.set_hash_version import set_hash_version
from memory.errors import SealRefused
from memory.integrity.leaves import key_rotated_text
from memory.integrity.seal_log import NewLeaf, StoredTree
from memory.integrity.signing import signer
from memory.integrity.states import State, Tampering
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.integrity.hands import Hands, OtherSigner, hands_on
from tests.integrity.logs import attacker, fill, leaves, seal, verified_twice, writer
from tests.integrity.test_closed_runs import close
from tests.integrity.test_erasure import erase

SEALS = "kindmem.seals"
RUN = "run-1"


def bad_of(hands: Hands, run: str = RUN) -> tuple[str, int, Tampering]:
    report = hands.report(run)
    assert report.state is State.TAMPERED
    assert report.first_bad is not None
    bad = report.first_bad
    return bad.run_id, bad.sequence, bad.tampering


def stranger() -> OtherSigner:
    key = Ed25519PrivateKey.generate()
    return OtherSigner((key.public_key().public_bytes_raw(),), key.sign)


@pytest.fixture
def size(live_acme: TenantKit) -> int:
    fill(live_acme, 6)
    seal(live_acme)
    fill(live_acme, 4, "other")
    return seal(live_acme).size


def test_a_checkpoint_added_by_an_attackers_key_is_named(
    live_acme: TenantKit, size: int, superuser_url: str
) -> None:
    with hands_on(superuser_url, live_acme) as hands:
        tree = StoredTree(hands.cursor, live_acme.id).compact_range(size)
        by = stranger()
        text = key_rotated_text(live_acme.slug, signer().public_keys[0], by.public_keys[0])
        StoredTree(hands.cursor, live_acme.id).append(tree, [NewLeaf(text)])
        assert hands.sealed_log().forged is not None
        hands.sign(tree.size, tree.root(), by)
        assert bad_of(hands) == (SEALS, size, Tampering.CHECKPOINT)


def test_a_leaf_that_rotates_to_an_attackers_key_is_forged(
    live_acme: TenantKit, size: int, superuser_url: str
) -> None:
    with hands_on(superuser_url, live_acme) as hands:
        tree = StoredTree(hands.cursor, live_acme.id).compact_range(size)
        text = key_rotated_text(live_acme.slug, signer().public_keys[0], stranger().public_keys[0])
        StoredTree(hands.cursor, live_acme.id).append(tree, [NewLeaf(text)])
        forged = hands.sealed_log().bad_anywhere
        assert forged is not None
        assert (forged.run_id, forged.sequence) == (SEALS, size)
        assert hands.report(RUN).state is State.VERIFIED, "what is signed stands"


def test_leaves_of_two_tenants_swapped_are_named(
    live_acme: TenantKit, size: int, superuser_url: str
) -> None:
    other = make_tenant()
    fill(other, 6)
    seal(other)
    with hands_on(superuser_url, live_acme) as hands:
        hands.cursor.execute(
            "SELECT leaf_text, leaf_hash, record_hashes FROM seal_leaf WHERE tenant_id = %s AND run_id = %s",
            [other.id, RUN],
        )
        text, hash, records = hands.cursor.fetchone()  # type: ignore[misc]  # it is sealed
        hands.do(
            "UPDATE seal_leaf SET leaf_text = %(x)s, leaf_hash = %(h)s, record_hashes = %(rec)s"
            " WHERE tenant_id = %(t)s AND run_id = %(r)s",
            x=text,
            h=hash,
            rec=records,
            r=RUN,
        )
        run, _, tampering = bad_of(hands)
        assert (run, tampering) == (SEALS, Tampering.CHECKPOINT)


def test_two_tenants_checkpoints_swapped_are_named(
    live_acme: TenantKit, size: int, superuser_url: str
) -> None:
    other = make_tenant()
    fill(other, 6)
    fill(other, 4, "other")
    seal(other)
    with hands_on(superuser_url, live_acme) as hands:
        hands.cursor.execute(
            "SELECT origin, root_hash, note_text FROM checkpoint WHERE tenant_id = %s", [other.id]
        )
        origin, root, note = hands.cursor.fetchone()  # type: ignore[misc]  # it is sealed
        hands.do(
            "UPDATE checkpoint SET origin = %(o)s, root_hash = %(h)s, note_text = %(n)s"
            " WHERE tenant_id = %(t)s AND size = %(s)s",
            o=origin,
            h=root,
            n=note,
            s=size,
        )
        run, _, tampering = bad_of(hands)
        assert (run, tampering) == (SEALS, Tampering.CHECKPOINT)


def test_shortcuts_of_leaves_that_wait_for_their_signature_are_not_signed_over(
    live_acme: TenantKit, size: int, superuser_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    while len(leaves(live_acme)) % 2:
        fill(live_acme, 1, f"even-{len(leaves(live_acme))}")
        seal(live_acme)
    start = len(leaves(live_acme))
    fill(live_acme, 2, "a")
    fill(live_acme, 2, "b")
    with monkeypatch.context() as patch:
        patch.setattr(module, "sign_and_anchor", lambda *given: None)
        seal(live_acme)
    with attacker(superuser_url) as session:
        touched = session.execute(
            "UPDATE seal_leaf SET node_hashes = sha256('x') || substr(node_hashes, 33) WHERE tenant_id = %s AND leaf_index = %s"
            " AND octet_length(node_hashes) >= 32",
            [live_acme.id, start + 1],
        ).rowcount
    assert touched == 1
    with pytest.raises(SealRefused) as refusal:
        seal(live_acme)
    assert (refusal.value.reason, refusal.value.size) == ("leaf", start + 1)


def test_a_checkpoint_of_another_epoch_by_the_attackers_key_changes_nothing(
    live_acme: TenantKit, size: int, superuser_url: str
) -> None:
    with hands_on(superuser_url, live_acme) as hands:
        hands.do(
            "UPDATE checkpoint SET origin = origin || '/7', note_text = replace(note_text, origin, origin || '/7')"
            " WHERE tenant_id = %(t)s AND size = %(s)s",
            s=size,
        )
        run, _, tampering = bad_of(hands)
        assert (run, tampering) == (SEALS, Tampering.CHECKPOINT)


def test_an_honest_tenant_with_every_kind_of_leaf_stays_clean(
    live_acme: TenantKit, size: int, superuser_url: str
) -> None:

    with tenant_context(live_acme.id):
        set_hash_version(principal=live_acme.principal("admin"), hash_version=2)
    stored = fill(live_acme, 5, "closed", by=writer(live_acme, hash_version=2))
    erase(live_acme, stored[1])
    close(live_acme, "closed")
    erase(live_acme, stored[2])
    seal(live_acme)
    kinds = {leaf["type"] for leaf in leaves(live_acme)}
    assert kinds == {"seal/v1", "hash-version-changed", "erasure", "run-closed"}
    assert verified_twice(live_acme).state is State.VERIFIED
    assert verified_twice(live_acme, "closed").state is State.ERASED_ATTESTED
    with hands_on(superuser_url, live_acme) as hands:
        assert hands.sealed_log().bad_anywhere is None
