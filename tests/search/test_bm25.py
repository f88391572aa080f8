"""The reference ranking against numbers worked out by hand and against a library."""

import gzip
import json
import math
from pathlib import Path

import bm25s
import pytest

from memory.search.analysis import analyse, analyse_query
from memory.search.bm25 import Bm25, inverse_document_frequency
from tests.search.question_rule import Document, documents, questions

RECORDED_RUNS = Path(__file__).parents[3] / "shared" / "data" / "airline-agent-runs.json.gz"
SEED = 20240520
COUNT = 600


@pytest.fixture(scope="module")
def runs():
    """The recorded runs where they are at hand, else runs in the same shape made here."""
    if RECORDED_RUNS.exists():
        with gzip.open(RECORDED_RUNS) as file:
            return json.load(file)
    cities = ["Austin", "Boston", "Chicago", "Denver", "Houston", "Miami", "Seattle", "Phoenix"]
    return [
        {
            "traj": [
                {
                    "role": "user",
                    "content": f"Customer c{run}x{turn} wants to fly from {cities[run % 8]} "
                    f"to {cities[turn % 8]} with bag b{run * 7 + turn}k please",
                }
                for turn in range(8)
            ]
        }
        for run in range(60)
    ]


def _recall(asked, answers):
    hits = sum(question.answer in found for question, found in zip(asked, answers, strict=True))
    return hits / len(asked)


def test_the_score_is_the_one_worked_out_by_hand():
    index = Bm25(
        {
            "a": analyse("bag bag seat", "simple"),
            "b": analyse("seat", "simple"),
            "c": analyse("flight to rome today now", "simple"),
        }
    )
    # N = 3, df = 1, tf = 2, length = 3, mean length = (3 + 1 + 5) / 3 = 3
    expected = math.log(1 + 2.5 / 1.5) * 2 * 2.2 / (2 + 1.2)
    assert index.scores(["bag"]) == {"a": pytest.approx(expected)}


def test_every_weight_is_positive_also_of_a_word_in_every_text():
    assert inverse_document_frequency(10, 10) > 0
    assert inverse_document_frequency(10, 1) > inverse_document_frequency(10, 9)


def test_a_rare_word_outranks_common_ones():
    texts = {str(n): f"the customer booked a flight {n} times" for n in range(50)}
    texts["rare"] = "a walrus"
    index = Bm25({name: analyse(text, "english") for name, text in texts.items()})
    question = analyse_query("did the customer book a flight or a walrus", "english")
    assert index.best(question, 1)[0][0] == "rare"


def test_a_lexeme_that_is_asked_twice_counts_once():
    index = Bm25({"a": analyse("bag", "simple"), "b": analyse("seat", "simple")})
    assert index.scores(["bag", "bag"]) == index.scores(["bag"])


def test_no_texts_and_no_question_have_no_best():
    assert Bm25({}).best(["bag"], 10) == []
    assert Bm25({"a": analyse("bag", "simple")}).best([], 10) == []


def test_equal_scores_are_ordered_by_name():
    index = Bm25({name: analyse("bag", "simple") for name in "cab"})
    assert [name for name, _ in index.best(["bag"], 2)] == ["a", "b"]


def test_the_rule_makes_the_same_questions_again_and_they_have_answers(runs):
    asked = questions(runs, SEED, COUNT)
    assert asked == questions(runs, SEED, COUNT)
    assert asked != questions(runs, SEED + 1, COUNT)
    assert len(asked) == COUNT
    assert {question.answer for question in asked} <= {
        document.name for document in documents(runs)
    }


def test_a_document_is_a_message_said_once():
    message = {"role": "user", "content": "five words are enough here"}
    short = {"role": "user", "content": "too short"}
    system = {"role": "system", "content": "the system prompt is left out"}
    silent = {"role": "assistant", "content": None}
    found = documents([{"traj": [system, short, message]}, {"traj": [silent, message]}])
    assert found == [Document("0/2", "five words are enough here")]


def test_recall_is_that_of_a_library_with_the_same_tokeniser(runs):
    known = documents(runs)
    asked = questions(runs, SEED, COUNT)
    analyses = {document.name: analyse(document.text, "english") for document in known}
    cut = [analyse_query(question.text, "english") for question in asked]

    index = Bm25(analyses)
    ours = [[name for name, _ in index.best(question, 10)] for question in cut]

    library = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    names = list(analyses)
    library.index(
        [
            [lexeme for lexeme, count in analysis.frequencies.items() for _ in range(count)]
            for analysis in analyses.values()
        ],
        show_progress=False,
    )
    theirs = []
    for question in cut:
        scores = library.get_scores([lexeme for lexeme in question if lexeme in library.vocab_dict])
        best = sorted(range(len(names)), key=lambda place: (-scores[place], names[place]))[:10]
        theirs.append([names[place] for place in best])

    assert _recall(asked, ours) >= 0.9
    assert _recall(asked, ours) == pytest.approx(_recall(asked, theirs), abs=0.005)
