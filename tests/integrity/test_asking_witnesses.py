"""What the product asks of witnesses, and what it does with their answers."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection
from structlog.testing import capture_logs

from memory.access import system_principal
from memory.actions import ask_witnesses as module
from memory.actions.ask_witnesses import ask_witnesses
from memory.housekeeping import witness
from memory.integrity.cosignatures import (
    cosign,
    cosignature_of,
    witness_key_of,
)
from memory.integrity.notes import (
    checkpoint_body,
    parse_checkpoint,
    verifier_key,
)
from memory.integrity.rounds import Turns
from memory.integrity.signing import signer
from memory.integrity.witnesses import chosen_witnesses
from memory.tenancy import tenant_context
from memory.work import WORKS
from tests.builders import TenantKit
from tests.fetcher.server import Server, answers, says
from tests.integrity.logs import fill, seal, verified
from tests.integrity.test_bundle import checked, exported, parts_of, signed_again
from tests.integrity.witness_log import NAME, a_witness, serving, state


class Asking:
    """A tenant, a witness of it, and the worker's turn."""

    def __init__(self, tenant: TenantKit, path: Path, settings: Any) -> None:
        self.tenant = tenant
        self.path = path
        self.settings = settings
        self.origin = f"{settings.KINDMEM_INSTANCE}/{tenant.slug}"
        self.log = verifier_key(self.origin, signer().public_keys[0])

    def choose(self, key: str, url: str) -> None:
        self.settings.KINDMEM_WITNESSES = f"{key} {url}"

    def turn(self) -> int:
        principal = system_principal(self.tenant.id, self.tenant.slug, id="witness")
        return ask_witnesses(
            principal=principal, witnesses=chosen_witnesses(), silent=set(), seconds=5
        )

    def due(self) -> None:
        """The wait after a failure is over."""
        with tenant_context(self.tenant.id), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE witness_standing SET retry_at = now() - interval '1 second' WHERE tenant_id = %s::uuid"
                " AND failure IS NOT NULL",
                [self.tenant.id],
            )

    def checkpoint(self, size: int) -> dict[str, Any]:
        answer = self.tenant.client("auditor").get(f"/v1/memory/checkpoints/{size}")
        assert answer.status_code == 200
        told: dict[str, Any] = answer.json()
        return told

    def failure(self, size: int) -> str:
        [told] = self.checkpoint(size)["witnesses"]
        assert told["state"] == "failing", told
        assert told["failedAt"] < told["retryAt"]
        return str(told["failure"])


@pytest.fixture
def asking(live_acme: TenantKit, tmp_path: Path, settings: Any) -> Asking:
    settings.KINDMEM_DEVELOPMENT = True
    return Asking(live_acme, state(tmp_path), settings)


def test_each_new_checkpoint_is_cosigned_and_shown_with_its_cosignature(asking: Asking) -> None:
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        assert asking.turn() == 0, "nothing is sealed yet"
        fill(asking.tenant)
        first = seal(asking.tenant).size
        assert [told["state"] for told in asking.checkpoint(first)["witnesses"]] == ["waiting"]
        assert asking.turn() == 1
        assert asking.turn() == 0
        told = asking.checkpoint(first)
        cosignature_of(parse_checkpoint(told["note"]), told["note"].split("\n\n")[1], one.key)
        fill(asking.tenant, 3, "run-2")
        middle = seal(asking.tenant).size
        fill(asking.tenant, 3, "run-3")
        last = seal(asking.tenant).size
        assert asking.turn() == 1, "the newest stands for those before it"
        states = [asking.checkpoint(size)["witnesses"][0] for size in (first, middle, last)]
        assert [told["state"] for told in states] == ["cosigned", "covered", "cosigned"]
        assert {told["verifierKey"] for told in states} == {one.key.as_text()}
        listed = asking.tenant.client("auditor").get("/v1/memory/checkpoints").json()["data"]
        assert [row["note"].count("\u2014 ") for row in listed] == [2, 1, 2]
        proof = asking.tenant.client("auditor").get("/v1/memory/runs/run-3/proof").json()["proof"]
        assert f"\u2014 {NAME} " in proof
        assert verified(asking.tenant).state.value == "verified"


def test_a_witness_that_is_elsewhere_is_asked_again_from_there(asking: Asking) -> None:
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        for run in ("run-1", "run-2", "run-3"):
            fill(asking.tenant, 3, run)
            size = seal(asking.tenant).size
            assert asking.turn() == 1
            with tenant_context(asking.tenant.id), connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE witness_standing SET cosigned_size = 0 WHERE tenant_id = %s::uuid",
                    [asking.tenant.id],
                )
        assert asking.turn() == 1, "asked anew from 0, it said where it is"
        assert asking.checkpoint(size)["witnesses"][0]["state"] == "cosigned"


