"""What is the same statement, and what is not: a search must not hide what differs."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search.wording import said_once, wording, words_digest


def said(text: str) -> bytes | None:
    return words_digest(text, "english")


@pytest.mark.parametrize(
    "again",
    [
        "the customer wants a window seat",
        "THE CUSTOMER WANTS A WINDOW SEAT!!",
        "  The customer\n\twants  a window   seat. ",
        "Customer wants window seat",
        "“The customer” wants a (window) seat;",
        "The cust\u200bomer wants\u00a0a win\u00addow seat.\ufeff",
        "Ｔｈｅ customer wants a window seat",
        "The customer customer wants a window window window seat.",
        "The customer wants a window seat. The customer wants a window seat. The customer wants a window seat.",
    ],
)
def test_case_spacing_punctuation_articles_and_repetition_make_no_other_statement(
    again: str,
) -> None:
    assert said(again) == said("The customer wants a window seat.")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("She works at Acme", "She worked at Acme"),
        ("moved from Paris to London", "moved from London to Paris"),
        ("moved to Paris from London", "moved from Paris to London"),
        ("wants a window seat", "does not want a window seat"),
        ("The balance is 5", "The balance is -5"),
        ("The balance is 5", "The balance is (5)"),
        ("The rate is 5", "The rate is .5"),
        ("costs $5", "costs €5"),
        ("costs 5", "costs 5%"),
        ("10² metres", "102 metres"),
        ("x < y", "x > y"),
        ("code aB3", "code Ab3"),
        ("is on plan A", "is on plan"),
        ("the pin is 5 5 5", "the pin is 5"),
        ("wants a seat", "wants a seat?"),
        ("schon", "schön"),
    ],
)
def test_what_tells_two_statements_apart_stays(one: str, other: str) -> None:
    assert said(one) != said(other)


def test_a_text_without_words_says_nothing() -> None:
    assert said("") is said(" \n") is said("...") is said("\u200b") is None
    assert said("the") is not None


def test_articles_are_left_out_in_english_alone() -> None:
    assert words_digest("an die Tür", "german") != words_digest("die Tür", "german")


ABOUT: dict[str, Any] = {
    "type": "note",
    "scope": {"projectId": "p1", "participantId": "ann", "sessionId": "s1"},
    "subjects": [("participant", "ann"), ("external", "e1")],
    "times": (datetime(2026, 1, 1, tzinfo=UTC), None),
    "sources": (None, None),
}


@pytest.mark.parametrize(
    "change",
    [
        {"type": "seat"},
        {"scope": {"projectId": "p1", "participantId": "bob"}},
        {"scope": {"projectId": "p2", "participantId": "ann"}},
        {"scope": {"projectId": "p1", "participantId": "ann", "threadId": "t1"}},
        {"subjects": [("participant", "bob"), ("external", "e1")]},
        {"subjects": []},
        {"times": (datetime(2027, 1, 1, tzinfo=UTC), None)},
        {"times": (None, datetime(2026, 1, 1, tzinfo=UTC))},
        {"sources": ("https://crm.example.com/ann", None)},
        {"sources": (None, "blob://s3/b/k")},
    ],
)
def test_the_same_words_about_something_else_are_another_statement(change: dict[str, Any]) -> None:
    words = said("wants a window seat")
    assert wording(words, **ABOUT) != wording(words, **{**ABOUT, **change})


def test_another_session_and_another_order_of_subjects_are_the_same_statement() -> None:
    words = said("wants a window seat")
    again = {
        "scope": {"participantId": "ann", "projectId": "p1", "sessionId": "s2"},
        "subjects": [("external", "e1"), ("participant", "ann")],
    }
    assert wording(words, **ABOUT) == wording(words, **{**ABOUT, **again})
    assert wording(None, **ABOUT) is None


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=12), st.integers(1, 4))
def test_words_said_several_times_over_are_said_once(words: list[str], times: int) -> None:
    once = said_once(words)
    assert said_once(words * times) == said_once(once * times)
    assert said_once(once) == once


@given(st.text(), st.sampled_from(["simple", "english"]))
def test_any_text_has_a_wording_or_none(text: str, language: str) -> None:
    digest = words_digest(text, language)
    assert digest is None or len(digest) == 16
