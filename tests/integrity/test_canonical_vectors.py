"""The public RFC 8785 vectors and those of docs/integrity.md, to the byte."""

import json
from pathlib import Path

import pytest

from memory.admission import BadInput, admit
from memory.canonical import canonical, canonical_bytes

JCS = Path(__file__).parent / "vectors/jcs"


@pytest.mark.parametrize("name", sorted(path.name for path in (JCS / "input").iterdir()))
def test_the_public_files_come_out_as_published(name: str) -> None:
    value = json.loads((JCS / "input" / name).read_bytes())

    assert canonical_bytes(value) == (JCS / "output" / name).read_bytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1.0,1,-0.0,1e2]", "[1,1,0,100]"),
        ("[1e-6,1e-7,1.10]", "[0.000001,1e-7,1.1]"),
        ('{"b":1,"a":2}', '{"a":2,"b":1}'),
        ('{"10":1,"9":2,"a":3}', '{"10":1,"9":2,"a":3}'),
        (
            '{"\uffff":2,"\\ud800\\udc00":1,"\ue000":3}',
            '{"\U00010000":1,"\ue000":3,"\uffff":2}',
        ),
        ('["\\u2028\\u2029<>&\\/"]', '["\u2028\u2029<>&/"]'),
        ('["e\u0301","\u00e9"]', '["e\u0301","\u00e9"]'),
        ('"\\u0061"', '"a"'),
        (
            '"\\u0008\\u000c\\n\\r\\t\\u000b\\u001F\\u007f\\"\\\\"',
            '"\\b\\f\\n\\r\\t\\u000b\\u001f\u007f\\"\\\\"',
        ),
        ('{"x":null}', '{"x":null}'),
        ("{}", "{}"),
        ("[9007199254740991]", "[9007199254740991]"),
        ('{"__proto__":1,"a":2}', '{"__proto__":1,"a":2}'),
        ('{"":1}', '{"":1}'),
    ],
)
def test_the_vectors_of_the_integrity_rules(text: str, expected: str) -> None:
    assert canonical(admit(text.encode(), max_bytes=999)) == expected


def test_two_numbers_that_one_double_would_swallow_are_refused_before_they_get_here() -> None:
    for text in (b"[9007199254740992]", b"[9007199254740993]", b"[1e16]"):
        with pytest.raises(BadInput):
            admit(text, max_bytes=99)
