"""The connection is lost while a change is being committed: the answer owns up to it, and a repeat with the key does it once."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpResponse

from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World
from tests.api.makers import Place, new_name, record_body
from tests.api.rows import ROWS, SHOWN_ONCE

pytestmark = pytest.mark.faults

_CHANGES = [
    endpoint
    for endpoint in endpoints()
    if endpoint.id in ROWS and endpoint.operation.changes and "admin" in ROWS[endpoint.id].allowed
]
Losing = Callable[[str], None]


@pytest.fixture
def place(live_db: None, world: World) -> Place:
    return world.mine


@pytest.fixture
def lose_commit(monkeypatch: pytest.MonkeyPatch, superuser_url: str) -> Iterator[Losing]:
    """Lose the connection at the next commit: `before` it was made, or `after`, when only the word of it is lost."""
    commit = BaseDatabaseWrapper._commit
    to_lose: list[str] = []

    def losing(wrapper: BaseDatabaseWrapper) -> None:
        when = to_lose.pop() if to_lose else None
        if when == "after":
            commit(wrapper)
            raise OperationalError("the connection is lost")
        if when == "before":
            with psycopg.connect(superuser_url) as superuser:
                pid = wrapper.connection.info.backend_pid
                superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        commit(wrapper)

    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", losing)
    yield to_lose.append
    assert not to_lose


def _assert_is_unsure(told: HttpResponse) -> None:
    assert told.status_code == 503
    error = told.json()["error"]
    assert (error["code"], error["details"]) == ("unavailable", {})
    assert "may or may not" in error["message"]
    assert "Idempotency-Key" in error["message"]
    assert told["Retry-After"] == "1"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("endpoint", _CHANGES, ids=lambda endpoint: endpoint.id)
def test_a_change_whose_commit_was_lost_is_done_once_when_it_is_repeated_with_its_key(
    endpoint: Endpoint, when: str, place: Place, lose_commit: Losing
) -> None:
    row = ROWS[endpoint.id]
    url, body = row.url(endpoint, row.ids_in(place)), row.smallest(place)
    key = new_name("key")

    def send() -> HttpResponse:
        return place.client.request(endpoint.method, url, body, **{"Idempotency-Key": key})

    lose_commit(when)
    _assert_is_unsure(send())
    told = send()
    assert told.status_code == row.status, told.content
    # What takes several transactions loses the first one here, which only says that it runs.
    assert ("Idempotency-Replayed" in told) == (when == "after" and not endpoint.operation.outside)
    again = send()
    if row.status < 300:
        assert again["Idempotency-Replayed"] == "true"
    if told["Content-Type"] != "application/json":
        assert again.content == told.content
        return
    first = told.json()
    first.pop(SHOWN_ONCE.get(endpoint.id), None)
    if row.status >= 300:
        for answer in (first, said := again.json()):
            del answer["error"]["requestId"]
        assert said == first
        return
    assert again.json() == first


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_recall_of_a_policy_whose_commit_was_lost_has_no_answer_in_it(
    when: str, place: Place, lose_commit: Losing, settings: Any
) -> None:
    settings.KINDMEM_DEVELOPMENT = True
    body = record_body(place, authority="policy", value=None)
    address = f"https://{new_name('policies')}.example.com"
    body["source"]["source_of_truth"] = f"{address}/limit"
    place.make("POST", "/v1/memory/records", body)
    source = {"match": address, "fetch_url": "http://127.0.0.1:1/limit"}
    place.make("POST", "/v1/memory/policy-sources", source)
    asked = {"key": body["key"], "context": {"user_id": place.user}}
    whole = place.client.post("/v1/memory/recall", asked).json()
    assert (whole["reason"], whole["value"]) == ("source-unavailable", None)
    lose_commit(when)
    _assert_is_unsure(place.client.post("/v1/memory/recall", asked))


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_append_that_waits_for_its_seal_is_not_told_of_one_when_its_commit_was_lost(
    when: str, place: Place, lose_commit: Losing
) -> None:
    url = f"/v1/memory/runs/{new_name('run')}/log"
    entry = {"kind": "tool-call", "scope": place.scope()}
    lose_commit(when)
    _assert_is_unsure(place.client.post(f"{url}?wait=sealed", entry))
    stored = place.client.get(url)
    assert stored.status_code == (200 if when == "after" else 404)
