"""What is found does not depend on how much there is: beside a huge tenant, in one, and whichever way a search chooses."""

import math
import random
from uuid import UUID

import numpy
import pytest
from django.db import connection, connections

from memory.search import keyword, keyword_large
from memory.search.bm25 import K1, B
from memory.search.found import Hit
from memory.search.keyword import search_by_keyword
from memory.search.semantic import search_by_meaning
from memory.search.visible import Filters
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.search.bulk import DIMS, MODEL, load_facts
from tests.search.facts import add_facts

LARGE = 100_000


def analyse_tables() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE fact, fact_document, posting, fact_embedding")


def cosines(tenant_id: UUID, vector: list[float], condition: str = "TRUE") -> dict[str, float]:
    """The cosine of every fact, best first, by reading all vectors of the tenant and comparing outside the database."""
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT fact_id, embedding::real[] FROM fact_embedding WHERE tenant_id = %s::uuid AND {condition}",
            [tenant_id],
        )
        rows = cursor.fetchall()
    # The question's vector is rounded to halves like all others.
    question = numpy.array(vector, numpy.float16).astype(numpy.float64)
    matrix = numpy.array([row[1] for row in rows], numpy.float64)
    lengths = numpy.linalg.norm(matrix, axis=1) * numpy.linalg.norm(question)
    scores = dict(
        zip([row[0] for row in rows], (matrix @ question / lengths).tolist(), strict=True)
    )
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))


def assert_nearest(hits: list[Hit], wanted: dict[str, float], limit: int) -> None:
    """The hits are the `limit` best of `wanted`, but for rounding in the last place."""
    scores = [hit.score for hit in hits]
    assert scores == pytest.approx(list(wanted.values())[:limit], abs=1e-5)
    assert scores == pytest.approx([wanted[hit.fact_id] for hit in hits], abs=1e-5)
    assert len({hit.fact_id for hit in hits}) == len(hits)


@pytest.mark.parametrize(
    "neighbours", [3_000, pytest.param(LARGE, marks=pytest.mark.full)], ids=str
)
@pytest.mark.parametrize("analysed", [False, True], ids=["unanalysed", "analysed"])
def test_a_small_tenant_beside_a_large_one_finds_all_that_is_its_own(
    live_db: None, neighbours: int, analysed: bool
) -> None:
    small, large = make_tenant(), make_tenant()
    load_facts(large.id, neighbours)
    load_facts(small.id, 30, projects=3)
    if analysed:
        analyse_tables()
    for grants, own in (({"everything": True}, range(30)), ({"projects": ["p1"]}, range(1, 30, 3))):
        principal = small.principal("agent", **grants)
        wanted = {f"g{n}" for n in own}
        chance = random.Random(7)
        for _ in range(5):
            vector = [chance.uniform(-1, 1) for _ in range(DIMS)]
            with tenant_context(small.id):
                by_word = search_by_keyword(principal, question="all", filters=Filters(), limit=200)
                by_meaning = search_by_meaning(
                    principal, vectors={MODEL: vector}, filters=Filters(), limit=10
                )
            assert {hit.fact_id for hit in by_word.hits} == wanted
            assert by_word.exhaustive
            assert by_meaning.exhaustive
            assert (by_word.candidates, by_meaning.candidates) == (len(own), len(own))
            condition = "TRUE" if len(own) == 30 else "project_id = 'p1'"
            assert_nearest(by_meaning.hits, cosines(small.id, vector, condition), 10)


def best(
    kit: TenantKit, question: str, *, limit: int = 10, filters: Filters | None = None
) -> list[Hit]:
    principal = kit.principal("agent", everything=True)
    with tenant_context(kit.id):
        return search_by_keyword(
            principal, question=question, filters=filters or Filters(), limit=limit
        ).hits


