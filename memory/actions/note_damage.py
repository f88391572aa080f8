"""An append found that a run was cut or changed outside the product: say so where people look.

The append itself is refused. This runs after its transaction is rolled back: it marks the run as tampered, for the lists and the
pages of integrity, and writes an error to the server's log, once for each finding; to the record of governance, too, unless that
is the run in question.
"""

import structlog
from django.db import connection

from memory.access import system_principal
from memory.errors import RunDamaged
from memory.models.log import GOVERNANCE_RUN
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.integrity")

# The place: the first sequence that the head knows and that is not there, else the newest entry, which the head contradicts.
_NOTE = """
INSERT INTO run_verification (tenant_id, run_id, state, verified_to, first_bad_sequence, first_bad_class, verified_by)
SELECT %(tenant)s::uuid, %(run)s::text, 'tampered', place.bad - 1, place.bad, place.class, 'service:append'
FROM (
  SELECT CASE WHEN h.next_sequence > n.next THEN n.next ELSE greatest(n.next - 1, 0) END AS bad,
         CASE WHEN h.next_sequence > n.next THEN 'gap' ELSE 'link' END AS class
  FROM (SELECT coalesce(max(e.sequence) + 1, 0) AS next FROM log_entry e
        WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text) n
  LEFT JOIN run_head h ON h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
) place
ON CONFLICT (tenant_id, run_id) DO UPDATE
SET state = excluded.state, verified_to = excluded.verified_to, first_bad_sequence = excluded.first_bad_sequence,
    first_bad_class = excluded.first_bad_class, verified_at = clock_timestamp(), verified_by = excluded.verified_by
WHERE run_verification.state <> 'tampered'
RETURNING first_bad_sequence, first_bad_class
"""


def note_damage(error: RunDamaged) -> None:
    """Note what an append found. Call it when the refused transaction is over."""
    if error.tenant is None or connection.needs_rollback:
        return
    tenant_id, slug = error.tenant
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(_NOTE, {"tenant": tenant_id, "run": error.run_id})
        noted = cursor.fetchone()
    if noted is None:
        return  # it is known already
    sequence, tampering = noted
    log.error(
        "a run was damaged outside the product",
        tenant=slug,
        run=error.run_id,
        sequence=sequence,
        found=tampering,
    )
    if error.run_id == GOVERNANCE_RUN:
        return
    from memory.actions.append_log_entries import append_governance

    with tenant_context(tenant_id):
        append_governance(
            principal=system_principal(tenant_id, slug, id="sealer"),
            payload={
                "type": "run.damaged",
                "runId": error.run_id,
                "firstBad": {"sequence": sequence, "class": tampering},
            },
        )
