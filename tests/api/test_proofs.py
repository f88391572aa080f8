"""A signed-in person proves anew who they are for what widens, erases, exports or sets rules: by the API as on the page."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.utils import timezone

from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World, member_client
from tests.api.makers import USER, record
from tests.api.rows import AUDITORS, GOVERNORS, ROWS
from tests.builders import TenantKit
from tests.records.builders import an_inference, body_of

pytestmark = pytest.mark.usefixtures("live_db")

ASKS_FOR_NO_PROOF = {
    "memory.placeHold": "it keeps more, and is taken back only by two",
    "memory.previewHold": "it changes nothing",
    "memory.simulateRetention": "it changes nothing",
    "memory.requestHoldRelease": "it asks itself, and refuses with release-refused",
    "memory.approveHoldRelease": "it asks itself, and refuses with release-refused",
    "memory.withdrawHoldRelease": "the hold stays",
    "memory.registerRoute": "it changes words and addresses only",
    "memory.changeRoute": "it changes words and addresses only",
    "memory.registerPolicySource": "it names where a rule is kept",
    "memory.changePolicySource": "it names where a rule is kept",
    "memory.askVerification": "it reads",
    "memory.cancelVerification": "it ends reading",
    "memory.tryWebhook": "it sends a word that says nothing",
    "memory.replayWebhook": "it sends again what was sent",
    "memory.dryRunSweep": "it changes nothing",
    "memory.reviewHold": "the hold stays; only the day of its next look is set",
    "memory.previewErasure": "it changes nothing",
    "memory.previewQuarantine": "it changes nothing",
    "memory.placeQuarantine": "it is lifted again",
    "memory.liftQuarantine": "the page asks for none",
    "memory.rollBackQuarantine": "the page asks for none",
    "memory.approveReview": "deciding what waits is everyday work",
    "memory.rejectReview": "deciding what waits is everyday work",
    "memory.decideReviews": "deciding what waits is everyday work",
}
"""What only those who govern may do, and why the page doesn't ask either."""

WIDENING: dict[str, dict[str, Any]] = {
    "memory.correct": {"broaden": True},
    "memory.correctRecord": {"broaden": True},
    "memory.confirmRecord": {"broaden_to": {"level": "user", "bindings": {}}},
    "memory.actOnRoute": {"broaden_to": {"level": "user", "bindings": {}}},
}
_MATTER = [one for one in endpoints() if one.operation.matters is not None]
_ALWAYS = [one for one in _MATTER if one.id not in {*WIDENING, "memory.remember"}]


def long_ago() -> Any:
    seconds = settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    return time_machine.travel(timezone.now() + timedelta(seconds=seconds + 1), tick=True)


def refused(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 403, answer.content
    error = answer.json()["error"]
    assert error["code"] == "proof-wanted"
    return error["details"]


def test_what_only_those_who_govern_do_asks_for_a_proof_or_says_why_it_need_not() -> None:
    governing = {
        one.id
        for one in endpoints()
        if one.method != "GET" and set(ROWS[one.id].statuses) <= GOVERNORS | AUDITORS
    }
    asking = {one.id for one in _ALWAYS}
    assert governing - asking == set(ASKS_FOR_NO_PROOF)
    assert asking <= governing


@pytest.mark.parametrize("endpoint", _ALWAYS, ids=lambda endpoint: endpoint.id)
def test_a_session_that_proved_itself_long_ago_is_asked_again(
    endpoint: Endpoint, world: World
) -> None:
    row, member = ROWS[endpoint.id], world.callers["member:owner"]
    ids, body = row.ids_in(world.mine), row.smallest(world.mine)
    with long_ago():
        told = refused(member.request(endpoint.method, row.url(endpoint, ids), body))
    assert told == {"proveAt": "/account/prove/", "withinSeconds": 300}
    key = world.callers["admin"]
    with long_ago():
        answer = key.request(endpoint.method, row.url(endpoint, ids), body)
    assert answer.status_code == row.status, answer.content


@pytest.mark.parametrize("name", WIDENING)
def test_widening_asks_and_correcting_the_case_at_hand_does_not(name: str, world: World) -> None:
    endpoint = next(one for one in _MATTER if one.id == name)
    row, member = ROWS[name], world.callers["member:person"]
    ids, body = row.ids_in(world.mine), row.smallest(world.mine)
    with long_ago():
        refused(member.request(endpoint.method, row.url(endpoint, ids), {**body, **WIDENING[name]}))
        answer = member.request(endpoint.method, row.url(endpoint, ids), body)
    assert answer.status_code == row.status, answer.content


def test_what_was_refused_is_not_done_and_is_done_after_the_proof(acme: TenantKit) -> None:
    agent, own = acme.client("agent", users=[USER]), member_client(acme, "person")
    guess = an_inference("aisle", subject=USER, bindings={"trip_id": "T"})
    made = body_of(agent.post("/v1/memory/records", guess), 201)["id"]
    path = f"/v1/memory/records/{made}/confirm"
    wider = {"broaden_to": {"level": "user", "bindings": {}}}
    with long_ago():
        refused(own.post(path, wider))
    before = body_of(own.get(f"/v1/memory/records/{made}"), 200)
    assert before["scope"]["level"] != "user"
    after = body_of(own.post(path, wider), 200)
    assert after["scope"]["level"] == "user"


def test_a_record_that_comes_as_a_widened_correction_asks_too(world: World) -> None:
    member = world.callers["member:person"]
    known = body_of(member.get(f"/v1/memory/records/{record(world.mine)}"), 200)
    widened = {**ROWS["memory.remember"].smallest(world.mine)}
    widened["correction"] = {**known["correction"], "broadened": True, "supersedes": []}
    widened["correction"].pop("superseded_by", None)
    with long_ago():
        refused(member.post("/v1/memory/records", widened))
