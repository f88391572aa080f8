"""Requests that arrive again, late and in another order than they were sent: what is there in the end is what one delivery makes.

Each has a key of its own. A network may repeat and reorder; a client repeats what was not answered, or was refused for now.
"""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.races.test_append_races import assert_is_one_chain, chain_of

pytestmark = pytest.mark.faults

SCOPE = {"projectId": "p1"}
COUNT = 12
NOT_YET = (404, 409, 503)
"""What a change of something is told that did not arrive yet, or whose twin still runs."""


@dataclass(frozen=True)
class Sent:
    key: str
    path: str
    body: Any


def a_stream() -> list[Sent]:
    """Facts, two changes of each, entries alone and in batches."""
    sent = []
    for n in range(COUNT):
        fact = {"id": f"f{n}", "type": "note", "scope": SCOPE, "content": {"word": f"f{n}-1"}}
        sent.append(Sent(f"write-{n}", "/v1/memory/facts", fact))
        for version in (1, 2):
            change = {"content": {"word": f"f{n}-{version + 1}"}, "expectVersion": version}
            sent.append(Sent(f"change-{n}-{version}", f"/v1/memory/facts/f{n}/supersede", change))
        entry = {"kind": "tool-call", "scope": SCOPE, "payload": {"word": f"e{n}"}}
        sent.append(Sent(f"append-{n}", "/v1/memory/runs/r/log", entry))
        pair = {"entries": [{**entry, "payload": {"word": f"b{n}-{m}"}} for m in "12"]}
        sent.append(Sent(f"batch-{n}", "/v1/memory/runs/r/log/batch", pair))
    return sent


def delivered(client: ApiClient, one: Sent) -> tuple[int, bytes]:
    told = client.post(one.path, one.body, Idempotency_Key=one.key)
    assert told.status_code in (200, 201, *NOT_YET), told.content
    return told.status_code, told.content


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_the_order_and_however_often_each_request_is_done_once(
    seed: int, live_acme: TenantKit
) -> None:
    chance = random.Random(seed)
    token = live_acme.token("app", projects=["p1"])
    deliveries = [one for one in a_stream() for _ in range(chance.randint(1, 4))]
    chance.shuffle(deliveries)
    answers: dict[str, set[bytes]] = {}

    def carry(number: int) -> list[tuple[str, int, bytes]]:
        client = ApiClient(token)
        return [(one.key, *delivered(client, one)) for one in deliveries[number::4]]

    for told in at_once(4, carry):
        assert isinstance(told, list), told
        for key, status, content in told:
            if status < 300:
                answers.setdefault(key, set()).add(content)
    client = ApiClient(token)
    for one in sorted(a_stream(), key=lambda one: one.key):  # the client repeats until it is told
        status, content = delivered(client, one)
        assert status < 300, (one.key, content)
        answers.setdefault(one.key, set()).add(content)
    assert {key: len(found) for key, found in answers.items()} == dict.fromkeys(answers, 1)
    assert len(answers) == len(a_stream())
    for n in range(COUNT):
        revisions = client.get(f"/v1/memory/facts/f{n}/revisions").json()["data"]
        assert [one["content"]["word"] for one in revisions] == [f"f{n}-{v}" for v in (3, 2, 1)]
    entries = chain_of(live_acme, "r")
    assert_is_one_chain(entries, 3 * COUNT)
    words = Counter(entry["payload"]["word"] for entry in entries)  # type: ignore[index]  # as sent
    assert set(words.values()) == {1}
    places = {entry["payload"]["word"]: n for n, entry in enumerate(entries)}  # type: ignore[index]
    assert all(places[f"b{n}-2"] == places[f"b{n}-1"] + 1 for n in range(COUNT))
