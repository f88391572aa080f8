"""Reads a file of JSON items one at a time: a JSON list, or JSONL; gzipped or not; however large the whole is.

Where one item ends is found by counting brackets outside strings, before its inside is looked at, so a broken item costs no
other. Each item passes the same gate as a request body (admission.py). Memory is bounded by the largest item.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from memory import admission
from memory.errors import BadInput

ITEM_MAX_BYTES = 32 << 20
UNZIPPED_MAX_BYTES = 32 << 30
"""Of a gzipped file as a whole: a small one may be made to unpack to anything."""
_CHUNK_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WHITE_SPACE = b" \t\r\n"
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')


@dataclass(frozen=True, slots=True)
class Item:
    """One item. `number` counts items from 0, broken ones too; `place` is for people; `issues` says why there is no value."""

    number: int
    place: str
    value: Any = None
    issues: tuple[dict[str, str], ...] = ()


def items(path: Path) -> Iterator[Item]:
    """The file's items in order. Raises BadInput where the file itself breaks off or is no list; OSError."""
    with _opened(path) as file:
        first, rest, lines_before = _first_character(file)
        if first == b"[":
            yield from _list_items(file, rest)
        elif first:
            yield from _line_items(file, first + rest, lines_before)
        else:
            raise BadInput.at("file", "is empty")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        is_zipped = raw.read(2) == _GZIP
        raw.seek(0)
        if not is_zipped:
            yield raw
            return
        try:
            with gzip.open(raw) as unzipped:
                yield _Bounded(unzipped)  # type: ignore[misc]  # reads bytes, which is all that is asked of it
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput.at("file", "is gzipped, and is cut off or damaged") from error


class _Bounded:
    """What is read of a gzipped file, up to a bound. Raises BadInput beyond it."""

    def __init__(self, unzipped: gzip.GzipFile) -> None:
        self._unzipped, self._left = unzipped, UNZIPPED_MAX_BYTES

    def read(self, size: int) -> bytes:
        data = self._unzipped.read(size)
        self._left -= len(data)
        if self._left < 0:
            bound = f"{UNZIPPED_MAX_BYTES >> 20} MiB"
            raise BadInput.at("file", f"unpacks to more than {bound}; unpack it, and import that")
        return data


def _first_character(file: IO[bytes]) -> tuple[bytes, bytes, int]:
    """The first byte that is no white space, what was read beyond it, and the lines before it; empty at the end of the file."""
    is_start, lines_before = True, 0
    while chunk := file.read(_CHUNK_BYTES):
        if is_start:
            chunk, is_start = chunk.removeprefix(_BYTE_ORDER_MARK), False
        begun = chunk.lstrip(_WHITE_SPACE)
        lines_before += chunk[: len(chunk) - len(begun)].count(b"\n")
        if begun:
            return begun[:1], begun[1:], lines_before
    return b"", b"", lines_before


def _line_items(file: IO[bytes], read: bytes, lines_before: int) -> Iterator[Item]:
    number = 0
    for line_number, line in enumerate(_lines(file, read), start=lines_before + 1):
        if line is None:
            yield Item(number, f"line {line_number}", issues=_too_large())
        elif line.strip(_WHITE_SPACE):
            yield _item(number, f"line {line_number}", line)
        else:
            continue
        number += 1


def _lines(file: IO[bytes], read: bytes) -> Iterator[bytes | None]:
    """Lines; None for one that is too long to be kept."""
    kept: list[bytes] = []
    is_too_long, size = False, 0
    chunk = read
    while chunk:
        *ended, begun = chunk.split(b"\n")
        for part in ended:
            yield (
                None
                if is_too_long or size + len(part) > ITEM_MAX_BYTES
                else b"".join([*kept, part])
            )
            kept, is_too_long, size = [], False, 0
        size += len(begun)
        is_too_long = is_too_long or size > ITEM_MAX_BYTES
        kept = [] if is_too_long else [*kept, begun]
        chunk = file.read(_CHUNK_BYTES)
    if size:
        yield None if is_too_long else b"".join(kept)


def _list_items(file: IO[bytes], read: bytes) -> Iterator[Item]:
    number = 0
    cutter = _Cutter()
    chunk = read or file.read(_CHUNK_BYTES)
    while chunk and not cutter.is_closed:
        for text in cutter.feed(chunk):
            place = f"item {number}"
            yield (
                Item(number, place, issues=_too_large())
                if text is None
                else _item(number, place, text)
            )
            number += 1
        chunk = file.read(_CHUNK_BYTES)
    if not cutter.is_closed:
        raise BadInput.at("file", f"ends before its list does, in or after item {number}")
    after = cutter.after + chunk
    while after:
        if after.strip(_WHITE_SPACE):
            raise BadInput.at("file", f"goes on after its list, behind {number} items")
        after = file.read(_CHUNK_BYTES)


class _Cutter:
    """Cuts the inside of a list into the texts of its elements, fed piece by piece."""

    def __init__(self) -> None:
        self.is_closed = False
        self.after = b""
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False
        self._has_element = False
        self._kept: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The elements that end in this chunk; None for one that is too large to be kept."""
        start = at = 0
        if self._is_escaped:
            self._is_escaped, at = False, 1
        while found := (_INSIDE if self._is_in_string else _OUTSIDE).search(chunk, at):
            character, at = found[0], found.end()
            if character == b'"':
                self._is_in_string = not self._is_in_string
            elif character == b"\\":
                self._is_escaped = at == len(chunk)
                at += 1
            elif character in b"[{":
                self._depth += 1
            elif self._depth and character in b"]}":
                self._depth -= 1
            elif not self._depth and character in b",]":
                self._keep(chunk[start : found.start()])
                start = at
                is_last = character == b"]"
                if not is_last or self._has_element or self._is_filled():
                    yield self._taken()
                self._has_element = True
                if is_last:
                    self.is_closed, self.after = True, chunk[at:]
                    return
        self._keep(chunk[start:])

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= ITEM_MAX_BYTES:
            self._kept.append(part)
        else:
            self._kept.clear()

    def _is_filled(self) -> bool:
        return self._size > ITEM_MAX_BYTES or any(part.strip(_WHITE_SPACE) for part in self._kept)

    def _taken(self) -> bytes | None:
        text = None if self._size > ITEM_MAX_BYTES else b"".join(self._kept)
        self._kept, self._size = [], 0
        return text


def _item(number: int, place: str, text: bytes) -> Item:
    try:
        return Item(number, place, admission.admit(text, max_bytes=ITEM_MAX_BYTES))
    except admission.BadInput as error:
        return Item(
            number,
            place,
            issues=tuple(
                {"path": issue["path"], "message": issue["message"]} for issue in error.issues
            ),
        )
    except admission.TooLarge:
        return Item(number, place, issues=_too_large())


def _too_large() -> tuple[dict[str, str], ...]:
    return ({"path": "", "message": f"has more than {ITEM_MAX_BYTES >> 20} MiB"},)
