"""What a witness cosigns and what it refuses, in this process, over HTTP and as a command.

The line is held against a reader of its own, written from the specification.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from memory.integrity.cosignatures import (
    cosignature_of,
    witness_key,
    witness_key_of,
)
from memory.integrity.notes import (
    NoteError,
    parse_checkpoint,
    verifier_key,
)
from memory.integrity.witnesses import WitnessSettingError, chosen_witnesses
from memory.integrity.witnessing import Answered, Witness, WitnessStateError
from tests.import_runs.transcripts import ROOT
from tests.integrity.witness_log import LEAVES, NAME, OTHER, Log, a_witness, serving, state


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
