"""Makes holds and erasures through the API, for the tests of every route."""

from typing import Any

from tests.api.makers import Place, new_name


def hold_body(place: Place) -> dict[str, Any]:
    """A hold on nothing that is there."""
    return {"matter": place.canary, "reason": "a case", "scope": {"facts": [new_name("fact")]}}


def hold(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/legal-holds", hold_body(place))["id"])


def erasure_body(place: Place) -> dict[str, Any]:
    """An erasure of nothing that is there."""
    return {"factId": new_name("fact")}


def erasure(place: Place) -> str:
    answer = place.client.post("/v1/memory/erasures", erasure_body(place))
    assert answer.status_code == 202, answer.content
    made = str(answer.json()["id"])
    place.made.append(made)
    return made
