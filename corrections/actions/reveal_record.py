"""Show an auditor what a memory says: who, which and why is logged first, and it holds for 15 minutes for the same reader."""

from django.db import connection
from django.utils import timezone

from corrections.actions.looking import HOLDS_FOR, check_reason
from memory.access import Principal
from memory.actions.reveal_records import reveal_records
from memory.records.record import Record


def reveal_record(*, principal: Principal, record: Record, reason: str) -> None:
    """Raises PermissionDenied, BadInput for an unknown reason."""
    principal.needs_role("owner", "admin", "auditor")
    check_reason(reason)
    reveal_records(principal=principal, records=[record], reason=reason)


def sees_value(principal: Principal, record: Record) -> bool:
    """Whether the reader may see what it says now: anybody but an auditor, and an auditor after a reveal of their own."""
    if principal.role != "auditor":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM record_act a WHERE a.tenant_id = %(tenant)s::uuid AND a.record_id = %(id)s::text "
            "AND a.act = 'revealed' AND a.actor = %(actor)s::text AND a.acted_at > %(since)s::timestamptz)",
            {
                "tenant": principal.tenant_id,
                "id": record.id,
                "actor": principal.writer,
                "since": timezone.now() - HOLDS_FOR,
            },
        )
        return bool(cursor.fetchone()[0])
