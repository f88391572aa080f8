"""Bound how much one key may write in a window of time, or take the bound away. It holds from the key's next request."""

from memory.access import Principal, Quota
from memory.actions.append_log_entries import append_governance
from memory.errors import KeyNotFound
from memory.models import ApiKey
from memory.quotas import quota_wire
from memory.tenancy import tenant_context


def set_key_quota(*, principal: Principal, prefix: str, quota: Quota) -> None:
    """Raises PermissionDenied, KeyNotFound."""
    principal.needs_role("admin", "owner")
    with tenant_context(principal.tenant_id):
        changed = ApiKey.objects.filter(tenant_id=principal.tenant_id, prefix=prefix).update(
            quota_writes=quota.writes,
            quota_bytes=quota.bytes,
            quota_subjects=quota.subjects,
            quota_window_seconds=quota.window_seconds,
        )
        if not changed:
            raise KeyNotFound
        append_governance(
            principal=principal,
            payload={"type": "key.quota", "prefix": prefix, **quota_wire(quota)},
        )
