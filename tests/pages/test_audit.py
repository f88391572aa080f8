"""What an auditor reads: runs, a run in three views, entries, reveals, verification, exports, the access log."""

import csv
import io
import json
import re
from datetime import timedelta
from urllib.parse import quote

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of


def append(kit: TenantKit, run: str, *entries: dict) -> list[dict]:
    agent = kit.client("agent", projects=["trips"])
    bodies = [{"kind": "tool-call", "scope": {"projectId": "trips"}, **one} for one in entries]
    answer = agent.post(f"/v1/memory/runs/{run}/log/batch", {"entries": bodies})
    assert answer.status_code == 201, answer.content
    return answer.json()["data"]


@pytest.fixture
def auditor(acme: TenantKit) -> Person:
    return person(acme, "auditor")


def test_before_the_first_run_the_list_says_what_will_be_there(auditor: Person) -> None:
    with tenant_context(auditor.kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM run_head WHERE run_id <> 'kindmem.governance'")
        assert cursor.fetchone() == (0,)
    shown = text_of(auditor.get("audit/runs/", {"kind": "artifact-produced"}))
    assert "Nothing matches" in shown
    assert "none of it matches" in shown
    assert "Clear the filter" in shown


def test_the_list_of_runs_filters_and_keeps_the_filter_in_the_address(auditor: Person) -> None:
    append(auditor.kit, "r-tools", {})
    append(auditor.kit, "r-talk", {"kind": "user-message", "actor": "ann"})
    shown = auditor.get("audit/runs/", {"kind": "user-message", "actor": "ann"}).content.decode()
    assert "r-talk" in shown
    assert "r-tools" not in shown
    assert "/audit/runs/?actor=ann" in shown  # the chip that takes the kind away keeps the actor


def test_a_run_is_found_by_its_id_whatever_the_id_holds(auditor: Person) -> None:
    for run in ("..", "a/b?c#d", "~tilde", "ünï cøde"):
        append(auditor.kit, quote(run, safe=""), {})
        answer = auditor.get("audit/runs/", {"run": run}, follow=True)
        assert answer.status_code == 200
        assert f"<bdi>{run}</bdi>" in answer.content.decode()


def test_htmx_gets_the_list_alone_and_going_back_gets_the_whole_page(auditor: Person) -> None:
    append(auditor.kit, "r1", {})
    partial = {"HX-Request": "true", "HX-Request-Type": "partial"}
    fragment = auditor.get("audit/runs/", headers=partial).content.decode()
    assert fragment.lstrip().startswith('<div id="results">')
    back = auditor.get(
        "audit/runs/", headers={**partial, "HX-History-Restore-Request": "true"}
    ).content.decode()
    assert "<!doctype html>" in back


@pytest.mark.parametrize("view", ["timeline", "cause", "table"])
def test_a_run_pages_through_all_entries_once_in_each_view(auditor: Person, view: str) -> None:
    append(auditor.kit, "long", *({"actor": f"a{n}"} for n in range(130)))
    page, seen = f"/t/{auditor.kit.slug}/audit/run/long/?view={view}", []
    while page:
        body = auditor.get(page).content.decode()
        seen += [int(n) for n in re.findall(r'data-open[^>]*href="[^"]*/e/long/(\d+)/', body)]
        following = re.search(r'href="([^"]+)" data-next', body)
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert seen == list(range(130))


def test_by_cause_stands_each_entry_below_what_caused_it(auditor: Person) -> None:
    append(auditor.kit, "r1", {"id": "e-one"}, {"id": "e-two"})
    append(auditor.kit, "r1", {"causedByLogId": "e-one"}, {"causedByLogId": "e-elsewhere"})
    shown = text_of(auditor.get("audit/run/r1/", {"view": "cause"}))
    order = re.findall(r"Level (\d+)\. #(\d+)", shown)
    assert order == [("0", "0"), ("1", "2"), ("0", "1"), ("0", "3")]
    assert "caused by #0" in shown
    assert "caused by an entry elsewhere" in shown


def test_the_payload_is_hidden_until_a_reason_is_given_which_is_logged(auditor: Person) -> None:
    append(auditor.kit, "r1", {"payload": {"secret": "aisle seat"}})
    entry = f"/t/{auditor.kit.slug}/audit/e/r1/0/"
    assert "aisle seat" not in auditor.get(entry).content.decode()
    refused = auditor.post(entry, {"reason": ""})
    assert refused.status_code == 422
    assert "aisle seat" not in refused.content.decode()
    revealed = auditor.post(entry, {"reason": "complaint"}, follow=True)
    assert "aisle seat" in revealed.content.decode()
    shown = text_of(auditor.get("audit/access/"))
    assert "Revealed an entry" in shown
    assert "A person complained" in shown
    assert auditor.email in shown


def test_somebody_elses_reveal_shows_nothing(auditor: Person) -> None:
    append(auditor.kit, "r1", {"payload": "aisle seat"})
    entry = f"/t/{auditor.kit.slug}/audit/e/r1/0/"
    url = auditor.post(entry, {"reason": "complaint"})["Location"]
    assert "aisle seat" in auditor.get(url).content.decode()
    assert "aisle seat" not in person(auditor.kit, "admin").get(url).content.decode()


def test_next_and_previous_stay_inside_the_filter(auditor: Person) -> None:
    append(auditor.kit, "r1", {"actor": "a"}, {"actor": "b"}, {"actor": "a"})
    body = auditor.get("audit/e/r1/0/", {"actor": "a"}).content.decode()
    assert f'href="/t/{auditor.kit.slug}/audit/e/r1/2/?actor=a"' in body


def test_hidden_controls_in_names_are_shown_as_marks(auditor: Person) -> None:
    append(auditor.kit, "r1", {"actor": "ann\u202egnp.exe"})
    body = auditor.get("audit/run/r1/", {"view": "table"}).content.decode()
    assert "\u202e" not in body
    assert "U+202E" in body


def test_memory_text_is_never_markup(auditor: Person) -> None:
    append(auditor.kit, "r1", {"actor": "<img src=x onerror=1>", "payload": "<script>1</script>"})
    entry = f"/t/{auditor.kit.slug}/audit/e/r1/0/"
    body = auditor.post(entry, {"reason": "debugging"}, follow=True).content.decode()
    assert "<img src=x" not in body
    assert "<script>1" not in body


def test_an_intact_run_reads_so_and_the_result_has_a_page_of_its_own(auditor: Person) -> None:
    append(auditor.kit, "r1", {}, {})
    answer = auditor.post("audit/run/r1/verify/", {}, follow=True)
    assert answer.redirect_chain[-1][0].startswith(f"/t/{auditor.kit.slug}/audit/verifications/")
    shown = text_of(answer)
    assert "Intact" in shown
    assert "2 entries checked" in shown
    assert "What this does and doesn't prove" in shown.replace("&#x27;", "'")
    assert "Intact" in text_of(auditor.get("audit/verifications/"))


def test_a_backwards_range_is_refused_with_the_text_kept(auditor: Person) -> None:
    append(auditor.kit, "r1", {}, {})
    answer = auditor.post("audit/run/r1/verify/", {"first": "5", "last": "2"})
    assert answer.status_code == 422
    body = answer.content.decode()
    assert 'value="5"' in body
    assert 'aria-invalid="true"' in body


def test_new_entries_are_told_in_a_pill_and_rows_stay_where_they_are(auditor: Person) -> None:
    append(auditor.kit, "r1", {}, {}, {})
    partial = {"HX-Request": "true", "HX-Request-Type": "partial"}
    pill = auditor.get("audit/run/r1/newer/", {"after": "0"}, headers=partial).content.decode()
    assert "2 new entries – show" in pill
    assert 'href="/t/acme/audit/run/r1/?before=3#e1"' in pill
    shown = auditor.get("audit/run/r1/", {"before": "3"})
    for entry in ("e0", "e1", "e2"):
        assert f'id="{entry}"' in shown.content.decode(), "what was there before stays in sight"
    assert "Later entries" not in text_of(shown)
    assert (
        auditor.get("audit/run/r1/newer/", {"after": "2"}, headers=partial).content.strip() == b""
    )
    assert auditor.get("audit/run/r1/newer/", {"after": "0"}).status_code == 302


def test_an_export_holds_what_the_filter_shows_and_is_logged_as_a_reveal(auditor: Person) -> None:
    append(auditor.kit, "r1", {"actor": "a", "payload": 1e2}, {"actor": "b"}, {"actor": "a"})
    form = f"/t/{auditor.kit.slug}/audit/run/r1/export/?actor=a"
    assert "2 entries" in text_of(auditor.get(form))
    answer = auditor.post(form, {"format": "jsonl", "reason": "legal-request"})
    lines = [json.loads(line) for line in answer.content.decode().splitlines()]
    assert [line.get("sequence") for line in lines] == [0, 2, None]
    assert lines[-1]["end"] == {"count": 2, "truncated": False, "head": lines[1]["entryHash"]}
    assert int(answer["Content-Length"]) == len(answer.content)
    assert "Exported a run" in text_of(auditor.get("audit/access/", {"act": "log.exported"}))


def test_an_export_asks_who_it_is_again_after_five_minutes(auditor: Person) -> None:
    append(auditor.kit, "r1", {})
    form = {"format": "csv", "reason": "routine-audit"}
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        asked = auditor.post("audit/run/r1/export/", form)
        assert asked.status_code == 403
        assert "Is it you?" in text_of(asked)
        log = text_of(auditor.get("audit/access/", {"act": "log.exported"}))
        assert "Nobody did that in these days" in log


def test_a_csv_export_runs_no_formula_and_keeps_numbers(auditor: Person) -> None:
    append(auditor.kit, "r1", {"actor": "=HYPERLINK(1)"}, {"actor": "＝1+1"}, {"actor": "-5"})
    form = f"/t/{auditor.kit.slug}/audit/run/r1/export/"
    body = auditor.post(form, {"format": "csv", "reason": "routine-audit"}).content
    assert body.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))
    assert [row["actor"] for row in rows] == ["'=HYPERLINK(1)", "'＝1+1", "-5"]


