"""Every route × role × whose id: another tenant's answers exactly like one that nobody has, and nothing of theirs moves.

The matrix is generated from the URLconf. Rows say what is let through; everything else is the same for all.
"""

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import ROLES, SEES_ALL, World, assert_tells_nothing, like, seen
from tests.api.makers import OTHER_PROJECT, OTHER_USER, Place, entry, fact, record, run, sealed_run
from tests.api.rows import ROWS, Row
from tests.builders import ApiClient

_ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]
_WITH_ID = [endpoint for endpoint in _ALL if ROWS[endpoint.id].ids]


@pytest.fixture(autouse=True)
def nothing_of_theirs_is_logged(
    live_db: None, world: World, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    caplog.set_level(logging.INFO)
    yield
    said = [f"{one.getMessage()} {one.args} {one.exc_text}" for one in caplog.get_records("call")]
    assert [line for line in said if world.theirs.canary in line] == []


def call(client: ApiClient, endpoint: Endpoint, row: Row, place: Place, ids: dict[str, str]) -> Any:
    body = row.smallest(place) if endpoint.takes_json else None
    return client.request(endpoint.method, row.url(endpoint, ids), body)


def elsewhere(world: World) -> Place:
    """Of the same tenant, in containers that no key and no person has."""
    return Place(world.mine.client, project=OTHER_PROJECT, user=OTHER_USER)


@pytest.mark.parametrize("endpoint", _WITH_ID, ids=lambda endpoint: endpoint.id)
def test_another_tenants_id_answers_like_one_that_nobody_has(
    endpoint: Endpoint, world: World
) -> None:
    row = ROWS[endpoint.id]
    # What a call makes, it makes once: each role names another id of theirs.
    theirs = [row.ids_in(world.theirs) for _ in (ROLES if row.makes else "1")]
    with world.untouched():
        for role, known in zip(ROLES, itertools.cycle(theirs), strict=False):
            nobodys = {name: like(one) for name, one in known.items()}
            if row.makes:
                world.taken |= set(known.values())
            told = call(world.callers[role], endpoint, row, world.mine, known)
            expected = call(world.callers[role], endpoint, row, world.mine, nobodys)
            assert seen(told, *known.values()) == seen(expected, *nobodys.values()), role
            assert row.makes or told.status_code in (403, 404), (role, told.content)
            assert_tells_nothing(told, world)


@pytest.mark.parametrize("endpoint", _WITH_ID, ids=lambda endpoint: endpoint.id)
def test_what_is_in_a_container_one_lacks_answers_like_what_nobody_has(
    endpoint: Endpoint, world: World
) -> None:
    row = ROWS[endpoint.id]
    if row.makes:
        return
    known = row.ids_in(elsewhere(world))
    nobodys = {name: like(one) for name, one in known.items()}
    for role in set(ROLES) - SEES_ALL:
        client = world.callers[role]
        told = call(client, endpoint, row, world.mine, known)
        expected = call(client, endpoint, row, world.mine, nobodys)
        assert seen(told) == seen(expected), role
        assert told.status_code in (403, 404), (role, told.content)


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_ones_own_is_let_through_for_the_roles_of_the_row_and_no_other(
    endpoint: Endpoint, world: World
) -> None:
    """S14."""
    row = ROWS[endpoint.id]
    for role in ROLES:
        told = call(world.callers[role], endpoint, row, world.mine, row.ids_in(world.mine))
        if role in row.statuses:
            assert told.status_code == row.statuses[role], (role, told.content)
        else:
            assert told.status_code in (403, 404), (role, told.content)
        assert_tells_nothing(told, world)


@pytest.mark.parametrize("endpoint", _WITH_ID, ids=lambda endpoint: endpoint.id)
def test_an_id_of_no_allowed_form_is_bad_input(endpoint: Endpoint, world: World) -> None:
    row = ROWS[endpoint.id]
    for malformed in ("\x00", "a\x00b", "x" * 257, "é" * 257, "😀" * 257):
        ids = dict.fromkeys(row.ids, malformed)
        for role in row.statuses:
            told = call(world.callers[role], endpoint, row, world.mine, ids)
            assert (told.status_code, told.json()["error"]["code"]) == (400, "bad-input"), role


_NAMED = [(endpoint, name) for endpoint in _ALL for name in ROWS[endpoint.id].names]


@pytest.mark.parametrize(
    ("endpoint", "name"), _NAMED, ids=[f"{one.id}-{name}" for one, name in _NAMED]
)
def test_naming_another_tenants_id_in_a_body_answers_like_one_that_nobody_has(
    endpoint: Endpoint, name: str, world: World
) -> None:
    row = ROWS[endpoint.id]
    roles = itertools.cycle(sorted(row.statuses))
    theirs = [(next(roles), make(world.theirs)) for make in (run, entry, fact, record)]
    world.taken |= {known for _, known in theirs}
    with world.untouched():
        for role, known in theirs:
            answers = []
            for one in (known, like(known)):
                url = row.url(endpoint, row.ids_in(world.mine))
                body = row.names[name](world.mine, one)
                told = world.callers[role].request(endpoint.method, url, body)
                answers.append(seen(told, one))
                assert_tells_nothing(told, world)
            assert answers[0] == answers[1], role


_WITH_FILTER = [
    (endpoint, parameter.name)
    for endpoint in _ALL
    for parameter in endpoint.operation.query.values()
    if parameter.schema.get("type") == "string" and parameter.name != "cursor"
]


@pytest.mark.parametrize(
    ("endpoint", "name"), _WITH_FILTER, ids=[f"{one.id}-{name}" for one, name in _WITH_FILTER]
)
def test_filtering_by_another_tenants_name_finds_what_a_name_that_nobody_has_finds(
    endpoint: Endpoint, name: str, world: World
) -> None:
    row = ROWS[endpoint.id]
    url = row.url(endpoint, row.ids_in(world.mine))
    names = itertools.cycle((world.theirs.canary, *world.theirs.made[-3:]))
    with world.untouched():
        for role, known in zip(row.statuses, names, strict=False):
            told = world.callers[role].get(url, {name: known})
            expected = world.callers[role].get(url, {name: like(known)})
            assert seen(told) == seen(expected), role
            assert_tells_nothing(told, world)


@pytest.mark.parametrize("endpoint", _ALL, ids=lambda endpoint: endpoint.id)
def test_without_a_usable_key_nothing_is_told(endpoint: Endpoint, world: World) -> None:
    row = ROWS[endpoint.id]
    strangers = {
        "nobody": ApiClient(),
        "no such key": ApiClient("kmk_aaaaaaaaaa_" + "x" * 43),
        "a wrong secret": ApiClient(f"{(world.theirs.client.token or '')[:15]}{'x' * 43}"),
        "another scheme": ApiClient(),
    }
    answers = []
    for name, client in strangers.items():
        headers = {"Authorization": "Basic eDp5"} if name == "another scheme" else {}
        for place in (world.mine, world.theirs):
            ids = dict.fromkeys(row.ids, "x")
            body = row.smallest(place) if endpoint.takes_json else None
            told = client.request(endpoint.method, row.url(endpoint, ids), body, **headers)
            answers.append(seen(told))
            assert told["WWW-Authenticate"]
    assert {status for status, _, _ in answers} == {401}
    assert len({body for _, body, _ in answers}) == 1


def test_a_member_of_one_tenant_is_nobody_in_another(world: World) -> None:
    slug = world.their_slug
    for role, client in world.callers.items():
        if not role.startswith("member:"):
            continue
        told = client.request("GET", "/v1/memory/me", **{"Kindmem-Tenant": slug})
        expected = client.request("GET", "/v1/memory/me", **{"Kindmem-Tenant": like(slug)})
        assert told.status_code == 401
        assert seen(told) == seen(expected)


def test_a_key_can_not_be_talked_into_another_tenant(world: World) -> None:
    slug = world.their_slug
    client = world.callers["admin"]
    plain = client.get("/v1/memory/me").json()
    for header in ("Kindmem-Tenant", "X-Tenant-Id", "X-Tenant", "X-Original-Url", "X-Rewrite-Url"):
        assert client.request("GET", "/v1/memory/me", **{header: slug}).json() == plain
    told = client.get("/v1/memory/facts", {"scope": f'{{"tenantId":"{slug}"}}'})
    expected = client.get("/v1/memory/facts", {"scope": f'{{"tenantId":"{like(slug)}"}}'})
    assert told.status_code == 403
    assert seen(told) == seen(expected)


# What an admin's key may not do is not tried here: a place's client speaks with one.
_CHANGES = [
    endpoint
    for endpoint in _ALL
    if endpoint.operation.changes and "admin" in ROWS[endpoint.id].statuses
]


@pytest.mark.parametrize("endpoint", _CHANGES, ids=lambda endpoint: endpoint.id)
def test_another_tenants_idempotency_key_is_like_a_new_one(
    endpoint: Endpoint, world: World
) -> None:
    row = ROWS[endpoint.id]
    for place in (world.theirs, world.mine):
        told = place.client.request(
            endpoint.method,
            row.url(endpoint, row.ids_in(place)),
            row.smallest(place),
            **{"Idempotency-Key": f"same-{endpoint.id}"},
        )
        assert told.status_code == row.status, told.content
        assert "Idempotency-Replayed" not in told


def test_another_tenants_cursor_is_no_cursor(world: World) -> None:
    for endpoint in _ALL:
        if "cursor" not in endpoint.operation.query or endpoint.route.parameters:
            continue
        url = endpoint.route.url()
        page = world.theirs.client.get(url, {"limit": 1}).json()
        if page["hasMore"]:
            told = world.callers["admin"].get(url, {"limit": 1, "cursor": page["nextCursor"]})
            assert told.status_code == 400


def test_checkpoints_are_of_one_tenant(world: World) -> None:
    for place in (world.mine, world.theirs, world.theirs, world.theirs):
        sealed_run(place)
    theirs = world.theirs.client.get("/v1/memory/checkpoints").json()["data"]
    for client in world.callers.values():
        mine = client.get("/v1/memory/checkpoints").json()["data"]
        assert not {one["rootHash"] for one in mine} & {one["rootHash"] for one in theirs}
        own = {one["size"] for one in mine}
        for size in {one["size"] for one in theirs} - own:
            told = client.get(f"/v1/memory/checkpoints/{size}")
            expected = client.get("/v1/memory/checkpoints/999999")
            assert told.status_code == 404
            assert seen(told) == seen(expected)
        for size in own:
            told = client.get(f"/v1/memory/checkpoints/{size}")
            assert world.their_slug not in told.content.decode()
