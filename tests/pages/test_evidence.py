"""An auditor takes a run's evidence bundle from its page, and who took which is on record with the sum of the file."""

import io
import re
import zipfile
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corrections.views import audit_evidence
from corrections.words import LOOKING_REASONS
from tests.builders import TenantKit
from tests.integrity.test_bundle import checked
from tests.pages.people import Person, person, text_of
from tests.pages.test_audit import append

PAGE = "audit/run/r1/evidence/"


@pytest.fixture
def auditor(acme: TenantKit) -> Person:
    append(acme, "r1", *({"payload": {"n": n, "text": "some words"}} for n in range(12)))
    append(acme, "r2", {})
    return person(acme, "auditor")


def taken(auditor: Person, page: str = PAGE) -> bytes:
    answer: Any = auditor.post(page, {"reason": "legal-request"})
    assert answer.status_code == 200, text_of(answer)
    body = b"".join(answer.streaming_content)
    assert answer["Content-Type"] == "application/zip"
    assert re.fullmatch(
        r'attachment; filename="evidence-[0-9a-f-]+\.zip"', answer["Content-Disposition"]
    )
    assert answer["Kindmem-Sha256"] == sha256(body).hexdigest()
    assert int(answer["Content-Length"]) == len(body)
    return body


def test_a_bundle_is_taken_from_its_page_and_checks_offline(
    auditor: Person, tmp_path: Path
) -> None:
    assert "/audit/run/r1/evidence/" in auditor.get("audit/run/r1/export/").content.decode()
    shown = text_of(auditor.get(PAGE))
    assert "12 entries" in shown
    assert "Nobody took a bundle of this run yet." in shown
    path = tmp_path / "evidence.zip"
    path.write_bytes(taken(auditor))
    code, told = checked(path)
    assert (told["entries"], "firstBad" in told, code in (14, 15)) == (12, False, True)


def test_who_took_which_is_on_record_with_the_sum_of_the_file(auditor: Person) -> None:
    first, second = taken(auditor), taken(auditor, "audit/run/r2/evidence/")
    for page, mine, others in (
        (PAGE, first, second),
        ("audit/evidence/?run=r1", first, second),
        ("audit/evidence/?run=r2", second, first),
    ):
        shown = text_of(auditor.get(page))
        assert sha256(mine).hexdigest() in shown
        assert sha256(others).hexdigest() not in shown
    shown = text_of(auditor.get("audit/evidence/"))
    assert shown.index(sha256(second).hexdigest()) < shown.index(sha256(first).hexdigest())
    for said in ("#0\u2013#11", auditor.email, str(LOOKING_REASONS["legal-request"])):
        assert said.lower() in shown.lower()
    assert "Exported evidence" in text_of(auditor.get("audit/access/"))
    log = auditor.kit.client("auditor").get(
        "/v1/memory/runs/kindmem.governance/log", {"limit": 200}
    )
    acts = [act["payload"] for act in log.json()["data"]]
    [act] = [one for one in acts if one["type"] == "evidence.exported" and one["runId"] == "r1"]
    assert (act["sha256"], act["bytes"]) == (sha256(first).hexdigest(), len(first))
    assert (act["from"], act["to"], act["reasonCode"]) == (0, 11, "legal-request")


def test_the_list_goes_back_page_by_page(auditor: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_evidence, "EXPORTS_A_PAGE", 2)
    monkeypatch.setattr(audit_evidence, "EXPORTS_SHOWN", 2)
    sums = [sha256(taken(auditor)).hexdigest() for _ in range(3)]
    answer = auditor.get("audit/evidence/", {"run": "r1"})
    shown = answer.content.decode()
    assert [one in shown for one in sums] == [False, True, True]
    older = re.search(r'href="([^"]*after=[^"]*)"', shown)
    assert older is not None
    shown = auditor.get(older[1].replace("&amp;", "&")).content.decode()
    assert [one in shown for one in sums] == [True, False, False]
    assert "?run=r1" in auditor.get(PAGE).content.decode()


def test_a_bundle_wants_a_reason_and_a_proof_of_who_asks(auditor: Person) -> None:
    assert auditor.post(PAGE, {}).status_code == 422
    assert auditor.post(PAGE, {"reason": "curiosity"}).status_code == 422
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        asked = auditor.post(PAGE, {"reason": "incident"})
        assert asked.status_code == 403
        assert "Is it you?" in text_of(asked)
    assert "Nothing exported yet" in text_of(auditor.get("audit/evidence/"))


def test_a_longer_run_is_for_the_command(auditor: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_evidence, "ENTRIES_MAX", 11)
    shown = text_of(auditor.get(PAGE))
    assert f"python manage.py export_evidence {auditor.kit.slug} --run r1" in shown
    assert "Take the bundle" not in shown
    assert auditor.post(PAGE, {"reason": "incident"}).status_code == 422
    assert "Nothing exported yet" in text_of(auditor.get("audit/evidence/"))


def test_the_estimate_is_near_what_the_bundle_weighs(acme: TenantKit) -> None:
    """Unpacked, within a third; a few entries and many, short ones and long."""
    auditor = person(acme, "auditor")
    for run, count, words in (("few", 3, 1), ("short", 150, 1), ("long", 60, 400)):
        append(acme, run, *({"payload": {"text": "word " * words}} for _ in range(count)))
        with zipfile.ZipFile(io.BytesIO(taken(auditor, f"audit/run/{run}/evidence/"))) as bundle:
            weight = sum(one.file_size for one in bundle.infolist())
        guess = audit_evidence.estimated_bytes(auditor.principal, run, count)
        assert 0.67 < guess / weight < 1.5, (run, guess, weight)


def test_only_who_governs_sees_and_takes(acme: TenantKit, auditor: Person) -> None:
    someone = person(acme, "person")
    for page in (PAGE, "audit/evidence/"):
        assert someone.get(page).status_code == 403
    assert someone.post(PAGE, {"reason": "incident"}).status_code == 403
    assert auditor.get("audit/run/none/evidence/").status_code == 404
    assert person(acme, "admin").get(PAGE).status_code == 200


def test_the_pages_ask_the_database_little(auditor: Person) -> None:
    taken(auditor)
    for page in (PAGE, "audit/evidence/"):
        auditor.get(page)
        with CaptureQueriesContext(connection) as asked:
            auditor.get(page)
        assert len(asked) <= 14, [one["sql"] for one in asked]
