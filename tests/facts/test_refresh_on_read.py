"""Reading a stale view: its handler runs first, in bounded time, and what is not refreshed is said to be stale."""

import dataclasses
import threading
import time
from typing import Any

import psycopg
import pytest
from django.db import connection

from memory.binding import ListFactsInput, MemoryBinding, Ok, SearchByKeywordInput
from memory.refresh import registry
from memory.refresh.handler import Fetched, RefreshRequest, Unchanged
from memory.refresh.look import AT_ONCE, OF_ONE_SOURCE, OF_ONE_TENANT, Failed, look_at_all
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, at, written
from tests.facts.sources import Source, freshness_meta, view


@pytest.fixture
def app(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("app", projects=["p1"])


@pytest.fixture
def agent(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("agent", projects=["p1"])


def test_a_read_runs_the_handler_of_a_stale_view_first(app: ApiClient, crm: Source) -> None:
    fact = written(app, content={"seat": "aisle"}, source=view(uri=crm.url, strategy="on-read"))
    read = app.get(at(fact))
    assert read.status_code == 200
    assert (read.json()["version"], read.json()["content"]) == (2, {"seat": "window"})
    assert "stale" not in read.json().get("meta", {})
    assert app.get(at(fact)).json() == read.json()
    assert len(crm.asked) == 1  # fresh now: the second read asked nobody


def test_a_read_of_history_or_of_another_strategy_asks_nobody(app: ApiClient, crm: Source) -> None:
    fact = written(app, source=view(uri=crm.url, strategy="on-read"))
    for query in ({"version": 1}, {"asOf": fact["updatedAt"]}):
        app.get(at(fact), query)
    app.get(FACTS, {"asOf": fact["updatedAt"]})
    app.get(at(fact, "/revisions"))
    for strategy in ("manual", "background"):
        assert app.get(at(written(app, source=view(uri=crm.url, strategy=strategy)))).json()[
            "meta"
        ]["stale"]
    assert crm.asked == []


def test_a_read_whose_handler_fails_comes_marked_stale_and_the_next_one_tries_again(
    app: ApiClient, crm: Source
) -> None:
    fact = written(app, source=view(uri=crm.url, strategy="on-read"))
    crm.status = 500
    read = app.get(at(fact)).json()
    assert freshness_meta(read) == {"stale": True, "refreshFailure": "source-answered-500"}
    assert read["content"] == fact["content"]
    crm.status = 200
    assert app.get(at(fact)).json()["content"] == {"seat": "window"}


def test_a_source_that_hangs_costs_a_read_two_seconds_and_no_more(
    app: ApiClient, crm: Source
) -> None:
    fact = written(app, source=view(uri=crm.url, strategy="on-read"))
    crm.gate = threading.Event()
    started = time.monotonic()
    read = app.get(at(fact)).json()
    assert time.monotonic() - started < 4
    assert read["meta"]["stale"] is True
    assert read["meta"]["refreshFailure"] in ("fetch-timeout", "refresh-timeout")
    assert read["version"] == 1


def test_a_read_of_a_held_stale_view_leaves_it_as_it_is(app: ApiClient, crm: Source) -> None:
    source = view(uri=crm.url, strategy="on-read")
    fact = written(app, source=source, retention={"legalHold": True})
    read = app.get(at(fact)).json()
    assert (read["version"], read["content"]) == (1, fact["content"])
    assert freshness_meta(read) == {"stale": True, "refreshFailure": "legal-hold"}
    same = written(app, content={"seat": "window"}, source=source, retention={"legalHold": True})
    assert "stale" not in app.get(at(same)).json().get("meta", {})


def test_a_list_looks_after_its_stale_views_and_leaves_failing_ones_for_a_while(
    app: ApiClient, crm: Source
) -> None:
    fact = written(app, content={"seat": "aisle"}, source=view(uri=crm.url, strategy="on-read"))
    broken = written(app, source=view(uri=crm.url + "?x", strategy="on-read", handler="no-such"))
    plain = written(app)
    listed = app.get(FACTS).json()
    assert [one["id"] for one in listed["data"]] == [plain["id"], broken["id"], fact["id"]]
    assert listed["data"][2]["content"] == {"seat": "window"}
    assert freshness_meta(listed["data"][1]) == {
        "stale": True,
        "refreshFailure": "refresh-handler-missing",
    }
    assert listed["hasMore"] is False
    asked = len(crm.asked)
    app.get(FACTS)
    assert len(crm.asked) == asked


RETRIEVE = "/v1/memory/retrieve"


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_what_a_search_finds_is_refreshed_before_it_is_answered(
    app: ApiClient, crm: Source, mode: str
) -> None:
    source = view(uri=crm.url, strategy="on-read")
    fact = written(app, content={"seat": "aisle"}, source=source)
    plain = written(app, content={"seat": "aisle or any"})
    asked = {"mode": mode, **({} if mode == "list" else {"query": "an aisle seat"})}
    found = {one["fact"]["id"]: one for one in app.post(RETRIEVE, asked).json()["results"]}
    assert set(found) == {fact["id"], plain["id"]}
    assert found[fact["id"]]["fact"]["content"] == {"seat": "window"}
    assert found[fact["id"]]["fact"]["version"] == 2
    assert "stale" not in found[fact["id"]]["fact"].get("meta", {})
    assert all(("score" in one) is (mode != "list") for one in found.values())
    app.post(RETRIEVE, asked)
    assert len(crm.asked) == 1


def test_what_a_search_finds_and_can_not_refresh_is_said_to_be_stale(
    app: ApiClient, crm: Source
) -> None:
    fact = written(app, source=view(uri=crm.url, strategy="on-read"))
    crm.status = 500
    (found,) = app.post(RETRIEVE, {"mode": "list"}).json()["results"]
    assert freshness_meta(found["fact"]) == {
        "stale": True,
        "refreshFailure": "source-answered-500",
    }
    assert found["fact"]["content"] == fact["content"]


def test_the_binding_reads_and_searches_what_it_refreshed(
    live_acme: TenantKit, app: ApiClient, crm: Source
) -> None:
    binding = MemoryBinding.for_token(live_acme.token("agent", projects=["p1"]))
    source = view(uri=crm.url, strategy="on-read")
    fact = written(app, content={"seat": "aisle"}, source=source)
    listed = binding.list_facts(ListFactsInput(live_acme.slug))
    assert isinstance(listed, Ok)
    assert [(one["id"], one["version"]) for one in listed.value] == [(fact["id"], 2)]
    other = written(app, content="an aisle seat", source=source)
    found = binding.search_by_keyword(SearchByKeywordInput(live_acme.slug, "aisle"))
    assert isinstance(found, Ok)
    assert [(hit.fact["id"], hit.fact["version"]) for hit in found.value] == [(other["id"], 2)]


def test_sources_that_hang_cost_a_search_two_seconds_in_all(app: ApiClient, crm: Source) -> None:
    for number in range(5):
        written(app, source=view(uri=f"{crm.url}?{number}", strategy="on-read"))
    crm.gate = threading.Event()
    started = time.monotonic()
    found = app.post(RETRIEVE, {"mode": "list"}).json()["results"]
    assert time.monotonic() - started < 4
    assert [one["fact"]["meta"]["stale"] for one in found] == [True] * 5


def test_a_view_that_somebody_is_changing_is_left_to_them_and_costs_no_more_time(
    live_acme: TenantKit, app: ApiClient, crm: Source, app_conninfo: str
) -> None:
    fact = written(app, content={"seat": "aisle"}, source=view(uri=crm.url, strategy="on-read"))
    with psycopg.connect(app_conninfo) as other:
        other.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(live_acme.id)])
        other.execute("SELECT FROM fact WHERE id = %s FOR UPDATE", [fact["id"]])
        started = time.monotonic()
        read = app.get(at(fact))
        assert time.monotonic() - started < 4
    assert read.status_code == 200
    assert (read.json()["version"], read.json()["meta"]["stale"]) == (1, True)
    assert app.get(at(fact)).json()["version"] == 2


