"""Delete a fact: its current revision is closed, reads no longer see it, history does until the sweep.

A hold refuses it, then a keep window that has not ended. An agent's deletion of what a person said or checked waits for review.
The index and every kept answer that holds the fact go at once. It is decided under the head's lock, in the transaction that
closes.
"""

import dataclasses

from django.db import connection

from memory.access import Principal
from memory.api.idempotency import withhold
from memory.endings import write_down_after_commit
from memory.erasure.progress import check_none_erases_fact
from memory.errors import LegalHoldActive, RetentionViolation, constraint_errors
from memory.fact_head import lock_fact
from memory.fact_shape import FactView
from memory.instants import instant_text
from memory.search.index import remove_index
from memory.trust.facts import Waiting, is_a_persons, put_off_for_review
from memory.webhooks.events import tell

_CLOSE = """
WITH closed AS (
  UPDATE fact_revision r
  SET invalidated_at = greatest(clock_timestamp(), r.recorded_at + interval '1 microsecond'),
      invalidated_by = %(writer)s::text, invalidation_reason = 'deleted'
  WHERE r.tenant_id = %(tenant)s::uuid AND r.fact_id = %(id)s::text AND r.version = %(version)s::int AND r.invalidated_at IS NULL
  RETURNING r.invalidated_at AS at
), head AS (
  UPDATE fact f SET deleted_at = closed.at, wording = NULL FROM closed
  WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text
)
SELECT at FROM closed
"""


def delete_fact(
    *, principal: Principal, fact_id: str, expect_version: int | None = None
) -> FactView | Waiting:
    """The closed revision; or, of an agent, the deletion that waits for review.

    Raises FactNotFound, PermissionDenied, FactChanged, LegalHoldActive, RetentionViolation, ErasureInProgress.
    """
    fact = lock_fact(principal, fact_id, expect_version=expect_version)
    check_none_erases_fact(principal.tenant_id, fact)
    if fact.is_held:
        raise LegalHoldActive(ids=[fact_id])
    if fact.is_kept and fact.keep_ends_at is not None and fact.keep_reason is not None:
        raise RetentionViolation(
            fact_id=fact.id, reason=fact.keep_reason, until=instant_text(fact.keep_ends_at)
        )
    if principal.is_agent and is_a_persons(fact):
        return put_off_for_review(principal, fact, "delete", "contradicts-a-person", body={})
    held = LegalHoldActive(ids=[fact_id])
    # A large hold may have been placed since the lock.
    with constraint_errors(fact_is_not_held=held), connection.cursor() as cursor:
        cursor.execute(
            _CLOSE,
            {
                "tenant": principal.tenant_id,
                "id": fact_id,
                "version": fact.version,
                "writer": principal.writer,
            },
        )
        (closed_at,) = cursor.fetchone()
    remove_index(tenant_id=principal.tenant_id, fact_ids=[fact_id])
    write_down_after_commit(principal.tenant_id)
    withhold(principal.tenant_id, f"fact:{fact_id}")
    tell(principal, "fact.deleted", {"factId": fact_id, "version": fact.version})
    return dataclasses.replace(
        fact,
        invalidated_at=closed_at,
        invalidated_by=principal.writer,
        invalidation_reason="deleted",
        is_stale=False,
        embedding_model=None,
        embedding_is_pending=False,
    )
