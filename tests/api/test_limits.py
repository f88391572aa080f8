"""Every list meets the limit asked for, exactly, and refuses every other; what it has comes page by page, each once."""

import itertools
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from memory.access import system_principal
from memory.actions.sweep_retention import sweep_retention
from memory.embeddings.provider import get_provider
from memory.tenancy import tenant_id_of
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import EVERY_ABILITY
from tests.api.makers import (
    Place,
    fact,
    fact_type,
    new_name,
    policy_source,
    record,
    route,
    run,
    sealed_run,
    verification,
)
from tests.api.makers_lifecycle import (
    api_key,
    complaint,
    erasure,
    hold,
    member,
    quarantine,
    webhook,
)
from tests.api.rows import ROWS
from tests.builders import make_tenant
from tests.rotation import one_in

COUNT = 9
LIMITS = (1, 2, 7, COUNT, 100, 200)
NO_LIMITS = ("0", "-1", "201", "1000000", "9" * 30, "", "all", "1.0", "1e2", "+1", " 1", "0x1", "٣")

LISTS = [
    endpoint
    for endpoint in endpoints()
    if endpoint.id in ROWS and "limit" in endpoint.operation.query
]


def _sweep(place: Place) -> str:
    slug = place.client.get("/v1/memory/me").json()["tenant"]["id"]
    tenant_id = tenant_id_of(slug)
    assert tenant_id is not None
    sweep_retention(principal=system_principal(tenant_id, slug, id="tests"))
    return slug


MAKERS: dict[str, Callable[[Place], str]] = {
    "memory.listFacts": fact,
    "memory.listRuns": run,
    "memory.listRecords": record,
    "memory.listCheckpoints": sealed_run,
    "memory.listErasures": erasure,
    "memory.listHolds": hold,
    "memory.listKeys": api_key,
    "memory.listMembers": member,
    "memory.listTypes": fact_type,
    "memory.listSweeps": _sweep,
    "memory.listVerifications": verification,
    "memory.listRoutes": route,
    "memory.listPolicySources": policy_source,
    "memory.listReviews": complaint,
    "memory.listQuarantines": quarantine,
    "memory.listWebhooks": webhook,
}


@pytest.fixture(scope="module")
def place(django_db_setup: None, django_db_blocker: Any) -> Place:
    get_provider().embed(["once it is loaded, vectors come with the write"])
    with django_db_blocker.unblock():
        return Place(make_tenant().client("admin", may=EVERY_ABILITY))


pytestmark = pytest.mark.usefixtures("live_db")


def _name_of(one: dict[str, Any]) -> str:
    """What tells one row of a list from another."""
    return str(
        next(
            one[name]
            for name in ("id", "prefix", "runId", "factId", "type", "name", "size")
            if name in one
        )
    )


def _add(endpoint: Endpoint, place: Place, url: str) -> None:
    if endpoint.id == "memory.readLog":
        place.make("POST", url, {"kind": "tool-call", "scope": place.scope()})
    elif endpoint.id == "memory.listWebhookDeliveries":
        assert place.client.post(url.replace("/deliveries", "/test")).status_code == 202
    elif endpoint.id == "memory.listSweepEvidence":
        # Another sweep's, which the list of this one does not have.
        assert place.client.delete(f"/v1/memory/facts/{fact(place)}").status_code == 200
        _sweep(place)
    else:
        MAKERS[endpoint.id](place)


def _filled(endpoint: Endpoint, place: Place) -> str:
    """The address of the list, once it has more than a few."""
    if endpoint.id == "memory.readLog":
        name = new_name("run")
        entries = [{"kind": "tool-call", "scope": place.scope()}] * COUNT
        place.make("POST", f"/v1/memory/runs/{name}/log/batch", {"entries": entries})
        return endpoint.route.url(run_id=name)
    if endpoint.id == "memory.listWebhookDeliveries":
        url = endpoint.route.url(webhook_id=webhook(place))
        for _ in range(COUNT):
            _add(endpoint, place, url)
        return url
    if endpoint.id == "memory.listSweepEvidence":
        for _ in range(COUNT):
            assert place.client.delete(f"/v1/memory/facts/{fact(place)}").status_code == 200
        _sweep(place)
        newest = place.client.get("/v1/memory/retention/sweeps").json()["data"][0]
        return endpoint.route.url(sweep_id=newest["id"])
    for _ in range(COUNT):
        MAKERS[endpoint.id](place)
    return endpoint.route.url()


@pytest.mark.parametrize("endpoint", one_in(2, LISTS, first=0), ids=lambda endpoint: endpoint.id)
def test_a_list_answers_as_many_as_were_asked_for(endpoint: Endpoint, place: Place) -> None:
    url = _filled(endpoint, place)
    whole = place.client.get(url, {"limit": 200}).json()["data"]
    assert COUNT <= len(whole) < 200
    for limit in LIMITS:
        page = place.client.get(url, {"limit": limit}).json()
        assert page["data"] == whole[:limit]
        assert page["hasMore"] == (limit < len(whole))
        assert ("nextCursor" in page) == page["hasMore"]
    assert place.client.get(url).json()["data"] == whole[:50]


@pytest.mark.parametrize("endpoint", one_in(2, LISTS, first=1), ids=lambda endpoint: endpoint.id)
def test_page_by_page_each_comes_once(endpoint: Endpoint, place: Place) -> None:
    url = _filled(endpoint, place)
    whole = place.client.get(url, {"limit": 200}).json()["data"]
    for limit in (1, 2, 7):
        found: list[Any] = []
        query: dict[str, Any] = {"limit": limit}
        for _ in itertools.repeat(None, len(whole) + 1):
            page = place.client.get(url, query).json()
            found += page["data"]
            if not page["hasMore"]:
                break
            query["cursor"] = page["nextCursor"]
        assert [json.dumps(one) for one in found] == [json.dumps(one) for one in whole]


