"""Plain functions that build what a test needs through the product's own actions, and a client that speaks as one key."""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.test import Client

from memory.access import Principal, system_principal
from memory.actions.create_api_key import create_api_key
from memory.actions.create_tenant import create_tenant
from memory.api.authentication import principal_of_token
from memory.tenancy import tenant_context


@dataclass
class ApiClient:
    """Speaks JSON to the API with one key, in process."""

    token: str | None = None
    client: Client = field(default_factory=lambda: Client(raise_request_exception=True))

    def request(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> HttpResponse:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            given.setdefault("Authorization", f"Bearer {self.token}")
        data = raw if raw is not None else (json.dumps(body).encode() if body is not None else b"")
        return self.client.generic(
            method, path, data, content_type="application/json", headers=given
        )

    def get(self, path: str, query: dict[str, Any] | None = None, **headers: str) -> HttpResponse:
        from urllib.parse import urlencode

        return self.request("GET", path + ("?" + urlencode(query) if query else ""), **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.request("POST", path, {} if body is None else body, **headers)

    def put(self, path: str, body: Any, **headers: str) -> HttpResponse:
        return self.request("PUT", path, body, **headers)

    def delete(
        self, path: str, query: dict[str, Any] | None = None, **headers: str
    ) -> HttpResponse:
        from urllib.parse import urlencode

        return self.request("DELETE", path + ("?" + urlencode(query) if query else ""), **headers)


@dataclass
class TenantKit:
    """A tenant and quick ways to act in it."""

    id: UUID
    slug: str

    def token(
        self,
        role: str = "agent",
        *,
        may: Iterable[str] | None = None,
        everything: bool = False,
        **containers: Iterable[str],
    ) -> str:
        """A key's token; containers: projects, orgs, users, participants, threads, on_behalf_of."""
        with tenant_context(self.id):
            return create_api_key(
                principal=system_principal(self.id, self.slug, id="tests"),
                name=f"{role}-{secrets.token_hex(3)}",
                role=role,
                everything=everything,
                abilities=may,
                **containers,  # type: ignore[arg-type]  # one keyword a container kind
            ).token

    def client(self, role: str = "agent", **grants: Any) -> ApiClient:
        return ApiClient(self.token(role, **grants))

    def principal(self, role: str = "agent", **grants: Any) -> Principal:
        token = self.token(role, **grants)
        with tenant_context(self.id):
            return principal_of_token(token)


def make_tenant(slug: str | None = None, **settings: Any) -> TenantKit:
    slug = slug or f"t-{secrets.token_hex(5)}"
    return TenantKit(id=create_tenant(slug=slug, name=slug.title(), **settings), slug=slug)
