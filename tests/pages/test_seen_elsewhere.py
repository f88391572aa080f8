"""Faults that users of other products reported, each tried here on the pages; what is tried elsewhere is not repeated."""

import re
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from corrections.actions import export_entries
from corrections.csv_text import cell
from corrections.forms import AccessFilter
from corrections.views import me_memory
from memory.housekeeping import destroy_undo_copies
from memory.models import SealedCopy
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.pages.test_audit import append
from tests.records.builders import a_record, an_inference, body_of


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def remember(kit: TenantKit, value: Any = "aisle", **changes: Any) -> str:
    app = kit.client("app", users=["ann"])
    return body_of(app.post("/v1/memory/records", a_record(value, **changes)), 201)["id"]


def forget(who: Person, record: str) -> str:
    return str(who.post(f"memory/{record}/correct/forget")["Location"])


def test_what_is_forgotten_stays_gone_after_a_reload_in_a_second_browser_and_for_the_api(
    ann: Person,
) -> None:
    """U1, U2."""
    record = remember(ann.kit, "an unforgettable aisle")
    second = Client()
    second.cookies["sessionid"] = ann.browser.cookies["sessionid"].value
    forget(ann, record)
    for browser in (ann.browser, second):
        for query in ("", "?q=unforgettable", "?state=forgotten"):
            assert "unforgettable" not in text_of(browser.get(ann.path(f"memory/{query}"))).replace(
                "Search: unforgettable", ""
            ).replace('value="unforgettable"', "")
    agent = ann.kit.client("agent", users=["ann"])
    listed = body_of(agent.get("/v1/memory/records"), 200)
    assert listed["data"] == []
    assert body_of(agent.get("/v1/memory/records", {"q": "unforgettable"}), 200)["data"] == []
    assert body_of(agent.get(f"/v1/memory/records/{record}"), 200)["value"] is None


def test_two_forgets_within_one_window_are_undone_and_purged_each_for_itself(
    live_acme: TenantKit,
) -> None:
    """U4."""
    ann = person(live_acme, "person", subject="ann")
    first = forget(ann, remember(live_acme, "one", key="k.one"))
    forget(ann, remember(live_acme, "two", key="k.two"))
    assert ann.post(f"{first}undo").status_code == 302

    def copies() -> int:
        with tenant_context(live_acme.id):
            return SealedCopy.objects.count()

    assert copies() == 1
    with time_machine.travel(timezone.now() + timedelta(hours=25), tick=False):
        destroy_undo_copies()
    assert copies() == 0
    shown = text_of(ann.get("memory/"))
    assert "k › one" in shown
    assert "k › two" not in shown


def test_a_memory_forgotten_on_the_page_is_not_learned_again_from_the_same_run(
    ann: Person,
) -> None:
    """U5."""
    agent = ann.kit.client("agent", users=["ann"])
    guess = an_inference("vegan", key="food.diet", bindings={"trip_id": "PUNE"})
    record = body_of(agent.post("/v1/memory/records", guess), 201)["id"]
    forget(ann, record)
    for _again in range(3):
        assert agent.post("/v1/memory/records", guess).status_code == 202
    assert "Nothing is in use" in text_of(ann.get("memory/"))


