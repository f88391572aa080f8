"""What every route refuses alike: methods, parameters and fields it doesn't know, and browsers without their token."""

import itertools

import pytest
from django.test import Client

from tests.api.endpoints import METHODS, Endpoint, Route, api_routes, endpoints
from tests.api.isolation import World
from tests.api.rows import ROWS

_ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]


pytestmark = pytest.mark.usefixtures("live_db")


@pytest.mark.parametrize("route", api_routes(), ids=lambda route: route.path)
def test_a_method_that_a_route_does_not_take_answers_405_and_says_which_it_does(
    route: Route, world: World
) -> None:
    url = route.url(**dict.fromkeys(route.parameters, "x"))
    # Whatever is read is also asked for without its body.
    taken = {*route.operations} | ({"HEAD"} if "GET" in route.operations else set())
    for method in (*METHODS, "HEAD", "OPTIONS", "TRACE", "PROPFIND"):
        if method in taken:
            continue
        told = world.callers["admin"].request(method, url, {} if method != "GET" else None)
        assert told.status_code == 405
        assert set(told["Allow"].split(", ")) == taken
        if method != "HEAD":
            assert told.json()["error"]["code"] == "method-not-allowed"
            assert set(told.json()["error"]["details"]["allowed"]) == taken


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_a_query_parameter_that_is_not_known_is_refused(endpoint: Endpoint, world: World) -> None:
    row = ROWS[endpoint.id]
    ids = row.ids_in(world.mine)
    body = row.smallest(world.mine) if endpoint.takes_json else None
    roles = itertools.cycle(sorted(row.statuses))
    for query in (
        "topk=5",
        "_connector=OR",
        "_negated=1",
        "tenant_id=x",
        "Limit=1",
        "limit%00=1",
        "=1",
    ):
        told = world.callers[next(roles)].request(
            endpoint.method, f"{row.url(endpoint, ids)}?{query}", body
        )
        assert told.status_code == 400, (query, told.content)
        assert told.json()["error"]["code"] == "unknown-field"


_JSON = [endpoint for endpoint in _ALL if endpoint.takes_json]
_CLOSED = [
    endpoint
    for endpoint in _JSON
    if endpoint.operation.body.schema.get("additionalProperties") is False
]


def test_the_bodies_that_take_any_field_are_the_named_ones() -> None:
    assert {one.id for one in _JSON} - {one.id for one in _CLOSED} == {"memory.emitEvent"}


@pytest.mark.parametrize("endpoint", _CLOSED, ids=lambda endpoint: endpoint.id)
def test_a_body_field_that_is_not_known_is_refused(endpoint: Endpoint, world: World) -> None:
    row = ROWS[endpoint.id]
    ids = row.ids_in(world.mine)
    roles = itertools.cycle(sorted(row.statuses))
    for name in ("nosuch", "tenantId", "tenant_id", "trust", "entryHash", "__proto__", "a/b~c", ""):
        body = {**row.smallest(world.mine), name: "x"}
        told = world.callers[next(roles)].request(endpoint.method, row.url(endpoint, ids), body)
        assert told.status_code == 400, (name, told.content)
        error = told.json()["error"]
        assert error["code"] == "unknown-field"
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        assert error["details"]["issues"] == [{"path": pointer, "message": "is not known here"}]


def test_a_browser_without_its_csrf_token_changes_nothing(world: World) -> None:
    member = world.callers["member:admin"]
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = member.client.cookies.copy()  # type: ignore[assignment]  # a morsel jar either way
    slug = world.mine.client.get("/v1/memory/me").json()["tenant"]["id"]
    for endpoint in _JSON:
        row = ROWS[endpoint.id]
        told = browser.generic(
            endpoint.method,
            row.url(endpoint, dict.fromkeys(row.ids, "x")),
            b"{}",
            content_type="application/json",
            headers={"Kindmem-Tenant": slug},
        )
        assert told.status_code == 403, (endpoint.id, told.content)
        assert told.json()["error"]["code"] == "permission-denied"
