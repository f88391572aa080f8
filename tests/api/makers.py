"""Makes one of everything through the API, in a place of a tenant: what the tests of every route are tried on."""

import secrets
from dataclasses import dataclass, field
from typing import Any

from memory.actions.seal_tenant import seal_tenant
from memory.tenancy import tenant_id_of
from tests.builders import ApiClient

PROJECT, USER = "project-own", "person-own"
OTHER_PROJECT, OTHER_USER = "project-other", "person-other"


def new_name(prefix: str = "n") -> str:
    return f"{prefix}-{secrets.token_hex(6)}"


@dataclass(frozen=True)
class Place:
    """Where things are made: a client of the tenant that may do anything, and the containers to put them in."""

    client: ApiClient
    project: str = PROJECT
    user: str = USER
    canary: str = "plain"
    made: list[str] = field(default_factory=list)
    """Every id that was made here."""

    def make(self, method: str, path: str, body: Any) -> Any:
        answer = self.client.request(method, path, body)
        assert answer.status_code in (200, 201), answer.content
        told = answer.json()
        self.made.extend(told[name] for name in ("id", "runId") if name in told)
        return told

    def scope(self) -> dict[str, str]:
        return {"projectId": self.project}


def fact(place: Place) -> str:
    body = {"type": "note", "scope": place.scope(), "content": {"said": place.canary}}
    return str(place.make("POST", "/v1/memory/facts", body)["id"])


def run(place: Place) -> str:
    name = new_name("run")
    body = {
        "kind": "user-message",
        "scope": place.scope(),
        "actor": place.canary,
        "payload": place.canary,
    }
    place.make("POST", f"/v1/memory/runs/{name}/log", body)
    return name


def sealed_run(place: Place) -> str:
    """A run under a signed checkpoint."""
    name, slug = run(place), place.client.get("/v1/memory/me").json()["tenant"]["id"]
    seal_tenant(tenant_id=tenant_id_of(slug), tenant_slug=slug)
    return name


def verification(place: Place) -> str:
    asked = {"runId": run(place)}
    answer = place.client.post("/v1/memory/verifications", asked)
    if answer.status_code == 429:
        # As many wait as may; no worker runs here.
        for one in place.client.get("/v1/memory/verifications?limit=200").json()["data"]:
            place.client.post(f"/v1/memory/verifications/{one['id']}/cancel", {})
        answer = place.client.post("/v1/memory/verifications", asked)
    assert answer.status_code == 202, answer.content
    made = str(answer.json()["id"])
    place.made.append(made)
    return made


def entry(place: Place) -> str:
    body = {
        "kind": "user-message",
        "scope": place.scope(),
        "actor": place.canary,
        "payload": place.canary,
    }
    return str(place.make("POST", f"/v1/memory/runs/{new_name('run')}/log", body)["id"])


def fact_type(place: Place) -> str:
    name = new_name("type")
    place.make("PUT", f"/v1/memory/types/{name}", {"contentSchema": {"title": place.canary}})
    return name


def new_key() -> str:
    """A record's key that nothing was remembered under."""
    return f"travel.seat_{secrets.token_hex(4)}"


def record_body(place: Place, **changed: Any) -> dict[str, Any]:
    return {
        "subject": {"type": "user", "id": place.user},
        "key": new_key(),
        "value": place.canary,
        "authority": "preference",
        "source": {
            "type": "user_stated",
            "evidence": {"kind": "message", "ref": new_name("message")},
            "observations": 1,
            "captured_at": "2026-03-01T09:30:00Z",
            "captured_by": "booker@2.1.0",
        },
        "scope": {
            "level": "user",
            "bindings": {},
            "valid_from": None,
            "valid_until": None,
            "revalidate_on": [],
        },
        "correction": {"route": "fix-value", "supersedes": [], "broadened": False},
        "lifecycle": {"sensitivity": "none", "retain_value_after_expiry": False},
        **changed,
    }


def record(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/records", record_body(place))["id"])


def receipt(place: Place) -> str:
    """The number of a receipt that can be undone."""
    acted = place.make("POST", f"/v1/memory/records/{record(place)}/routes/out-of-date", {})
    number = str(acted["receipt"]["number"])
    place.made.append(number)
    return number


def route_body(place: Place) -> dict[str, Any]:
    return {"name": new_name("route"), "label": place.canary}


def route(place: Place) -> str:
    name = str(place.make("POST", "/v1/memory/routes", route_body(place))["name"])
    place.made.append(name)
    return name


def policy_source_body(place: Place) -> dict[str, Any]:
    address = f"https://{new_name('policies')}.example.com/{place.canary}"
    return {"match": address, "fetch_url": address, "pointer": "/limit"}


def policy_source(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/policy-sources", policy_source_body(place))["id"])