def paged(
    place: Place, url: str, limit: int, meanwhile: Callable[[], object] = lambda: None
) -> list[Any]:
    """What all pages of the list hold; after each, something happens."""
    found: list[Any] = []
    query: dict[str, Any] = {"limit": limit}
    while True:
        page = place.client.get(url, query).json()
        found += page["data"]
        if not page["hasMore"]:
            return found
        query["cursor"] = page["nextCursor"]
        meanwhile()


@pytest.mark.parametrize("endpoint", one_in(2, LISTS, first=0), ids=lambda endpoint: endpoint.id)
def test_rows_added_while_paging_neither_hide_nor_repeat_one(
    endpoint: Endpoint,
) -> None:
    place = Place(make_tenant().client("admin", may=EVERY_ABILITY))
    url = _filled(endpoint, place)
    before = {_name_of(one) for one in place.client.get(url, {"limit": 200}).json()["data"]}
    left = itertools.count()

    def add() -> None:
        if next(left) < 2:  # more than each page takes away, for a while
            for _ in range(4):
                _add(endpoint, place, url)

    names = [_name_of(one) for one in paged(place, url, 3, add)]
    assert len(names) == len(set(names))
    assert before <= set(names)


# Where a list is in order of a time: the table and the column that are made equal in every row.
TIMES = {
    "memory.listFacts": ("fact", "created_at"),
    "memory.listRuns": ("run_head", "first_at"),
    "memory.listRecords": ("memory_record", "recorded_at"),
    "memory.listErasures": ("erasure", "created_at"),
    "memory.listHolds": ("legal_hold", "placed_at"),
    "memory.listSweeps": ("sweep", "started_at"),
    "memory.listVerifications": ("verification_job", "created_at"),
    "memory.listReviews": ("receipt", "made_at"),
    "memory.listQuarantines": ("quarantine", "placed_at"),
    "memory.listWebhooks": ("webhook", "created_at"),
    "memory.listWebhookDeliveries": ("webhook_delivery", "queued_at"),
}
BY_NAME_OR_NUMBER = {
    "memory.readLog",
    "memory.listCheckpoints",
    "memory.listTypes",
    "memory.listRoutes",
    "memory.listPolicySources",
    "memory.listKeys",
    "memory.listSweepEvidence",
    "memory.listMembers",
}


def test_every_list_is_in_order_of_a_time_that_is_tried_or_of_something_unique() -> None:
    assert {one.id for one in LISTS} == {*TIMES, *BY_NAME_OR_NUMBER}


@pytest.mark.parametrize(
    "endpoint",
    one_in(2, [one for one in LISTS if one.id in TIMES], first=1),
    ids=lambda endpoint: endpoint.id,
)
def test_rows_of_one_instant_come_each_once_in_the_same_order(
    endpoint: Endpoint, superuser_url: str
) -> None:
    place = Place(make_tenant().client("admin", may=EVERY_ABILITY))
    url = _filled(endpoint, place)
    table, column = TIMES[endpoint.id]
    tenant_id = tenant_id_of(place.client.get("/v1/memory/me").json()["tenant"]["id"])
    with psycopg.connect(superuser_url) as connection:
        connection.execute("SET session_replication_role = replica")
        told = connection.execute(
            f"UPDATE {table} SET {column} = '2026-05-01T12:00:00Z' WHERE tenant_id = %s",
            [tenant_id],
        )
        assert told.rowcount >= COUNT
    whole = place.client.get(url, {"limit": 200}).json()["data"]
    assert len({_name_of(one) for one in whole}) == len(whole) >= COUNT
    for limit in (1, 2, 4):
        assert paged(place, url, limit) == whole


@pytest.mark.parametrize("endpoint", LISTS, ids=lambda endpoint: endpoint.id)
def test_any_other_limit_is_refused_by_name(endpoint: Endpoint, place: Place) -> None:
    url = endpoint.route.url(**dict.fromkeys(endpoint.route.parameters, "r"))
    for text in NO_LIMITS:
        told = place.client.get(f"{url}?{urlencode({'limit': text})}")
        error = told.json()["error"]
        assert (told.status_code, error["code"]) == (400, "bad-input"), text
        assert [issue["path"] for issue in error["details"]["issues"]] == ["limit"], text


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_a_retrieval_answers_as_many_as_were_asked_for(mode: str, place: Place) -> None:
    name = new_name("type")
    for number in range(COUNT):
        body = {"type": name, "scope": place.scope(), "content": f"seat {number} by the window"}
        place.make("POST", "/v1/memory/facts", body)
    asked: dict[str, Any] = {"mode": mode, "type": name}
    if mode != "list":
        asked["query"] = "a seat by the window"
    url = "/v1/memory/retrieve"
    for limit in (1, 2, 7, 100):
        told = place.client.post(url, {**asked, "limit": limit})
        assert told.status_code == 200, told.content
        ids = [result["fact"]["id"] for result in told.json()["results"]]
        assert len(ids) == len(set(ids)) == min(limit, COUNT)
    for wrong in (0, -1, 201, 1.5, "7", None, True, [7]):
        told = place.client.post(url, {**asked, "limit": wrong})
        error = told.json()["error"]
        assert (told.status_code, error["code"]) == (400, "bad-input"), wrong
        assert [issue["path"] for issue in error["details"]["issues"]] == ["/limit"], wrong
    told = place.client.post(url, {**asked, "topk": 7})
    assert (told.status_code, told.json()["error"]["code"]) == (400, "unknown-field")
