"""Signed-in members of a tenant, as actions get them."""

import secrets
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection

from memory.access import Principal, system_principal
from memory.actions.create_member import create_member
from memory.api.authentication import principal_of_member
from memory.tenancy import tenant_context
from tests.builders import TenantKit


def member(kit: TenantKit, role: str = "admin", *, hours_ago: int = 48) -> Principal:
    """A member whose role was granted that long ago."""
    email = f"{role}-{secrets.token_hex(4)}@example.org"
    with tenant_context(kit.id):
        create_member(
            principal=system_principal(kit.id, kit.slug, id="tests"), email=email, role=role
        )  # type: ignore[arg-type]
        user: Any = get_user_model().objects.get(email=email)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE member SET role_granted_at = now() - %s * interval '1 hour' WHERE user_id = %s",
                [hours_ago, user.pk],
            )
        return principal_of_member(user.pk, kit.slug)


def just_now() -> datetime:
    return datetime.now(UTC)