def test_memories_of_one_moment_are_each_on_one_page(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U28."""
    monkeypatch.setattr(me_memory, "MEMORIES_A_PAGE", 3)
    with time_machine.travel(timezone.now(), tick=False):
        made = {remember(ann.kit, f"v{n}", key=f"k.n{n}") for n in range(8)}
    page, seen = ann.path("memory/"), []
    while page:
        body = ann.get(page).content.decode()
        seen += re.findall(r'id="memory-([^"]+)"', body)
        following = re.search(r'href="([^"]+)" data-next', body)
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert sorted(seen) == sorted(made)


@pytest.mark.parametrize(
    ("zone", "day", "begins", "ends"),
    [
        ("Asia/Bangkok", date(2026, 3, 12), "2026-03-11T17:00", "2026-03-12T17:00"),
        ("America/Los_Angeles", date(2026, 1, 5), "2026-01-05T08:00", "2026-01-06T08:00"),
        # The day on which clocks go forward has 23 hours, the one on which they go back 25.
        ("America/Los_Angeles", date(2026, 3, 8), "2026-03-08T08:00", "2026-03-09T07:00"),
        ("Europe/Berlin", date(2026, 10, 25), "2026-10-24T22:00", "2026-10-25T23:00"),
    ],
)
def test_a_day_in_a_filter_is_the_readers_own_from_midnight_to_midnight(
    zone: str, day: date, begins: str, ends: str
) -> None:
    """U23."""
    with timezone.override(zoneinfo.ZoneInfo(zone)):
        form = AccessFilter({"since": day.isoformat(), "until": day.isoformat()})
        form.wanted()
        moments = form.moments()
    assert moments["since"] == datetime.fromisoformat(begins).replace(tzinfo=UTC)
    assert moments["until"] == datetime.fromisoformat(ends).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("-1+1", "'-1+1"),
        ("＝1+1", "'＝1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("-5", "-5"),
        ("+4.2e3", "+4.2e3"),
        ("plain = text", "plain = text"),
        (None, ""),
    ],
)
def test_a_cell_never_runs_and_plain_numbers_stay(value: str | None, written: str) -> None:
    """U26."""
    assert cell(value) == written


def test_a_stale_tab_does_not_bring_an_old_value_back_after_an_agent_wrote(ann: Person) -> None:
    """U40."""
    agent = ann.kit.client("agent", users=["ann"])
    guess = an_inference("aisle", bindings={"trip_id": "PUNE"})
    record = body_of(agent.post("/v1/memory/records", guess), 201)["id"]
    form = {"new_value": "window", "expect": record}
    assert ann.post(f"memory/{record}/correct/fix-value", form).status_code == 302
    agent.post("/v1/memory/records", guess)
    for late in ("aisle", "front row"):
        answer = ann.post(f"memory/{record}/correct/fix-value", {**form, "new_value": late})
        assert answer.status_code == 409
        assert "+ window" in text_of(answer)
    body = {"key": "travel.seat", "context": {"user_id": "ann", "trip_id": "PUNE"}}
    assert body_of(agent.post("/v1/memory/recall", body), 200)["value"] == "window"


def test_what_an_agent_remembers_for_one_project_shows_up_in_no_other(live_acme: TenantKit) -> None:
    """U10."""
    other = make_tenant()
    for kit, value in ((live_acme, "aisle"), (other, "window")):
        agent = kit.client("agent", users=["ann"])
        for project in ("p1", "p2"):
            guess = an_inference(f"{value} {project}", bindings={"project_id": project})
            body_of(agent.post("/v1/memory/records", guess), 201)
    for kit, value in ((live_acme, "aisle"), (other, "window")):
        agent = kit.client("agent", users=["ann"])
        for project in ("p1", "p2"):
            body = {"key": "travel.seat", "context": {"user_id": "ann", "project_id": project}}
            told = body_of(agent.post("/v1/memory/recall", body), 200)
            assert told["value"] == f"{value} {project}"
        body = {"key": "travel.seat", "context": {"user_id": "ann", "project_id": "p3"}}
        assert body_of(agent.post("/v1/memory/recall", body), 200)["value"] is None


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_an_export_that_breaks_off_offers_no_file_and_is_not_on_record(
    live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """U25."""
    auditor = person(live_acme, "auditor")
    append(live_acme, "r1", {}, {}, {})
    written = []

    def breaks(value: Any) -> Any:
        written.append(value)
        if len(written) > 1:
            raise OperationalError("the connection was lost")
        return "{}"

    name = "tag" if format == "csv" else "dumps"
    monkeypatch.setattr(export_entries, name, breaks)
    answer = auditor.post("audit/run/r1/export/", {"format": format, "reason": "incident"})
    assert answer.status_code == 503
    assert "Content-Disposition" not in answer
    monkeypatch.undo()
    log = text_of(auditor.get("audit/access/", {"act": "log.exported"}))
    assert "Nobody did that in these days" in log