def test_another_history_is_not_cosigned_and_is_an_alarm_once(
    asking: Asking, superuser_url: str
) -> None:
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        for run in ("run-1", "run-2"):
            fill(asking.tenant, 3, run)
            size = seal(asking.tenant).size
        asking.turn()
        saw = asking.path.read_bytes()
        forged = json.loads(saw)
        forged["logs"][asking.origin]["root"] = base64.b64encode(bytes(32)).decode()
    asking.path.write_text(json.dumps(forged))
    fill(asking.tenant, 3, "run-3")
    size = seal(asking.tenant).size
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        with capture_logs() as said:
            assert asking.turn() == 0
            asking.due()
            assert asking.turn() == 0
        alarms = [line for line in said if line["event"] == "a witness has seen another log"]
        assert [(line["log_level"], line["reason"]) for line in alarms] == [
            ("error", "inconsistent")
        ]
        assert asking.failure(size) == "inconsistent"
        acts = asking.tenant.client("auditor").get("/v1/memory/runs/kindmem.governance/log").json()
        acts = [act["payload"] for act in acts["data"]]
        assert [act for act in acts if act["type"] == "witness.contradicts"] == [
            {"type": "witness.contradicts", "witness": NAME, "size": size, "reason": "inconsistent"}
        ]
    # The state as it was: the witness goes on.
    asking.path.write_bytes(saw)
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        asking.due()
        assert asking.turn() == 1


def test_a_restored_older_log_is_shown_by_the_witness(asking: Asking) -> None:
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        fill(asking.tenant)
        size = seal(asking.tenant).size
        asking.turn()
    longer = json.loads(asking.path.read_bytes())
    longer["logs"][asking.origin]["size"] = size + 100
    asking.path.write_text(json.dumps(longer))
    fill(asking.tenant, 1, "run-2")
    size = seal(asking.tenant).size
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        with capture_logs() as said:
            assert asking.turn() == 0
        assert {line["reason"] for line in said if line["log_level"] == "error"} == {"ahead"}
        assert asking.failure(size) == "ahead"


def test_a_witness_that_is_down_holds_nothing_up_and_is_asked_later(asking: Asking) -> None:
    with a_witness(asking.path, asking.log) as one:
        asking.choose(one.key.as_text(), "http://127.0.0.1:9")
        fill(asking.tenant)
        size = seal(asking.tenant).size
        with capture_logs() as said:
            assert asking.turn() == 0
            asking.due()
            assert asking.turn() == 0
        assert [line["reason"] for line in said if line["log_level"] == "warning"] == [
            "unreachable"
        ]
        assert asking.failure(size) == "unreachable"
        fill(asking.tenant, 1, "run-2")
        assert seal(asking.tenant).size > size
        with serving(one) as url:
            asking.choose(one.key.as_text(), url)
            assert asking.turn() == 0, "it waits"
            asking.due()
            assert asking.turn() == 1


