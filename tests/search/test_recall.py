"""Plain questions find the text they were made from as often as with a library of BM25 on the same lexemes."""

from typing import Any

import bm25s
import pytest
from django.db import connection

from memory.search.analysis import analyse, analyse_query
from memory.search.index import prepare, write_index
from memory.search.keyword import search_by_keyword
from memory.search.visible import Filters
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.search.facts import FIRST, KEYWORD_ONLY
from tests.search.question_rule import Document, documents, questions
from tests.search.test_bm25 import SEED, runs  # noqa: F401  # a fixture

QUESTIONS = 500


def write_documents(kit: TenantKit, known: list[Document]) -> None:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at)"
            " SELECT %s::uuid, u.name, 'message', '{}', 1, %s::timestamptz FROM unnest(%s::text[]) AS u (name)",
            [kit.id, FIRST, [document.name for document in known]],
        )
        for document in known:
            plan = prepare(policy=KEYWORD_ONLY, language="english", content=document.text)
            write_index(tenant_id=kit.id, fact_id=document.name, plan=plan)


def library_scores(known: list[Document]) -> Any:
    library = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    library.index(
        [
            [
                lexeme
                for lexeme, count in analyse(document.text, "english").frequencies.items()
                for _ in range(count)
            ]
            for document in known
        ],
        show_progress=False,
    )
    return library


def test_recall_in_the_product_is_that_of_a_library(
    acme: TenantKit,
    runs: list[dict[str, Any]],  # noqa: F811  # the fixture
) -> None:
    known = documents(runs)
    asked = questions(runs, SEED, QUESTIONS)
    write_documents(acme, known)
    library = library_scores(known)
    principal = acme.principal("agent", everything=True)
    ours = theirs = 0
    for question in asked:
        with tenant_context(acme.id):
            found = search_by_keyword(
                principal, question=question.text, filters=Filters(), limit=10
            )
        assert found.exhaustive
        assert found.candidates == len(known)
        ours += question.answer in {hit.fact_id for hit in found.hits}
        lexemes = analyse_query(question.text, "english")
        scores = library.get_scores([one for one in lexemes if one in library.vocab_dict])
        # The library leaves out the constant factor k1 + 1.
        best = sorted(scores * 2.2, reverse=True)[:10]
        assert [hit.score for hit in found.hits] == pytest.approx(
            [score for score in best if score > 0], rel=1e-3
        )
        order = sorted(range(len(known)), key=lambda place: -scores[place])[:10]
        theirs += question.answer in {known[place].name for place in order}
    assert ours / QUESTIONS >= 0.9
    assert abs(ours - theirs) / QUESTIONS <= 0.02
