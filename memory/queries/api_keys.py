"""Reading API keys: what each may do, how long, and when it was last used. Never its digest."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from memory.access import Quota
from memory.errors import KeyNotFound
from memory.instants import instant_text
from memory.queries.one_row import one_row
from memory.quotas import quota_wire

KeyStatus = Literal["active", "expired", "revoked"]
STATUSES: tuple[KeyStatus, ...] = ("active", "expired", "revoked")
ENDED = "ended"
"""A filter: expired or revoked."""

_STATUS = "CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired' ELSE 'active' END"
_COLUMNS = f"""k.id, k.prefix, k.name, k.role, k.all_containers, k.projects, k.orgs, k.users, k.participants, k.threads,
k.on_behalf_of, k.abilities, k.created_at, k.created_by, k.expires_at, k.revoked_at, k.last_used_at, {_STATUS},
k.quota_writes, k.quota_bytes, k.quota_subjects, k.quota_window_seconds"""


@dataclass(frozen=True, slots=True)
class ApiKeyView:
    """A key as it stands. `last_used_at` is kept to five minutes."""

    id: UUID
    prefix: str
    name: str
    role: str
    everything: bool
    projects: list[str]
    orgs: list[str]
    users: list[str]
    participants: list[str]
    threads: list[str]
    on_behalf_of: list[str]
    abilities: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    status: KeyStatus
    quota_writes: int | None = None
    quota_bytes: int | None = None
    quota_subjects: int | None = None
    quota_window_seconds: int = 3600

    @property
    def quota(self) -> Quota:
        return Quota(
            self.quota_writes, self.quota_bytes, self.quota_subjects, self.quota_window_seconds
        )

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "prefix": self.prefix,
            "name": self.name,
            "role": self.role,
            "status": self.status,
            "grants": {
                "all": self.everything,
                "projects": self.projects,
                "orgs": self.orgs,
                "users": self.users,
                "participants": self.participants,
                "threads": self.threads,
                "onBehalfOf": self.on_behalf_of,
            },
            "abilities": self.abilities,
            "createdAt": instant_text(self.created_at),
            "createdBy": self.created_by,
            "expiresAt": instant_text(self.expires_at),
            "revokedAt": None if self.revoked_at is None else instant_text(self.revoked_at),
            "quota": quota_wire(self.quota) if self.quota.bounds_something else None,
            "lastUsedAt": None if self.last_used_at is None else instant_text(self.last_used_at),
        }
        return {name: value for name, value in said.items() if value is not None}


def find_api_key(tenant_id: UUID, prefix: str) -> ApiKeyView:
    """One key. Raises KeyNotFound."""
    statement = (
        f"SELECT {_COLUMNS} FROM api_key k WHERE k.tenant_id = %s::uuid AND k.prefix = %s::text"
    )
    return one_row(statement, [tenant_id, prefix], ApiKeyView, KeyNotFound)


def list_api_keys(
    tenant_id: UUID, *, status: str | None = None, after: str | None = None, limit: int
) -> list[ApiKeyView]:
    """Keys, newest first, of one status or `ended`. after: the id of the last of the page before."""
    conditions = ["k.tenant_id = %(tenant)s::uuid"]
    if after is not None:
        conditions.append("k.id < %(after)s::uuid")
    if status == ENDED:
        conditions.append(f"{_STATUS} <> 'active'")
    elif status is not None:
        conditions.append(f"{_STATUS} = %(status)s::text")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM api_key k WHERE {' AND '.join(conditions)} ORDER BY k.id DESC LIMIT %(limit)s::int",
            {"tenant": tenant_id, "after": after, "status": status, "limit": limit},
        )
        return [ApiKeyView(*row) for row in cursor.fetchall()]
