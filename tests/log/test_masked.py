"""What an auditor reads of a run: everything but what was said, until it is in the log why they look."""

from collections.abc import Iterator
from typing import Any

import pytest

from corrections.words import LOOKING_REASONS
from memory.actions.reveal_entries import REVEAL_REASONS
from tests.builders import ApiClient, TenantKit

SAID = "the code is 4711"
LOG = "/v1/memory/runs/run-1/log"


@pytest.fixture
def auditor(acme: TenantKit) -> ApiClient:
    agent = acme.client("agent", projects=["p1"])
    for number in range(3):
        body = {"id": f"e{number}", "kind": "user-message", "scope": {"projectId": "p1"}}
        agent.post(LOG, {**body, "payload": SAID} if number != 1 else body)
    return acme.client("auditor")


def revealed(auditor: ApiClient) -> Iterator[dict[str, Any]]:
    for act in auditor.get("/v1/memory/runs/kindmem.governance/log", {"limit": 200}).json()["data"]:
        if act["payload"]["type"] == "entries.revealed":
            yield act["payload"]


def test_payloads_are_left_out_for_an_auditor_at_every_door(
    auditor: ApiClient, acme: TenantKit
) -> None:
    page = auditor.get(LOG)
    one = auditor.get("/v1/memory/log/e0")
    assert SAID not in page.content.decode() + one.content.decode()
    assert [entry.get("meta") for entry in page.json()["data"]] == [
        {"masked": True},
        None,
        {"masked": True},
    ]
    assert one.json()["meta"] == {"masked": True}
    assert "payload" not in one.json()
    assert "contentHash" in one.json()
    assert list(revealed(auditor)) == []
    for role in ("admin", "app"):
        shown = acme.client(role, projects=["p1"]).get("/v1/memory/log/e0").json()
        assert (shown["payload"], "meta" in shown) == (SAID, False)


def test_a_reason_shows_them_once_it_is_logged_who_saw_which(auditor: ApiClient) -> None:
    page = auditor.get(LOG, {"reveal": "complaint", "limit": 1})
    assert page.json()["data"][0]["payload"] == SAID
    assert auditor.get("/v1/memory/log/e2", {"reveal": "incident"}).json()["payload"] == SAID
    assert list(revealed(auditor)) == [
        {
            "type": "entries.revealed",
            "runId": "run-1",
            "logEntryIds": [entry],
            "fromSequence": number,
            "toSequence": number,
            "reasonCode": reason,
        }
        for entry, number, reason in (("e0", 0, "complaint"), ("e2", 2, "incident"))
    ]


def test_what_has_nothing_to_show_is_not_logged_as_shown(
    auditor: ApiClient, acme: TenantKit
) -> None:
    auditor.get("/v1/memory/log/e1", {"reveal": "complaint"})
    acme.client("agent", projects=["p1"]).get(LOG, {"reveal": "complaint"})
    assert list(revealed(auditor)) == []


def test_a_reason_is_one_of_the_known(auditor: ApiClient) -> None:
    for reason in ("", "because", "Complaint"):
        answer = auditor.get(LOG, {"reveal": reason})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad-input")


def test_the_pages_and_the_api_know_the_same_reasons() -> None:
    assert set(LOOKING_REASONS) == set(REVEAL_REASONS)
