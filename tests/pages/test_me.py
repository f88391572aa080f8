"""What a person reads and does on their own pages."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corrections.page_links import make_page_link
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, person, text_of
from tests.records.builders import a_record, an_inference, body_of

PARTIAL = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def remember(kit: TenantKit, value: Any = "aisle", **changes: Any) -> str:
    app = kit.client("app", users=["ann", "bob"])
    return body_of(app.post("/v1/memory/records", a_record(value, **changes)), 201)["id"]


def infer(kit: TenantKit, value: Any = "aisle", **changes: Any) -> str:
    agent = kit.client("agent", users=["ann", "bob"])
    given = {"bindings": {"trip_id": "PUNE"}, **changes}
    return body_of(agent.post("/v1/memory/records", an_inference(value, **given)), 201)["id"]


def recalled(kit: TenantKit, **context: Any) -> dict[str, Any]:
    agent = kit.client("agent", users=["ann"])
    body = {"key": "travel.seat", "context": {"user_id": "ann", **context}}
    return body_of(agent.post("/v1/memory/recall", body), 200)


def receipt_of(answer: Any) -> str:
    assert answer.status_code == 302, text_of(answer)
    assert "/receipts/R-" in answer["Location"]
    return str(answer["Location"])


def test_with_nothing_remembered_the_page_says_how_memories_come_about(ann: Person) -> None:
    shown = text_of(ann.get("memory/"))
    assert "Nothing is remembered about you" in shown
    assert "how you like things" in shown


def test_a_person_sees_their_own_memories_in_plain_words_and_nobody_elses(ann: Person) -> None:
    remember(ann.kit, "aisle")
    remember(ann.kit, "bob's secret", subject="bob")
    infer(ann.kit, "vegan", key="food.diet")
    shown = text_of(ann.get("memory/"))
    assert "travel › seat" in shown
    assert "you said it" in shown
    assert "guessed by booker@2.1.0, seen once" in shown
    assert "secret" not in shown
    assert "2 memories are in use" in shown


def test_what_begins_on_a_later_day_says_so_beside_what_holds_until_then(ann: Person) -> None:
    remember(ann.kit, "aisle")
    later = remember(ann.kit, "window", valid_from="2099-01-31")
    shown = text_of(ann.get("memory/"))
    assert "aisle" in shown
    assert "from 31 Jan 2099" in shown
    assert "from its first day on" in text_of(ann.get(f"memory/{later}/"))


def test_an_owner_sees_no_other_persons_memories_on_the_persons_pages(acme: TenantKit) -> None:
    record = remember(acme, "aisle")
    owner = person(acme, "owner", subject="olga")
    assert owner.get(f"memory/{record}/").status_code == 404
    assert owner.post(f"memory/{record}/confirm").status_code == 404


def test_search_finds_keys_and_values_and_an_empty_result_says_how_many_there_are(
    ann: Person,
) -> None:
    remember(ann.kit, "aisle")
    remember(ann.kit, "Nut ALLERGY", key="food.notes")
    assert "ALLERGY" in text_of(ann.get("memory/", {"q": "allergy"}))
    assert "aisle" not in text_of(ann.get("memory/", {"q": "allergy"}))
    nothing = text_of(ann.get("memory/", {"q": "zebra"}))
    assert "None of the 2 memories about you matches" in nothing
    assert "Clear the filter" in nothing


def test_paging_shows_each_memory_once(ann: Person) -> None:
    for number in range(35):
        remember(ann.kit, f"v{number}", key=f"k.n{number}")
    page, seen = f"/t/{ann.kit.slug}/memory/", []
    while page:
        body = ann.get(page).content.decode()
        seen += re.findall(r'id="memory-([^"]+)"', body)
        following = re.search(r'href="([^"]+)" data-next', body)
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert len(seen) == len(set(seen)) == 35


def test_one_memory_shows_why_it_is_here_and_what_can_be_done(ann: Person) -> None:
    record = infer(ann.kit, "aisle")
    shown = text_of(ann.get(f"memory/{record}/"))
    for words in ("Guessed", "Agents ask you before they rely on it", "Why it is here",
                  "Why is this kept?", "Fix what it says", "Forget this", "History"):  # fmt: skip
        assert words in shown


def test_evidence_that_is_a_log_entry_is_quoted(ann: Person) -> None:
    app = ann.kit.client("app", users=["ann"])
    entry = body_of(
        app.post(
            "/v1/memory/runs/r1/log",
            {
                "kind": "user-message",
                "scope": {"userId": "ann"},
                "payload": {"text": "I always want the aisle <b>please</b>"},
            },
        ),
        201,
    )
    record = remember(ann.kit, "aisle", evidence={"kind": "message", "ref": entry["id"]})
    body = ann.get(f"memory/{record}/").content.decode()
    assert "I always want the aisle &lt;b&gt;please" in body


def test_confirming_from_the_list_swaps_the_row_and_says_so(ann: Person) -> None:
    record = infer(ann.kit)
    answer = ann.post(f"memory/{record}/confirm", {}, headers=dict(PARTIAL))
    body = answer.content.decode()
    assert body.lstrip().startswith('<li class="memory"')
    assert "Confirmed by you" in body
    assert 'hx-swap-oob="innerHTML"' in body
    assert "data-focus" in body


def test_confirming_without_scripts_goes_back_to_the_filtered_list(ann: Person) -> None:
    record = infer(ann.kit)
    back = f"/t/{ann.kit.slug}/memory/?state=guessed"
    assert ann.post(f"memory/{record}/confirm", {"back": back})["Location"] == back
    elsewhere = ann.post(f"memory/{record}/confirm", {"back": "https://evil.example/"})
    assert elsewhere["Location"] == f"/t/{ann.kit.slug}/memory/"


def test_fixing_applies_to_the_case_at_hand_and_nothing_else(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    fields = {
        "new_value": "window",
        "case_other": "trip_id",
        "case_value": "PUNE",
        "expect": record,
    }
    url = receipt_of(ann.post(f"memory/{record}/correct/fix-value", fields))
    shown = text_of(ann.get(url))
    assert "− aisle" in shown
    assert "+ window" in shown
    assert "only in this case (trip PUNE)" in shown
    assert recalled(ann.kit, trip_id="PUNE")["value"] == "window"
    assert recalled(ann.kit, trip_id="ROME")["value"] == "aisle"


def test_a_memory_of_no_case_asks_which_case_is_meant(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    answer = ann.post(f"memory/{record}/correct/fix-value", {"new_value": "window"})
    assert answer.status_code == 422
    body = answer.content.decode()
    assert "Name the case" in body
    assert ">window</textarea>" in body.replace("\n", "")


def test_fixing_a_guess_keeps_where_the_guess_came_from(ann: Person) -> None:
    record = infer(ann.kit, "aisle")
    fields = {"new_value": "window", "expect": record}
    receipt_of(ann.post(f"memory/{record}/correct/fix-value", fields))
    was = text_of(ann.get(f"memory/{record}/"))
    assert "guessed by booker@2.1.0" in was
    assert "Replaced" in was
    assert recalled(ann.kit, trip_id="PUNE")["value"] == "window"


def test_numbers_and_yes_or_no_stay_what_they_are(ann: Person) -> None:
    for value, typed, key in ((3, "4", "k.n"), (True, "no", "k.b"), ("3", "4", "k.s")):
        record = infer(ann.kit, value, key=key)
        receipt_of(ann.post(f"memory/{record}/correct/fix-value", {"new_value": typed}))
    agent = ann.kit.client("agent", users=["ann"])
    body = {"keys": ["k.n", "k.b", "k.s"], "context": {"user_id": "ann", "trip_id": "PUNE"}}
    results = body_of(agent.post("/v1/memory/recall", body), 200)["results"]
    assert [results[key]["value"] for key in ("k.n", "k.b", "k.s")] == [4, False, "4"]


def test_sending_a_form_twice_makes_one_correction(ann: Person) -> None:
    record = infer(ann.kit, "aisle")
    fields = {"new_value": "window", "once": "a" * 36}
    first = receipt_of(ann.post(f"memory/{record}/correct/fix-value", fields))
    assert receipt_of(ann.post(f"memory/{record}/correct/fix-value", fields)) == first
    assert text_of(ann.get("receipts/")).count("Fix what it says") == 1


def test_sending_twice_what_takes_the_memory_out_of_sight_leads_to_the_one_receipt(
    ann: Person,
) -> None:
    record = infer(ann.kit, "aisle")
    form = {"expect": record, "once": "1" * 20}
    first = ann.post(f"memory/{record}/correct/wrong-person", form)
    again = ann.post(f"memory/{record}/correct/wrong-person", form)
    assert first.status_code == again.status_code == 302
    assert again["Location"] == first["Location"]
    other = ann.post(f"memory/{record}/correct/wrong-person", {**form, "once": "2" * 20})
    assert other.status_code == 404


def test_who_comes_second_is_shown_what_it_says_now_and_keeps_the_text(ann: Person) -> None:
    record = infer(ann.kit, "aisle")
    fields = {"new_value": "window", "expect": record}
    receipt_of(ann.post(f"memory/{record}/correct/fix-value", fields))
    late = ann.post(f"memory/{record}/correct/fix-value", {**fields, "new_value": "front row"})
    assert late.status_code == 409
    shown = text_of(late)
    assert "Somebody changed this meanwhile" in shown
    assert "+ window" in shown
    assert "front row" in late.content.decode()


def test_widening_previews_the_exact_set_and_changes_only_that(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    receipt_of(
        ann.post(
            f"memory/{record}/correct/fix-value",
            {"new_value": "front", "case_other": "trip_id", "case_value": "ROME"},
        )
    )
    preview = ann.post(f"memory/{record}/widen", {"new_value": "window"})
    shown = text_of(preview)
    assert "1 memory will stop being used" in shown
    assert "1 other memory of the same thing" in shown
    assert recalled(ann.kit)["value"] == "aisle"
    receipt_of(ann.post(f"memory/{record}/widen", sealed(preview, count="1")))
    assert recalled(ann.kit)["value"] == "window"
    assert recalled(ann.kit, trip_id="ROME")["value"] == "front"


def corrected_for(ann: Person, record: str, value: str, trip: str) -> str:
    """The id of the memory that a fix for one trip made."""
    fields = {"new_value": value, "case_other": "trip_id", "case_value": trip}
    receipt_of(ann.post(f"memory/{record}/correct/fix-value", fields))
    made = recalled(ann.kit, trip_id=trip)
    assert made["value"] == value
    return str(made["record_id"])


@pytest.mark.parametrize("is_guess", [True, False])
def test_what_was_fixed_for_one_case_is_widened_to_where_agents_take_it_from(
    ann: Person, is_guess: bool
) -> None:
    record = infer(ann.kit, "aisle", bindings={}) if is_guess else remember(ann.kit, "aisle")
    fixed = corrected_for(ann, record, "front", "ROME")
    preview = ann.post(f"memory/{fixed}/widen", {"new_value": "front"})
    shown = text_of(preview)
    assert "only in this case" not in shown
    assert "2 memories will stop being used" in shown
    receipt = receipt_of(ann.post(f"memory/{fixed}/widen", sealed(preview, count="2")))
    for trip in ("ROME", "PUNE"):
        told = recalled(ann.kit, trip_id=trip)
        assert (told["value"], told["decision"]) == ("front", "apply")
    assert "only in this case" not in text_of(ann.get(receipt)).split("Applies now", 1)[1][:60]


def test_with_nothing_to_take_it_from_what_was_fixed_is_widened_to_everything_about_the_person(
    ann: Person,
) -> None:
    record = remember(ann.kit, "aisle")
    fixed = corrected_for(ann, record, "front", "ROME")
    receipt_of(ann.post(f"memory/{record}/correct/forget", {"once": "2" * 20}))
    preview = ann.post(f"memory/{fixed}/widen", {"new_value": "front"})
    assert "everywhere for you" in text_of(preview)
    receipt_of(ann.post(f"memory/{fixed}/widen", sealed(preview, count="1")))
    assert recalled(ann.kit, trip_id="PUNE")["value"] == "front"


def sealed(preview: Any, **fields: str) -> dict[str, str]:
    hidden = dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', preview.content.decode())
    )
    return {**hidden, **fields}


def test_widening_a_set_that_changed_meanwhile_shows_it_again_and_saves_nothing(
    ann: Person,
) -> None:
    record = remember(ann.kit, "aisle")
    preview = ann.post(f"memory/{record}/widen", {"new_value": "window"})
    remember(ann.kit, "near the aisle", key="travel.note", derived_from=[record])
    answer = ann.post(f"memory/{record}/widen", sealed(preview, count="1"))
    assert answer.status_code == 409
    assert "2 memories will stop being used" in text_of(answer)
    assert recalled(ann.kit)["value"] == "aisle"


def test_widening_asks_who_it_is_again_and_keeps_the_form(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        preview = ann.post(f"memory/{record}/widen", {"new_value": "window"})
        asked = ann.post(f"memory/{record}/widen", sealed(preview, count="1"))
        assert asked.status_code == 403
        assert "Is it you?" in text_of(asked)
        assert recalled(ann.kit)["value"] == "aisle"
        ann.post("/account/reauthenticate/", {"password": PASSWORD})
        receipt_of(ann.post(f"memory/{record}/widen", sealed(asked)))
    assert recalled(ann.kit)["value"] == "window"


def test_a_page_link_corrects_one_case_and_widens_nothing(acme: TenantKit) -> None:
    record = remember(acme, "aisle")
    with tenant_context(acme.id):
        link = make_page_link(principal=acme.principal("app", users=["ann"]), subject="ann")
    browser = Client()
    browser.post(link.path)
    form = f"/t/{acme.slug}/memory/{record}/correct/fix-value"
    assert "Everywhere it applies" not in text_of(browser.get(form))
    refused = browser.post(f"/t/{acme.slug}/memory/{record}/widen", {"new_value": "window"})
    assert refused.status_code == 403
    assert "This needs an account" in text_of(refused)


def test_widening_needs_the_count_typed(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    preview = ann.post(f"memory/{record}/widen", {"new_value": "window"})
    assert ann.post(f"memory/{record}/widen", sealed(preview, count="7")).status_code == 409
    assert recalled(ann.kit)["value"] == "aisle"


def test_another_person_cannot_use_the_seal_of_a_preview(acme: TenantKit, ann: Person) -> None:
    record = remember(acme, "aisle")
    preview = ann.post(f"memory/{record}/widen", {"new_value": "window"})
    bob = person(acme, "person", subject="bob")
    assert bob.post(f"memory/{record}/widen", sealed(preview, count="1")).status_code == 404


def test_what_is_forgotten_on_the_page_is_gone_from_recall_list_search_and_count(
    ann: Person,
) -> None:
    record = remember(ann.kit, "aisle")
    url = receipt_of(ann.post(f"memory/{record}/correct/forget", {"reason": "not true"}))
    assert recalled(ann.kit)["decision"] == "none"
    shown = text_of(ann.get("memory/", {"q": "aisle"}))
    assert "Nothing matches" in shown
    assert "Nothing is in use" in text_of(ann.get("memory/"))
    receipt = text_of(ann.get(url))
    assert "Agents stopped using it" in receipt
    assert "Erased for good after" in receipt
    assert "deleted" not in receipt.lower()


def test_a_receipt_is_its_persons_alone(acme: TenantKit, ann: Person) -> None:
    record = remember(acme, "aisle")
    url = receipt_of(ann.post(f"memory/{record}/correct/forget"))
    assert person(acme, "person", subject="bob").get(url).status_code == 404


def test_a_page_link_corrects_like_an_account(acme: TenantKit) -> None:
    record = infer(acme, "aisle")
    with tenant_context(acme.id):
        link = make_page_link(principal=acme.principal("app", users=["ann"]), subject="ann")
    browser = Client()
    browser.post(link.path)
    answer = browser.post(
        f"/t/{acme.slug}/memory/{record}/correct/fix-value", {"new_value": "window"}
    )
    receipt_of(answer)
    assert recalled(acme, trip_id="PUNE")["value"] == "window"


@pytest.mark.parametrize("path", ["memory/", "memory/{id}/", "memory/{id}/correct/fix-value",
                                  "memory/{id}/correct/forget", "memory/{id}/correct/confirm", "receipts/"])  # fmt: skip
def test_each_page_asks_the_database_little_and_is_light(ann: Person, path: str) -> None:
    ids = [infer(ann.kit, "x" * 5000, key=f"k.n{number}") for number in range(32)]
    with CaptureQueriesContext(connection) as asked:
        answer = ann.get(path.format(id=ids[0]))
    assert answer.status_code == 200
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12, [one["sql"][:90] for one in statements]
    assert len(answer.content) <= 100_000


@pytest.mark.parametrize(
    ("route", "fields", "decision"),
    [
        ("out-of-date", {}, "none"),
        ("wrong-person", {"reason": "that is my brother"}, "none"),
        ("dispute", {"statement": "I never asked for that"}, "ask"),
        ("forget", {}, "none"),
        ("never-infer", {"prefix": "travel"}, "none"),
    ],
)
def test_each_route_changes_what_agents_get_and_its_receipt_undoes_it(
    ann: Person, route: str, fields: dict[str, str], decision: str
) -> None:
    record = infer(ann.kit, "aisle")
    before = recalled(ann.kit, trip_id="PUNE")
    page = ann.get(f"memory/{record}/correct/{route}")
    assert page.status_code == 200
    assert "Applies to: only this memory" in text_of(page) or route in ("forget", "never-infer")
    url = receipt_of(ann.post(f"memory/{record}/correct/{route}", fields))
    assert recalled(ann.kit, trip_id="PUNE")["decision"] == decision
    assert "Undo" in text_of(ann.get(url))
    receipt_of(ann.post(f"{url}undo"))
    after = recalled(ann.kit, trip_id="PUNE")
    assert (after["value"], after["decision"]) == (before["value"], before["decision"])
    assert "Undone" in text_of(ann.get(url))


def test_undoing_twice_says_that_it_is_over(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    url = receipt_of(ann.post(f"memory/{record}/correct/forget"))
    receipt_of(ann.post(f"{url}undo"))
    again = ann.post(f"{url}undo")
    assert again.status_code == 409
    assert "undone any more" in text_of(again)


def test_a_route_that_does_not_exist_is_nothing_here(ann: Person) -> None:
    record = remember(ann.kit, "aisle")
    assert ann.get(f"memory/{record}/correct/no-such-route").status_code == 404