def test_days_are_those_of_the_readers_zone(auditor: Person) -> None:
    append(auditor.kit, "r1", {})
    auditor.post(
        "settings/", {"time_zone": "Pacific/Kiritimati", "theme": "dark", "shortcuts": "on"}
    )
    body = auditor.get("audit/run/r1/").content.decode()
    assert "+14" in body
    assert 'data-theme="dark"' in body
    assert "times in Pacific/Kiritimati" in text_of(auditor.get("audit/run/r1/"))


@pytest.mark.parametrize(
    "path",
    ["audit/runs/", "audit/run/r1/", "audit/run/r1/?view=cause", "audit/run/r1/?view=table",
     "audit/e/r1/1/", "audit/run/r1/verify/", "audit/run/r1/export/", "audit/verifications/", "audit/access/", "settings/"],
)  # fmt: skip
def test_each_page_asks_the_database_little_and_is_light(auditor: Person, path: str) -> None:
    append(auditor.kit, "r1", *({"actor": "agent:" + "a" * 60} for _ in range(80)))
    with CaptureQueriesContext(
        connection,
    ) as asked:
        answer = auditor.get(path)
    assert answer.status_code == 200
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12
    assert len(answer.content) <= 100_000


def test_times_are_shown_in_utc_on_demand_and_a_filter_keeps_it(auditor: Person) -> None:
    append(auditor.kit, "r1", {})
    auditor.post("settings/", {"time_zone": "Pacific/Kiritimati", "theme": "", "language": ""})
    page = auditor.get("audit/run/r1/", {"kind": "tool-call"}).content.decode()
    assert 'href="/t/acme/audit/run/r1/?kind=tool-call&amp;utc=1"' in page
    shown = auditor.get("audit/run/r1/", {"kind": "tool-call", "utc": "1"})
    assert "times in UTC" in text_of(shown)
    assert "+14" not in shown.content.decode()
    assert '<input type="hidden" name="utc" value="1">' in shown.content.decode()
    assert 'href="/t/acme/audit/run/r1/?kind=tool-call"' in shown.content.decode()


