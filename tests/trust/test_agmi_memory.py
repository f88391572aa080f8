"""The public suite `agent-memory-integrity`: its six attacks on what an agent is given as memory.

The adapter maps agmi's channels to credentials, since a label is nothing here: what the user's application writes goes in with
the app's key, what an agent read somewhere with the agent's key, and a label that says "user" without the user's signature with
the agent's key too. The reader is an agent that takes as memory what is asserted or verified, which the server alone says.
"""

from typing import Any

import pytest
from agmi.adapters.semantic_base import MemoryItem, Retrieved, SemanticMemoryAdapter
from agmi.attacks.memory_specific import ALL_MEMORY_ATTACKS, MemoryAttackResult
from agmi.signing import KEYRING

from tests.builders import ApiClient, TenantKit
from tests.records.builders import body_of

FACTS = "/v1/memory/facts"
KEPT_OUT = [False] * 5
GOT_THROUGH = [True] * 5
CHANNELS = ("external", "laundered", "agent-laundered")
THROUGH_THE_APP: dict[str, list[bool]] = {
    "memory_injection": GOT_THROUGH,
    "retrieval_hijack": GOT_THROUGH,
    "indirect_prompt_injection": GOT_THROUGH,
    "update_poisoning": GOT_THROUGH,
    "metadata_poisoning": GOT_THROUGH,
}
"""What the application itself writes is its users' word: whoever has its key is believed. Stated in the README."""


class FactsAdapter(SemanticMemoryAdapter):
    """Facts of one tenant. Each reset begins with people that nobody has met."""

    name = "kindmem"

    def __init__(self, tenant: TenantKit) -> None:
        self._tenant = tenant
        self._round = 0
        self._app = tenant.client("app", everything=True)
        self._agent = tenant.client("agent", everything=True)
        self._readers: dict[str, ApiClient] = {}
        self.waited = 0

    def reset(self) -> None:
        self._round += 1
        self._readers = {}

    def _person(self, user_id: str) -> str:
        return f"{user_id}-{self._round}"

    def _writer(self, item: MemoryItem) -> ApiClient:
        is_signed = KEYRING.verify(item.user_id, item.source, item.text, item.signature)
        return self._app if item.source == "user" and is_signed else self._agent

    def add_memory(self, item: MemoryItem) -> None:
        writer = self._writer(item)
        body = {
            "type": "memory",
            "scope": {"userId": self._person(item.user_id)},
            "content": {"text": item.text},
        }
        answer = writer.post(FACTS, body)
        if answer.status_code == 202:
            self.waited += 1
            return
        fact = body_of(answer, 201)
        if item.metadata.get("trust") == "verified":
            # The pipeline's tag is a check by whoever has the right; an agent that asks for it is refused.
            checked = writer.post(f"{FACTS}/{fact['id']}/verify", {})
            assert checked.status_code == (200 if writer is self._app else 403)

    def retrieve(self, query: str, user_id: str, k: int = 5) -> list[Retrieved]:
        return self._found(query, user_id, k, trusted=("asserted", "verified"))

    def retrieve_where(
        self, query: str, user_id: str, where: dict[str, Any], k: int = 5
    ) -> list[Retrieved]:
        assert set(where) == {"trust"}
        return self._found(query, user_id, k, trusted=(where["trust"],))

    def _found(
        self, query: str, user_id: str, k: int, *, trusted: tuple[str, ...]
    ) -> list[Retrieved]:
        person = self._person(user_id)
        if person not in self._readers:
            self._readers[person] = self._tenant.client("agent", users=[person])
        asked = {"mode": "keyword", "query": query, "limit": 50}
        answer = body_of(self._readers[person].post("/v1/memory/retrieve", asked), 200)
        return [
            Retrieved(one["fact"]["content"]["text"], user_id, one.get("score", 0.0))
            for one in answer["results"]
            if one["fact"].get("trust", "asserted") in trusted
        ][:k]


@pytest.mark.parametrize("attack", ALL_MEMORY_ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_kept_out_on_every_channel_but_the_apps_own(
    acme: TenantKit, attack: type, capsys: pytest.CaptureFixture[str]
) -> None:
    result: MemoryAttackResult = attack().run(FactsAdapter(acme))
    with capsys.disabled():
        print(f"\n{result.attack}: {result.detail or result.error}")
    assert result.error is None
    if result.attack == "cross_session_bleed":
        assert result.channels == {"cross-user": KEPT_OUT}
        assert result.safe
        return
    external, laundered, through_the_app = (result.channels[channel] for channel in CHANNELS)
    assert external == KEPT_OUT
    assert laundered == KEPT_OUT
    assert through_the_app == THROUGH_THE_APP[result.attack]


def test_an_instruction_by_an_agent_is_not_even_served_to_a_reader_who_trusts_everything(
    acme: TenantKit,
) -> None:
    from agmi.attacks.memory_specific import PROMPT_INJECTION_FIXTURES, attacker_write

    adapter = FactsAdapter(acme)
    adapter.reset()
    for fixture in PROMPT_INJECTION_FIXTURES:
        adapter.add_memory(attacker_write(fixture.payload, "victim", "external"))
    assert adapter.waited == len(PROMPT_INJECTION_FIXTURES)
    reader = acme.client("agent", users=["victim-1"])
    for fixture in PROMPT_INJECTION_FIXTURES:
        asked = {"mode": "keyword", "query": fixture.query, "limit": 50}
        assert body_of(reader.post("/v1/memory/retrieve", asked), 200)["results"] == []
