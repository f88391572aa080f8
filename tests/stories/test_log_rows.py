"""Faults of comparable systems that show in the log: that verifying fails whatever is done, and what an erasure does to a chain.

Docstrings name the rows of the list. Others of the log are where their part is: M64 in races, M65 beside the rows of memory, S28
with the attacks.
"""

import base64
import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from memory.access import system_principal
from memory.actions.run_erasure import run_due_erasures
from memory.integrity.anchors import anchor_path
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.logs import leaves, seal
from tests.integrity.test_bundle import checked
from tests.lifecycle.test_erasure import rows_that_say
from tests.pages.people import person, text_of
from tests.records.builders import a_record, body_of

SALT = base64.b64encode(bytes(range(32))).decode()
GOLDEN: list[tuple[Any, ...]] = [
    (
        *(
            "le-0",
            "user-message",
            '{"tenantId":"acme"}',
            "user:zo\u00eb",
            "2026-01-02T03:04:05.006Z",
        ),
        *('{"n":1,"text":"caf\u00e9","z":null}', None, None, 1),
        "585d3814d36d4d9b09c61be7bc8422dfc2bafb8264145a23886751379794c77f",
        "60e1d272474e75754a3f2157985258b926fb46d3cf3d45cfffbf487edcd7da26",
    ),
    (
        *("le-1", "internal-thought", '{"projectId":"p1","tenantId":"acme"}', None),
        *("2026-01-02T03:04:05.006Z", None, None, None, 1, None),
        "42a142b49afcf6c70fe13e260d24ae8679880b32141e5b3aca07948dc8ec55dc",
    ),
    (
        *("le-2", "tool-result", '{"tenantId":"acme"}', "tool:crm", "2026-01-02T03:04:06.000Z"),
        *('{"approved":true}', SALT, "le-0", 2),
        "7ddb7adb26ca0a508a53a44373069004ccbd86ab9c7caa4eac35c36e6d0069b4",
        "f7b1da3fe0b7795d7f21d5f4e86fe7d247df6a2ee6bb26f7c8e367b66767b377",
    ),
]
"""The vectors of docs/integrity.md, row by row: id, kind, scope, actor, timestamp, payload, salt, cause, version, both hashes."""


@pytest.fixture
def anchored(acme: TenantKit, settings: Any, tmp_path: Path) -> TenantKit:
    """A tenant whose anchors are its own: the fixture's name is used again and again."""
    settings.KINDMEM_ANCHOR_DIR = tmp_path / "anchors"
    return acme


def put_golden(tenant: TenantKit) -> None:
    """The rows as they are published, past everything that assigns times and ids."""
    prev = bytes(32)
    with tenant_context(tenant.id), connection.cursor() as cursor:
        head, before = GOLDEN[-1][-1], GOLDEN[-2][-1]
        cursor.execute(
            "INSERT INTO run_head VALUES (%s::uuid, 'run-1', 3, %s::bytea, %s::bytea, 3, %s::timestamptz, %s::timestamptz)",
            [tenant.id, bytes.fromhex(head), bytes.fromhex(before), GOLDEN[0][4], GOLDEN[2][4]],
        )
        for sequence, row in enumerate(GOLDEN):
            *columns, content_hash, entry_hash = row
            cursor.execute(
                "INSERT INTO log_entry (tenant_id, run_id, sequence, prev_hash, entry_hash, content_hash, writer, writer_role,"
                " id, kind, scope_text, actor, recorded_at, payload_text, payload_salt, caused_by, hash_version)"
                " VALUES (%s::uuid, 'run-1', %s::bigint, %s::bytea, %s::bytea, %s::bytea, 'service:x', 'agent',"
                " %s::text, %s::text, %s::text, %s::text, %s::timestamptz, %s::text, %s::text, %s::text, %s::smallint)",
                [
                    *(tenant.id, sequence, prev, bytes.fromhex(entry_hash)),
                    bytes.fromhex(content_hash) if content_hash else None,
                    *columns,
                ],
            )
            prev = bytes.fromhex(entry_hash)


def command(tenant: TenantKit, run: str) -> tuple[int, dict[str, Any]]:
    """What `verify_log` exits with and says."""
    out, code = StringIO(), 0
    try:
        call_command("verify_log", tenant.slug, run=run, json=True, stdout=out)
    except SystemExit as end:
        code = int(str(end.code))
    told: dict[str, Any] = json.loads(out.getvalue())
    return code, told


