"""The JSON gate refuses what docs/integrity.md lists, names the place, and never echoes a value."""

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from memory.admission import (
    ID_MAX,
    MAX_DEPTH,
    MAX_INTEGER,
    BadInput,
    TooLarge,
    admit,
    admit_value,
    id_issue,
)

ONE_MEBIBYTE = 1 << 20
with (Path(__file__).parent / "vectors/json_test_suite.jsonl").open(encoding="utf-8") as lines:
    SUITE = [json.loads(line) for line in lines]

# The suite leaves these free; RFC 8259 allows them, and a double reads each as a finite number.
FREE_AND_ADMITTED = {
    "i_number_double_huge_neg_exp": [0.0],
    "i_number_real_underflow": [0.0],
}
# The suite accepts these; I-JSON (RFC 7493) or our stores refuse them.
VALID_JSON_BUT_REFUSED = {
    "y_number": "/0",  # 123e65
    "y_number_real_capital_e": "/0",  # 1E22
    "y_number_real_exponent": "/0",  # 123e45
    "y_number_real_fraction_exponent": "/0",  # 123.456e78
    "y_object_duplicated_key": "/a",
    "y_object_duplicated_key_and_value": "/a",
    "y_object_escaped_null_in_key": "",
    "y_object_extreme_numbers": "/min",  # -1.0e+28
    "y_string_null_escape": "/0",
}


def refusal(data: bytes, max_bytes: int = ONE_MEBIBYTE) -> list[tuple[str, str]]:
    with pytest.raises(BadInput) as caught:
        admit(data, max_bytes=max_bytes)
    return [(issue["path"], issue["message"]) for issue in caught.value.issues]


def refused_paths(data: bytes) -> list[str]:
    return [path for path, _ in refusal(data)]


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def outcome(text: str) -> tuple[str, Any]:
    try:
        return "admitted", admit(text.encode(), max_bytes=ONE_MEBIBYTE)
    except BadInput as refused:
        return "refused", refused.issues[0]["path"]


@pytest.mark.parametrize("case", SUITE, ids=[case["name"] for case in SUITE])
def test_the_public_json_vectors_are_admitted_or_refused_as_i_json_says(
    case: dict[str, str],
) -> None:
    name, text = case["name"], case["text"]
    result = outcome(text)

    if name in FREE_AND_ADMITTED:
        assert result == ("admitted", FREE_AND_ADMITTED[name])
    elif name.startswith("y_") and name not in VALID_JSON_BUT_REFUSED:
        assert result == ("admitted", json.loads(text))
    else:
        assert result[0] == "refused"


def test_valid_json_is_refused_only_for_the_rules_of_i_json() -> None:
    refused = {
        case["name"]: outcome(case["text"])[1]
        for case in SUITE
        if case["name"].startswith("y_") and outcome(case["text"])[0] == "refused"
    }

    assert refused == VALID_JSON_BUT_REFUSED


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex(invalid)
        for invalid in (
            "ff",
            "e9",
            "5b22ff225d",
            "5b22e9225d",
            "5b2281225d",
            "5b22eda080225d",
            "5b22f4bfbfbf225d",
            "5b22c0af225d",
            "5b22fc83bfbfbfbf225d",
            "5b22e0ff225d",
            "5b61e55d",
            "5b3165e55d",
            "7b22b9223a2230222c7d",
            "5b225ce5225d",
            "fffe5b002200e90022005d00",
            "5b00220 0e90022005d00".replace(" ", ""),
            "005b002200e90022005d",
            "efbb7b7d",
        )
    ],
    ids=bytes.hex,
)
def test_bytes_that_are_not_utf_8_are_refused(data: bytes) -> None:
    assert refused_paths(data) == [""]


def test_a_byte_order_mark_is_refused() -> None:
    assert refusal(b"\xef\xbb\xbf{}") == [("", "starts with a byte order mark")]


@pytest.mark.parametrize("data", [b"", b" ", b"\n\t \r\n"])
def test_an_empty_body_is_refused(data: bytes) -> None:
    assert refusal(data) == [("", "is empty")]


@pytest.mark.parametrize("data", [b"{} {}", b"1 2", b"[1]]", b'"a"b', b"null,"])
def test_text_after_the_value_is_refused(data: bytes) -> None:
    [(path, message)] = refusal(data)

    assert path == ""
    assert message.startswith("goes on after the JSON value")


def test_white_space_around_the_value_is_json_but_other_space_is_not() -> None:
    assert admit(b" \t\r\n{} \t\r\n", max_bytes=99) == {}
    assert refused_paths("\u00a0{}".encode()) == [""]
    assert refused_paths(b"\x0c{}") == [""]


