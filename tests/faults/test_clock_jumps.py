"""The web server's clock is a day or a year off: the database's says what time it is, and nothing is hidden, ended or lost."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from memory.actions.sweep_retention import sweep_retention
from memory.errors import SweepRefused
from memory.instants import instant
from tests.builders import ApiClient, TenantKit
from tests.races.test_append_races import assert_is_one_chain, chain_of

pytestmark = pytest.mark.faults

JUMPS = {
    "a day ahead": timedelta(days=1),
    "a day back": timedelta(days=-1),
    "a year ahead": timedelta(days=365),
    "a year back": timedelta(days=-365),
}
SCOPE = {"projectId": "p1"}


def databases_now() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def write(client: ApiClient, word: str) -> dict[str, Any]:
    body = {"type": "note", "scope": SCOPE, "content": {"word": word}}
    told = client.post("/v1/memory/facts", body, Idempotency_Key=f"k-{word}")
    assert told.status_code == 201, told.content
    made: dict[str, Any] = told.json()
    return made


def append(client: ApiClient) -> dict[str, Any]:
    told = client.post("/v1/memory/runs/r/log", {"kind": "tool-call", "scope": SCOPE})
    assert told.status_code == 201, told.content
    made: dict[str, Any] = told.json()
    return made


@pytest.mark.parametrize("jump", JUMPS)
def test_a_servers_clock_that_jumps_changes_no_time_that_is_kept_and_ends_nothing(
    jump: str, live_acme: TenantKit
) -> None:
    client = live_acme.client("agent", projects=["p1"])
    before = [write(client, "before"), append(client)]
    with time_machine.travel(timezone.now() + JUMPS[jump], tick=True):
        meanwhile = [write(client, "meanwhile"), append(client)]
        assert write(client, "before")["id"] == before[0]["id"]  # a repeat is still known
        listed = client.get("/v1/memory/facts").json()["data"]
        assert {fact["content"]["word"] for fact in listed} == {"before", "meanwhile"}
    now = databases_now()
    for made in (*before, *meanwhile):
        at = instant(made.get("createdAt") or made["timestamp"])
        assert abs(at - now) < timedelta(minutes=2), made
    append(client)
    assert_is_one_chain(chain_of(live_acme, "r"), 3)
    times = [str(entry["timestamp"]) for entry in chain_of(live_acme, "r")]
    assert times == sorted(times)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_sweep_on_a_server_whose_clock_jumped_destroys_nothing(
    jump: str, live_acme: TenantKit
) -> None:
    client = live_acme.client("app", projects=["p1"])
    fact = write(client, "kept")
    assert client.delete(f"/v1/memory/facts/{fact['id']}").status_code == 200
    admin = live_acme.principal("admin")
    with time_machine.travel(timezone.now() + JUMPS[jump], tick=True), pytest.raises(SweepRefused):
        sweep_retention(principal=admin)
    revisions = client.get(f"/v1/memory/facts/{fact['id']}/revisions").json()["data"]
    assert [one["content"] for one in revisions] == [{"word": "kept"}]
