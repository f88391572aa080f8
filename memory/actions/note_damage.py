"""An append found that a run was cut or changed outside the product: say so where people look.

The append itself is refused. This runs after its transaction is rolled back: it marks the run as tampered, for the lists and the
pages of integrity, and writes an error to the server's log, once for each finding; to the record of governance, too, unless that
is the run in question.
"""

from django.db import connection

from memory.actions.raise_alarm import raise_alarm, remember
from memory.errors import RunDamaged
from memory.integrity.states import FirstBad, Tampering
from memory.tenancy import tenant_context

# The place: the first sequence that the head knows and that is not there, else the newest entry, which the head contradicts.
_PLACE = """
SELECT CASE WHEN h.next_sequence > n.next THEN n.next ELSE greatest(n.next - 1, 0) END, coalesce(h.next_sequence > n.next, false)
FROM (SELECT coalesce(max(e.sequence) + 1, 0) AS next FROM log_entry e
      WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text) n
LEFT JOIN run_head h ON h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
"""


def note_damage(error: RunDamaged) -> None:
    """Note what an append found. Call it when the refused transaction is over."""
    if error.tenant is None or connection.needs_rollback:
        return
    tenant_id, slug = error.tenant
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(_PLACE, {"tenant": tenant_id, "run": error.run_id})
        sequence, is_cut = cursor.fetchone()
        tampering = Tampering.GAP if is_cut else Tampering.LINK
        bad = FirstBad(error.run_id, sequence, tampering, "", "")
        # A run that is known to be bad stays so at the place that a verifier named.
        is_news = remember(cursor, tenant_id, bad, by="service:append", is_exact=False)
    if is_news:
        raise_alarm(
            tenant_id, slug, bad, words="a run was damaged outside the product", act="run.damaged"
        )
