"""Reading members: who they are, what they may do here and since when. Accounts are read by address only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.errors import MemberNotFound
from memory.instants import instant_text
from memory.queries.one_row import as_uuid, one_row

STATUSES = ("active", "ended")
_COLUMNS = """m.id, m.user_id, u.email, u.last_login, m.role, m.role_granted_at, m.role_granted_by, m.subject_id,
m.created_at, m.left_at"""
_FROM = "FROM member m JOIN auth_user u ON u.id = m.user_id WHERE m.tenant_id = %(tenant)s::uuid"


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as it stands; `role_granted_at` is what the cooling-off of releases counts from."""

    id: UUID
    user_id: int
    email: str
    last_sign_in_at: datetime | None
    role: str
    role_granted_at: datetime
    role_granted_by: str | None
    subject: str | None
    created_at: datetime
    left_at: datetime | None

    @property
    def status(self) -> str:
        return "active" if self.left_at is None else "ended"

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": str(self.id),
            "email": self.email,
            "role": self.role,
            "status": self.status,
            "subject": self.subject,
            "roleGrantedAt": instant_text(self.role_granted_at),
            "roleGrantedBy": self.role_granted_by,
            "createdAt": instant_text(self.created_at),
            "endedAt": None if self.left_at is None else instant_text(self.left_at),
        }
        return {name: value for name, value in said.items() if value is not None}


def find_member(tenant_id: UUID, member_id: UUID | str) -> MemberView:
    """One member, also one who left. Raises MemberNotFound."""
    given = {"tenant": tenant_id, "id": as_uuid(member_id, MemberNotFound)}
    statement = f"SELECT {_COLUMNS} {_FROM} AND m.id = %(id)s::uuid"
    return one_row(statement, given, MemberView, MemberNotFound)


def list_members(
    tenant_id: UUID,
    *,
    status: str | None = "active",
    role: str | None = None,
    search: str | None = None,
    after: str | None = None,
    limit: int,
) -> list[MemberView]:
    """Members, newest first. search: part of the address. after: the id of the last of the page before."""
    conditions = {
        "m.left_at IS NULL": status == "active",
        "m.left_at IS NOT NULL": status == "ended",
        "m.role = %(role)s::text": role is not None,
        "position(lower(%(search)s::text) IN lower(u.email)) > 0": search is not None,
        "m.id < %(after)s::uuid": after is not None,
    }
    chosen = "".join(f" AND {sql}" for sql, is_on in conditions.items() if is_on)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} {_FROM}{chosen} ORDER BY m.id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "role": role,
                "search": search,
                "after": after,
                "limit": limit,
            },
        )
        return [MemberView(*row) for row in cursor.fetchall()]
