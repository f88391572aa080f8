"""Tables as CSV that a spreadsheet opens without running anything: RFC 4180, CRLF, UTF-8 with BOM, formulas disarmed.

A cell that starts like a formula gets an apostrophe in front, full-width twins included; plain signed numbers stay.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def cell(value: object) -> str:
    """One value as a spreadsheet may have it."""
    text = "" if value is None else str(value)
    if text[:1] and text[0] in _FORMULA_STARTS and not _NUMBER.fullmatch(text):
        return "'" + text
    return text


def csv_line(values: Sequence[object]) -> bytes:
    """One row of a file that begins with BOM."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([cell(value) for value in values])
    return text.getvalue().encode()


BOM = b"\xef\xbb\xbf"


def csv_bytes(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """The whole file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(heads)
    writer.writerows([cell(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8-sig")
