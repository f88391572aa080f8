"""What an evidence bundle of a run will weigh."""

from django.db import connection

from memory.access import Principal

# A line has three hashes, ids, times and names beside its payload; the reading copy has nearly the same again.
_OVERHEAD_BYTES = 420
_COPIES = 2
_FIXED_BYTES = 40_000
_SAMPLED = 500

_WEIGHT = """
SELECT coalesce(avg(octet_length(coalesce(e.payload_text, '')) + octet_length(e.scope_text)), 0)::float8 FROM (
  SELECT payload_text, scope_text FROM log_entry
  WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text ORDER BY sequence DESC LIMIT %(sampled)s::int
) e
"""


def estimated_bytes(principal: Principal, run_id: str, entries: int) -> int:
    """About how many bytes the bundle's files have, unpacked: from the run's newest entries."""
    with connection.cursor() as cursor:
        cursor.execute(_WEIGHT, {"tenant": principal.tenant_id, "run": run_id, "sampled": _SAMPLED})
        [weight] = cursor.fetchone()
    return int(_FIXED_BYTES + entries * _COPIES * (weight + _OVERHEAD_BYTES))
