"""Facts that say the same take one place in an answer: copies crowd nothing out and gain no rank."""

from typing import Any

import pytest
from django.db import connection

from memory.actions.reindex_facts import reindex_facts
from memory.embeddings.provider import get_provider
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.search.test_retrieve import SCOPE, app, ids, retrieve, write  # noqa: F401  # a fixture

SEARCHES = ("keyword", "semantic", "both")
SAID = "The customer wants a window seat."


@pytest.mark.parametrize("mode", SEARCHES)
def test_copies_take_one_place_and_say_how_many_they_are(
    app: ApiClient,  # noqa: F811  # the fixture
    mode: str,
) -> None:
    for again in (SAID, SAID.upper(), "customer wants window seat", f"{SAID} {SAID}"):
        newest = write(app, again)
    other = write(app, "The customer wants an aisle seat.")
    found = retrieve(app, mode=mode, query="window seat")
    assert ids(found) == [newest, other]
    assert [result.get("alike") for result in found["results"]] == [3, None]
    assert found["meta"]["collapsed"] == 3
    assert found["meta"]["exhaustive"] is True


@pytest.mark.parametrize("mode", SEARCHES)
def test_an_answer_without_copies_says_nothing_of_them(
    app: ApiClient,  # noqa: F811  # the fixture
    mode: str,
) -> None:
    write(app, SAID)
    found = retrieve(app, mode=mode, query="window seat")
    assert "alike" not in found["results"][0]
    assert "collapsed" not in found["meta"]


@pytest.mark.parametrize("mode", SEARCHES)
def test_limit_is_met_with_different_statements_however_many_copies_there_are(
    acme: TenantKit,
    mode: str,
) -> None:
    get_provider().embed(["once it is loaded, vectors come with the write"])
    app = acme.client("app", projects=["p1"])  # noqa: F811
    others = [write(app, f"The customer wants seat {n} by the window") for n in range(4)]
    for _ in range(130):
        copy = write(app, SAID)
    found = retrieve(app, mode=mode, query=SAID, limit=5)
    assert ids(found)[0] == copy
    assert sorted(ids(found)[1:]) == sorted(others)
    assert found["results"][0]["alike"] == 129
    assert len(ids(retrieve(app, mode=mode, query=SAID, limit=4))) == 4


@pytest.mark.parametrize("mode", SEARCHES)
def test_what_a_person_checked_speaks_before_later_copies(
    acme: TenantKit,
    app: ApiClient,  # noqa: F811  # the fixture
    mode: str,
) -> None:
    agent = acme.client("agent", projects=["p1"])
    checked = write(agent, SAID)
    assert app.post(f"/v1/memory/facts/{checked}/verify").status_code == 200
    write(app, SAID)
    for _ in range(40):
        write(agent, SAID.lower())
    (found,) = retrieve(app, mode=mode, query="window seat")["results"]
    assert (found["fact"]["id"], found["fact"]["trust"], found["alike"]) == (
        checked,
        "verified",
        41,
    )


@pytest.mark.parametrize("mode", SEARCHES)
def test_repeating_a_statement_moves_no_other_behind_it(
    app: ApiClient,  # noqa: F811  # the fixture
    mode: str,
) -> None:
    write(app, "The customer wants a window seat in row 12")
    write(app, "A window seat is wanted, row 12 or 13")
    repeated = write(app, "The customer likes row 12")
    before = ids(retrieve(app, mode=mode, query="window seat in row 12"))
    for _ in range(30):
        copy = write(app, "The customer likes row 12")
    after = ids(retrieve(app, mode=mode, query="window seat in row 12"))
    assert len(after) == len(before) == 3
    assert set(after) == {*before, copy} - {repeated}
    assert after.index(copy) >= before.index(repeated)


def test_the_same_words_about_somebody_else_are_answered_too(
    app: ApiClient,  # noqa: F811  # the fixture
) -> None:
    ann = write(app, SAID, subjects=[{"kind": "external", "id": "ann"}])
    bob = write(app, SAID, subjects=[{"kind": "external", "id": "bob"}])
    elsewhere = write(app, SAID, scope={"projectId": "p2"})
    seat = write(app, SAID, type="seat")
    for mode in SEARCHES:
        found = retrieve(app, mode=mode, query="window seat")
        assert set(ids(found)) == {ann, bob, elsewhere, seat}
        assert "collapsed" not in found["meta"]


def test_copies_that_the_caller_may_not_see_are_neither_counted_nor_answered(
    acme: TenantKit,
    app: ApiClient,  # noqa: F811  # the fixture
) -> None:
    scope = {"projectId": "p1", "sessionId": "s1"}
    mine = write(app, SAID, scope=scope)
    write(app, SAID, scope={"projectId": "p1", "sessionId": "s2"})
    for mode in SEARCHES:
        found = retrieve(app, mode=mode, query="window seat", scope={"sessionId": "s1"})
        assert ids(found) == [mine]
        assert "alike" not in found["results"][0]


def test_a_list_leaves_no_copy_out(app: ApiClient) -> None:  # noqa: F811  # the fixture
    written = [write(app, SAID) for _ in range(3)]
    assert ids(retrieve(app, mode="list")) == written[::-1]


def test_a_copy_that_changes_or_goes_is_one_no_more(app: ApiClient) -> None:  # noqa: F811
    first, second, third = (write(app, SAID) for _ in range(3))
    app.post(f"/v1/memory/facts/{third}/supersede", {"content": "The customer wants a drink."})
    app.delete(f"/v1/memory/facts/{second}")
    found = retrieve(app, mode="keyword", query="customer wants window drink")
    assert set(ids(found)) == {first, third}
    assert "collapsed" not in found["meta"]


def test_a_search_of_one_model_is_answered_with_facts_of_that_model(
    app: ApiClient,  # noqa: F811  # the fixture
    acme: TenantKit,
) -> None:
    model = get_provider().model
    here = write(app, SAID)
    away = write(app, SAID)
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE fact_embedding SET model = 'another' WHERE tenant_id = %s::uuid AND fact_id = %s",
            [acme.id, away],
        )
    found = retrieve(app, mode="semantic", query="window seat", embeddingModel=model)
    assert ids(found) == [here]


def wordings(kit: TenantKit) -> list[Any]:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT wording FROM fact WHERE tenant_id = %s::uuid ORDER BY id", [kit.id])
        return [row[0] for row in cursor.fetchall()]


def test_a_reindex_gives_facts_the_wording_that_a_write_gives(
    acme: TenantKit,
    app: ApiClient,  # noqa: F811  # the fixture
) -> None:
    write(app, SAID, validFrom="2026-01-01T00:00:00Z")
    write(app, {"seat": "window"}, subjects=[{"kind": "external", "id": "ann"}])
    source = {
        "kind": "http-api",
        "uri": "https://crm.example.com/ann",
        "freshness": {"ttlSeconds": 60},
        "refresh": {"strategy": "manual"},
    }
    write(app, SAID, source=source)
    written = wordings(acme)
    assert len(set(written)) == 3
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("UPDATE fact SET wording = NULL WHERE tenant_id = %s::uuid", [acme.id])
    assert len(ids(retrieve(app, mode="keyword", query="window seat"))) == 3
    reindex_facts(tenant_id=acme.id, language="english")
    assert wordings(acme) == written
    fact = write(app, SAID)
    app.delete(f"/v1/memory/facts/{fact}")
    assert None in wordings(acme)
