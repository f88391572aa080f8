"""The text of a JSON value: deterministic, complete, bounded."""

import json

from hypothesis import given
from hypothesis import strategies as st

from memory.embeddings.text import text_of

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def _keys_turned(value):
    if isinstance(value, dict):
        return {key: _keys_turned(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return [_keys_turned(element) for element in value]
    return value


def _words_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _words_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words_of(inner)
    elif isinstance(value, str):
        yield value


def test_a_string_is_its_own_text():
    assert text_of("Mia prefers the aisle.") == "Mia prefers the aisle."


def test_keys_numbers_and_booleans_are_part_of_the_text():
    content = {
        "seat": "window",
        "bags": 2,
        "paid": True,
        "price": 121.5,
        "note": None,
        "legs": [{"origin": "JFK"}, {"origin": "SEA"}],
    }
    assert text_of(content) == (
        "bags: 2\nlegs:\norigin: JFK\norigin: SEA\nnote:\npaid: true\nprice: 121.5\nseat: window"
    )


def test_nothing_has_an_empty_text():
    assert [text_of(value) for value in (None, "", {}, [], [None, [[]]])] == [""] * 5


def test_a_whole_number_reads_the_same_in_both_spellings():
    assert text_of({"n": json.loads("1.0")}) == text_of({"n": json.loads("1")}) == "n: 1"


def test_the_text_is_cut_at_the_limit_however_large_the_value():
    assert len(text_of(["word"] * 1_000_000, limit_chars=98)) == 98
    assert text_of("x" * 1_000_000, limit_chars=10) == "x" * 10


def test_ten_thousand_levels_deep_is_no_recursion():
    value = "ground"
    for _ in range(10_000):
        value = [value]
    assert text_of(value) == "ground"


@given(JSON_VALUES)
def test_key_order_does_not_change_the_text(value):
    assert text_of(_keys_turned(value)) == text_of(value)


@given(JSON_VALUES)
def test_every_key_and_string_is_in_the_text(value):
    text = text_of(value, limit_chars=10**6)
    assert all(word.strip() in text for word in _words_of(value))
