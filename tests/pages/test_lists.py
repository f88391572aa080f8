"""Lists whose state is in the address: acts lead back to it, what a filter does not know is said, days are the reader's."""

import re
from urllib.parse import urlencode

import pytest

from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.pages.test_audit import append
from tests.pages.test_me import infer, receipt_of, remember


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


@pytest.fixture
def auditor(acme: TenantKit) -> Person:
    return person(acme, "auditor")


FILTERED = "memory/?q=seat&state=guessed"


def test_after_forgetting_fixing_and_undoing_one_is_back_in_the_list_as_it_was(ann: Person) -> None:
    for number in range(3):
        infer(ann.kit, "aisle", key=f"travel.seat{number}")
    page = ann.get(FILTERED).content.decode()
    back = urlencode({"back": ann.path(FILTERED)})
    for route in ("forget", "fix-value"):
        form = re.search(rf'href="([^"]+/correct/{route}[^"]*)"', page)
        assert form
        url = form[1].replace("&amp;", "&")
        assert url.endswith(back)
        asked = ann.get(url).content.decode()
        assert f'href="{ann.path(FILTERED)}"'.replace("&", "&amp;") in asked
        receipt = receipt_of(ann.post(url, {"new_value": "window"}))
        assert receipt.endswith(back)
        shown = ann.get(receipt).content.decode()
        link = re.search(r'href="([^"]+)">Back to memory<', shown)
        assert link
        assert link[1].replace("&amp;", "&") == ann.path(FILTERED)
        page = ann.get(FILTERED).content.decode()
    undone = re.search(r'action="([^"]+/undo[^"]*)"', shown)
    assert undone
    assert ann.post(undone[1].replace("&amp;", "&"))["Location"].endswith(back)


@pytest.mark.parametrize(
    "given", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:1", "/t/acme/settings/?x=1"]
)  # fmt: skip
def test_the_way_back_is_only_ever_the_list_itself(ann: Person, given: str) -> None:
    record = infer(ann.kit, "aisle")
    receipt = receipt_of(ann.post(f"memory/{record}/correct/forget?{urlencode({'back': given})}"))
    shown = ann.get(receipt).content.decode()
    assert f'href="{ann.path("memory/")}">Back to memory<' in shown
    assert "evil.example" not in shown


def test_since_a_day_means_the_day_that_the_rows_show_in_the_readers_zone(ann: Person) -> None:
    ann.post("settings/", {"time_zone": "Pacific/Kiritimati", "theme": "", "language": ""})
    remember(ann.kit, "aisle", key="k.early", captured_at="2026-03-01T09:59:00Z")
    remember(ann.kit, "window", key="k.late", captured_at="2026-03-01T10:01:00Z")
    rows = text_of(ann.get("memory/"))
    assert "1 Mar 2026" in rows
    assert "2 Mar 2026" in rows
    since = text_of(ann.get("memory/", {"since": "2026-03-02"}))
    assert "k › late" in since
    assert "k › early" not in since


BAD = {
    "memory/": ("since", "2026-13-45"),
    "facts/": ("type", "no-such-type"),
    "register/": ("how", "zebra"),
    "audit/runs/": ("status", "zebra"),
    "audit/run/r1/": ("kind", "zebra"),
    "audit/facts/": ("type", "x" * 300),
    "audit/access/": ("act", "zebra"),
    "admin/keys/": ("status", "zebra"),
    "admin/members/": ("role", "zebra"),
    "admin/holds/": ("state", "zebra"),
    "admin/reviews/": ("kind", "zebra"),
}


@pytest.mark.parametrize("path", BAD)
def test_a_filter_that_a_list_does_not_know_is_said_and_nothing_is_shown(
    acme: TenantKit, path: str
) -> None:
    name, value = BAD[path]
    owner = person(acme, "owner", subject="ann")
    append(acme, "r1", {})
    for headers in ({}, {"HX-Request": "true", "HX-Request-Type": "partial"}):
        answer = owner.get(path, {name: value}, headers=headers)
        assert answer.status_code == 200
        shown = text_of(answer)
        assert f"“{value[:80]}” is nothing that" in shown
        assert "so nothing is shown" in shown
        assert "data-row" not in answer.content.decode()
    assert "data-refused" not in owner.get(path).content.decode()


@pytest.mark.parametrize(
    ("path", "bad"), [("audit/run/r1/export/", "kind"), ("audit/access/export/", "act")]
)
def test_a_file_of_a_filter_that_is_not_known_is_refused(
    auditor: Person, path: str, bad: str
) -> None:
    append(auditor.kit, "r1", {})
    asked = f"{auditor.path(path)}?{bad}=zebra"
    assert re.search(r"\b0 (entries|lines)", text_of(auditor.get(asked)))
    answer = auditor.post(asked, {"format": "csv", "reason": "routine-audit"})
    assert answer.status_code == 400
    assert "Content-Disposition" not in answer