def test_readers_at_once_ask_the_source_once(live_acme: TenantKit, crm: Source) -> None:
    token = live_acme.token("app", projects=["p1"])
    fact = written(
        ApiClient(token), content={"seat": "aisle"}, source=view(uri=crm.url, strategy="on-read")
    )
    crm.gate = threading.Event()
    found: list[dict[str, Any]] = []

    def read() -> None:
        found.append(ApiClient(token).get(at(fact)).json())
        connection.close()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    assert crm.was_asked.wait(10)
    crm.gate.set()
    for reader in readers:
        reader.join()
    assert [one["version"] for one in found] == [2, 2, 2]
    assert len(crm.asked) == 1
    assert app_revisions(live_acme, fact) == [2, 1]


def app_revisions(kit: TenantKit, fact: dict[str, Any]) -> list[int]:
    data = kit.client("auditor").get(at(fact, "/revisions")).json()["data"]
    return [one["version"] for one in data]


def test_a_change_while_a_source_is_looked_at_is_not_lost(
    live_acme: TenantKit, app: ApiClient, crm: Source
) -> None:
    fact = written(app, source=view(handler="crm"))
    other = live_acme.client("app", projects=["p1"])

    def handler(request: RefreshRequest, seconds: float) -> Fetched:
        changing = threading.Thread(target=change)
        changing.start()
        changing.join()
        return Fetched({"seat": "of the source"})

    def change() -> None:
        assert other.post(at(fact, "/supersede"), {"content": "by hand"}).status_code == 200
        connection.close()

    with registry.handler_registered("crm", handler):
        answer = app.post(at(fact, "/refresh"))
    assert answer.json()["error"]["details"]["reason"] == "fact-changed"
    assert app.get(at(fact)).json()["content"] == "by hand"