@pytest.fixture
def every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds so low that a thousand facts are very many."""
    monkeypatch.setattr(keyword, "SAMPLE", 150)
    monkeypatch.setattr(keyword, "EXACT_TO", 300)
    monkeypatch.setattr(keyword, "_SURELY_LARGE", 500)
    monkeypatch.setattr(keyword_large, "_RARE", 50)
    monkeypatch.setattr(keyword_large, "_TELLING_POSTINGS", 100)


def test_among_very_many_facts_the_best_are_those_of_reading_every_word(
    db: None, every_way: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = make_tenant()
    chance = random.Random(3)
    vocabulary = [f"w{n}" for n in range(60)]
    weights = [1 / (n + 1) for n in range(60)]
    texts = [
        " ".join(chance.choices(vocabulary, weights, k=chance.randint(3, 12))) for _ in range(900)
    ]
    add_facts(kit.id, texts, scope={"projectId": "p1"})
    principal = kit.principal("agent", projects=["p1"])

    def search(question: str, limit: int) -> list[Hit]:
        with tenant_context(kit.id):
            found = search_by_keyword(principal, question=question, filters=Filters(), limit=limit)
        assert found.sampled == 150
        assert found.candidates == pytest.approx(900, rel=0.35)
        return found.hits

    for _ in range(25):
        question = " ".join(chance.choices(vocabulary, k=chance.randint(1, 6)))
        limit = chance.choice([1, 5, 10, 200])
        with monkeypatch.context() as patch:
            patch.setattr(keyword_large, "_TELLING_POSTINGS", 10**9)
            everything_read = search(question, limit)
        assert search(question, limit) == everything_read
        words = set(question.split())
        holding = [text for text in texts if words & set(text.split())]
        assert len(everything_read) == min(limit, len(holding))


def test_between_few_and_very_many_the_statistics_are_exact(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = make_tenant()
    add_facts(kit.id, [f"seat {'window ' * (n % 4)} only{n}" for n in range(60)])
    few = best(kit, "window only7 seat", limit=60)
    monkeypatch.setattr(keyword, "SAMPLE", 10)
    assert best(kit, "window only7 seat", limit=60) == few


def test_limit_is_exact_and_in_order_whichever_way(db: None, every_way: None) -> None:
    kit = make_tenant()
    load_facts(kit.id, 1_000, vectors=False)
    assert [hit.fact_id for hit in best(kit, "only17")] == ["g17"]
    assert len(best(kit, "all", limit=200)) == 200
    in_project = best(kit, "all only3 only4", limit=200, filters=Filters(scope={"projectId": "p3"}))
    assert len(in_project) == 100
    assert in_project[0].fact_id == "g3"
    top = best(kit, "mod7x3 all only10 only11", limit=5)
    assert {top[0].fact_id, top[1].fact_id} == {"g10", "g11"}
    scores = [hit.score for hit in top]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.full
def test_how_many_facts_hold_a_word_is_exact_to_twenty_thousand_and_a_said_sample_above(
    live_db: None,
) -> None:
    kit = make_tenant()
    load_facts(kit.id, keyword.EXACT_TO, vectors=False)
    principal = kit.principal("agent", everything=True)

    def search(question: str) -> tuple[dict[str, float], int, int | None]:
        with tenant_context(kit.id):
            found = search_by_keyword(principal, question=question, filters=Filters(), limit=200)
        return {hit.fact_id: hit.score for hit in found.hits}, found.candidates, found.sampled

    scores, candidates, sampled = search("mod100x7")
    assert (candidates, sampled) == (20_000, None)
    # Worked out from all 20,000 rows: 200 hold the word once, lengths are 5 to 15 in turn.
    lengths = [5 + n % 11 for n in range(20_000)]
    mean = sum(lengths) / 20_000
    idf = math.log(1 + (20_000 - 200 + 0.5) / (200 + 0.5))
    wanted = {
        f"g{n}": idf * (K1 + 1) / (1 + K1 * (1 - B + B * lengths[n] / mean))
        for n in range(7, 20_000, 100)
    }
    assert scores == pytest.approx(wanted, abs=1e-5)
    analyse_tables()  # the keys are then looked up by index again
    load_facts(kit.id, 12_000, prefix="h", vectors=False)
    _, candidates, sampled = search("mod100x7")
    assert sampled == keyword.SAMPLE
    assert candidates == pytest.approx(32_000, rel=0.1)
