"""Makes holds, erasures, webhooks, keys, members, complaints and quarantines through the API, for the tests of every route."""

from typing import Any

from memory.access import system_principal
from memory.actions.run_erasure import run_due_erasures
from memory.tenancy import tenant_id_of
from tests.api.makers import Place, fact, new_name, record, record_body


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


def held_up_erasure(place: Place) -> str:
    """An erasure that a hold came in between of."""
    fact_id = fact(place)
    answer = place.client.post("/v1/memory/erasures", {"factId": fact_id})
    assert answer.status_code == 202, answer.content
    made = str(answer.json()["id"])
    place.made.append(made)
    place.make(
        "POST", "/v1/memory/legal-holds", {**hold_body(place), "scope": {"facts": [fact_id]}}
    )
    slug = place.client.get("/v1/memory/me").json()["tenant"]["id"]
    run_due_erasures(system_principal(tenant_id_of(slug), slug, id="eraser"))
    return made


def api_key_body(place: Place) -> dict[str, Any]:
    """A key that may do nearly nothing."""
    return {
        "name": new_name("key"),
        "role": "agent",
        "grants": {"users": [place.canary]},
        "abilities": ["read"],
    }


def api_key(place: Place) -> str:
    made = str(place.make("POST", "/v1/memory/keys", api_key_body(place))["key"]["prefix"])
    place.made.append(made)
    return made


def member_body(place: Place) -> dict[str, Any]:
    """A member whose address is nobody else's."""
    return {
        "email": f"{new_name('someone')}@example.com",
        "role": "person",
        "subject": f"{place.canary}-{new_name('subject')}",
    }


def member(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/members", member_body(place))["id"])


def complaint(place: Place) -> str:
    """The receipt number of a complaint that waits for an admin."""
    acted = place.make("POST", f"/v1/memory/records/{record(place)}/routes/wrong-person", {})
    number = str(acted["receipt"]["number"])
    place.made.append(number)
    return number


def suspicious_run(place: Place) -> str:
    """A run that something was remembered in."""
    name = new_name("run")
    body = record_body(place)
    body["source"]["evidence"] = {"kind": "trace", "ref": name}
    place.make("POST", "/v1/memory/records", body)
    place.made.append(name)
    return name


def quarantine(place: Place) -> str:
    body = {"run": suspicious_run(place), "reason": place.canary}
    return str(place.make("POST", "/v1/memory/quarantines", body)["id"])


def webhook_body(place: Place) -> dict[str, Any]:
    """A webhook that hears of nothing that these tests do."""
    name = f"{place.canary} {new_name('hook')}"[:100]
    return {"name": name, "url": "https://hooks.example.com/kindmem", "events": ["key.rotated"]}


def webhook(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/webhooks", webhook_body(place))["id"])


def dry_run(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/retention/sweeps", {})["id"])
