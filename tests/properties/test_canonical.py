"""Our canonical text equals the `rfc8785` package byte for byte, on whatever hypothesis thinks of."""

import json
import math
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.admission import MAX_INTEGER, BadInput, admit
from memory.canonical import NotCanonical, canonical, canonical_bytes, canonical_string

# U+E000 and up, and beyond the BMP: where UTF-16 order and code-point order part.
sorting_matters = st.sampled_from("aé\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff")
clean_text = st.text() | st.text(sorting_matters, max_size=4)
any_text = clean_text | st.text(st.characters(categories=["Cs", "Cc", "Ll"]), max_size=4)
in_range = st.integers(-MAX_INTEGER, MAX_INTEGER)
finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [1e21, 1e-6, 1e-7, 123e-20, 1e15, 1e16, 4.5, 2.0, -0.0, 5e-324, 1.7976931348623157e308]
)


def trees(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda below: st.lists(below, max_size=5) | st.dictionaries(keys, below, max_size=5),
        max_leaves=25,
    )


json_values = trees(st.none() | st.booleans() | in_range | finite | clean_text, clean_text)
odd_values = trees(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.binary(max_size=2),
    any_text | st.integers() | st.none(),
)


@given(json_values)
@settings(max_examples=500, deadline=None)
@example({"\uffff": 2, "\U00010000": 1, "\ue000": 3})
@example({"10": 1, "9": 2, "a": 3})
@example({"__proto__": 1, "": {"\x7f\u2028/": [0.5]}})
def test_the_text_is_that_of_the_reference_package(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(odd_values)
@settings(max_examples=500, deadline=None)
@example({"a": 1, "\ud800": 2})
@example([True, {1: 2}])
@example({"a": [1e500]})
def test_what_the_reference_package_refuses_is_refused(value: Any) -> None:
    try:
        expected: bytes | None = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        expected = None

    if expected is None:
        with pytest.raises(NotCanonical):
            canonical(value)
    else:
        assert canonical_bytes(value) == expected


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=1_000, deadline=None)
def test_every_finite_double_is_written_as_the_reference_package_does(bits: int) -> None:
    [number] = struct.unpack(">d", struct.pack(">Q", bits))
    if math.isfinite(number):
        assert canonical_bytes([number]) == rfc8785.dumps([number])
        assert float(json.loads(canonical(number))) == number


@given(json_values)
@settings(deadline=None)
def test_admitted_canonical_text_reads_back_to_the_same_text(value: Any) -> None:
    text = canonical(value)
    try:
        admitted = admit(text.encode(), max_bytes=1 << 20)
    except BadInput:
        return
    assert canonical(admitted) == text


@given(clean_text)
@settings(deadline=None)
def test_a_single_string_is_written_as_in_a_document(text: str) -> None:
    assert canonical_string(text) == canonical(text)
    assert canonical({text: text}) == f"{{{canonical_string(text)}:{canonical_string(text)}}}"


def test_subclasses_and_tuples_are_refused_though_an_encoder_would_take_them() -> None:
    class Shout(str):
        __slots__ = ()

    class Count(int):
        pass

    for value in ((1, 2), [Count(1)], {"a": (1,)}, {Shout("a"): 1}):
        with pytest.raises(NotCanonical):
            canonical(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(NotCanonical):
        canonical(loop)
