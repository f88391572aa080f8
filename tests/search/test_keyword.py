"""Keyword search finds what is there, ranks it by the reference rule, and knows nothing of what the caller may not see."""

from memory.search.keyword import search_by_keyword
from memory.search.visible import Filters
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.search.facts import add_facts


def found(kit: TenantKit, question: str, *, limit: int = 10, **grants: object) -> list[str]:
    principal = kit.principal("agent", **(grants or {"everything": True}))
    with tenant_context(kit.id):
        answer = search_by_keyword(principal, question=question, filters=Filters(), limit=limit)
    return [hit.fact_id for hit in answer.hits]


def test_any_word_of_the_question_finds_a_fact(acme: TenantKit) -> None:
    add_facts(acme.id, {"seat": "The customer prefers a window seat", "bag": "Two checked bags"})
    assert found(acme, "Which seat does he like?") == ["seat"]
