"""The golden vectors of docs/integrity.md: by the spliced text, and by hand-built objects and hashlib."""

import base64
import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.canonical import canonical, canonical_bytes
from memory.hashing import (
    ZERO_HASH,
    EntryPieces,
    content_hash_v1,
    content_hash_v2,
    digest_of_tag,
    entry_hash,
    entry_hash_v1,
    entry_hash_v2,
    entry_pieces_v1,
    entry_pieces_v2,
    entry_text,
    new_salt,
    record_leaf_text,
    sha256_tag,
    tag,
    timestamp_text,
)
from memory.integrity.leaves import record_hash, record_hashes
from memory.integrity.merkle import leaf_hash, root_of

G0 = "sha256:60e1d272474e75754a3f2157985258b926fb46d3cf3d45cfffbf487edcd7da26"
G0_CONTENT = "sha256:585d3814d36d4d9b09c61be7bc8422dfc2bafb8264145a23886751379794c77f"
G1 = "sha256:42a142b49afcf6c70fe13e260d24ae8679880b32141e5b3aca07948dc8ec55dc"
G2 = "sha256:f7b1da3fe0b7795d7f21d5f4e86fe7d247df6a2ee6bb26f7c8e367b66767b377"
G2_CONTENT = "sha256:7ddb7adb26ca0a508a53a44373069004ccbd86ab9c7caa4eac35c36e6d0069b4"
RECORDS_ROOT = "sha256:4dc57710cc25c29d30a0a715ee07987c156f6119c7bd43fc65d6d6518d4a3c6a"
ROOT_OF_ONE_SEAL = "GYnW4NFHiY/KJMIwBdkDuAGh3v+vjqpCK3JwPMXlxz4="

SALT = base64.b64encode(bytes(range(32))).decode()
G0_PAYLOAD = {"n": 1.0, "text": "caf\u00e9", "z": None}


def by_hand(value: Any) -> str:
    return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def test_g0_has_the_published_hashes() -> None:
    payload_text = canonical(G0_PAYLOAD)

    assert tag(content_hash_v1(payload_text)) == G0_CONTENT == by_hand(G0_PAYLOAD)
    assert (
        tag(
            entry_hash_v1(
                id="le-0",
                kind="user-message",
                run_id="run-1",
                scope_text='{"tenantId":"acme"}',
                actor="user:zo\u00eb",
                payload_text=payload_text,
                prev_hash=ZERO_HASH,
                sequence=0,
                timestamp="2026-01-02T03:04:05.006Z",
            )
        )
        == G0
    )
    assert (
        by_hand(
            {
                "id": "le-0",
                "kind": "user-message",
                "scope": {"tenantId": "acme"},
                "runId": "run-1",
                "actor": "user:zo\u00eb",
                "timestamp": "2026-01-02T03:04:05.006Z",
                "sequence": 0,
                "payload": G0_PAYLOAD,
                "prevHash": "sha256:" + "0" * 64,
            }
        )
        == G0
    )


def test_g1_without_actor_and_payload_omits_both_keys() -> None:
    assert (
        tag(
            entry_hash_v1(
                id="le-1",
                kind="internal-thought",
                run_id="run-1",
                scope_text=canonical({"tenantId": "acme", "projectId": "p1"}),
                actor=None,
                payload_text=None,
                prev_hash=digest_of_tag(G0),
                sequence=1,
                timestamp="2026-01-02T03:04:05.006Z",
            )
        )
        == G1
    )
    assert (
        by_hand(
            {
                "id": "le-1",
                "kind": "internal-thought",
                "prevHash": G0,
                "runId": "run-1",
                "scope": {"projectId": "p1", "tenantId": "acme"},
                "sequence": 1,
                "timestamp": "2026-01-02T03:04:05.006Z",
            }
        )
        == G1
    )


def test_g2_of_version_2_has_the_published_hashes() -> None:
    content_hash = content_hash_v2('{"approved":true}', SALT)

    assert tag(content_hash) == G2_CONTENT
    assert by_hand({"payload": {"approved": True}, "payloadSalt": SALT}) == G2_CONTENT
    assert (
        tag(
            entry_hash_v2(
                id="le-2",
                kind="tool-result",
                run_id="run-1",
                scope_text='{"tenantId":"acme"}',
                actor="tool:crm",
                content_hash=content_hash,
                caused_by="le-0",
                prev_hash=digest_of_tag(G1),
                sequence=2,
                timestamp="2026-01-02T03:04:06.000Z",
            )
        )
        == G2
    )
    assert (
        by_hand(
            {
                "id": "le-2",
                "kind": "tool-result",
                "scope": {"tenantId": "acme"},
                "runId": "run-1",
                "actor": "tool:crm",
                "timestamp": "2026-01-02T03:04:06.000Z",
                "sequence": 2,
                "contentHash": G2_CONTENT,
                "prevHash": G1,
                "hashVersion": 2,
                "causedByLogId": "le-0",
            }
        )
        == G2
    )


