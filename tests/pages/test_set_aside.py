"""What a person said is not about them, and what they dispute: read on their pages, said once."""

import re

import pytest

from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.records.builders import a_record, body_of


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def remembered(kit: TenantKit, value: str = "a red bicycle", **changes: object) -> str:
    app = kit.client("app", users=["ann"])
    return str(body_of(app.post("/v1/memory/records", a_record(value, **changes)), 201)["id"])


def test_what_is_not_about_me_is_listed_and_opens_without_what_it_says(ann: Person) -> None:
    record = remembered(ann.kit)
    child = remembered(ann.kit, "a bicycle lock", key="food.lock", derived_from=[record])
    receipt = ann.post(f"memory/{record}/correct/wrong-person")["Location"]
    for one in (record, child):
        assert f"memory/{one}/" in ann.get("memory/?state=set-aside").content.decode()
        page = ann.get(f"memory/{one}/")
        assert page.status_code == 200
        assert "You said that this is not about you" in text_of(page)
        assert f'href="{receipt}"' in page.content.decode()
    for path in ("memory/?state=set-aside", "memory/?state=any", f"memory/{record}/", receipt):
        assert "bicycle" not in ann.get(path).content.decode()
    found = ann.get("memory/?q=bicycle&state=any")
    assert "Nothing matches" in text_of(found)
    ann.post(f"{receipt}undo")
    assert "a red bicycle" in text_of(ann.get(f"memory/{record}/"))


def test_what_is_set_aside_is_its_persons_to_read_of_and_nobody_elses(ann: Person) -> None:
    record = remembered(ann.kit)
    ann.post(f"memory/{record}/correct/wrong-person")
    assert person(ann.kit, "person", subject="bob").get(f"memory/{record}/").status_code == 404
    assert ann.get("memory/no-such-memory/").status_code == 404


def test_a_take_home_file_leaves_out_what_was_said_to_be_about_somebody_else(ann: Person) -> None:
    record = remembered(ann.kit)
    ann.post(f"memory/{record}/correct/wrong-person")
    taken = b"".join(ann.post("downloads/", {"format": "jsonl"}).streaming_content)  # type: ignore[attr-defined]
    assert record.encode() in taken
    assert b"bicycle" not in taken


def test_a_dispute_sent_from_two_tabs_makes_one_statement(ann: Person) -> None:
    record = remembered(ann.kit)
    path = f"memory/{record}/correct/dispute"
    first = ann.post(path, {"statement": "I never said so", "once": "1" * 20})["Location"]
    again = ann.post(path, {"statement": "I never said so", "once": "2" * 20})["Location"]
    assert again == first
    other = ann.post(path, {"statement": "Certainly not", "once": "3" * 20})
    assert other.status_code == 409
    shown = text_of(other)
    assert "You said already that you disagree" in shown
    assert "Certainly not" in other.content.decode()
    assert f'href="{first}"' in other.content.decode()
    page = ann.get(f"memory/{record}/").content.decode()
    assert page.count("I never said so") == 1
    assert "correct/dispute" not in page
    numbers = re.findall(r"R-\w{4}-\w{4}-\w{4}", text_of(ann.get("receipts/")))
    assert len(numbers) == 1


def test_a_memory_leads_to_what_it_was_derived_from_where_that_is_the_persons_own(
    ann: Person,
) -> None:
    parent = remembered(ann.kit)
    child = remembered(
        ann.kit, "a lock", key="food.lock", derived_from=[parent, "elsewhere"], level="task"
    )
    page = ann.get(f"memory/{child}/").content.decode()
    assert f'memory/{parent}/"' in page
    assert "elsewhere" in page
    assert "memory/elsewhere/" not in page
