"""The access log as a file: just the lines that the filter shows, harmless to a spreadsheet, and itself a line of the log."""

import csv
import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from corrections.actions import export_access_log
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.pages.test_audit import append

EXPORT = "audit/access/export/"


@pytest.fixture
def auditor(acme: TenantKit) -> Person:
    made = person(acme, "auditor")
    append(acme, "r1", {"payload": 1}, {"payload": 2})
    for sequence in (0, 1):
        made.post(f"audit/e/r1/{sequence}/", {"reason": "complaint"})
    made.post("audit/run/r1/verify/")
    return made


def taken(who: Person, query: str = "", format: str = "jsonl") -> Any:
    answer = who.post(f"{EXPORT}{query}", {"format": format, "reason": "legal-request"})
    assert answer.status_code == 200, text_of(answer)
    assert answer["Content-Disposition"] == f'attachment; filename="access-log.{format}"'
    assert int(answer["Content-Length"]) == len(answer.content)
    return answer


def lines_of(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.content.decode().splitlines()]


def test_the_file_holds_the_lines_that_the_page_shows_with_the_same_filter(
    auditor: Person,
) -> None:
    page = auditor.get("audit/access/", {"act": "entry.revealed"}).content.decode()
    link = re.search(r'href="([^"]*/audit/access/export/[^"]*)"', page)
    assert link
    assert "2 lines" in text_of(auditor.get(link.group(1)))
    *lines, end = lines_of(taken(auditor, "?act=entry.revealed"))
    shown = re.findall(r'data-open href="[^"]*/audit/e/r1/(\d+)/"', page)
    assert [str(line["details"]["sequence"]) for line in lines] == shown == ["1", "0"]
    assert {line["who"] for line in lines} == {auditor.email}
    assert {line["whoId"] for line in lines} == {f"user:{auditor.user_id}"}
    assert {line["details"]["reasonCode"] for line in lines} == {"complaint"}
    assert end == {"end": {"count": 2, "truncated": False}}
    *everything, _ = lines_of(taken(auditor))
    assert {line["act"] for line in everything} >= {"entry.revealed", "log.verified"}


def test_taking_it_is_a_line_of_the_log_itself_with_its_reason_and_range(auditor: Person) -> None:
    *lines, _ = lines_of(taken(auditor, "?act=entry.revealed"))
    *told, _ = lines_of(taken(auditor, "?act=access-log.exported"))
    assert [one["details"] for one in told] == [
        {
            "format": "jsonl",
            "entries": 2,
            "reasonCode": "legal-request",
            "from": lines[-1]["sequence"],
            "to": lines[0]["sequence"],
        }
    ]
    assert "Exported the access log" in text_of(auditor.get("audit/access/"))


def test_a_table_of_it_runs_no_formula(acme: TenantKit) -> None:
    auditor = person(acme, "auditor")
    append(acme, "=1+1", {"payload": 1})
    auditor.post("audit/e/=1+1/0/", {"reason": "incident"})
    body = taken(auditor, "?act=entry.revealed", "csv").content
    assert body.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))
    assert [row["runId"] for row in rows] == ["'=1+1"]
    assert json.loads(rows[0]["details"])["sequence"] == 0


def test_what_is_beyond_the_most_is_said_in_the_page_and_in_both_files(
    auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_access_log, "LINES_MAX", 1)
    monkeypatch.setattr("corrections.views.audit_access.LINES_MAX", 1)
    assert "There are more." in text_of(auditor.get(EXPORT))
    assert lines_of(taken(auditor))[-1] == {"end": {"count": 1, "truncated": True}}
    assert "cut after 1 lines" in taken(auditor, format="csv").content.decode().splitlines()[-1]


def test_it_wants_a_reason_and_a_proof_of_who_asks(auditor: Person) -> None:
    assert auditor.post(EXPORT, {"format": "csv", "reason": ""}).status_code == 422
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        asked = auditor.post(EXPORT, {"format": "csv", "reason": "incident"})
    assert asked.status_code == 403
    assert "Is it you?" in text_of(asked)
    assert "Exported the access log" not in [line["act"] for line in lines_of(taken(auditor))[:-1]]


def test_only_who_governs_takes_it_and_only_of_their_own_workspace(
    acme: TenantKit, auditor: Person
) -> None:
    ann = person(acme, "person", subject="ann")
    assert ann.get(EXPORT).status_code == 403
    assert ann.post(EXPORT, {"format": "csv", "reason": "incident"}).status_code == 403