def test_the_seal_over_the_three_entries_has_the_published_roots() -> None:
    records = [
        record_leaf_text(digest_of_tag(G0), 1, None),
        record_leaf_text(digest_of_tag(G1), 1, None),
        record_leaf_text(digest_of_tag(G2), 2, "le-0"),
    ]
    assert [text.encode() for text in records] == [
        rfc8785.dumps({"entryHash": G0, "hashVersion": 1}),
        rfc8785.dumps({"entryHash": G1, "hashVersion": 1}),
        rfc8785.dumps({"entryHash": G2, "hashVersion": 2, "causedByLogId": "le-0"}),
    ]

    records_root = root_of(text.encode() for text in records)
    assert tag(records_root) == RECORDS_ROOT

    seal = {
        "type": "seal/v1",
        "tenantId": "acme",
        "runId": "run-1",
        "fromSequence": 0,
        "toSequence": 2,
        "headHash": G2,
        "recordsRoot": RECORDS_ROOT,
    }
    assert base64.b64encode(root_of([canonical_bytes(seal)])).decode() == ROOT_OF_ONE_SEAL
    assert root_of([canonical_bytes(seal)]) == leaf_hash(rfc8785.dumps(seal))


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@given(
    id=texts,
    kind=texts,
    run_id=texts,
    actor=st.none() | texts,
    caused_by=st.none() | texts,
    payload=st.none() | st.dictionaries(texts, st.integers(0, 99) | texts),
    scope=st.dictionaries(texts, texts),
    sequence=st.integers(0, 2**53 - 1),
)
@settings(deadline=None)
def test_both_versions_hash_the_object_that_the_rules_describe(
    id: str,
    kind: str,
    run_id: str,
    actor: str | None,
    caused_by: str | None,
    payload: dict[str, Any] | None,
    scope: dict[str, str],
    sequence: int,
) -> None:
    prev_hash = hashlib.sha256(b"before").digest()
    moment = "2026-01-02T03:04:05.006Z"
    common: dict[str, Any] = {
        "id": id,
        "kind": kind,
        "scope": scope,
        "runId": run_id,
        "timestamp": moment,
        "sequence": sequence,
        "prevHash": tag(prev_hash),
    }
    if actor is not None:
        common["actor"] = actor
    first = common if payload is None else {**common, "payload": payload}
    payload_text = None if payload is None else canonical(payload)
    pieces = entry_pieces_v1(
        id=id,
        kind=kind,
        run_id=run_id,
        scope_text=canonical(scope),
        actor=actor,
        payload_text=payload_text,
    )
    assert entry_text(pieces, prev_hash, sequence, moment).encode() == rfc8785.dumps(first)
    assert tag(entry_hash(pieces, prev_hash, sequence, moment)) == by_hand(first)

    second = {**common, "hashVersion": 2}
    content_hash = None
    if payload_text is not None:
        content_hash = content_hash_v2(payload_text, SALT)
        second["contentHash"] = by_hand({"payload": payload, "payloadSalt": SALT})
    if caused_by is not None:
        second["causedByLogId"] = caused_by
    pieces = entry_pieces_v2(
        id=id,
        kind=kind,
        run_id=run_id,
        scope_text=canonical(scope),
        actor=actor,
        content_hash=content_hash,
        caused_by=caused_by,
    )
    assert entry_text(pieces, prev_hash, sequence, moment).encode() == rfc8785.dumps(second)


def test_the_database_fills_exactly_three_holes_of_the_pieces() -> None:
    pieces = entry_pieces_v1(
        id="le-1",
        kind="tool-call",
        run_id="r",
        scope_text='{"tenantId":"acme"}',
        actor=None,
        payload_text='{"a":1}',
    )

    assert pieces == EntryPieces(
        '{"id":"le-1","kind":"tool-call","payload":{"a":1},"prevHash":"sha256:',
        '","runId":"r","scope":{"tenantId":"acme"},"sequence":',
    )


def test_tags_read_back_and_anything_else_is_refused() -> None:
    assert sha256_tag(b"") == "sha256:" + hashlib.sha256(b"").hexdigest()
    assert digest_of_tag(sha256_tag(b"x")) == hashlib.sha256(b"x").digest()
    hex_digits = "0" * 64
    for wrong in (
        hex_digits,
        "sha256:" + "A" * 64,
        f"sha256:{hex_digits}0",
        f"sha1:{hex_digits}",
        "",
    ):
        with pytest.raises(ValueError, match="not a sha256 tag"):
            digest_of_tag(wrong)


def test_a_timestamp_is_utc_and_cut_to_milliseconds_never_rounded() -> None:
    late = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)

    assert timestamp_text(late) == "2026-01-02T03:04:05.999Z"
    assert timestamp_text(late.replace(microsecond=0)) == "2026-01-02T03:04:05.000Z"
    east = late.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert timestamp_text(east) == "2026-01-02T03:04:05.999Z"


def test_each_salt_is_32_fresh_bytes() -> None:
    salts = {new_salt() for _ in range(100)}

    assert len(salts) == 100
    assert all(len(base64.b64decode(salt, validate=True)) == 32 for salt in salts)


@pytest.mark.parametrize("version", [1, 2])
def test_many_record_hashes_are_those_of_each(version: int) -> None:
    entry_hashes = [hashlib.sha256(bytes([n])).digest() for n in range(9)]
    causes = {2: "le-1", 5: 'a "quoted" \\ id', 8: "caf\u00e9"}
    each = [record_hash(hash, version, causes.get(n)) for n, hash in enumerate(entry_hashes)]
    assert record_hashes(b"".join(entry_hashes), version, causes) == b"".join(each)
    assert record_hashes(b"", version, {}) == b""
