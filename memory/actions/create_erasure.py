"""Ask for an erasure: it is in the ledger at once, and from then nothing new is written about whom it is about.

A hold that it reaches refuses it whole, before anything is touched. The same request while one runs answers with that one.
"""

from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.erasure.ledger import (
    COLUMNS,
    PERSON_KINDS,
    ErasureView,
    find_erasure,
    ledger_key_id,
    selector_digest,
)
from memory.erasure.reach import held_in_reach
from memory.errors import LegalHoldActive
from memory.ids import new_id
from memory.ledgers import write_ledger_after_commit
from memory.log_pseudonyms import pseudonym
from memory.work import begin_soon

_RUNNING = f"""
SELECT {COLUMNS} FROM erasure
WHERE tenant_id = %(tenant)s::uuid AND status <> 'completed' AND selector_kind = %(kind)s::text
  AND selector_id = %(selector)s::text
ORDER BY created_at, id LIMIT 1
"""
_INSERT = """
INSERT INTO erasure (tenant_id, id, selector_kind, selector_id, selector_in_log, selector_digest, key_id, requested_by)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(kind)s::text, %(selector)s::text, %(in_log)s::text,
        %(digest)s::bytea, %(key)s::text, %(by)s::text)
"""


def create_erasure(*, principal: Principal, kind: str, selector_id: str) -> ErasureView:
    """The erasure, pending; the worker runs it. `kind` is one of the ledger's KINDS.

    Raises PermissionDenied, LegalHoldActive.
    """
    principal.needs_role("admin", "owner")
    tenant_id = principal.tenant_id
    digest = selector_digest(tenant_id, kind, selector_id)
    parameters: dict[str, Any] = {
        "tenant": tenant_id,
        "id": new_id(),
        "kind": kind,
        "selector": selector_id,
        "in_log": pseudonym(tenant_id, selector_id) if kind in PERSON_KINDS else None,
        "digest": digest,
        "key": ledger_key_id(),
        "by": principal.writer,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING, parameters)
        row = cursor.fetchone()
        if row is not None:
            return ErasureView(*row)
        if held := held_in_reach(tenant_id, kind, selector_id):
            raise LegalHoldActive(ids=held)
        cursor.execute(_INSERT, parameters)
    begin_soon("run-erasures", tenant_id)
    write_ledger_after_commit(tenant_id)
    append_governance(
        principal=principal,
        payload={
            "type": "erasure.requested",
            "erasureId": str(parameters["id"]),
            "selectorKind": kind,
            "selectorHmac": digest.hex(),
        },
    )
    return find_erasure(tenant_id, str(parameters["id"]))
