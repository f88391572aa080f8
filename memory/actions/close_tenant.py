"""Close a tenant: from the next request on nobody comes in, by key, account or page link, and the worker leaves it alone.

An owner closes it: never while a hold keeps something, since whoever must look after it could come in no more, and never while an
erasure is unfinished, since nothing would finish it. Nothing is destroyed; the page says what is kept and who takes it away.
`reopen_tenant` is the operator's way back.
"""

from django.db import connection
from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput, ErasureInProgress, LegalHoldActive
from memory.models import Tenant

_HOLDS = """
SELECT id::text FROM legal_hold WHERE tenant_id = %s::uuid AND released_at IS NULL ORDER BY placed_at, id LIMIT 100
"""
_ERASURES = """
SELECT EXISTS (SELECT FROM erasure WHERE tenant_id = %s::uuid AND status <> 'completed')
"""


def close_tenant(*, principal: Principal, slug: str) -> None:
    """Close the caller's tenant; `slug` is typed once more, so that nobody closes another than they mean.

    Raises PermissionDenied, BadInput, LegalHoldActive with the ids of the holds, ErasureInProgress.
    """
    principal.needs_role("owner")
    if slug != principal.tenant_slug:
        raise BadInput.at("/slug", "is not the name of this tenant")
    rows = Tenant.objects.filter(id=principal.tenant_id)
    # A hold's row refers to this one, so whoever is just placing one is waited for.
    rows.select_for_update().first()
    with connection.cursor() as cursor:
        cursor.execute(_HOLDS, [principal.tenant_id])
        if held := [row[0] for row in cursor.fetchall()]:
            raise LegalHoldActive(ids=held)
        cursor.execute(_ERASURES, [principal.tenant_id])
        if cursor.fetchone() == (True,):
            raise ErasureInProgress
    rows.update(closed_at=timezone.now())
    append_governance(principal=principal, payload={"type": "tenant.closed"})


def reopen_tenant(*, principal: Principal) -> None:
    """Let a closed tenant be used again. The operator's; whoever calls has found the tenant closed."""
    principal.needs_role("admin", "owner")
    Tenant.objects.filter(id=principal.tenant_id).update(closed_at=None)
    append_governance(principal=principal, payload={"type": "tenant.reopened"})
