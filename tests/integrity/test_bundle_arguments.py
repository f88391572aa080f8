"""What can't be read says so in a sentence and with a code of its own; a caller's mistake is never called tampering."""

import json
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from memory.actions.rotate_signing_key import rotate_signing_key
from memory.integrity import verify_bundle
from memory.integrity.anchors import anchor_path
from tests.builders import TenantKit
from tests.integrity.logs import fill, seal
from tests.integrity.test_bundle import checked, exported, parts_of, written

UNREADABLE = 2


@pytest.fixture
def bundle(live_acme: TenantKit, tmp_path: Path) -> Path:
    fill(live_acme, 4)
    seal(live_acme)
    return exported(live_acme, tmp_path)


def key_of(path: Path, place: int = 0) -> str:
    return str(json.loads(parts_of(path)["manifest.json"])["verifierKeys"][place])


def told(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> tuple[int, str]:
    """The code, and the sentence that is all there is to read."""
    capsys.readouterr()
    code = verify_bundle.main([str(path), *options])
    said = capsys.readouterr()
    return code, said.err


def is_a_sentence(text: str) -> bool:
    return text.count("\n") == 1 and "Traceback" not in text and "tampered" not in text


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.95, 0.999])
def test_a_bundle_that_was_cut_off_is_unreadable(
    bundle: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data[: int(len(data) * share)])
    code, said = told(capsys, bundle)
    assert (code, is_a_sentence(said)) == (UNREADABLE, True), said


def test_a_damaged_bundle_ends_in_no_traceback(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, chance = bundle.read_bytes(), random.Random(7)
    codes = set()
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        bundle.write_bytes(damaged)
        code, said = told(capsys, bundle)
        codes.add(code)
        assert code != UNREADABLE or is_a_sentence(said), said
    assert codes <= {UNREADABLE, 10, 15}
    assert UNREADABLE in codes


@pytest.mark.parametrize(
    ("offset", "value"),
    [(10, 99), (6, 99), (8, 1)],
    ids=["a method nobody knows", "a version nobody knows", "encrypted"],
)
def test_a_member_that_can_not_be_unpacked_is_unreadable(
    bundle: Path, offset: int, value: int, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(bundle.read_bytes())
    place = -1
    while (place := data.find(b"PK\x01\x02", place + 1)) >= 0:
        data[place + offset] = value
    bundle.write_bytes(data)
    code, said = told(capsys, bundle)
    assert (code, is_a_sentence(said)) == (UNREADABLE, True), said


def test_compressed_bytes_that_were_damaged_are_unreadable(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in parts_of(bundle).items():
            target.writestr(name, data)
    assert checked(packed)[0] == 15
    data = bytearray(packed.read_bytes())
    with zipfile.ZipFile(packed) as source:
        info = source.getinfo("entries.jsonl")
    start = info.header_offset + 30 + len(info.filename)
    data[start : start + 8] = b"\xff" * 8
    packed.write_bytes(data)
    code, said = told(capsys, packed)
    assert (code, is_a_sentence(said)) == (UNREADABLE, True), said


@pytest.mark.parametrize("option", ["--anchor", "--receipts", "--timestamp-roots"])
@pytest.mark.parametrize("content", [None, "folder", b"\xff\xfe\x00no", b"no JSON\n[1]\n"])
def test_a_file_that_is_not_what_it_should_be_is_the_callers_mistake(
    bundle: Path,
    tmp_path: Path,
    option: str,
    content: bytes | str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = tmp_path / "given"
    if content == "folder":
        given.mkdir()
    elif isinstance(content, bytes):
        given.write_bytes(content)
    code, said = told(capsys, bundle, option, str(given))
    assert (code, is_a_sentence(said), option in said) == (UNREADABLE, True, True), said


@pytest.mark.parametrize(
    "line",
    ["{}", '{"runId": "run-1"}', '{"runId": "run-1", "sequence": [], "entryHash": "x"}', "1"],
)
def test_a_line_that_is_no_receipt_is_the_callers_mistake(
    bundle: Path, tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    receipts = tmp_path / "receipts"
    receipts.write_text(line)
    code, said = told(capsys, bundle, "--receipts", str(receipts))
    assert (code, "receipt 1" in said) == (UNREADABLE, True), said


@pytest.mark.parametrize("option", ["--key", "--witness"])
@pytest.mark.parametrize("key", ["garbage", "a+b+c", "a+b+\u00e9", "", "+++", "a+00000000+AQ=="])
def test_a_key_that_is_none_is_the_callers_mistake(
    bundle: Path, option: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = told(capsys, bundle, option, key)
    assert (code, is_a_sentence(said)) == (UNREADABLE, True), said


def test_a_key_of_which_a_character_is_wrong_is_not_whole(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = key_of(bundle)
    wrong = key[:-5] + ("A" if key[-5] != "A" else "B") + key[-4:]
    assert told(capsys, bundle, "--key", wrong)[0] == UNREADABLE
    assert told(capsys, bundle, "--key", key)[0] == 15


def test_an_anchor_file_with_other_lines_in_it_is_still_read(
    bundle: Path, live_acme: TenantKit, tmp_path: Path
) -> None:
    anchor = Path(shutil.copy(anchor_path(live_acme.slug), tmp_path / "anchors"))
    odd = b'\xff\n1\n{"note": []}\n{"note": "x"}\n'
    anchor.write_bytes(odd + anchor.read_bytes())
    assert checked(bundle, "--anchor", str(anchor))[0] == 0


def test_after_a_change_of_keys_both_are_given(
    bundle: Path, live_acme: TenantKit, tmp_path: Path, own_signing_keys: None
) -> None:
    old = key_of(bundle)
    rotate_signing_key()
    fill(live_acme, 2)
    seal(live_acme)
    after = exported(live_acme, tmp_path)
    new = key_of(after)
    assert old != new
    assert checked(after, "--key", old)[0] == 10
    for keys in ((old, new), (new, old)):
        options = [part for key in keys for part in ("--key", key)]
        assert checked(after, *options)[1]["state"] == "unanchored"


def test_the_program_itself_ends_with_the_code(bundle: Path, tmp_path: Path) -> None:
    script = tmp_path / "verify_bundle.py"
    script.write_bytes(parts_of(bundle)["verify_bundle.py"])
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, bundle, "--anchor", tmp_path / "none", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == UNREADABLE
    assert "can't be read" in json.loads(done.stderr)["error"]
    assert done.stdout == ""


def test_without_a_key_the_answer_warns_that_the_bundle_vouches_for_itself(bundle: Path) -> None:
    assert "the bundle's own key" in checked(bundle)[1]["warning"]
    assert "warning" not in checked(bundle, "--key", key_of(bundle))[1]


def test_an_edit_inside_a_readable_bundle_is_still_tampering(bundle: Path, tmp_path: Path) -> None:
    parts = parts_of(bundle)
    parts["entries.jsonl"] = parts["entries.jsonl"].replace(b"caf", b"fac")
    assert checked(written(parts, tmp_path))[0] == 10
