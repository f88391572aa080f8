"""Rotate an API key: a new one with the same grants, and an end for the old one.

For the overlap both work, so that whoever holds the old token can change it without a pause. A leaked key is revoked instead.
"""

import math
from datetime import timedelta

from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.create_api_key import CONTAINERS, MOST_DAYS, NewKey, insert_key
from memory.errors import BadInput, InvariantViolated, KeyNotFound
from memory.models import ApiKey
from memory.tenancy import tenant_context

MOST_OVERLAP_HOURS = 720


def rotate_key(*, principal: Principal, prefix: str, overlap_hours: int = 24) -> NewKey:
    """The new key; it lives as long as the old one was given. The old one ends after `overlap_hours`, or earlier by itself.

    Raises PermissionDenied, KeyNotFound, BadInput; InvariantViolated for a revoked key.
    """
    principal.needs_role("admin", "owner")
    if not 0 <= overlap_hours <= MOST_OVERLAP_HOURS:
        raise BadInput.at("overlap_hours", f"must be 0 to {MOST_OVERLAP_HOURS}")
    with tenant_context(principal.tenant_id):
        keys = ApiKey.objects.filter(tenant_id=principal.tenant_id, prefix=prefix)
        old = keys.select_for_update().first()
        if old is None:
            raise KeyNotFound
        if old.revoked_at is not None:
            raise InvariantViolated(invariant="revoked-key-stays-revoked")
        ends_at = timezone.now() + timedelta(hours=overlap_hours)
        if ends_at < old.expires_at:
            keys.update(expires_at=ends_at)
        lifetime = old.expires_at - old.created_at
        new = insert_key(
            principal,
            name=old.name,
            role=old.role,
            everything=old.all_containers,
            granted={kind: getattr(old, kind) for kind in CONTAINERS},
            abilities=old.abilities,
            expires_days=min(MOST_DAYS, max(1, math.ceil(lifetime / timedelta(days=1)))),
        )
        ApiKey.objects.filter(tenant_id=principal.tenant_id, prefix=new.prefix).update(
            quota_writes=old.quota_writes,
            quota_bytes=old.quota_bytes,
            quota_subjects=old.quota_subjects,
            quota_window_seconds=old.quota_window_seconds,
        )
        append_governance(
            principal=principal,
            payload={
                "type": "key.rotated",
                "prefix": prefix,
                "newPrefix": new.prefix,
                "overlapHours": overlap_hours,
            },
        )
    return new