def test_64_levels_are_admitted_and_65_are_refused_at_the_65th() -> None:
    assert admit(nested(MAX_DEPTH), max_bytes=999) == json.loads(nested(MAX_DEPTH))
    [(path, message)] = refusal(nested(MAX_DEPTH + 1))
    assert path == "/0" * MAX_DEPTH
    assert message == "nests deeper than 64 levels"


def test_objects_count_as_levels_and_scalars_do_not() -> None:
    assert admit(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, max_bytes=999)
    assert refused_paths(b'{"a":' * 65 + b"1" + b"}" * 65) == ["/a" * MAX_DEPTH]


def test_brackets_inside_strings_are_not_levels() -> None:
    text = json.dumps(["[" * 500, {"{": "{" * 500}])

    assert admit(text.encode(), max_bytes=ONE_MEBIBYTE) == json.loads(text)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * ONE_MEBIBYTE,
        b'[{"":' * (ONE_MEBIBYTE // 5),
        nested(ONE_MEBIBYTE // 2),
        b'{"a":' * 100_000,
    ],
    ids=["open arrays", "open arrays and objects", "closed arrays", "open objects"],
)
def test_a_body_of_opening_brackets_is_refused_without_reading_it_all(data: bytes) -> None:
    assert refusal(data) == [("", "nests deeper than 64 levels")]


def test_many_shallow_containers_are_not_deep() -> None:
    data = b"[" + b",".join([b'{"a":[]}'] * 5_000) + b"]"

    assert admit(data, max_bytes=ONE_MEBIBYTE) == [{"a": []}] * 5_000


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"a":1,"a":1}', "/a"),
        (b'{"a":1,"\\u0061":2}', "/a"),
        (b'[0,{"x/y":{"~":1,"b":2,"~":3}}]', "/1/x~1y/~0"),
        (b'{"":1,"":2}', "/"),
    ],
)
def test_a_repeated_key_is_refused_with_its_pointer(data: bytes, path: str) -> None:
    assert refusal(data) == [(path, "repeats a key of the same object")]


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" + "0" * 400 + ".0"]
)
def test_a_number_that_is_not_finite_is_refused(number: str) -> None:
    assert refusal(f'{{"a":[0,{number}]}}'.encode()) == [("/a/1", "is not a finite number")]


@pytest.mark.parametrize(
    "number",
    [
        "9007199254740992",
        "-9007199254740992",
        "9007199254740993",
        "1700000000123456789",
        "9007199254740992.0",
        "1e16",
        "1E+22",
        "-123456789012345678901234567890",
        "1" * 5000,
    ],
)
def test_an_integral_number_beyond_two_to_the_53_is_refused(number: str) -> None:
    [(path, message)] = refusal(f'{{"n":{number}}}'.encode())

    assert path == "/n"
    assert message == "is an integer beyond ±(2^53 − 1); send it as a string"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9007199254740991", MAX_INTEGER),
        ("-9007199254740991", -MAX_INTEGER),
        ("9007199254740991.0", float(MAX_INTEGER)),
        ("-0", 0),
        ("1e15", 1e15),
        ("4503599627370495.5", 4503599627370495.5),
        ("5e-324", 5e-324),
        ("0." + "1" * 400, 0.1111111111111111),
    ],
)
def test_a_number_within_the_range_is_admitted_exactly(text: str, number: float) -> None:
    admitted = admit(text.encode(), max_bytes=999)

    assert admitted == number
    assert type(admitted) is type(number)


def test_minus_zero_stays_a_float_and_is_not_coerced() -> None:
    assert math.copysign(1, admit(b"-0.0", max_bytes=9)) == -1


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (rb'["\ud800"]', "/0"),
        (rb'["\udfff\ud800"]', "/0"),
        (rb'{"a":{"b":"x\uDEADy"}}', "/a/b"),
        (rb'["\ud83d\ud83d\ude00"]', "/0"),
        (rb'["\u0000"]', "/0"),
        (rb'["a","b\u0000c"]', "/1"),
    ],
)
def test_u_0000_and_lone_surrogates_in_values_are_refused(data: bytes, path: str) -> None:
    assert refusal(data) == [(path, "contains U+0000 or a lone surrogate")]


@pytest.mark.parametrize("key", [rb"\udead", rb"\u0000", rb"a\ud800b"])
def test_u_0000_and_lone_surrogates_in_keys_are_refused_at_their_object(key: bytes) -> None:
    assert refusal(b'{"a":[{"' + key + b'":1}]}') == [
        ("/a/0", "has a key that contains U+0000 or a lone surrogate")
    ]


def test_a_repeated_key_that_is_itself_unclean_is_named_at_its_object() -> None:
    assert refusal(rb'{"\u0000":1,"\u0000":2}') == [("", "repeats a key of the same object")]


