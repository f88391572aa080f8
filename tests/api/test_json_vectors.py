"""Every route that takes JSON is sent every JSON text: never a 500, always the envelope, and what is taken comes back.

With every change a route gets a share of the texts, each text goes to many routes; before a release, every text to every route.
"""

import json
import math
from collections import Counter
from typing import Any

import pytest
from django.http import HttpResponse

from tests.api.endpoints import Endpoint, endpoints
from tests.api.json_vectors import Vector, vectors
from tests.api.makers import Place
from tests.api.rows import ROWS
from tests.builders import ApiClient, TenantKit
from tests.rotation import shares

_JSON = [endpoint for endpoint in endpoints() if endpoint.takes_json and endpoint.id in ROWS]
_VECTORS = vectors()
_PASSING = [vector for vector in _VECTORS if vector.must != "refuse"]
_HERE = b'"@here@"'


def assert_answers(answer: HttpResponse, what: str) -> None:
    """A success in JSON (an export's is a file), or a refusal in the envelope with a code and never a 500."""
    if answer["Content-Type"] == "application/zip":
        assert answer.status_code == 200, what
        return
    assert answer["Content-Type"] == "application/json", what
    assert answer.status_code < 500, (what, answer.content)
    body = json.loads(answer.content)
    if answer.status_code >= 400:
        assert set(body) == {"error"}, what
        assert set(body["error"]) == {"code", "message", "details", "requestId"}, what
        assert b"@here@" not in answer.content


def spliced(body: dict[str, Any], name: str, text: bytes) -> bytes:
    """The body as bytes, with the text in the place of one property's value."""
    return json.dumps({**body, name: "@here@"}).encode().replace(_HERE, text)


@pytest.fixture
def place(live_acme: TenantKit) -> Place:
    client = live_acme.client("admin", may=["read", "write", "append", "emit", "tenant-wide"])
    client.put("/v1/memory/types/note", {"semantic": False, "keyword": True})
    return Place(client)


def _send(client: ApiClient, endpoint: Endpoint, url: str, raw: bytes) -> HttpResponse:
    return client.request(endpoint.method, url, raw=raw)


_AS_BODY = shares(6, _JSON)
_AS_PROPERTY = shares(4, _JSON, first=1)


@pytest.mark.parametrize(("endpoint", "share"), _AS_BODY)
def test_no_json_text_as_a_body_is_more_than_refused(
    endpoint: Endpoint, share: slice, place: Place
) -> None:
    row = ROWS[endpoint.id]
    url = row.url(endpoint, row.ids_in(place))
    for vector in _VECTORS[share]:
        answer = _send(place.client, endpoint, url, vector.text)
        assert_answers(answer, vector.name)
        if vector.must == "refuse" and vector.text:
            assert answer.status_code == 400, (vector.name, answer.content)
            assert answer.json()["error"]["code"] == "bad-input", vector.name


@pytest.mark.parametrize(("endpoint", "share"), _AS_PROPERTY)
def test_no_json_text_as_a_property_is_more_than_refused(
    endpoint: Endpoint, share: slice, place: Place
) -> None:
    row = ROWS[endpoint.id]
    url = row.url(endpoint, row.ids_in(place))
    names = sorted(set(endpoint.operation.body.schema["properties"]) - set(row.free))
    if not names:
        return
    # What the gate refuses anywhere was tried as a body: here is what gets past it, to one property after the other.
    for number, vector in enumerate(_PASSING[share]):
        raw = spliced(row.smallest(place), names[number % len(names)], vector.text)
        assert_answers(_send(place.client, endpoint, url, raw), vector.name)


def _is_closed_by(vector: Vector) -> bool:
    """Whether the text, in the middle of an object, makes another valid object."""
    try:
        json.loads(b'{"x":' + vector.text + b"}")
    except (ValueError, RecursionError):
        return False
    return vector.name.startswith(("n_", "y_", "i_"))


_FREE = [(endpoint, name) for endpoint in _JSON for name in ROWS[endpoint.id].free]
_AS_ANYTHING = shares(2, _FREE)


def _stored(content: bytes, name: str) -> object:
    """What came back of the field: a correction's new value is the new record's value."""
    told = json.loads(content)
    return told["record"]["value"] if name == "new_value" else told[name]


@pytest.mark.parametrize(("where", "share"), _AS_ANYTHING)
def test_a_json_text_where_any_is_taken_comes_back_as_it_was_or_is_refused(
    where: tuple[Endpoint, str], share: slice, place: Place
) -> None:
    endpoint, name = where
    row = ROWS[endpoint.id]
    url = row.url(endpoint, row.ids_in(place))
    wrong = []
    for vector in _VECTORS[share]:
        answer = _send(place.client, endpoint, url, spliced(row.smallest(place), name, vector.text))
        assert_answers(answer, vector.name)
        accepted = answer.status_code == row.status
        if vector.must == "refuse" and not _is_closed_by(vector) and answer.status_code != 400:
            wrong.append((vector.name, answer.content))
        if vector.must == "accept" and not accepted and vector.text.strip() not in row.never:
            wrong.append((vector.name, answer.content))
        if accepted and not is_same(_stored(answer.content, name), json.loads(vector.text)):
            wrong.append((vector.name, answer.content))
    assert not wrong


def is_same(one: Any, other: Any) -> bool:
    """Equal in kind too, but for whole numbers that were written as fractions: JSON has one kind of number."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=0, abs_tol=0) or one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return type(one) is type(other) and one == other


def test_the_suite_is_whole() -> None:
    names = [vector.name for vector in _VECTORS]
    assert len(names) == len(set(names))
    assert sum(name.startswith("y_") for name in names) >= 90
    assert sum(name.startswith("n_") for name in names) >= 180


@pytest.mark.parametrize(
    ("cases", "texts", "times"),
    [(_AS_BODY, _VECTORS, 5), (_AS_PROPERTY, _PASSING, 5), (_AS_ANYTHING, _VECTORS, 2)],
    ids=["as a body", "as a property", "as anything"],
)
def test_each_text_is_sent_several_times_with_every_change(
    cases: list[Any], texts: list[Vector], times: int
) -> None:
    sent = Counter(
        vector.name for case in cases if not case.marks for vector in texts[case.values[1]]
    )
    assert set(sent) == {vector.name for vector in texts}
    assert min(sent.values()) >= times