_REQUEST = RefreshRequest("acme", "f", "note", "http-api", None, None, None, frozenset())


def _of(tenant: str, host: str) -> RefreshRequest:
    return dataclasses.replace(_REQUEST, tenant=tenant, uri=f"https://{host}/x")


def test_hanging_handlers_take_their_places_and_never_more() -> None:
    gate = threading.Event()

    def hangs(request: RefreshRequest, seconds: float) -> Unchanged:
        gate.wait(20)
        return Unchanged()

    started = time.monotonic()
    everywhere = [(hangs, _of(f"t{n}", "crm")) for n in range(AT_ONCE)]
    hung = look_at_all(everywhere, seconds=0.2)
    assert hung == [Failed("refresh-timeout")] * AT_ONCE
    assert look_at_all([(hangs, _REQUEST)], seconds=0.05) == [Failed("refresh-busy")]
    assert time.monotonic() - started < 2
    gate.set()
    assert look_at_all([(hangs, _REQUEST)], seconds=5) == [Unchanged()]


def test_what_hangs_leaves_places_for_other_sources_and_for_other_tenants() -> None:
    gate = threading.Event()

    def hangs(request: RefreshRequest, seconds: float) -> Unchanged:
        gate.wait(20)
        return Unchanged()

    def answers(request: RefreshRequest, seconds: float) -> Unchanged:
        return Unchanged("e")

    ours, theirs = _of("acme", "hung.example"), _of("globex", "hung.example")
    asked = [(hangs, ours)] * (OF_ONE_SOURCE + 1)
    found = look_at_all([*asked, (answers, _of("acme", "crm.example"))], seconds=0.2)
    timeouts = [Failed("refresh-timeout")] * OF_ONE_SOURCE
    assert found == [*timeouts, Failed("refresh-busy"), Unchanged("e")]
    more = [(hangs, _of("acme", f"{n}.example")) for n in range(OF_ONE_TENANT)]
    found = look_at_all([*more, (answers, theirs)], seconds=0.2)
    assert found.count(Failed("refresh-busy")) == OF_ONE_SOURCE
    assert found[-1] == Unchanged("e")
    gate.set()
    assert look_at_all([(hangs, ours)] * (OF_ONE_SOURCE + 3), seconds=5) == [Unchanged()] * 7


def test_handlers_come_from_installed_packages_by_their_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from importlib.metadata import EntryPoint

    from memory.fact_shape import Source as FactSource

    point = EntryPoint("crm", "memory.refresh.http_api:http_api", registry.GROUP)
    registry._installed.cache_clear()
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [point] if group == registry.GROUP else []
    )
    source = FactSource(kind="external-db", strategy="manual", handler="crm")
    named = registry.TenantHandlers.of_settings({"refreshHandlers": ["crm"]})
    assert named.handler_of(source) is registry.BUILT_IN["http-api"]
    assert registry.TenantHandlers().handler_of(source) is None
    registry._installed.cache_clear()
