"""What the tests of facts send, and the few things they all do."""

from typing import Any

from tests.builders import ApiClient

FACTS = "/v1/memory/facts"
PLAIN: dict[str, Any] = {
    "type": "note",
    "scope": {"projectId": "p1"},
    "content": {"text": "likes window seats"},
}


def written(client: ApiClient, **changes: Any) -> dict[str, Any]:
    """The fact that a write of PLAIN with these changes answers."""
    answer = client.post(FACTS, {**PLAIN, **changes})
    assert answer.status_code == 201, answer.content
    fact: dict[str, Any] = answer.json()
    return fact


def at(fact: dict[str, Any] | str, suffix: str = "") -> str:
    """The path of a fact."""
    from urllib.parse import quote

    fact_id = fact if isinstance(fact, str) else fact["id"]
    return f"{FACTS}/{quote(fact_id, safe='')}{suffix}"


def refusal(answer: Any) -> tuple[int, str]:
    """(status, code) of an answer that refuses."""
    return answer.status_code, answer.json()["error"]["code"]
