"""Where a memory was used: the newest recalls about its person that were part of a run, whoever asked and wherever.

A recall outside of any run is counted with the memory and has no entry.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.access import Principal
from memory.api.json_text import dumps
from memory.log_pseudonyms import pseudonym

LOOKED_THROUGH = 1000
"""So many of the person's newest recalls; older ones are not searched."""
SHOWN_MOST = 20

# 'retrieval' stands as a literal: the index is of those only.
USES = """
SELECT 'use', r.run_id, r.payload_text, r.recorded_at, r.writer FROM (
  SELECT e.run_id, e.recorded_at, e.writer, e.payload_text FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.kind = 'retrieval' AND e.user_id IN (%(subject)s::text, %(in_log)s::text)
  ORDER BY e.recorded_at DESC LIMIT %(looked)s::int
) r
WHERE position(%(named)s::text IN r.payload_text) > 0
ORDER BY r.recorded_at DESC LIMIT %(most)s::int
"""
"""A part of the statement that reads what belongs to a memory; newest first, at most SHOWN_MOST."""


@dataclass(frozen=True, slots=True)
class Use:
    """One recall that met the memory. `decision`: what the agent was told to do with it."""

    run_id: str
    at: datetime
    writer: str
    decision: str


def parameters_of(principal: Principal, record_id: str) -> dict[str, Any]:
    named = f'"recordId":{dumps(record_id)}'
    in_log = pseudonym(principal.tenant_id, principal.subject or "")
    return {"in_log": in_log, "named": named, "looked": LOOKED_THROUGH, "most": SHOWN_MOST}


def use_of(record_id: str, run_id: str, payload_text: str, at: datetime, writer: str) -> Use:
    """From a row of USES."""
    results = json.loads(payload_text).get("results", [])
    told = (str(one["decision"]) for one in results if one["recordId"] == record_id)
    return Use(run_id, at, writer, next(told, "none"))
