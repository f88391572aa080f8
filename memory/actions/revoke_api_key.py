"""Revoke an API key: its next request is refused. Nothing brings it back."""

from datetime import datetime

from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import KeyNotFound
from memory.models import ApiKey
from memory.tenancy import tenant_context


def revoke_api_key(*, principal: Principal, prefix: str) -> datetime:
    """When the key was revoked: now, or earlier when it was revoked already. Raises PermissionDenied, KeyNotFound."""
    principal.needs_role("admin", "owner")
    with tenant_context(principal.tenant_id):
        key = (
            ApiKey.objects.select_for_update()
            .filter(tenant_id=principal.tenant_id, prefix=prefix)
            .first()
        )
        if key is None:
            raise KeyNotFound
        if key.revoked_at is not None:
            return key.revoked_at
        revoked_at = timezone.now()
        ApiKey.objects.filter(tenant_id=principal.tenant_id, prefix=prefix).update(
            revoked_at=revoked_at
        )
        append_governance(
            principal=principal, payload={"type": "key.revoked", "prefix": prefix, "role": key.role}
        )
    return revoked_at
