"""Every place of the API that takes a time or a day: one that doesn't exist is refused by name, and the ends of time are kept.

The places come from the routes' own shapes and parameters.
"""

from urllib.parse import urlencode

import pytest
from django.http import HttpResponse

from tests.api.endpoints import Endpoint, endpoints
from tests.api.filled import Property, properties_of, with_value
from tests.api.isolation import World
from tests.api.makers import Place
from tests.api.rows import ROWS

NO_TIMES = (
    "2026-02-30T00:00:00Z",
    "2026-01-01T25:00:00Z",
    "2026-01-01T00:60:00Z",
    "2026-01-01T00:00:61Z",
    "2016-12-31T23:59:60Z",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z",
    "-001-01-01T00:00:00Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00.1234567890Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+1:00",
    "2026-01-01T00:00:00 Europe/Berlin",
    "2026-01-01",
    "2026-W01-1T00:00:00Z",
    "٢٠٢٦-01-01T00:00:00Z",
    "now",
    "infinity",
    "epoch",
    "",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
    "1767225600",
)
NO_DAYS = (
    "2026-02-30",
    "2025-02-29",
    "2026-13-01",
    "2026-00-10",
    "2026-01-00",
    "0000-01-01",
    "10000-01-01",
    "2026-W01-1",
    "20260101",
    "2026-1-1",
    "٢٠٢٦-01-01",
    "2026-01-01T00:00:00Z",
    "today",
    "infinity",
    "",
    "2026-01-01\n",
)
ENDS_OF_TIME = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-02-29T23:59:59+14:00")
ENDS_OF_DAYS = ("0001-01-01", "9999-12-31", "2024-02-29")

_BODIES = [
    (endpoint, one)
    for endpoint in endpoints()
    if endpoint.id in ROWS
    for one in properties_of(endpoint.operation.body.schema)
    if one.schema.get("format") in ("date-time", "date")
]
_PARAMETERS = [
    (endpoint, parameter)
    for endpoint in endpoints()
    if endpoint.id in ROWS
    for parameter in endpoint.operation.query.values()
    if parameter.schema.get("format") in ("date-time", "date")
]


@pytest.fixture
def place(live_db: None, world: World) -> Place:
    return world.mine


def _sent(place: Place, endpoint: Endpoint, one: Property, text: str) -> HttpResponse:
    row = ROWS[endpoint.id]
    body = with_value(row.smallest(place), endpoint.operation.body.schema, one.path, text)
    return place.client.request(endpoint.method, row.url(endpoint, row.ids_in(place)), body)


def _refusal(answer: HttpResponse) -> tuple[int, str, list[str]]:
    error = answer.json()["error"]
    return (
        answer.status_code,
        error["code"],
        [issue["path"] for issue in error["details"]["issues"]],
    )


def test_the_places_that_take_times_are_found() -> None:
    assert {f"{endpoint.id}{one.pointer}" for endpoint, one in _BODIES} >= {
        "memory.placeHold/scope/from",
        "memory.placeHold/reviewOn",
        "memory.previewHold/scope/until",
        "memory.writeFact/retention/keepUntil",
        "memory.supersedeFact/validUntil",
        "memory.remember/scope/valid_until",
        "memory.remember/source/captured_at",
        "memory.recall/as_of",
        "memory.actOnRoute/since",
        "memory.replayErasures/erasures/0/createdAt",
    }
    assert {f"{endpoint.id}?{parameter.name}" for endpoint, parameter in _PARAMETERS} >= {
        "memory.listFacts?asOf",
        "memory.getFact?asOf",
        "memory.listRuns?since",
        "memory.listRuns?until",
        "memory.listRecords?as_of",
        "memory.explainRecord?as_of",
    }


@pytest.mark.parametrize(
    ("endpoint", "one"), _BODIES, ids=[f"{endpoint.id}{one.pointer}" for endpoint, one in _BODIES]
)
def test_a_time_that_does_not_exist_is_refused_by_its_path(
    endpoint: Endpoint, one: Property, place: Place
) -> None:
    for text in NO_DAYS if one.schema["format"] == "date" else NO_TIMES:
        told = _sent(place, endpoint, one, text)
        assert _refusal(told) == (400, "bad-input", [one.pointer]), (text, told.content)


@pytest.mark.parametrize(
    ("endpoint", "one"), _BODIES, ids=[f"{endpoint.id}{one.pointer}" for endpoint, one in _BODIES]
)
def test_the_ends_of_time_are_taken_or_refused_by_a_rule(
    endpoint: Endpoint, one: Property, place: Place
) -> None:
    for text in ENDS_OF_DAYS if one.schema["format"] == "date" else ENDS_OF_TIME:
        told = _sent(place, endpoint, one, text)
        assert told.status_code < 500, (text, told.content)
        if told.status_code == 400:
            assert told.json()["error"]["details"]["issues"][0]["path"], (text, told.content)
    # What was taken can be read again.
    for path in ("facts", "records", "runs", "legal-holds", "erasures"):
        assert place.client.get(f"/v1/memory/{path}").status_code == 200


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [(endpoint, parameter.name) for endpoint, parameter in _PARAMETERS],
    ids=[f"{endpoint.id}-{parameter.name}" for endpoint, parameter in _PARAMETERS],
)
def test_a_parameter_that_is_no_time_is_refused_by_its_name(
    endpoint: Endpoint, name: str, place: Place
) -> None:
    row = ROWS[endpoint.id]
    url = row.url(endpoint, row.ids_in(place))
    for text in NO_TIMES:
        told = place.client.get(f"{url}?{urlencode({name: text})}")
        assert _refusal(told) == (400, "bad-input", [name]), (text, told.content)
    for text in ENDS_OF_TIME:
        told = place.client.get(f"{url}?{urlencode({name: text})}")
        assert told.status_code in (200, 404), (text, told.content)