def test_raw_control_characters_are_refused() -> None:
    assert refused_paths(b'["a\x00b"]') == [""]
    assert refused_paths(b'["a\x1fb"]') == [""]


@pytest.mark.parametrize(
    "text",
    [
        '["\\ud83d\\ude00","\\u00e9","\\uffff","\\udbff\\udfff"]',
        '["\u2028\u2029\u200b\u202e\ufeff\u007f"]',
        '["e\u0301","\u00e9"]',
        '{"\U0001f600":"\U0001f600"}',
        '["\\\\u0000","\\\\ud800"]',
        '{"__proto__":1,"":2}',
    ],
)
def test_odd_but_clean_text_is_admitted_as_it_is(text: str) -> None:
    assert admit(text.encode(), max_bytes=999) == json.loads(text)


def test_a_body_of_the_limit_is_admitted_and_one_byte_more_is_too_large() -> None:
    assert admit(b"[1,2]", max_bytes=5) == [1, 2]
    with pytest.raises(TooLarge) as caught:
        admit(b"[1,2]", max_bytes=4)
    assert (caught.value.code, caught.value.max_bytes) == ("content-too-large", 4)


def test_several_refusals_are_named_in_document_order_and_at_most_ten() -> None:
    data = b'{"z":NaN,"a":[1e400,{"k":1,"k":2}],"m":9007199254740993}'
    assert refused_paths(data) == ["/z", "/a/0", "/a/1/k", "/m"]

    assert refused_paths(b"[" + b",".join([b"NaN"] * 50) + b"]") == [f"/{n}" for n in range(10)]


def test_a_refusal_never_holds_the_value() -> None:
    bodies = [
        b'{"card":"4111-secret\\u0000"}',
        b'["secret",NaN]',
        b'["secret" "secret"]',
        b'{"pin":12345678901234567890}',
        b'"secret',
        b'"\\q secret"',
    ]
    for body in bodies:
        said = str(refusal(body))
        assert "secret" not in said
        assert "12345678901234567890" not in said


def test_a_very_long_pointer_is_cut() -> None:
    [(path, _)] = refusal(b'{"' + b"k" * 5_000 + b'":NaN}')

    assert len(path) == 1025
    assert path.endswith("…")


def test_bad_input_names_its_code() -> None:
    with pytest.raises(BadInput) as caught:
        admit(b"{", max_bytes=9)

    assert caught.value.code == "bad-input"
    assert caught.value.issues == [{"path": "", "message": "is not valid JSON: line 1, column 2"}]


def test_python_values_pass_as_the_same_object() -> None:
    value = {"a": [1, 2.5, "x", None, True, {}], "b": {"c": "\U0001f600"}}

    assert admit_value(value) is value


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"a": (1, 2)}, "/a", "is not a JSON value"),
        ([Decimal("1.0")], "/0", "is not a JSON value"),
        ({"a": b"x"}, "/a", "is not a JSON value"),
        ([{1}], "/0", "is not a JSON value"),
        ({"a": {1: 2}}, "/a", "has a key that is not a string"),
        ({None: 2}, "", "has a key that is not a string"),
        ([float("nan")], "/0", "is not a finite number"),
        ([float("-inf")], "/0", "is not a finite number"),
        ([2**53], "/0", "is an integer beyond ±(2^53 − 1); send it as a string"),
        ([1e16], "/0", "is an integer beyond ±(2^53 − 1); send it as a string"),
        (["\ud800"], "/0", "contains U+0000 or a lone surrogate"),
        ({"a": "\x00"}, "/a", "contains U+0000 or a lone surrogate"),
        ({"\x00": 1}, "", "has a key that contains U+0000 or a lone surrogate"),
        ({"é\udfff": 1}, "", "has a key that contains U+0000 or a lone surrogate"),
    ],
)
def test_python_values_obey_the_same_rules(value: Any, path: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        admit_value(value)

    assert caught.value.issues == [{"path": path, "message": message}]


def test_subclasses_of_json_types_are_refused_because_they_could_write_themselves_otherwise() -> (
    None
):
    class Shout(str):
        __slots__ = ()

    for value in (Shout("x"), [Shout("x")], {Shout("x"): 1}):
        with pytest.raises(BadInput):
            admit_value(value)


def test_a_value_that_contains_itself_is_refused_as_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(BadInput) as caught:
        admit_value(loop)
    assert caught.value.issues[0]["message"] == "nests deeper than 64 levels"


def test_a_wire_id_has_1_to_256_characters() -> None:
    assert id_issue("x", "/id") is None
    assert id_issue("\U0001f600" * ID_MAX, "/id") is None
    assert id_issue("", "/id") == {"path": "/id", "message": "must not be empty"}
    assert id_issue("x" * 257, "/id") == {
        "path": "/id",
        "message": "must have at most 256 characters",
    }
