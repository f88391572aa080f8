"""The background refresh of one tenant: stale views of the strategy `background`, by priority, highest first, a batch at a time.

One sweep tries each view once, so that a source that fails keeps no other waiting; the worker comes back to those that failed
after a pause, an operator's sweep tries them at once. It may be stopped anywhere: what is left is still stale.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.refresh_facts import BEING_CHANGED, refresh_facts
from memory.queries.facts import IS_STALE, LIVE, facts_by_ids
from memory.tenancy import tenant_context

BATCH = 8
SECONDS_A_BATCH = 5.0
RETRIES_AFTER = timedelta(minutes=5)

# Of equal priority, what was checked longest ago.
_DUE = f"""
SELECT s.fact_id
FROM fact_freshness s JOIN fact f ON f.tenant_id = s.tenant_id AND f.id = s.fact_id
WHERE s.tenant_id = %(tenant)s::uuid AND s.strategy = 'background' AND {IS_STALE} AND {LIVE}
  AND coalesce(greatest(s.last_attempt_at, s.last_verified_at) < %(began)s::timestamptz, true)
  AND (s.last_failure IS NULL OR s.last_attempt_at IS NULL OR s.last_attempt_at < %(retried)s::timestamptz)
  AND s.fact_id <> ALL (%(passed)s::text[])
ORDER BY s.priority DESC, s.last_verified_at NULLS FIRST, s.fact_id LIMIT %(limit)s::int
"""


@dataclass(slots=True)
class RefreshedStale:
    """`refreshed`: looked at, changed or not. `failures`: how many of which code. `is_done`: nothing is left to try."""

    refreshed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    is_done: bool = False

    @property
    def failed(self) -> int:
        return self.failures.total()

    def wire(self) -> dict[str, Any]:
        failures = dict(sorted(self.failures.items()))
        return {"refreshed": self.refreshed, "failed": self.failed, "failures": failures}


def refresh_stale(
    *,
    principal: Principal,
    most_seconds: float | None = None,
    retries_after: timedelta = RETRIES_AFTER,
    on_batch: Callable[[RefreshedStale], Any] | None = None,
) -> RefreshedStale:
    """Refresh what is due, until nothing is or `most_seconds` have passed. Opens its own transactions; call it outside any.

    `retries_after`: how long a view is left alone once its source failed.
    """
    deadline = None if most_seconds is None else time.monotonic() + most_seconds
    done = RefreshedStale()
    began = _now(principal)
    passed: list[str] = []
    while deadline is None or time.monotonic() < deadline:
        with tenant_context(principal.tenant_id, durable=True):
            due = _due(principal, began, began - retries_after, passed)
            facts = facts_by_ids(principal, due)
        if not due:
            done.is_done = True
            break
        failures = refresh_facts(principal=principal, facts=facts, seconds=SECONDS_A_BATCH)
        # What another writer holds, or what just went, bears no note of this try.
        noted = {
            fact.id for fact, code in zip(facts, failures, strict=True) if code != BEING_CHANGED
        }
        passed += [fact_id for fact_id in due if fact_id not in noted]
        done.refreshed += failures.count(None)
        done.failures.update(code for code in failures if code is not None)
        if on_batch is not None:
            on_batch(done)
    return done


def _now(principal: Principal) -> datetime:
    with tenant_context(principal.tenant_id, durable=True), connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def _due(principal: Principal, began: datetime, retried: datetime, passed: list[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            _DUE,
            {
                "tenant": principal.tenant_id,
                "began": began,
                "retried": retried,
                "passed": passed,
                "limit": BATCH,
            },
        )
        return [row[0] for row in cursor.fetchall()]
