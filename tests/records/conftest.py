"""A tenant's people and keys, and the ways a test speaks with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

# Loading the routes takes longer on a busy machine than a test's open transaction may idle.
import kindmem.urls  # noqa: F401
from tests.builders import ApiClient, TenantKit
from tests.records.builders import a_record, body_of

RECORDS = "/v1/memory/records"
ANN = {"user_id": "ann"}


@dataclass
class Memory:
    """One key's view of the memory."""

    client: ApiClient

    def remember(self, value: Any = "aisle", **changes: Any) -> dict[str, Any]:
        return body_of(self.client.post(RECORDS, a_record(value, **changes)), 201)

    def recall(self, key: str = "travel.seat", **body: Any) -> dict[str, Any]:
        body.setdefault("context", ANN)
        return body_of(self.client.post("/v1/memory/recall", {"key": key, **body}), 200)

    def correct(self, new_value: Any, status: int = 201, **body: Any) -> dict[str, Any]:
        body = {"key": "travel.seat", "context": {**ANN, "trip_id": "T1"}, **body}
        return body_of(
            self.client.post("/v1/memory/correct", {"new_value": new_value, **body}), status
        )

    def get(self, record_id: str) -> dict[str, Any]:
        return body_of(self.client.get(f"{RECORDS}/{record_id}"), 200)

    def list(self, **query: Any) -> list[dict[str, Any]]:
        return body_of(self.client.get(RECORDS, query), 200)["data"]

    def forget(self, record_id: str, status: int = 200, **body: Any) -> dict[str, Any]:
        return body_of(self.client.post(f"{RECORDS}/{record_id}/forget", body), status)

    def confirm(self, record_id: str, status: int = 200, **body: Any) -> dict[str, Any]:
        return body_of(self.client.post(f"{RECORDS}/{record_id}/confirm", body), status)

    def explain(self, record_id: str, **query: Any) -> dict[str, Any]:
        return body_of(self.client.get(f"{RECORDS}/{record_id}/explain", query), 200)

    def history(self, record_id: str) -> list[dict[str, Any]]:
        return body_of(self.client.get(f"{RECORDS}/{record_id}/history"), 200)["data"]

    def emit(self, type: str, **bindings: Any) -> list[str]:
        body = {"type": type, **bindings}
        return body_of(self.client.post("/v1/memory/events", body), 200)["expired"]

    def says(self, subject: str = "ann", text: str = "yes", run: str = "chat") -> str:
        """Append the user's message to a run; its entry id."""
        body = {
            "kind": "user-message",
            "scope": {"userId": subject},
            "actor": f"user:{subject}",
            "payload": {"text": text},
        }
        return body_of(self.client.post(f"/v1/memory/runs/{run}/log", body), 201)["id"]

    def thinks(self, run: str, subject: str = "ann") -> dict[str, str]:
        """Append a thought about somebody to a run; the evidence that it is of an inference."""
        body = {"kind": "internal-thought", "scope": {"userId": subject}}
        answer = self.client.post(f"/v1/memory/runs/{run}/log", body)
        return {"kind": "trace", "ref": body_of(answer, 201)["id"]}


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"]))


@pytest.fixture
def agent(acme: TenantKit) -> Memory:
    return Memory(acme.client("agent", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"]))


@pytest.fixture
def admin(acme: TenantKit) -> Memory:
    return Memory(acme.client("admin"))


def governance(admin: Memory) -> list[dict[str, Any]]:
    """The payloads of the tenant's record acts, in order."""
    log = body_of(admin.client.get("/v1/memory/runs/kindmem.governance/log", {"limit": 200}), 200)[
        "data"
    ]
    return [
        entry["payload"] | {"entryId": entry["id"], "entryHash": entry["entryHash"]}
        for entry in log
        if entry["payload"]["type"].startswith("record.")
    ]