def test_new_runs_are_told_within_the_filter_and_shown_with_it(auditor: Person) -> None:
    append(auditor.kit, "r1", {"kind": "user-message"})
    page = auditor.get("audit/runs/", {"kind": "user-message"}).content.decode()
    poll = re.search(r'hx-get="(/t/acme/audit/runs/newer/[^"]+)"', page)
    assert poll
    url = poll[1].replace("&amp;", "&")
    append(auditor.kit, "r2", {"kind": "tool-call"})
    partial = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert auditor.get(url, headers=partial).content.strip() == b""
    append(auditor.kit, "r3", {"kind": "user-message"})
    pill = auditor.get(url, headers=partial).content.decode()
    assert "1 new run – show" in pill
    assert 'href="/t/acme/audit/runs/?kind=user-message"' in pill
    assert auditor.get(url)["Location"] == "/t/acme/audit/runs/?kind=user-message"


@pytest.mark.parametrize("path", ["audit/run/r1/export/", "audit/access/export/"])
@pytest.mark.parametrize(("format", "begins"), [("jsonl", b"{"), ("csv", b"\xef\xbb\xbf")])
def test_an_export_is_what_its_label_says(
    auditor: Person, path: str, format: str, begins: bytes
) -> None:
    append(auditor.kit, "r1", {})
    labels = dict(
        re.findall(
            r'value="(jsonl|csv)".*?>\s*([^<]+)</label>', auditor.get(path).content.decode(), re.S
        )
    )
    assert labels["jsonl"].startswith("JSON lines")
    assert labels["csv"].startswith("CSV")
    answer = auditor.post(path, {"format": format, "reason": "routine-audit"})
    assert answer.content.startswith(begins)
    assert f'.{format}"' in answer["Content-Disposition"]
