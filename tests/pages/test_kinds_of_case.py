"""A person chooses the kind of case among those that there are, in plain words; another is said apart and has a plain name."""

from typing import Any

import pytest

from corrections.forms_fix import plain_name
from corrections.remembered import case_words, scope_words
from tests.builders import TenantKit
from tests.pages.people import Person, person, text_of
from tests.pages.test_falling import guessed, remembered
from tests.records.builders import a_record, body_of


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def fixed(who: Person, record: str, **case: str) -> Any:
    return who.post(f"memory/{record}/correct/fix-value", {"new_value": "window", **case})


def told(kit: TenantKit, **context: Any) -> Any:
    agent = kit.client("agent", users=["ann"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", **context}}
    return body_of(agent.post("/v1/memory/recall", body), 200)["value"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trip_id", "trip"),
        ("tripId", "trip"),
        ("order.number", "order number"),
        ("order-id", "order"),
        ("id", "id"),
        ("_id", "id"),
        ("project_id", "project"),
    ],
)
def test_a_kind_of_case_reads_as_people_say_it(name: str, words: str) -> None:
    assert case_words(name) == words
    assert scope_words("instance", {name: "X"}) == f"only in this case ({words} X)"


@pytest.mark.parametrize("written", ["trip id", "Trip-ID", " trip__id ", "TRIP.ID"])
def test_what_means_the_same_is_one_name(written: str) -> None:
    assert plain_name(written) == "trip_id"


def test_the_kinds_that_there_are_are_offered_in_words(ann: Person) -> None:
    guessed(ann.kit, "x", key="food.diet", bindings={"order_number": 7})
    guessed(ann.kit, "aisle", bindings={"trip_id": "PUNE"})
    record = remembered(ann.kit)
    body = ann.get(f"memory/{record}/correct/fix-value").content.decode()
    first, second = (
        body.index('<option value="trip_id">trip<'),
        body.index('<option value="order_number">order number<'),
    )
    assert first < second
    assert "trip id" not in body
    assert fixed(ann, record, case_name="trip_id", case_value="ROME").status_code == 302
    assert told(ann.kit, trip_id="ROME") == "window"


@pytest.mark.parametrize("written", ["trip", "Trip ID", "trip-id", "trip_id"])
def test_another_kind_that_means_one_that_there_is_is_that_one(ann: Person, written: str) -> None:
    guessed(ann.kit, "aisle", bindings={"trip_id": "PUNE"})
    record = remembered(ann.kit)
    answer = fixed(ann, record, case_name="*", case_other=written, case_value="ROME")
    assert answer.status_code == 302
    assert told(ann.kit, trip_id="ROME") == "window"


def test_where_there_is_no_kind_yet_a_plain_name_makes_one(ann: Person) -> None:
    record = remembered(ann.kit)
    assert fixed(ann, record, case_other="Order number", case_value="12").status_code == 302
    assert told(ann.kit, order_number="12") == "window"


def test_cases_that_are_told_apart_by_numbers_stay_numbers(ann: Person) -> None:
    guessed(ann.kit, "aisle", bindings={"order": 7})
    record = remembered(ann.kit)
    assert fixed(ann, record, case_name="order", case_value="12").status_code == 302
    assert told(ann.kit, order=12) == "window"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"case_name": "tripp_id", "case_value": "X"}, "Select a valid choice"),
        ({"case_name": "trip_id"}, "Say which one it is"),
        (
            {"case_name": "trip_id", "case_other": "order", "case_value": "X"},
            "You chose a kind above",
        ),
        ({"case_other": "user id", "case_value": "X"}, "That is no kind of case"),
        ({"case_other": "agent", "case_value": "X"}, "That is no kind of case"),
        ({"case_other": "7 up", "case_value": "X"}, "begin with a letter"),
        ({"case_other": "Größe", "case_value": "X"}, "begin with a letter"),
        ({"case_value": "X"}, "Name the case"),
        ({"case_name": "*", "case_value": "X"}, "Name the case"),
    ],
)
def test_a_case_that_is_none_is_told_at_its_field_and_the_text_is_kept(
    ann: Person, case: dict[str, str], words: str
) -> None:
    guessed(ann.kit, "aisle", bindings={"trip_id": "PUNE"})
    answer = fixed(ann, remembered(ann.kit), **case)
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert ">window</textarea>" in answer.content.decode().replace("\n", "")


def test_what_tells_other_peoples_cases_apart_is_offered_only_where_it_is_common(
    acme: TenantKit, ann: Person
) -> None:
    people = ["bob", "cem", "dana"]
    app = acme.client("app", users=people)
    for who in people:
        given = a_record("x", subject=who, level="task", bindings={"trip_id": "T"})
        body_of(app.post("/v1/memory/records", given), 201)
    given = a_record("x", subject="bob", level="task", bindings={"divorce_case": "T"})
    body_of(app.post("/v1/memory/records", given), 201)
    body = ann.get(f"memory/{remembered(acme)}/correct/fix-value").content.decode()
    assert "trip_id" in body
    assert "divorce" not in body


def test_a_refusal_is_told_without_the_words_of_the_api(ann: Person) -> None:
    record = guessed(ann.kit, "aisle", bindings={"trip_id": "PUNE"})
    late = ann.post(f"memory/{record}/correct/out-of-date", {"since": "2999-01-01"})
    assert late.status_code == 409
    told = text_of(late)
    assert "The day must be one that has begun" in told
    for word in ("details.", "/since", "not valid"):
        assert word not in told
