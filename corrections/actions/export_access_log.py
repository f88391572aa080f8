"""Hand out the access log, as filtered, as one file: who looked at what, when and why. Taking it is a line of that log itself.

Built whole before it is sent. The cap is said in the file's last line (JSON lines) or last row (CSV).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from corrections.actions.export_entries import FORMATS, Export, Format, check_export
from corrections.csv_text import csv_bytes
from corrections.queries.access_log import Access, AccessWanted, accesses
from corrections.queries.names import names_of
from memory.access import Principal
from memory.actions.append_log_entries import append_governance

LINES_MAX = 10_000
_HEADS = ("sequence", "timestamp", "act", "who", "whoId", "reason", "runId", "details")


def export_access_log(
    *, principal: Principal, wanted: AccessWanted, format: Format, reason: str
) -> Export:
    """What the page shows with the same filter, newest first. Raises PermissionDenied, BadInput."""
    principal.needs_role("owner", "admin", "auditor")
    check_export(format, reason)
    found = accesses(principal, wanted, limit=LINES_MAX + 1)
    is_cut, found = len(found) > LINES_MAX, found[:LINES_MAX]
    payload: dict[str, Any] = {
        "type": "access-log.exported",
        "format": format,
        "entries": len(found),
        "reasonCode": reason,
    }
    if found:
        payload |= {"from": found[-1].sequence, "to": found[0].sequence}
    append_governance(principal=principal, payload=payload)
    names = names_of(principal, (one.writer for one in found))
    body = _csv(found, names, is_cut) if format == "csv" else _json_lines(found, names, is_cut)
    return Export(f"access-log.{format}", FORMATS[format], body, len(found), is_cut)


def _json_lines(found: Sequence[Access], names: Mapping[str, str], is_cut: bool) -> bytes:
    lines = [
        {
            "sequence": one.sequence,
            "timestamp": one.at,
            "act": one.act,
            "who": names.get(one.writer, one.writer),
            "whoId": one.writer,
            "details": one.details,
        }
        for one in found
    ]
    end = {"end": {"count": len(found), "truncated": is_cut}}
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [*lines, end]).encode()


def _csv(found: Sequence[Access], names: Mapping[str, str], is_cut: bool) -> bytes:
    rows: list[Sequence[object]] = [
        (
            one.sequence,
            one.at,
            one.act,
            names.get(one.writer, one.writer),
            one.writer,
            one.details.get("reasonCode"),
            one.details.get("runId"),
            json.dumps(one.details, ensure_ascii=False),
        )
        for one in found
    ]
    if is_cut:
        rows.append((f"cut after {LINES_MAX} lines",))
    return csv_bytes(_HEADS, rows)
