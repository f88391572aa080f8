"""Keyword search finds what is there, ranks it by the reference rule, and knows nothing of what the caller may not see."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.access import may_read
from memory.search.analysis import analyse, analyse_query
from memory.search.bm25 import Bm25
from memory.search.found import Found
from memory.search.index import remove_index
from memory.search.keyword import search_by_keyword
from memory.search.visible import Filters
from memory.tenancy import tenant_context
from memory.type_policy import TypePolicy
from tests.builders import TenantKit, make_tenant
from tests.search.facts import add_fact, add_facts, change_fact, count_rows


def search(
    kit: TenantKit,
    question: str,
    *,
    limit: int = 10,
    filters: Filters | None = None,
    **grants: object,
) -> Found:
    principal = kit.principal("agent", **(grants or {"everything": True}))
    with tenant_context(kit.id):
        return search_by_keyword(
            principal, question=question, filters=filters or Filters(), limit=limit
        )


def found(kit: TenantKit, question: str, **more: object) -> list[str]:
    return [hit.fact_id for hit in search(kit, question, **more).hits]  # type: ignore[arg-type]


def test_any_word_of_the_question_finds_a_fact(acme: TenantKit) -> None:
    add_facts(acme.id, {"seat": "The customer prefers a window seat", "bag": "Two checked bags"})
    assert found(acme, "Which seat does he like?") == ["seat"]


def test_a_plain_question_finds_the_fact_that_shares_its_rare_words(acme: TenantKit) -> None:
    add_facts(acme.id, [f"The customer asked about a booking, call {n}" for n in range(40)])
    add_fact(acme.id, "rare", "The customer is allergic to peanuts and booked HAT170")
    assert found(acme, "Is there anything the customer is allergic to?")[0] == "rare"
    assert found(acme, "what do we know of flight hat170 for this customer")[0] == "rare"


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("今日は成語しりとりをした", "しりとり"),
        ("今日は成語しりとりをした", "成語"),
        ("客户要求靠窗座位", "座位"),
        ("서울에서 회의가 있다", "회의"),
        ("Gate B7 at LIS", "b7"),
        ("He lives in LA", "LA"),
        ("Size XL, colour No 5", "xl"),
        ("mia_li_3668 paid by card", "mia_li_3668"),
        ("due 2024-05-20", "2024-05-20"),
        ("write to ana@example.com", "ana@example.com"),
        ("Café Müller", "cafe muller"),
        ("a 🛫 emoji", "🛫"),
        ("مرحبا بالعالم", "مرحبا"),
    ],
)
def test_short_words_and_every_script_are_found(
    acme: TenantKit, content: str, question: str
) -> None:
    add_facts(acme.id, {"it": content, "other": "something else altogether"})
    assert found(acme, question) == ["it"]


def test_keys_and_values_of_a_structured_fact_are_found(acme: TenantKit) -> None:
    add_facts(acme.id, {"it": {"seat": {"side": "window"}, "tags": ["vegan", 12]}, "other": {}})
    for question in ("seat", "side", "window", "vegan", "12"):
        assert found(acme, question) == ["it"]


def test_percent_and_underscore_are_no_wildcards(acme: TenantKit) -> None:
    add_facts(acme.id, {"one": "a_b", "two": "axb", "three": "100%"})
    assert found(acme, "a_b") == ["one"]
    assert found(acme, "%") == []


def test_equal_scores_come_newest_first_and_limit_is_exact(acme: TenantKit) -> None:
    add_facts(acme.id, ["window seat"] * 30)
    assert found(acme, "seat", limit=30) == [f"f{n}" for n in reversed(range(30))]
    assert found(acme, "seat", limit=7) == [f"f{n}" for n in reversed(range(23, 30))]


def test_a_fact_that_repeats_words_does_not_outrank_without_end(acme: TenantKit) -> None:
    add_facts(acme.id, {"spam": "seat " * 5000, "good": "a window seat for Ana"})
    spam, good = sorted(search(acme, "Ana seat window").hits, key=lambda hit: hit.score)
    assert (spam.fact_id, good.fact_id) == ("spam", "good")


def test_nothing_is_found_of_facts_past_their_time_in_review_or_taken_out(acme: TenantKit) -> None:
    past, future = datetime.now(UTC) - timedelta(seconds=1), datetime.now(UTC) + timedelta(hours=1)
    add_fact(acme.id, "past", "seat", expires_at=past)
    add_fact(acme.id, "pending", "seat", review="pending")
    add_fact(acme.id, "future", "seat", expires_at=future)
    add_fact(acme.id, "out", "seat")
    with tenant_context(acme.id):
        remove_index(tenant_id=acme.id, fact_ids=["out"])
    answer = search(acme, "seat")
    assert [hit.fact_id for hit in answer.hits] == ["future"]
    assert answer.candidates == 1


def test_a_fact_is_found_from_the_moment_it_leaves_review_and_not_past_its_new_time(
    acme: TenantKit,
) -> None:
    add_fact(acme.id, "it", "seat", review="pending")
    change_fact(acme.id, "it", review=None)
    assert found(acme, "seat") == ["it"]
    change_fact(acme.id, "it", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert found(acme, "seat") == []
    change_fact(acme.id, "it", expires_at=None)
    assert found(acme, "seat") == ["it"]


def test_a_fact_that_is_marked_deleted_leaves_nothing_in_the_index(acme: TenantKit) -> None:
    add_fact(acme.id, "it", "a window seat")
    assert count_rows(acme.id, "posting") == 3
    change_fact(acme.id, "it", deleted_at=datetime.now(UTC))
    for table in ("posting", "fact_document", "fact_embedding", "embedding_task"):
        assert count_rows(acme.id, table) == 0


def test_a_type_that_is_not_searched_by_keyword_is_not_found(acme: TenantKit) -> None:
    add_fact(acme.id, "it", "seat", policy=TypePolicy("note", keyword=False, semantic=False))
    assert found(acme, "seat") == []


def test_type_and_partial_scope_filter_by_equality(acme: TenantKit) -> None:
    add_fact(acme.id, "a", "seat", scope={"projectId": "p1"}, type="x")
    add_fact(acme.id, "b", "seat", scope={"projectId": "p10"}, type="x")
    add_fact(acme.id, "c", "seat", scope={"projectId": "p1", "threadId": "t"}, type="y")
    assert found(acme, "seat", filters=Filters(scope={"projectId": "p1"})) == ["c", "a"]
    assert found(acme, "seat", filters=Filters(type="x", scope={"projectId": "p1"})) == ["a"]
    assert found(acme, "seat", filters=Filters(scope={"threadId": "t", "projectId": "p1"})) == ["c"]
    assert found(acme, "seat", filters=Filters(scope={"projectId": "p"})) == []


def test_facts_that_the_caller_may_not_see_neither_appear_nor_move_a_score(acme: TenantKit) -> None:
    mine = {"a": "window seat and a vegan meal", "b": "aisle seat", "c": "a meal"}
    add_facts(acme.id, mine, scope={"projectId": "mine"})
    question = "vegan meal with window seat"
    alone = search(acme, question, projects=["mine"])
    # Each hidden fact would change how common `vegan` is, how many facts there are, and their mean length.
    add_facts(
        acme.id,
        {f"hidden{n}": "vegan " * (n + 1) for n in range(20)},
        scope={"projectId": "other"},
    )
    globex = make_tenant("globex")
    add_facts(globex.id, ["vegan window"] * 20, scope={"projectId": "mine"})
    assert search(acme, question, projects=["mine"]) == alone
    assert len(search(acme, question, limit=30).hits) == 23


def test_no_word_of_a_fact_stays_when_it_says_something_else(acme: TenantKit) -> None:
    add_fact(acme.id, "it", "a secret word, said twice: secret")
    change_fact(acme.id, "it", content="nothing")
    assert found(acme, "secret") == []
    assert count_rows(acme.id, "posting") == 1
    assert found(acme, "nothing") == ["it"]


words = st.sampled_from(
    ["seat", "meal", "window", "aisle", "vegan", "peanut", "the", "of", "成語", "b7", "HAT170"]
)
contents = st.lists(words, max_size=12).map(" ".join)
scopes = st.sampled_from(
    [
        {},
        {"projectId": "p1"},
        {"projectId": "p2"},
        {"orgId": "o1"},
        {"userId": "u1"},
        {"projectId": "p1", "participantId": "x"},
        {"projectId": "p1", "threadId": "t1"},
    ]
)
grants = st.fixed_dictionaries(
    {},
    optional={
        "projects": st.sampled_from([["p1"], ["p1", "p2"]]),
        "orgs": st.just(["o1"]),
        "users": st.just(["u1"]),
        "on_behalf_of": st.just(["p1"]),
    },
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    facts=st.lists(st.tuples(contents, scopes), max_size=14),
    question=st.lists(words, min_size=1, max_size=5).map(" ".join),
    granted=grants,
    limit=st.integers(1, 15),
)
def test_the_answer_is_that_of_the_reference_over_what_the_caller_may_see(
    db: None,
    facts: list[tuple[str, dict[str, str]]],
    question: str,
    granted: dict[str, list[str]],
    limit: int,
) -> None:
    kit = make_tenant()
    principal = kit.principal("agent", **granted)
    for number, (content, scope) in enumerate(facts):
        add_fact(kit.id, f"f{number:02}", content, scope=scope, minute=number)
    seen = {
        f"f{number:02}": analyse(content, "english")
        for number, (content, scope) in enumerate(facts)
        if may_read(principal, scope)
    }
    scores = Bm25(seen).scores(analyse_query(question, "english"))
    with tenant_context(kit.id):
        answer = search_by_keyword(principal, question=question, filters=Filters(), limit=limit)
    assert answer.candidates == len(seen)
    got = {hit.fact_id: hit.score for hit in answer.hits}
    assert len(got) == min(limit, len(scores))
    assert got == pytest.approx({fact_id: scores[fact_id] for fact_id in got}, abs=1e-5)
    assert list(got.values()) == sorted(got.values(), reverse=True)
    left_out = [score for fact_id, score in scores.items() if fact_id not in got]
    assert not left_out or max(left_out) <= min(got.values()) + 1e-5
