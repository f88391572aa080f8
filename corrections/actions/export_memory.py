"""Hand a person everything kept about them as one file, logged before anything leaves.

Built whole before it is sent, so that its length and sum are known, and its last line (JSON lines) or row (CSV) says how many of
each kind there are: a cut file can't pass for a whole one. What is beyond ROWS_MAX of a kind is left out, and the end says so.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, Any

from django.conf import settings
from django.utils import timezone

from corrections.actions.export_entries import FORMATS
from corrections.csv_text import BOM, csv_line
from corrections.queries.about_me import (
    ReceiptInFull,
    entries,
    fact_versions,
    memories,
    receipts,
)
from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.json_text import Raw, dumps
from memory.errors import BadInput, NotFound
from memory.fact_shape import FactView
from memory.instants import instant_text
from memory.log_entry import StoredEntry
from memory.records.record import Record

ROWS_MAX = 50_000
_IN_MEMORY_MAX = 4 * 1024 * 1024
_HEADS = (
    "kind", "id", "version", "what", "says", "status", "source", "applies", "written_by", "written_at", "ended_at", "until",
    "reason", "log_entry",
)  # fmt: skip

_READ: Mapping[str, Callable[[Principal], Iterator[Any]]] = {
    "memory": memories,
    "fact": fact_versions,
    "receipt": receipts,
    "log-entry": entries,
}


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A whole file, to be read from its start. `cut`: kinds of which there was more."""

    name: str
    content_type: str
    file: IO[bytes]
    sha256: str
    counts: dict[str, int]
    cut: list[str]


def export_memory(*, principal: Principal, format: str) -> MemoryFile:
    """Everything about the reader's own subject. Raises BadInput, NotFound for who is no person here."""
    if format not in FORMATS:
        raise BadInput.at("format", "must be csv or jsonl")
    if principal.subject is None:
        raise NotFound
    counts, cut, summed = dict.fromkeys(_READ, 0), [], sha256()
    # The file outlives this function: whoever sends it closes it.
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_MAX)  # noqa: SIM115

    def write(data: bytes) -> None:
        summed.update(data)
        file.write(data)

    shape = _SHAPES[format]
    write(shape.start(principal))
    for kind, read in _READ.items():
        for one in read(principal):
            if counts[kind] == ROWS_MAX:
                cut.append(kind)
                break
            write(shape.line(kind, one))
            counts[kind] += 1
    write(shape.end(counts, cut))
    file.seek(0)
    append_governance(
        principal=principal,
        payload={"type": "memory.exported", "format": format, "counts": counts, "cut": cut},
    )
    name = f"about-me-{principal.tenant_slug}-{timezone.now():%Y-%m-%d}.{format}"
    return MemoryFile(name, FORMATS[format], file, summed.hexdigest(), counts, cut)


class _JsonLines:
    """Each line an object: `about`, then one of the kinds as the API answers it, then `end`."""

    @staticmethod
    def start(principal: Principal) -> bytes:
        about = {
            "workspace": principal.tenant_slug,
            "subject": principal.subject,
            "madeAt": instant_text(timezone.now()),
            "kindmem": settings.KINDMEM_VERSION,
            "kinds": list(_READ),
        }
        return (json.dumps({"about": about}, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def line(kind: str, one: Any) -> bytes:
        body = _receipt(one) if isinstance(one, ReceiptInFull) else one.wire()
        return (dumps({kind: body}) + "\n").encode()

    @staticmethod
    def end(counts: Mapping[str, int], cut: Iterable[str]) -> bytes:
        return (json.dumps({"end": {"counts": counts, "truncated": list(cut)}}) + "\n").encode()


class _Csv:
    """One table for all kinds; the last row is the end."""

    @staticmethod
    def start(principal: Principal) -> bytes:
        return BOM + csv_line(_HEADS)

    @staticmethod
    def line(kind: str, one: Any) -> bytes:
        return csv_line((kind, *_ROW[kind](one)))

    @staticmethod
    def end(counts: Mapping[str, int], cut: Iterable[str]) -> bytes:
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        left = list(cut)
        status = f"cut: {', '.join(left)}" if left else "complete"
        return csv_line(("end", "", "", "", told, status, *("",) * (len(_HEADS) - 6)))


def _receipt(one: ReceiptInFull) -> dict[str, Any]:
    said = {
        "number": one.number,
        "route": one.route,
        "record_id": one.record_id,
        "key": one.key,
        "scope": Raw(one.scope_text),
        "by": one.actor,
        "reason": one.reason,
        "statement": one.statement,
        "log_entry_id": one.log_entry_id,
        "at": _time(one.made_at),
        "undo_until": _time(one.undo_until),
        "undone_at": _time(one.undone_at),
    }
    return {name: value for name, value in said.items() if value is not None}


def _time(moment: Any) -> str | None:
    return None if moment is None else instant_text(moment)


def _memory_row(one: Record) -> tuple[object, ...]:
    return (
        one.id, one.row_version, one.key, one.value_text, one.status, one.source_type, f"{one.level} {one.bindings_text}",
        one.captured_by, _time(one.captured_at), _time(one.ended_at), one.valid_until, one.deleted_reason, one.evidence_ref,
    )  # fmt: skip


def _fact_row(one: FactView) -> tuple[object, ...]:
    return (
        one.id, one.version, one.type, one.content_text or one.content_ref,
        one.invalidation_reason or one.trust, "fact", one.scope_text, one.attributed_id, _time(one.recorded_at),
        _time(one.invalidated_at), _time(one.valid_until), None, one.cause_ids[0] if one.cause_ids else None,
    )  # fmt: skip


def _receipt_row(one: ReceiptInFull) -> tuple[object, ...]:
    return (
        one.number, None, one.key, one.statement, "undone" if one.undone_at else "done", one.route, one.scope_text, one.actor,
        _time(one.made_at), _time(one.undone_at), _time(one.undo_until), one.reason, one.log_entry_id,
    )  # fmt: skip


def _entry_row(one: StoredEntry) -> tuple[object, ...]:
    return (
        one.id, one.sequence, one.kind, one.payload_text, "erased" if one.payload_erased_at else "kept", one.actor,
        one.scope_text, one.writer, one.timestamp, one.payload_erased_at, None, None, one.id,
    )  # fmt: skip


_ROW: Mapping[str, Callable[[Any], tuple[object, ...]]] = {
    "memory": _memory_row,
    "fact": _fact_row,
    "receipt": _receipt_row,
    "log-entry": _entry_row,
}
_SHAPES: Mapping[str, type[_JsonLines] | type[_Csv]] = {"jsonl": _JsonLines, "csv": _Csv}
