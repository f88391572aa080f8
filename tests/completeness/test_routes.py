"""Every route of the API is described: a summary, a group, its answers, its refusals; and every plain route has a reason."""

import json
import re
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from django.test import Client

from memory.api.errors import STATUS
from tests.api.endpoints import PLAIN_ROUTES, Endpoint, api_routes, endpoints, routes
from tests.api.rows import ROWS

_ALL = endpoints()
_PAGES = re.compile(r"$|tenants/$|t/<slug:tenant>/|account/|operator/")
"""What people see; the tests of the pages try these."""


@cache
def description() -> dict[str, Any]:
    answer = Client().get("/v1/openapi.json")
    assert answer.status_code == 200
    told: dict[str, Any] = json.loads(answer.content)
    return told


def described(endpoint: Endpoint) -> dict[str, Any]:
    path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", endpoint.route.path)
    told: dict[str, Any] = description()["paths"][path][endpoint.method.lower()]
    return told


def test_every_operation_has_a_row_to_be_tried_with_and_every_row_an_operation() -> None:
    assert {endpoint.id for endpoint in _ALL} == set(ROWS)


def test_every_route_that_is_no_operation_has_a_reason() -> None:
    plain = {route.path for route in routes()} - {route.path for route in api_routes()}
    assert {path for path in plain if not _PAGES.match(path)} == set(PLAIN_ROUTES)


def test_every_view_of_the_api_has_a_route() -> None:
    for route in api_routes():
        assert route.operations, route.path


def test_every_operation_has_an_id_of_its_own() -> None:
    ids = [endpoint.id for endpoint in _ALL]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"memory\.[a-z][A-Za-z]+", one) for one in ids)


def test_only_who_the_caller_is_needs_no_ability() -> None:
    assert {one.id for one in _ALL if one.operation.ability is None} == {"memory.me"}


def test_the_description_holds_every_operation_and_no_other() -> None:
    told = {one["operationId"] for path in description()["paths"].values() for one in path.values()}
    assert told == {endpoint.id for endpoint in _ALL}
    assert description()["openapi"].startswith("3.1")
    assert description()["security"] == [{"apiKey": []}]


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_an_operation_is_described(endpoint: Endpoint) -> None:
    told = described(endpoint)
    assert len(told["summary"]) > 5
    assert len(told["tags"]) == 1
    good = {status: answer for status, answer in told["responses"].items() if status < "300"}
    assert good
    for answer in good.values():
        ((media, content),) = answer["content"].items()
        assert content["schema"]
        assert (media == "application/json") == (content["schema"].get("format") != "binary")
    for status, answer in told["responses"].items():
        if status >= "400":
            assert answer["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/Error"
            }
    named = {one["name"] for one in told.get("parameters", ()) if one["in"] == "query"}
    assert named == set(endpoint.operation.query)
    assert set(told["x-error-codes"]) <= set(STATUS)


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_an_operation_says_which_refusals_it_has(endpoint: Endpoint) -> None:
    codes = set(described(endpoint)["x-error-codes"])
    assert {"bad-input", "unknown-field"} <= codes
    if endpoint.operation.ability is not None:
        assert "permission-denied" in codes
    if endpoint.route.parameters and not (endpoint.id in ROWS and ROWS[endpoint.id].makes):
        assert any(STATUS[code] == 404 for code in codes)


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_an_example_fits_its_own_shape(endpoint: Endpoint) -> None:
    told = described(endpoint)
    if "requestBody" not in told:
        assert not endpoint.operation.body.schema["properties"]
        return
    media = told["requestBody"]["content"]["application/json"]
    if endpoint.operation.body.schema["required"]:
        assert "example" in media
    if "example" in media:
        endpoint.operation.body.check(media["example"])


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_every_described_schema_is_valid_json_schema(endpoint: Endpoint) -> None:
    told = described(endpoint)
    for answer in told["responses"].values():
        for content in answer["content"].values():
            jsonschema_rs.meta.validate(
                {"$schema": "https://json-schema.org/draft/2020-12/schema", **content["schema"]}
            )
