"""Hand out a run's entries as one file; logged as a reveal of its range before anything leaves.

Built whole before it is sent, with its length and sum, so that a cut file can't pass for a whole one. The cap is said in the
file's last line (JSON lines) or last row (CSV).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from corrections.actions.looking import check_reason
from corrections.csv_text import csv_bytes
from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.json_text import dumps
from memory.errors import BadInput
from memory.hashing import tag
from memory.log_entry import StoredEntry
from memory.queries.run_log import run_log

ENTRIES_MAX = 10_000
Format = Literal["csv", "jsonl"]
FORMATS: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
}
_HEADS = (
    "sequence", "timestamp", "kind", "actor", "id", "causedByLogId", "payload", "payloadErasedAt", "contentHash", "prevHash",
    "entryHash", "hashVersion", "writer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Export:
    """A whole file. `is_cut`: there was more than the cap."""

    name: str
    content_type: str
    body: bytes
    count: int
    is_cut: bool

    @property
    def sha256(self) -> str:
        return sha256(self.body).hexdigest()


def export_run(
    *,
    principal: Principal,
    run_id: str,
    kind: str | None,
    actor: str | None,
    format: Format,
    reason: str,
) -> Export:
    """The run's entries that match, payloads included. Raises PermissionDenied, BadInput, LogNotFound."""
    principal.needs_role("owner", "admin", "auditor")
    check_export(format, reason)
    entries = run_log(principal, run_id, kind=kind, actor=actor, limit=ENTRIES_MAX + 1)
    is_cut = len(entries) > ENTRIES_MAX
    entries = entries[:ENTRIES_MAX]
    payload: dict[str, Any] = {
        "type": "log.exported",
        "runId": run_id,
        "format": format,
        "entries": len(entries),
        "reasonCode": reason,
    }
    if entries:
        payload |= {"from": entries[0].sequence, "to": entries[-1].sequence}
    append_governance(principal=principal, payload=payload)
    body = _csv(entries, is_cut) if format == "csv" else _json_lines(entries, is_cut)
    name = f"run-{sha256(run_id.encode()).hexdigest()[:12]}.{format}"
    return Export(name, FORMATS[format], body, len(entries), is_cut)


def check_export(format: str, reason: str) -> None:
    """Raises BadInput for a format or a reason that is not one."""
    if format not in FORMATS:
        raise BadInput.at("format", "must be csv or jsonl")
    check_reason(reason)


def _json_lines(entries: Sequence[StoredEntry], is_cut: bool) -> bytes:
    lines = [dumps(entry.wire()) for entry in entries]
    end: dict[str, Any] = {"count": len(entries), "truncated": is_cut}
    if entries:
        end["head"] = tag(entries[-1].entry_hash)
    lines.append(json.dumps({"end": end}))
    return ("\n".join(lines) + "\n").encode()


def _csv(entries: Sequence[StoredEntry], is_cut: bool) -> bytes:
    rows: list[Sequence[object]] = [
        (
            one.sequence,
            one.timestamp,
            one.kind,
            one.actor,
            one.id,
            one.caused_by,
            one.payload_text,
            one.payload_erased_at,
            None if one.content_hash is None else tag(one.content_hash),
            tag(one.prev_hash),
            tag(one.entry_hash),
            one.hash_version,
            one.writer,
        )
        for one in entries
    ]
    if is_cut:
        rows.append((f"cut after {ENTRIES_MAX} entries",))
    return csv_bytes(_HEADS, rows)
