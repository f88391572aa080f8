"""Facts about a person on that person's pages: which are listed, what one shows, how its versions differ."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from corrections.differences import LINES_MAX, difference
from corrections.page_links import make_page_link
from corrections.views import me_facts
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.facts.shapes import at, written
from tests.pages.people import Person, person, text_of


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def fact_about(kit: TenantKit, content: Any = "prefers mornings", **changes: Any) -> dict[str, Any]:
    app = kit.client("app", everything=True, may=["read", "write", "tenant-wide"])
    return written(app, **{"scope": {"userId": "ann"}, "content": content, **changes})


def superseded(kit: TenantKit, fact: dict[str, Any], content: Any) -> dict[str, Any]:
    app = kit.client("app", users=["ann"])
    answer = app.post(at(fact, "/supersede"), {"content": content})
    assert answer.status_code == 200, answer.content
    return answer.json()


def listed(page: Any) -> list[str]:
    return re.findall(r'data-open href="[^"]*/facts/([^"/]+)/[^"]*"', page.content.decode())


def test_without_facts_the_page_says_how_they_come_about(ann: Person) -> None:
    shown = text_of(ann.get("facts/"))
    assert "No facts about you" in shown
    assert "names you" in shown


def test_listed_is_what_names_the_person_and_they_may_read_and_nothing_else(ann: Person) -> None:
    own = fact_about(ann.kit)
    named = fact_about(ann.kit, scope={}, subjects=[{"kind": "external", "id": "ann"}])
    with_others = fact_about(ann.kit, scope={"projectId": "p1", "participantId": "ann"})
    for elsewhere in (
        {"scope": {"userId": "bob"}},
        {"scope": {}},
        {"scope": {"projectId": "p1"}, "subjects": [{"kind": "user", "id": "ann"}]},
    ):
        fact_about(ann.kit, "not for ann's eyes", **elsewhere)
    assert set(listed(ann.get("facts/"))) == {own["id"], named["id"], with_others["id"]}
    assert "eyes" not in text_of(ann.get("facts/"))


def test_another_tenants_or_persons_fact_is_nothing_here(live_acme: TenantKit) -> None:
    elsewhere = fact_about(make_tenant())
    ann = person(live_acme, "person", subject="ann")
    theirs = fact_about(live_acme, scope={"userId": "bob"})
    for fact in (elsewhere, theirs):
        assert ann.get(f"facts/{fact['id']}/").status_code == 404
    olga = person(live_acme, "owner", subject="olga")
    assert olga.get(f"facts/{theirs['id']}/").status_code == 404


def test_what_waits_for_review_is_not_listed_and_a_removed_fact_is_apart(ann: Person) -> None:
    waiting = fact_about(ann.kit, "not yet")
    with tenant_context(ann.kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE fact SET review = 'pending' WHERE id = %s", [waiting["id"]])
    removed = fact_about(ann.kit, "old news")
    assert ann.kit.client("app", users=["ann"]).delete(at(removed)).status_code == 200
    assert "Nothing is in use" in text_of(ann.get("facts/"))
    assert listed(ann.get("facts/", {"state": "removed"})) == [removed["id"]]
    one = text_of(ann.get(f"facts/{removed['id']}/"))
    assert "Not used any more" in one
    assert "No agent reads it any more" in one


def test_filters_narrow_the_list_and_an_empty_result_offers_to_clear_them(ann: Person) -> None:
    fact_about(ann.kit, {"text": "Nut ALLERGY"}, type="health")
    fact_about(ann.kit, "prefers mornings", type="habit")
    assert "ALLERGY" in text_of(ann.get("facts/", {"q": "allergy"}))
    assert "mornings" not in text_of(ann.get("facts/", {"q": "allergy"}))
    assert "ALLERGY" not in text_of(ann.get("facts/", {"type": "habit"}))
    nothing = text_of(ann.get("facts/", {"q": "50%_"}))
    assert "None of the 2 facts about you matches" in nothing
    assert "Clear the filter" in nothing


def test_paging_shows_each_fact_once(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(me_facts, "FACTS_A_PAGE", 3)
    for number in range(8):
        fact_about(ann.kit, f"n{number}")
    page, seen = ann.path("facts/"), []
    while page:
        answer = ann.get(page)
        seen += listed(answer)
        following = re.search(r'href="([^"]+)" data-next', answer.content.decode())
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert len(seen) == len(set(seen)) == 8


def test_one_fact_shows_its_versions_as_differences_with_who_and_when(ann: Person) -> None:
    fact = fact_about(ann.kit, {"city": "Rome", "seat": "aisle"})
    superseded(ann.kit, fact, {"city": "Oslo", "seat": "aisle"})
    app = ann.kit.client("app", users=["ann"])
    assert app.post(at(fact, "/verify")).status_code == 200
    body = ann.get(f"facts/{fact['id']}/")
    shown = text_of(body)
    for words in ("Versions", "Checked: it is right", "Changed", "Written", "Why is this kept?"):
        assert words in shown
    assert re.search(r"taken out\s*:\s*−\s+&quot;city&quot;: &quot;Rome&quot;", shown)
    assert re.search(r"put in\s*:\s*\+\s+&quot;city&quot;: &quot;Oslo&quot;", shown)
    assert shown.count("The same words as before") == 1


def test_all_versions_are_reached_page_by_page(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(me_facts, "REVISIONS_A_PAGE", 3)
    fact = fact_about(ann.kit, "v1")
    for number in range(2, 9):
        superseded(ann.kit, fact, f"v{number}")
    page, seen = ann.path(f"facts/{fact['id']}/"), []
    while page:
        body = ann.get(page).content.decode()
        seen += [int(n) for n in re.findall(r"version (\d+) · <time", body)]
        following = re.search(r'href="([^"]+)" data-next', body)
        page = ann.path(f"facts/{fact['id']}/") + following.group(1) if following else ""
    assert seen == list(range(8, 0, -1))


def test_what_a_fact_says_is_never_markup_and_its_hidden_controls_are_seen(ann: Person) -> None:
    fact = fact_about(ann.kit, {"text": "<script>1</script>\u202egnp"}, type="a<b>\u202e")
    for path in ("facts/", f"facts/{fact['id']}/"):
        body = ann.get(path).content.decode()
        assert "<script>1" not in body
        assert "\u202e" not in re.sub(r' value="[^"]*"', "", body)
        assert "U+202E" in body


def test_a_person_says_that_a_fact_is_right_and_agents_read_it_as_checked(ann: Person) -> None:
    fact = fact_about(ann.kit)
    page = f"facts/{fact['id']}/"
    assert "That's right" in text_of(ann.get(page))
    form = {"expect": "1", "once": "k" * 36}
    assert ann.post(f"{page}confirm", form)["Location"] == ann.path(page)
    assert ann.post(f"{page}confirm", form).status_code == 302  # the same press again
    agent = ann.kit.client("agent", users=["ann"])
    read = agent.get(at(fact)).json()
    assert (read["trust"], read["version"]) == ("verified", 2)
    assert ann.email in text_of(ann.get(page))
    late = ann.post(f"{page}confirm", {"expect": "1"})
    assert late.status_code == 409
    assert "can't be done now" in text_of(late)


def test_a_person_has_a_fact_removed_after_being_asked_and_no_agent_reads_it(ann: Person) -> None:
    fact = fact_about(ann.kit)
    page = f"facts/{fact['id']}/"
    assert "there is no undo" in text_of(ann.get(f"{page}remove"))
    agent = ann.kit.client("agent", users=["ann"])
    assert agent.get(at(fact)).status_code == 200
    assert ann.post(f"{page}remove", {"expect": "1"}).status_code == 302
    assert agent.get(at(fact)).status_code == 404
    assert "Not used any more" in text_of(ann.get(page))
    for late in (ann.get(f"{page}remove"), ann.post(f"{page}remove"), ann.post(f"{page}confirm")):
        assert late["Location"] == ann.path(page)
    assert "It was removed already" in text_of(ann.get(page))


def test_what_must_be_kept_is_not_removed_and_the_page_says_until_when(ann: Person) -> None:
    fact = fact_about(ann.kit, retention={"keepUntil": "2030-01-01T00:00:00Z"})
    asked = ann.get(f"facts/{fact['id']}/remove")
    assert ">Remove it</button>" not in asked.content.decode()
    answer = ann.post(f"facts/{fact['id']}/remove", {"expect": "1"})
    assert answer.status_code == 409
    for page in (asked, answer):
        assert "be removed, until 1 Jan 2030" in text_of(page)
    assert listed(ann.get("facts/")) == [fact["id"]]


@pytest.mark.parametrize(
    "more",
    [
        {"scope": {}, "subjects": [{"kind": "user", "id": "ann"}]},
        {"scope": {"userId": "bob"}},
    ],
)
def test_what_is_not_theirs_alone_a_person_neither_confirms_nor_removes(
    ann: Person, more: dict[str, Any]
) -> None:
    fact = fact_about(ann.kit, **more)
    for act in ("confirm", "remove"):
        assert ann.post(f"facts/{fact['id']}/{act}", {"expect": "1"}).status_code == 404
    assert "What you can do" not in text_of(ann.get(f"facts/{fact['id']}/"))


def test_a_page_link_shows_its_persons_facts(ann: Person) -> None:
    fact = fact_about(ann.kit)
    with tenant_context(ann.kit.id):
        link = make_page_link(principal=ann.kit.principal("app", users=["ann"]), subject="ann")
    browser = Client()
    browser.post(link.path)
    assert listed(browser.get(ann.path("facts/"))) == [fact["id"]]


def test_a_difference_is_bounded_whatever_was_stored() -> None:
    long = '["' + '","'.join(f"line {n}" for n in range(LINES_MAX * 3)) + '"]'
    changed = difference(long, long.replace("line 0", "line zero"))
    assert changed.is_cut
    assert [line.text.strip() for line in changed.lines if line.kind == "gone"] == ['"line 0",']
    assert len(changed.lines) < 10
    assert difference(None, '"x"').lines[0].kind == "same"
    assert len(difference(None, '"' + "w" * 5000 + '"').lines[0].text) < 500


@pytest.mark.parametrize("path", ["facts/", "facts/{id}/"])
def test_each_page_asks_the_database_little_and_is_light(ann: Person, path: str) -> None:
    facts = [fact_about(ann.kit, {"text": "x" * 9000, "n": number}) for number in range(31)]
    for number in range(12):
        superseded(ann.kit, facts[0], [f"w{n}" * 20 for n in range(number * 60)])
    with CaptureQueriesContext(connection) as asked:
        answer = ann.get(path.format(id=facts[0]["id"]))
    assert answer.status_code == 200
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12, [one["sql"][:90] for one in statements]
    assert len(answer.content) <= 100_000
