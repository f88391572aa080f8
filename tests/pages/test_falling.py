"""Before an act the form says what falls with it: what was derived, what says the same, how many, and which."""

import re
from typing import Any

import pytest

from corrections.views import me_falls
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.records.builders import a_record, an_inference, body_of

CASE = {"level": "task", "bindings": {"trip_id": "PUNE"}}


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def remembered(kit: TenantKit, value: Any = "aisle", **changes: Any) -> str:
    app = kit.client("app", users=["ann", "bob"])
    return str(body_of(app.post("/v1/memory/records", a_record(value, **changes)), 201)["id"])


def guessed(kit: TenantKit, value: Any = "aisle", **changes: Any) -> str:
    agent = kit.client("agent", users=["ann", "bob"])
    given = {"bindings": {"trip_id": "PUNE"}, **changes}
    return str(body_of(agent.post("/v1/memory/records", an_inference(value, **given)), 201)["id"])


def in_use(kit: TenantKit) -> set[str]:
    app = kit.client("app", users=["ann"])
    return {one["id"] for one in body_of(app.get("/v1/memory/records"), 200)["data"]}


FIELDS = {
    "fix-value": {"new_value": "window"},
    "out-of-date": {},
    "wrong-person": {},
    "dispute": {"statement": "I never said so"},
    "forget": {},
    "never-infer": {"prefix": "travel"},
}


@pytest.mark.parametrize("route", sorted(FIELDS))
def test_a_form_says_how_many_fall_with_it_and_the_act_takes_just_those(
    ann: Person, route: str
) -> None:
    record = guessed(ann.kit)
    child = remembered(ann.kit, "near the front", key="travel.note", derived_from=[record], **CASE)
    grandchild = remembered(ann.kit, "row 3", key="travel.row", derived_from=[child], **CASE)
    copy = guessed(ann.kit, " Aisle ", bindings={"trip_id": "ROME"})
    remembered(ann.kit, "vegan", key="food.diet")
    goes_along = {child, grandchild} if route in ("out-of-date", "dispute") else {child, grandchild, copy}  # fmt: skip
    page = ann.get(f"memory/{record}/correct/{route}")
    told, shown = page.content.decode(), text_of(page)
    falls = told[told.index('id="falls"') :]
    listed = {one for one in (child, grandchild, copy) if f"/memory/{one}/" in falls}
    assert listed == goes_along
    assert re.search(rf"\b{len(goes_along)} (more )?memor", shown), shown
    before = in_use(ann.kit)
    receipt = ann.post(f"memory/{record}/correct/{route}", FIELDS[route])["Location"]
    if route == "dispute":
        assert "2 memories that were derived from it" in text_of(ann.get(receipt))
        return
    assert before - in_use(ann.kit) == {record, *goes_along}
    assert re.search(rf"\b{len(goes_along)} (more )?memor", text_of(ann.get(receipt)))


@pytest.mark.parametrize("route", sorted({*FIELDS} - {"never-infer"}))
def test_where_nothing_falls_with_it_the_form_says_so(ann: Person, route: str) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    assert "Nothing else falls with it" in text_of(ann.get(f"memory/{record}/correct/{route}"))


def test_a_fix_for_a_case_that_it_is_not_bound_to_leaves_what_was_derived(ann: Person) -> None:
    record = remembered(ann.kit, "aisle")
    child = remembered(ann.kit, "near the front", key="travel.note", derived_from=[record])
    assert "Elsewhere nothing changes" in text_of(ann.get(f"memory/{record}/correct/fix-value"))
    form = {"new_value": "window", "case_other": "trip", "case_value": "PUNE"}
    assert ann.post(f"memory/{record}/correct/fix-value", form).status_code == 302
    assert {record, child} <= in_use(ann.kit)


def test_what_falls_of_other_people_is_neither_counted_nor_named(ann: Person) -> None:
    record = remembered(ann.kit, "aisle", **CASE)
    of_bob = remembered(
        ann.kit, "sits beside ann", subject="bob", key="travel.note", derived_from=[record], **CASE
    )
    page = ann.get(f"memory/{record}/correct/forget").content.decode()
    assert of_bob not in page
    assert "sits beside" not in page


def test_each_kind_that_agents_may_guess_no_more_says_how_many_it_ends(ann: Person) -> None:
    record = guessed(ann.kit)
    guessed(ann.kit, "quiet", key="travel.room")
    remembered(ann.kit, "kosher", key="travel.meal")
    shown = text_of(ann.get(f"memory/{record}/correct/never-infer"))
    assert "travel (ends 2 memories)" in shown
    assert "travel › seat (ends 1 memory)" in shown


def test_forgetting_tells_of_earlier_versions(ann: Person) -> None:
    first = remembered(ann.kit, "aisle", **CASE)
    ann.post(f"memory/{first}/correct/fix-value", {"new_value": "window"})
    app = ann.kit.client("app", users=["ann"])
    [now] = body_of(app.get("/v1/memory/records"), 200)["data"]
    assert "earlier version" in text_of(ann.get(f"memory/{now['id']}/correct/forget"))
    receipt = ann.post(f"memory/{now['id']}/correct/forget")["Location"]
    assert "1 earlier version" in text_of(ann.get(receipt))


def test_all_that_falls_is_listed_page_by_page_each_once(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(me_falls, "FALLS_A_PAGE", 9)
    record = remembered(ann.kit, "aisle")
    made = {remembered(ann.kit, f"v{n}", key=f"k.n{n}", derived_from=[record]) for n in range(22)}
    form = ann.get(f"memory/{record}/correct/forget").content.decode()
    assert "All 22, in a new tab" in form
    page, seen = f"memory/{record}/falls/forget/", []
    while page:
        body = ann.get(page).content.decode()
        seen += re.findall(r'data-open href="[^"]+/memory/([^"/]+)/"', body)
        following = re.search(r'href="([^"]+)" data-next', body)
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert sorted(seen) == sorted(made)


def test_what_falls_is_its_persons_to_read_and_nobody_elses(ann: Person) -> None:
    record = remembered(ann.kit)
    bob = person(ann.kit, "person", subject="bob")
    assert bob.get(f"memory/{record}/falls/forget/").status_code == 404
    assert ann.get(f"memory/{record}/falls/no-such-route/").status_code == 404


def test_widening_counts_the_guesses_that_say_the_same(ann: Person) -> None:
    record = remembered(ann.kit, "aisle")
    copy = guessed(ann.kit, "aisle", bindings={"trip_id": "ROME"})
    shown = text_of(ann.post(f"memory/{record}/widen", {"new_value": "window"}))
    assert "2 memories will stop being used" in shown
    same = text_of(ann.post(f"memory/{record}/widen", {"new_value": "aisle"}))
    assert "1 memory will stop being used" in same
    assert copy in in_use(ann.kit)