def bundle(tenant: TenantKit, run: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """What the checker on an auditor's machine exits with and says, with the anchor file beside it."""
    answer = tenant.client("auditor").post(f"/v1/memory/runs/{run}/export")
    path = folder / "evidence.zip"
    path.write_bytes(answer.content)
    anchor = shutil.copy(anchor_path(tenant.slug), folder / "anchor.jsonl")
    return checked(path, "--anchor", str(anchor))


def test_the_published_chain_is_intact_on_the_page_for_the_command_and_offline(
    anchored: TenantKit, tmp_path: Path
) -> None:
    """U17."""
    put_golden(anchored)
    seal(anchored)
    assert [leaf["recordsRoot"] for leaf in leaves(anchored) if leaf.get("runId") == "run-1"] == [
        "sha256:4dc57710cc25c29d30a0a715ee07987c156f6119c7bd43fc65d6d6518d4a3c6a"
    ]
    auditor = person(anchored, "auditor")
    shown = auditor.browser.post(auditor.path("audit/run/run-1/verify/"), {}, follow=True)
    assert "Intact" in text_of(shown)
    report = body_of(anchored.client("auditor").post("/v1/memory/runs/run-1/verify", {}), 200)
    assert (report["state"], report["entries"]) == ("verified", 3)
    code, told = command(anchored, "run-1")
    assert (code, told["state"]) == (0, "verified")
    code, told = bundle(anchored, "run-1", tmp_path)
    assert (code, told["state"], told["entries"]) == (0, "verified", 3)


@pytest.mark.parametrize(
    ("hash_version", "state", "code"), [(1, "linkage-only", 12), (2, "erased-attested", 13)]
)
def test_an_erased_person_leaves_a_chain_that_holds_and_says_how_much_went(
    anchored: TenantKit, tmp_path: Path, hash_version: int, state: str, code: int
) -> None:
    """U19."""
    if hash_version == 2:
        call_command("erasable_payloads", anchored.slug, "on", stdout=StringIO())
    app = anchored.client("app", users=["ann", "bob"])
    for n in range(6):
        who = "ann" if n % 2 else "bob"
        entry = {
            "kind": "user-message",
            "scope": {"userId": who},
            "payload": {"said": f"{who} {n}"},
        }
        body_of(app.post("/v1/memory/runs/chat/log", entry), 201)
    seal(anchored)
    ask = {"subject": {"kind": "user", "id": "ann"}}
    body_of(anchored.client("admin").post("/v1/memory/erasures", ask), 202)
    run_due_erasures(system_principal(anchored.id, anchored.slug, id="eraser"))
    seal(anchored)
    report = body_of(anchored.client("auditor").post("/v1/memory/runs/chat/verify", {}), 200)
    assert (report["state"], report["erased"], report["entries"]) == (state, 3, 9)
    assert "firstBad" not in report
    assert command(anchored, "chat")[0] == code
    found, told = bundle(anchored, "chat", tmp_path)
    assert (found, told["state"]) == (code, state)
    auditor = person(anchored, "auditor")
    shown = text_of(auditor.browser.post(auditor.path("audit/run/chat/verify/"), {}, follow=True))
    assert {1: "Links hold, content erased", 2: "3 payloads were erased, and that is on record"}[
        hash_version
    ] in shown


@pytest.mark.parametrize("way", ["forget", "erase"])
def test_an_address_that_was_remembered_is_in_no_log_after_it_is_gone(
    anchored: TenantKit, way: str
) -> None:
    """M68."""
    call_command("erasable_payloads", anchored.slug, "on", stdout=StringIO())
    address = "zoe.quillfeather@example.org"
    app = anchored.client("app", users=["ann"], projects=["p1"])
    record = body_of(app.post("/v1/memory/records", a_record(address, key="contact.email")), 201)
    body_of(
        app.post("/v1/memory/recall", {"key": "contact.email", "context": {"user_id": "ann"}}), 200
    )
    seal(anchored)
    if way == "forget":
        body_of(app.post(f"/v1/memory/records/{record['id']}/forget", {"reason": address}), 200)
    else:
        said = {"kind": "user-message", "scope": {"userId": "ann"}, "payload": {"my": address}}
        body_of(app.post("/v1/memory/runs/chat/log", said), 201)
        ask = {"subject": {"kind": "user", "id": "ann"}}
        body_of(anchored.client("admin").post("/v1/memory/erasures", ask), 202)
        run_due_erasures(system_principal(anchored.id, anchored.slug, id="eraser"))
    seal(anchored)
    assert not {"log_entry", "seal_leaf"} & set(rows_that_say(anchored, address))
    if way == "erase":
        assert rows_that_say(anchored, address) == {}
    for run in ("kindmem.governance", *(["chat"] if way == "erase" else [])):
        code, told = command(anchored, run)
        assert code in (0, 13, 14), told
