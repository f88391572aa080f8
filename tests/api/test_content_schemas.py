"""Content schemas are any JSON that an admin sends: what is no schema is refused at its place, and what is taken can be used."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.content_schema import DIALECT, check_content, checked_schema
from memory.errors import BadInput, ContentSchemaViolated
from tests.builders import TenantKit

KEYWORDS = (
    *("$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"),
    *("$recursiveAnchor", "$vocabulary", "$comment", "$defs", "definitions", "type", "enum"),
    *("const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains"),
    *("minContains", "maxProperties", "minProperties", "required", "dependentRequired"),
    *("dependencies", "properties", "patternProperties", "additionalProperties", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties", "prefixItems", "items", "additionalItems"),
    *("contains", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"),
    *("format", "contentEncoding", "contentMediaType", "contentSchema", "title", "description"),
    *("default", "deprecated", "readOnly", "writeOnly", "examples", "nosuchkeyword", ""),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e-300, 2**53 - 1),
    *("", "x", "#", "#/", "#/$defs", "#/$defs/a", "#a", "http://x", DIALECT, "date-time", "regex"),
    *("(a+)+$", "[", "\\p{Greek}", "a{1000000}", "(?=a)", "(?<a>b)\\1", "😀", "::"),
    *([], [None], [0], ["x"], ["x", "x"], [{}], [[]], [True], {}, {"x": None}, {"x": 0}),
    *({"x": "y"}, {"x": []}, {"x": {}}, {"x": True}, {"": {}}, {"[": {}}, {"$ref": "#"}),
    *({"x": {"$ref": "#"}}, {"$ref": "#/x"}, {"x": {"type": []}}, {"$id": 5}, {"$anchor": 5}),
    *({"$anchor": "a"}, {"x": {"$ref": 5}}, {"x": {"$schema": 5}}),
)
CONTENTS: tuple[Any, ...] = (None, True, 0, 1.5, "", "x", "😀", [], [1, 1], {}, {"x": 1, "": [2]})


def _around(keyword: str, value: Any) -> list[dict[str, Any]]:
    """The keyword at the root and at the places that a schema has others in."""
    inner = {keyword: value}
    return [
        inner,
        {"properties": {"x": inner}},
        {"$defs": {"a": inner}, "$ref": "#/$defs/a"},
        {"items": inner, "$anchor": "a"},
        {"anyOf": [inner, True]},
    ]


def assert_is_taken_or_refused(schema: Any) -> None:
    try:
        text = checked_schema(schema)
    except BadInput:
        return
    for content in CONTENTS:
        with suppress(ContentSchemaViolated):
            check_content("note", text, content)


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_any_value_at_a_keyword_is_taken_or_refused(keyword: str) -> None:
    for value in VALUES:
        for schema in _around(keyword, value):
            assert_is_taken_or_refused(schema)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e15, 1e15, allow_nan=False)
    | st.sampled_from([value for value in VALUES if isinstance(value, str)])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.sampled_from("xyz"), part, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS), _JSON, max_size=5) | st.booleans())
def test_any_json_as_a_schema_is_taken_or_refused(schema: Any) -> None:
    assert_is_taken_or_refused(schema)


@pytest.mark.parametrize(
    "dialect",
    [
        *(value for value in VALUES if value != DIALECT),
        DIALECT + "##",
        "http://json-schema.org/draft-07/schema#",
        [DIALECT],
        {DIALECT: True},
    ],
    ids=repr,
)
def test_a_schema_of_another_dialect_is_refused_at_its_place(dialect: Any, acme: TenantKit) -> None:
    admin = acme.client("admin")
    told = admin.put("/v1/memory/types/note", {"contentSchema": {"$schema": dialect}})
    assert told.status_code == 400
    (issue,) = told.json()["error"]["details"]["issues"]
    assert issue["path"] == "/contentSchema/$schema"
    for same in (DIALECT, DIALECT + "#"):
        declared = admin.put("/v1/memory/types/note", {"contentSchema": {"$schema": same}})
        assert declared.status_code == 200
