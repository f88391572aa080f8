"""The keys of the record tests, and the admin's view of what waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import ApiClient, TenantKit
from tests.records.builders import body_of
from tests.records.conftest import Memory, admin, agent, app  # noqa: F401  # fixtures

REVIEWS = "/v1/memory/reviews"


@dataclass
class Reviewer:
    """An admin at the queue."""

    client: ApiClient

    def waiting(self, **query: Any) -> list[dict[str, Any]]:
        return body_of(self.client.get(REVIEWS, query), 200)["data"]

    def ids(self, **query: Any) -> list[str]:
        return [one["id"] for one in self.waiting(**query)]

    def one(self, kind: str, id: str, status: int = 200) -> dict[str, Any]:
        return body_of(self.client.get(f"{REVIEWS}/{kind}/{id}"), status)

    def approve(self, kind: str, id: str, status: int = 200, **body: Any) -> dict[str, Any]:
        return body_of(self.client.post(f"{REVIEWS}/{kind}/{id}/approve", body), status)

    def reject(self, kind: str, id: str, status: int = 200) -> dict[str, Any]:
        return body_of(self.client.post(f"{REVIEWS}/{kind}/{id}/reject", {}), status)


@pytest.fixture
def reviewer(acme: TenantKit) -> Reviewer:
    return Reviewer(acme.client("admin"))
