"""What was imported is found: a keyword and a semantic question about a customer's booking bring the right fact."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memory.access import system_principal
from memory.fact_shape import FactView
from memory.queries.retrieve import Mode, Retrieval, retrieve
from tests.builders import TenantKit, make_tenant
from tests.commands.commands import answered
from tests.import_runs.transcripts import the_file, transcripts, written

RUNS = 8
BOOKINGS = {
    "reservation": "Which booking does {customer} have from {origin} to {destination}?",
    "trip": "Which booking does {customer} have to {destination}?",
}
"""Type of a booking, and a question about one in the words of its content."""


@pytest.fixture(scope="module")
def kit(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> TenantKit:
    file: Path = written(
        tmp_path_factory.mktemp("few") / "few.jsonl.gz", transcripts(the_file())[:RUNS]
    )
    with django_db_blocker.unblock():
        tenant = make_tenant()
        answer = answered("import_runs", tenant.slug, str(file))
        assert answer["factsWritten"] > RUNS
        connection.close()
    return tenant


def found(kit: TenantKit, mode: Mode, **asked: Any) -> list[FactView]:
    principal = system_principal(kit.id, kit.slug)
    return [fact for fact, _ in retrieve(principal, Retrieval(mode=mode, **asked)).results]


def booking_of(fact: FactView) -> str | None:
    """The id of the booking that a fact is about, whichever run told of it."""
    return str(fact.content[f"{fact.type}_id"]) if fact.type in BOOKINGS else None


@pytest.mark.parametrize(("mode", "within"), [("keyword", 3), ("semantic", 5), ("both", 3)])
def test_a_question_about_a_customers_booking_finds_it(
    kit: TenantKit, live_db: None, mode: Mode, within: int
) -> None:
    bookings = [fact for type in BOOKINGS for fact in found(kit, "list", type=type, limit=200)]
    assert len(bookings) >= 5
    missed = []
    for fact in bookings:
        customer = " ".join(fact.content["user_id"].split("_")[:-1]).title()
        question = BOOKINGS[fact.type].format(customer=customer, **fact.content)
        if booking_of(fact) not in map(booking_of, found(kit, mode, query=question, limit=within)):
            missed.append(question)
    # By meaning alone, two bookings between the same places are hard to tell apart.
    assert len(missed) <= (0 if mode == "keyword" else len(bookings) // 10), missed


def test_a_customers_profile_is_found_by_who_they_are(kit: TenantKit, live_db: None) -> None:
    profiles = found(kit, "list", type="customer-profile", limit=200)
    for fact in profiles:
        names = fact.content["name"]
        question = (
            f"Where does {names['first_name']} {names['last_name']} live, and what is their e-mail?"
        )
        ids = [
            one.content["user_id"]
            for one in found(kit, "both", query=question, type=fact.type, limit=2)
        ]
        assert fact.content["user_id"] in ids
