"""Files of memories for the import, the import itself, and what is there afterwards."""

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from memory.access import system_principal
from memory.queries.records import record_by_id
from memory.records.record import Record
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.records.builders import a_record


def whole(value: Any = "aisle", **changes: Any) -> dict[str, Any]:
    """A record with every member that the schema requires. `status`, `superseded_by`: as named."""
    status = changes.pop("status", "active")
    superseded_by = changes.pop("superseded_by", None)
    body = a_record(value, **changes)
    body.setdefault("lineage", {"derived_from": []})
    body["correction"]["superseded_by"] = superseded_by
    body["lifecycle"]["status"] = status
    if status == "deleted":
        body["value"] = None
        body["lifecycle"] |= {
            "deleted_at": "2026-03-01T10:00:00Z",
            "deleted_reason": "user-requested",
        }
    body["usage"] = {"last_used_at": None, "use_count": 0, "last_confirmed_at": None}
    return body


def file_of(folder: Path, *lines: Any, name: str = "memories.jsonl") -> str:
    path = folder / name
    texts = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in lines)
    path.write_text("".join(text + "\n" for text in texts), "utf-8")
    return str(path)


def imported(kit: TenantKit, path: str, *options: str, refused: int = 0) -> dict[str, Any]:
    """What the command said; it must have refused so many items, and exit 1 when that is any."""
    stdout = io.StringIO()
    arguments = ("import_records", kit.slug, path, *options, "--json")
    try:
        call_command(*arguments, stdout=stdout, stderr=io.StringIO())
        is_refused = False
    except CommandError as error:
        is_refused = error.returncode == 1
    answer: dict[str, Any] = json.loads(stdout.getvalue())
    assert answer["refused"] == refused, answer
    assert is_refused == bool(refused)
    return answer


def exported(kit: TenantKit, subject: str, path: Path) -> list[dict[str, Any]]:
    """The lines of a person's export, which stays at `path`."""
    options = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    call_command("export_subject", kit.slug, subject, "--out", str(path), **options)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def of_kind(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def stored(kit: TenantKit, record_id: str) -> Record:
    with tenant_context(kit.id):
        return record_by_id(system_principal(kit.id, kit.slug), record_id)


def codes(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """(place, code) of what was refused."""
    return [(one["place"], one["code"]) for one in answer["refusals"]]
