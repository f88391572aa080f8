"""A file of items is read item by item, whatever its form, and a broken item costs no other."""

import gzip
import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import BadInput
from memory.importers import json_file
from memory.importers.json_file import items

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=2)
# How fast inputs are made is no matter of this test.
patiently = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)


def read(path: Path, data: bytes) -> list[Any]:
    path.write_bytes(data)
    return list(items(path))


def values(path: Path, data: bytes) -> list[Any]:
    found = read(path, data)
    assert all(not item.issues for item in found), found
    assert [item.number for item in found] == list(range(len(found)))
    return [item.value for item in found]


@patiently
@given(
    wanted=st.lists(JSON, max_size=5),
    chunk=st.integers(1, 40),
    indent=st.sampled_from([None, 2]),
    zipped=st.booleans(),
)
def test_a_list_reads_as_json_reads_it_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    wanted: list[Any],
    chunk: int,
    indent: int | None,
    zipped: bool,
) -> None:
    data = json.dumps(wanted, indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_file, "_CHUNK_BYTES", chunk)
        found = values(
            tmp_path_factory.mktemp("list") / "f", gzip.compress(data) if zipped else data
        )
    assert found == wanted


@patiently
@given(wanted=st.lists(OBJECTS, min_size=1, max_size=5), chunk=st.integers(1, 40))
def test_lines_read_as_json_reads_them_however_they_are_cut(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Any], chunk: int
) -> None:
    data = b"\r\n\n".join(json.dumps(one).encode() for one in wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_file, "_CHUNK_BYTES", chunk)
        found = values(tmp_path_factory.mktemp("lines") / "f", data)
    assert found == wanted


def test_an_empty_list_has_no_items(tmp_path: Path) -> None:
    assert values(tmp_path / "f", b" [ \n ] \n") == []


def test_a_byte_order_mark_in_front_is_passed_over(tmp_path: Path) -> None:
    assert values(tmp_path / "f", b'\xef\xbb\xbf{"a": 1}\n') == [{"a": 1}]
    assert values(tmp_path / "f", b"\xef\xbb\xbf[1, 2]") == [1, 2]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (b'{"a": 1', "JSON"),
        (b'{"a": "\\u0000"}', "U+0000"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"a": 1, "a": 2}', "repeats a key"),
        (b'{"a": NaN}', "finite"),
        (b'{"a": 9007199254740993}', "beyond"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b"[" * 80 + b"]" * 80, "nests deeper"),
    ],
)
def test_a_broken_line_is_named_and_the_others_are_read(
    tmp_path: Path, broken: bytes, says: str
) -> None:
    found = read(tmp_path / "f", b'{"n": 1}\n\n' + broken + b'\n{"n": 2}\n')
    assert [item.value for item in found] == [{"n": 1}, None, {"n": 2}]
    assert [item.place for item in found] == ["line 1", "line 3", "line 4"]
    assert says in found[1].issues[0]["message"]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (b'{"a": "\\u0000"}', "U+0000"),
        (b'{"a" 1}', "JSON"),
        (b'{"a": 1} {"b": 2}', "goes on after"),
        (b"", "is empty"),
        (b'{"a": 1, "a": 2}', "repeats a key"),
    ],
)
def test_a_broken_element_is_named_and_the_others_are_read(
    tmp_path: Path, broken: bytes, says: str
) -> None:
    found = read(tmp_path / "f", b'[{"n": 1},' + broken + b',{"n": 2}]')
    assert [item.value for item in found] == [{"n": 1}, None, {"n": 2}]
    assert [item.place for item in found] == ["item 0", "item 1", "item 2"]
    assert says in found[1].issues[0]["message"]


def test_a_comma_before_the_end_is_an_empty_element(tmp_path: Path) -> None:
    found = read(tmp_path / "f", b'[{"n": 1},]')
    assert [bool(item.issues) for item in found] == [False, True]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b'[{"n": 1}, {"n": 2', "ends before its list does"),
        (b'[{"n": 1}', "ends before its list does"),
        (b"[1] [2]", "goes on after its list"),
        (gzip.compress(b"[1, 2, 3]" * 50, mtime=0)[:-12], "gzipped"),
        (b"\x1f\x8b rubbish that says it is gzipped", "gzipped"),
    ],
)
def test_a_file_that_breaks_off_says_so_after_what_was_whole(
    tmp_path: Path, data: bytes, says: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read(tmp_path / "f", data)
    assert says in refused.value.issues[0]["message"]


def test_a_small_file_that_unpacks_to_too_much_is_not_unpacked_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b'"' + b"a" * (1 << 19) + b'"\n'
    monkeypatch.setattr(json_file, "UNZIPPED_MAX_BYTES", 3 << 20)
    packed = gzip.compress(line * ((4 << 20) // len(line)), mtime=0)
    with pytest.raises(BadInput) as refused:
        read(tmp_path / "f", packed)
    assert "unpacks to more than 3 MiB" in refused.value.issues[0]["message"]
    fits = gzip.compress(line * ((2 << 20) // len(line)), mtime=0)
    assert len(read(tmp_path / "f", fits)) == (2 << 20) // len(line)


def test_what_came_before_the_break_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b'[{"n": 1}, {"n": 2}, {"n": ')
    found = items(path)
    assert [next(found).value for _ in range(2)] == [{"n": 1}, {"n": 2}]
    with pytest.raises(BadInput):
        next(found)


@pytest.mark.parametrize("form", [b'[{"n": 1},%s,{"n": 2}]', b'{"n": 1}\n%s\n{"n": 2}'])
def test_an_item_too_large_to_keep_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: bytes
) -> None:
    monkeypatch.setattr(json_file, "ITEM_MAX_BYTES", 100)
    monkeypatch.setattr(json_file, "_CHUNK_BYTES", 30)
    found = read(tmp_path / "f", form % (b'{"a": "' + b"x" * 200 + b'"}'))
    assert [item.value for item in found] == [{"n": 1}, None, {"n": 2}]
    assert "has more than" in found[1].issues[0]["message"]


def test_no_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(items(tmp_path / "none"))
