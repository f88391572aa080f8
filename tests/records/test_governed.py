"""Every act on records is an entry of the governance log, in its own transaction, and tells nothing of what is remembered."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory.actions.append_log_entries import append_governance
from memory.housekeeping import expire
from memory.records import acts
from tests.builders import TenantKit
from tests.records.builders import a_record, an_inference
from tests.records.conftest import ANN, RECORDS, Memory, governance

SECRETS = ("zq-old-value", "zq-new-value", "zq-why", "zq-person", "zq-statement")
OLD, NEW, WHY, PERSON, STATEMENT = SECRETS
HERS = {"user_id": PERSON}


@pytest.fixture
def acme(live_acme: TenantKit) -> TenantKit:
    return live_acme


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=[PERSON, "ann"]))


@pytest.fixture
def agent(acme: TenantKit) -> Memory:
    return Memory(acme.client("agent", users=[PERSON, "ann"]))


def route(name: str, **form: Any) -> Callable[[Memory, Memory, str], Any]:
    return lambda app, agent, record: app.client.post(f"{RECORDS}/{record}/routes/{name}", form)


def correcting(app: Memory, agent: Memory, record: str) -> Any:
    body = {"key": "travel.seat", "new_value": NEW, "context": {**HERS, "case": 1}, "reason": WHY}
    return app.client.post("/v1/memory/correct", body)


ACTS: dict[str, Callable[[Memory, Memory, str], Any]] = {
    "record.remembered": lambda app, agent, record: app.client.post(
        RECORDS, a_record(NEW, subject=PERSON, key="k.other")
    ),
    "record.corrected": correcting,
    "record.confirmed": route("confirm", reason=WHY),
    "record.forgotten": lambda app, agent, record: app.client.post(
        f"{RECORDS}/{record}/forget", {"reason": WHY}
    ),
    "record.expired": route("out-of-date", reason=WHY),
    "record.withdrawn": route("wrong-person", reason=WHY),
    "record.disputed": route("dispute", reason=WHY, statement=STATEMENT),
    "record.inference-refused": route("never-infer", reason=WHY),
    "record.proposed": lambda app, agent, record: agent.client.post(
        RECORDS, an_inference(NEW, subject=PERSON, level="task")
    ),
}


def remembered(app: Memory) -> str:
    record_id: str = app.remember(OLD, subject=PERSON, revalidate_on=["moved"])["id"]
    return record_id


@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_an_entry_that_holds_no_value_reason_or_person(
    app: Memory, agent: Memory, admin: Memory, name: str
) -> None:
    record = remembered(app)
    assert ACTS[name](app, agent, record).status_code in (200, 201, 202)
    told = governance(admin)
    assert [one["type"] for one in told] == ["record.remembered", name]
    text = json.dumps(told)
    assert not [secret for secret in SECRETS if secret in text]


def test_events_undo_and_what_the_worker_ends_are_entries_too(app: Memory, admin: Memory) -> None:
    record = remembered(app)
    number = ACTS["record.confirmed"](app, app, record).json()["receipt"]["number"]
    app.client.post(f"/v1/memory/receipts/{number}/undo", {})
    app.emit("moved", **HERS)
    app.remember(NEW, subject=PERSON, key="k.over", valid_until="2026-01-01")
    expire()
    told = governance(admin)
    assert [one["type"] for one in told][1:] == [
        "record.confirmed",
        "record.undone",
        "record.expired",
        "record.remembered",
        "record.expired",
    ]
    assert not [secret for secret in SECRETS if secret in json.dumps(told)]


class LogIsFull(Exception):
    """What the log says in the test below."""


@pytest.fixture
def no_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(**given: Any) -> None:
        append_governance(**given)
        raise LogIsFull

    with monkeypatch.context() as patch:
        patch.setattr(acts, "append_governance", refuse)
        yield


@pytest.mark.parametrize("name", [*ACTS, "emit", "undo"])
def test_without_its_entry_there_is_no_act(
    app: Memory, agent: Memory, admin: Memory, name: str, request: pytest.FixtureRequest
) -> None:
    record = remembered(app)
    number = ACTS["record.confirmed"](app, app, record).json()["receipt"]["number"]
    states = ("active", "superseded", "expired", "deleted")
    before = [app.list(status=state) for state in states], governance(admin)
    request.getfixturevalue("no_log")
    others = {
        "emit": lambda: app.client.post("/v1/memory/events", {"type": "moved", **HERS}),
        "undo": lambda: app.client.post(f"/v1/memory/receipts/{number}/undo", {}),
    }
    answer = others[name]() if name in others else ACTS[name](app, agent, record)
    assert answer.status_code == 500
    assert ([app.list(status=state) for state in states], governance(admin)) == before


def test_a_recall_is_in_the_callers_run_and_not_in_the_governance_log(
    app: Memory, agent: Memory, admin: Memory
) -> None:
    app.remember("aisle")
    agent.recall(context=ANN, run_id="run-1")
    assert [one["type"] for one in governance(admin)] == ["record.remembered"]