@pytest.mark.parametrize(
    ("behaves", "failure"),
    [
        (answers(b"\xe2\x80\x94 other.example AAAAAAAAAAAA\n"), "bad-cosignature"),
        (answers(b""), "bad-cosignature"),
        (answers(b"\xff"), "bad-cosignature"),
        (answers(b"x" * 20_000), "answer-malformed"),
        (says(b"HTTP/1.1 409 Conflict\r\ncontent-length: 3\r\n\r\n1.5"), "answer-malformed"),
        (says(b"HTTP/1.1 409 Conflict\r\ncontent-length: 2\r\n\r\n0\n"), "unavailable"),
        (says(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"), "key-not-trusted"),
        (says(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"), "log-not-known"),
        (says(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"), "request-refused"),
        (says(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"), "unavailable"),
        (says(b"HTTP/1.1 302 Found\r\nlocation: http://x/\r\n\r\n"), "fetch-refused"),
        (says(b"not http\r\n\r\n"), "unreachable"),
    ],
)
def test_an_answer_that_is_no_cosignature_is_not_kept(
    asking: Asking, behaves: Callable[..., None], failure: str
) -> None:
    fill(asking.tenant)
    size = seal(asking.tenant).size
    with Server(behaves) as server:
        key = witness_key_of(NAME, Ed25519PrivateKey.generate().public_key().public_bytes_raw())
        asking.choose(key.as_text(), f"http://127.0.0.1:{server.port}")
        assert asking.turn() == 0
    assert asking.failure(size) == failure
    assert NAME not in asking.checkpoint(size)["note"]


def test_a_cosignature_of_another_head_or_by_another_key_is_not_kept(asking: Asking) -> None:
    fill(asking.tenant)
    size = seal(asking.tenant).size
    note = parse_checkpoint(asking.checkpoint(size)["note"])
    private, eve = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    key = witness_key_of(NAME, private.public_key().public_bytes_raw())
    other = checkpoint_body(note.origin, size, bytes(32))
    for line in (
        cosign(other, key, 1_700_000_000, private.sign).line,
        cosign(note.body, key, 1_700_000_000, eve.sign).line,
        cosign(note.body, key, 0, private.sign).line,
    ):
        with Server(answers(line.encode())) as server:
            asking.choose(key.as_text(), f"http://127.0.0.1:{server.port}")
            asking.due()
            assert asking.turn() == 0
        assert asking.failure(size) == "bad-cosignature"
    good = cosign(note.body, key, 1_700_000_000, private.sign).line
    with Server(answers(good.encode())) as server:
        asking.choose(key.as_text(), f"http://127.0.0.1:{server.port}")
        asking.due()
        assert asking.turn() == 1
    told = asking.checkpoint(size)
    assert told["witnesses"][0]["cosignedAt"] == "2023-11-14T22:13:20.000Z"
    assert told["note"].endswith(good)


def test_plain_http_is_for_development_alone(asking: Asking) -> None:
    asking.settings.KINDMEM_DEVELOPMENT = False
    fill(asking.tenant)
    size = seal(asking.tenant).size
    asking.choose(witness_key_of(NAME, bytes(32)).as_text(), "http://127.0.0.1:8790")
    assert asking.turn() == 0
    assert asking.failure(size) == "fetch-refused"


def test_a_turn_ends_with_its_time_and_the_next_begins_after_it(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(asking.tenant)
    seal(asking.tenant)
    asking.choose(witness_key_of(NAME, bytes(32)).as_text(), "http://127.0.0.1:9")
    asked: list[str] = []
    monkeypatch.setattr(module, "ask", lambda one, *_: asked.append(one.name))
    principal = system_principal(asking.tenant.id, asking.tenant.slug, id="witness")
    silent: set[str] = set()
    ask_witnesses(principal=principal, witnesses=chosen_witnesses(), silent=silent, seconds=0)
    ask_witnesses(principal=principal, witnesses=chosen_witnesses(), silent={NAME}, seconds=5)
    assert asked == []
    turns = Turns()
    tenants = [(asking.tenant.id, slug) for slug in "abc"]
    first = turns.turn(tenants)
    assert [next(first)[1], next(first)[1]] == ["a", "b"]
    assert [slug for _, slug in turns.turn(tenants)] == ["c", "a", "b"]


def test_the_worker_asks_beside_its_other_jobs(asking: Asking) -> None:
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        fill(asking.tenant)
        size = seal(asking.tenant).size
        witness()
        assert asking.checkpoint(size)["witnesses"][0]["state"] == "cosigned"
    # A witness that is silent holds up nothing that waits on nobody.
    assert WORKS["witness"].queue != WORKS["seal"].queue


@pytest.mark.parametrize("pure", [(), ("--pure",)], ids=["library", "pure"])
def test_an_auditor_holds_a_bundle_against_the_witness_offline(
    asking: Asking, tmp_path: Path, pure: tuple[str, ...]
) -> None:
    with a_witness(asking.path, asking.log) as one, serving(one) as url:
        asking.choose(one.key.as_text(), url)
        fill(asking.tenant)
        seal(asking.tenant)
        alone = exported(asking.tenant, tmp_path)
        code, told = checked(alone, "--witness", one.key.as_text(), *pure)
        assert "no --key was given" in told.pop("warning")
        assert (code, told) == (
            15,
            {"cosigned": {}, "entries": 8, "erased": 0, "state": "unanchored", "unsealed": 0},
        )
        assert asking.turn() == 1
        path = exported(asking.tenant, tmp_path)
    code, told = checked(path, "--witness", one.key.as_text(), *pure)
    assert (code, told["state"], list(told["cosigned"])) == (0, "verified", [NAME])
    assert checked(path, *pure)[0] == 15

    parts = parts_of(path)
    line = parts["checkpoint.txt"].decode().splitlines(keepends=True)[-1]
    stranger = Ed25519PrivateKey.generate()
    note = parse_checkpoint(parts["checkpoint.txt"].decode())
    forged = cosign(note.body, one.key, 1_700_000_000, stranger.sign).line
    parts["checkpoint.txt"] = parts["checkpoint.txt"].replace(line.encode(), forged.encode())
    code, told = checked(signed_again(parts, tmp_path), "--witness", one.key.as_text(), *pure)
    assert (code, told["firstBad"]["class"]) == (10, "checkpoint")
    assert "cosignature" in told["firstBad"]["expected"]
    for key in ("nonsense", asking.log, one.key.as_text().replace(NAME, "another")):
        assert checked(path, "--witness", key, *pure)[0] == 2
