"""Witnesses: what one cosigns and what it refuses, and what the product does with its answers.

The format is held against a reader of its own, written from the specification.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.db import connection
from structlog.testing import capture_logs

from memory.access import system_principal
from memory.actions import ask_witnesses as module
from memory.actions.ask_witnesses import ask_witnesses
from memory.beside import Beside
from memory.housekeeping import JOBS, witness
from memory.integrity.cosignatures import (
    cosign,
    cosignature_of,
    log_key,
    witness_key,
    witness_key_of,
)
from memory.integrity.merkle import consistency_proof, leaf_hash, root_of_hashes, subtrees_of
from memory.integrity.notes import (
    NoteError,
    checkpoint_body,
    parse_checkpoint,
    signature_line,
    signed_note,
    verifier_key,
)
from memory.integrity.proof_text import consistency_text
from memory.integrity.rounds import Turns
from memory.integrity.signing import signer
from memory.integrity.witness_server import WitnessServer
from memory.integrity.witnesses import WitnessSettingError, chosen_witnesses
from memory.integrity.witnessing import Answered, Witness, WitnessStateError
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.fetcher.server import Server, answers, says
from tests.import_runs.transcripts import ROOT
from tests.integrity.logs import fill, seal, verified

LOG = "log.example/acme"
NAME = "witness.example/w1"
LEAVES = [leaf_hash(b"leaf %d" % n) for n in range(20)]
OTHER = [*LEAVES[:3], *(leaf_hash(b"other %d" % n) for n in range(17))]


class Log:
    """A log in memory, signed by a key of its own."""

    def __init__(self, name: str = LOG) -> None:
        self.name = name
        self.private = Ed25519PrivateKey.generate()
        self.public = self.private.public_key().public_bytes_raw()

    @property
    def key(self) -> str:
        return verifier_key(self.name, self.public)

    def note(self, leaves: list[bytes], size: int) -> str:
        body = checkpoint_body(self.name, size, root_of_hashes(leaves[:size]))
        line = signature_line(self.name, self.public, self.private.sign(body.encode()))
        return signed_note(body, [line])

    def request(self, old: int, size: int, leaves: list[bytes] = LEAVES) -> bytes:
        path = consistency_proof(subtrees_of(leaves), old, size)
        return consistency_text(old, path, self.note(leaves, size)).encode()


@contextmanager
def a_witness(path: Path, *keys: str, name: str = NAME) -> Iterator[Witness]:
    made = Witness(path, name, [log_key(key) for key in keys])
    try:
        yield made
    finally:
        made.close()


def state(tmp_path: Path) -> Path:
    return tmp_path / "witness"


def test_a_log_that_grows_is_cosigned_and_the_line_is_what_the_specification_says(
    tmp_path: Path,
) -> None:
    log = Log()
    with a_witness(state(tmp_path), log.key) as one:
        for old, size in ((0, 1), (1, 3), (3, 3), (3, 8), (8, 20)):
            answer = one.add_checkpoint(log.request(old, size))
            assert answer.status == 200, answer
            note = parse_checkpoint(log.note(LEAVES, size) + answer.text)
            cosignature_of(note, answer.text, one.key)
        dash, name, encoded = answer.text.removesuffix("\n").split(" ")
        raw = base64.b64decode(encoded)
        public = one.key.public_key
        assert (dash, name, len(raw)) == ("\u2014", NAME, 4 + 8 + 64)
        assert raw[:4] == hashlib.sha256(NAME.encode() + b"\n\x04" + public).digest()[:4]
        stamp = int.from_bytes(raw[4:12], "big")
        message = f"cosignature/v1\ntime {stamp}\n{note.body}".encode()
        Ed25519PublicKey.from_public_bytes(public).verify(raw[12:], message)
        assert witness_key(one.key.as_text()) == one.key


@pytest.mark.parametrize(
    ("request_of", "status", "says"),
    [
        pytest.param(lambda log: log.request(8, 8, OTHER), 409, "8\n", id="fork of its head"),
        pytest.param(lambda log: log.request(8, 20, OTHER), 422, None, id="fork that goes on"),
        pytest.param(lambda log: log.request(0, 5), 409, "8\n", id="shrinks"),
        pytest.param(lambda log: log.request(5, 20), 409, "8\n", id="old size of another time"),
        pytest.param(
            lambda log: log.request(0, 5).replace(b"old 0", b"old 8"), 400, None, id="old is larger"
        ),
        pytest.param(
            lambda log: log.request(8, 20).replace(b"\n", b"\n" + b"A" * 43 + b"=\n", 1),
            422,
            None,
            id="proof with a hash more",
        ),
        pytest.param(lambda log: Log().request(8, 20), 403, None, id="another key"),
        pytest.param(lambda log: Log("log.example/eve").request(0, 1), 404, None, id="unknown log"),
        pytest.param(lambda log: b"", 400, None, id="nothing"),
        pytest.param(lambda log: b"\xff\xfe", 400, None, id="no text"),
        pytest.param(lambda log: b"old -1\n\n" + log.note(LEAVES, 9).encode(), 400, None, id="old"),
        pytest.param(
            lambda log: b"old 8\n" + b"AAAA\n" + b"\n" + log.note(LEAVES, 9).encode(), 400, None, id="short"
        ),
        pytest.param(
            lambda log: log.request(8, 20).replace(b"\n20\n", b"\n" + b"9" * 5000 + b"\n"), 400, None, id="huge"
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_on_is_refused_and_changes_nothing(
    tmp_path: Path, request_of: Callable[[Log], bytes], status: int, says: str | None
) -> None:
    log = Log()
    with a_witness(state(tmp_path), log.key) as one:
        assert one.add_checkpoint(log.request(0, 8)).status == 200
        before = state(tmp_path).read_bytes()
        answer = one.add_checkpoint(request_of(log))
        assert answer.status == status, answer
        if says is not None:
            assert (answer.text, answer.content_type) == (says, "text/x.tlog.size")
        assert "\u2014" not in answer.text
        assert state(tmp_path).read_bytes() == before
        assert one.add_checkpoint(log.request(8, 20)).status == 200, "the honest log goes on"


def test_a_restart_keeps_key_and_heads_and_one_process_has_the_state(tmp_path: Path) -> None:
    log = Log()
    path = state(tmp_path)
    with a_witness(path, log.key) as one:
        key = one.key
        assert one.add_checkpoint(log.request(0, 8)).status == 200
        with pytest.raises(WitnessStateError, match="another witness"):
            Witness(path, NAME, [])
    assert path.stat().st_mode & 0o777 == 0o600
    with a_witness(path, log.key, name="") as again:
        assert again.key == key
        assert again.add_checkpoint(log.request(0, 20, OTHER)).text == "8\n"
        assert again.add_checkpoint(log.request(8, 20)).status == 200
    with pytest.raises(WitnessStateError, match=r"is the state of witness\.example/w1"):
        Witness(path, "another", [])
    path.write_text(path.read_text()[:-20])
    with pytest.raises(WitnessStateError, match="is not the state of a witness"):
        Witness(path, NAME, [])
    path.unlink()
    with pytest.raises(WitnessStateError, match="a witness has a name"):
        Witness(path, "", [])
    with a_witness(path, log.key):
        pass  # each failed start let go of the lock


def test_nothing_is_signed_that_is_not_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    with a_witness(state(tmp_path), log.key) as one:

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                one.add_checkpoint(log.request(0, 8))
        assert one.add_checkpoint(log.request(0, 5)).status == 200, "it never saw size 8"


def test_requests_at_once_see_one_history(tmp_path: Path) -> None:
    log = Log()
    with a_witness(state(tmp_path), log.key) as one:
        found: list[int] = []
        requests = [log.request(0, 8, leaves) for leaves in (LEAVES, OTHER)] * 4
        threads = [
            threading.Thread(target=lambda r=r: found.append(one.add_checkpoint(r).status))
            for r in requests
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [200, *[409] * 7]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (verifier_key("w", bytes(32)), "algorithm 4"),
        (witness_key_of("w", bytes(32)).as_text().replace("w+", "v+"), "hash"),
        ("w+00000000+!!", "base64"),
        ("nothing", "verifier key|base64|33|32"),
    ],
)
def test_a_key_that_is_no_witness_s_is_refused(text: str, why: str) -> None:
    with pytest.raises(NoteError, match=why):
        witness_key(text)


@pytest.mark.parametrize(
    "text", ["https://w.example", f"{witness_key_of('w', bytes(32)).as_text()}", "a b c"]
)
def test_a_setting_that_names_no_witness_is_refused(text: str, settings: Any) -> None:
    settings.KINDMEM_WITNESSES = text
    with pytest.raises(WitnessSettingError):
        chosen_witnesses()


def test_two_witnesses_of_one_name_are_refused(settings: Any) -> None:
    key = witness_key_of("w", bytes(32)).as_text()
    settings.KINDMEM_WITNESSES = f"{key} https://a.example, {key} https://b.example\n"
    with pytest.raises(WitnessSettingError, match="each is one's own"):
        chosen_witnesses()
    settings.KINDMEM_WITNESSES = f"\n{key} https://a.example/w/ ,"
    assert [(one.name, one.url) for one in chosen_witnesses()] == [("w", "https://a.example/w")]


# -- the product asks ---------------------------------------------------------------------------


@contextmanager
def serving(one: Witness) -> Iterator[str]:
    """The witness over HTTP, on loopback."""
    with WitnessServer(one, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


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
    assert isinstance({name: call for name, _, call in JOBS}["witness"], Beside)


def test_a_job_beside_the_others_runs_once_at_a_time_and_its_failure_is_raised_next() -> None:
    began, go_on, turns = threading.Event(), threading.Event(), []

    def slow() -> None:
        turns.append(1)
        began.set()
        assert go_on.wait(10)
        raise OSError("gone")

    with ExitStack() as at_end:
        at_end.callback(go_on.set)
        beside = Beside(slow)
        beside()
        assert began.wait(10)
        beside()
        assert len(turns) == 1
        go_on.set()
        beside.wait(10)
        with pytest.raises(OSError, match="gone"):
            beside()
        beside()
        beside.wait(10)
        assert len(turns) == 2


def test_the_command_serves_without_a_database_and_keeps_its_state(tmp_path: Path) -> None:
    log = Log()
    keys = tmp_path / "logs"
    keys.write_text(f"# of acme\n{log.key}\n\n")
    arguments = ["--state", str(state(tmp_path)), "--port", "0", "--json", "--logs", str(keys)]
    environment = {
        **os.environ,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        "KINDMEM_DEVELOPMENT": "1",
    }

    def answered(request: bytes, *more: str) -> tuple[dict[str, str], Answered]:
        running = subprocess.Popen(
            [sys.executable, "manage.py", "witness", *arguments, *more],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert running.stdout is not None
            said = json.loads(running.stdout.readline())
            return said, _posted(said["url"], request)
        finally:
            running.kill()
            running.communicate()

    said, answer = answered(log.request(0, 8), "--name", NAME)
    assert answer.status == 200
    key = witness_key(said["verifierKey"])
    cosignature_of(parse_checkpoint(log.note(LEAVES, 8)), answer.text, key)
    again, answer = answered(log.request(0, 20, OTHER))
    assert (again["verifierKey"], answer.status, answer.text) == (said["verifierKey"], 409, "8\n")


def _posted(url: str, body: bytes) -> Answered:
    from memory.fetcher import fetch

    answer = fetch(
        f"{url}/add-checkpoint",
        method="POST",
        content=body,
        allow_loopback=True,
        timeout_seconds=10,
    )
    return Answered(answer.status, answer.body.decode())


def test_nothing_starts_with_a_setting_that_names_no_witness(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "manage.py",
            "witness",
            "--state",
            str(state(tmp_path)),
            "--log",
            Log().key,
        ],
        cwd=ROOT,
        env={**os.environ, "KINDMEM_WITNESSES": "w https://witness.example"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("KINDMEM_WITNESSES: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /add-checkpoint HTTP/1.1\r\nhost: x\r\n\r\n", 404),
        (b"POST /other HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 404),
        (b"POST /add-checkpoint HTTP/1.1\r\nhost: x\r\n\r\n", 411),
        (b"POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: 65537\r\n\r\n", 413),
        (b"POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nold", 400),
    ],
)
def test_whatever_else_is_asked_gets_a_short_answer(
    tmp_path: Path, request_text: bytes, status: int
) -> None:
    import socket

    with a_witness(state(tmp_path), Log().key) as one, serving(one) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 5) as connected:
            connected.sendall(request_text)
            connected.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connected.recv(65_536):
                answer += piece
    assert answer.split(b" ")[1] == b"%d" % status
