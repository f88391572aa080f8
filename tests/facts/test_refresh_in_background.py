"""Stale views that are refreshed in the background: by priority, each once a sweep, and a failing source keeps none waiting."""

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from memory import housekeeping
from memory.access import system_principal
from memory.actions import refresh_stale as module
from memory.actions.refresh_stale import RefreshedStale, refresh_stale
from memory.refresh import registry
from memory.refresh.handler import Fetched, RefreshError, RefreshRequest, Unchanged
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import at, written
from tests.facts.sources import freshness_meta, set_settings, view


@pytest.fixture
def app(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("app", projects=["p1"])


class Crm:
    """A handler that notes whom it was asked about, and fails for those it is told to fail for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing: set[str] = set()

    def __call__(self, request: RefreshRequest, seconds: float) -> Fetched | Unchanged:
        self.asked.append(request.fact_id)
        if request.fact_id in self.failing:
            raise RefreshError("crm-down")
        return Fetched({"seat": "window"})


@pytest.fixture
def crm(live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crm]:
    set_settings(live_acme, refreshHandlers=["crm"])
    handler = Crm()
    # One at a time, so that the order in which they are asked can be told.
    monkeypatch.setattr(module, "BATCH", 1)
    with registry.handler_registered("crm", handler):
        yield handler


def stale(app: ApiClient, id: str, strategy: str = "background", **more: Any) -> dict[str, Any]:
    return written(app, id=id, source=view(handler="crm", strategy=strategy, **more))


def swept(kit: TenantKit, **more: Any) -> RefreshedStale:
    return refresh_stale(principal=system_principal(kit.id, kit.slug, id="refresh"), **more)


def test_a_sweep_looks_after_those_of_its_strategy_the_highest_priority_first(
    live_acme: TenantKit, app: ApiClient, crm: Crm
) -> None:
    stale(app, "low", priority=-1)
    stale(app, "none")
    stale(app, "high", priority=7)
    stale(app, "manual", strategy="manual")
    stale(app, "on-read", strategy="on-read")
    stale(app, "fresh", ttl=60, verified=None)
    assert app.delete(at(stale(app, "deleted", priority=9))).status_code == 200
    done = swept(live_acme)
    assert crm.asked == ["high", "none", "low"]
    assert (done.refreshed, done.failed, done.is_done) == (3, 0, True)
    read = app.get(at("high")).json()
    assert (read["version"], read["content"]) == (2, {"seat": "window"})
    assert freshness_meta(read) == {}
    swept(live_acme)
    assert len(crm.asked) == 3


def test_a_source_that_fails_is_tried_once_a_sweep_and_then_left_alone_for_a_while(
    live_acme: TenantKit, app: ApiClient, crm: Crm
) -> None:
    stale(app, "broken", priority=9)
    stale(app, "well")
    crm.failing = {"broken"}
    done = swept(live_acme)
    assert crm.asked == ["broken", "well"]
    assert done.wire() == {"refreshed": 1, "failed": 1, "failures": {"crm-down": 1}}
    assert freshness_meta(app.get(at("broken")).json()) == {
        "stale": True,
        "refreshFailure": "crm-down",
    }
    assert swept(live_acme).wire() == {"refreshed": 0, "failed": 0, "failures": {}}
    crm.failing = set()
    assert swept(live_acme, retries_after=timedelta(0)).refreshed == 1
    assert freshness_meta(app.get(at("broken")).json()) == {}


def test_a_view_that_is_stale_at_once_is_looked_after_once_a_sweep(
    live_acme: TenantKit, app: ApiClient, crm: Crm
) -> None:
    stale(app, "restless", ttl=0)
    assert swept(live_acme).refreshed == 1
    assert swept(live_acme).refreshed == 1
    assert crm.asked == ["restless"] * 2


def test_a_sweep_ends_when_its_time_is_over_and_says_that_more_is_left(
    live_acme: TenantKit, app: ApiClient, crm: Crm
) -> None:
    stale(app, "one")
    assert not swept(live_acme, most_seconds=0).is_done
    assert crm.asked == []


def test_the_worker_does_it_for_every_tenant(
    live_acme: TenantKit, app: ApiClient, crm: Crm
) -> None:
    stale(app, "one")
    jobs = {name: call for name, _, call in housekeeping.JOBS}
    jobs["refresh-stale"]()
    assert app.get(at("one")).json()["version"] == 2


def refresh_command(*arguments: str) -> tuple[Any, int]:
    out, code = StringIO(), 0
    try:
        call_command("refresh_stale", *arguments, "--json", stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return json.loads(out.getvalue()), code


def test_an_operator_refreshes_now_and_is_told_what_failed(
    live_acme: TenantKit, app: ApiClient, crm: Crm
) -> None:
    stale(app, "broken")
    stale(app, "well")
    crm.failing = {"broken"}
    said, code = refresh_command(live_acme.slug)
    assert said == {
        "tenant": live_acme.slug,
        "refreshed": 1,
        "failed": 1,
        "failures": {"crm-down": 1},
    }
    assert code == 1
    crm.failing = set()
    said, code = refresh_command(live_acme.slug)
    assert (said["refreshed"], said["failed"], code) == (1, 0, 0)


def test_an_operator_refreshes_all_tenants(live_acme: TenantKit, app: ApiClient, crm: Crm) -> None:
    stale(app, "one")
    said, _ = refresh_command()
    of_ours = [one for one in said["tenants"] if one["tenant"] == live_acme.slug]
    assert [one["refreshed"] for one in of_ours] == [1]
