"""Change a fact's content: the next revision, and the current one closed. Scope and type stay.

What the change leaves out keeps its value, but for causes, which are those of this change. A held fact doesn't change. An agent
doesn't shorten a keep window that is still running, and changes what a person said or checked only once it was reviewed; when it
says the same again, the fact stays worth what it was.
"""

import dataclasses

from memory.access import Principal, check_write
from memory.actions.place_fact_hold import check_may_place_hold, place_fact_hold
from memory.actions.write_fact import check_source_time, index_plan, indexed
from memory.content_schema import check_content
from memory.endings import write_down_after_commit
from memory.errors import FactChanged, LegalHoldActive, RetentionViolation
from memory.fact_head import fact_to_change, lock_fact
from memory.fact_rows import RevisionRow, attribution_of, insert_revision, trust_of
from memory.fact_shape import FactChange, FactView, SealedContent, seal
from memory.instants import instant_text
from memory.records import clock
from memory.search.index import IndexPlan
from memory.trust.facts import (
    Waiting,
    is_a_persons,
    is_against_a_person,
    kept_within,
    put_off_for_review,
    waits_because,
)
from memory.webhooks.events import tell
from memory.write_policy import WritePolicy

_AGAINST = "contradicts-a-person"


def supersede_fact(
    *, principal: Principal, fact_id: str, change: FactChange, expect_version: int | None = None
) -> FactView | Waiting:
    """The next revision; or, of an agent, the change that waits for review.

    Concurrent changes are one after the other; with `expect_version` one wins.

    Raises FactNotFound, PermissionDenied, FactChanged, LegalHoldActive, RetentionViolation, ContentTooLarge,
    ContentSchemaViolated, InvariantViolated, BadInput.
    """
    seen, policy = fact_to_change(principal, fact_id)
    check_write(principal, seen.scope)
    if change.retention is not None and change.retention.legal_hold:
        check_may_place_hold(principal)
    content = seal(change.content)
    check_content(seen.type, policy.schema_text, change.content)
    why = waits_because(principal, seen.scope, change)
    if why is None and is_against_a_person(principal, seen, change, content):
        why = _AGAINST
    if why is not None:
        if expect_version is not None and expect_version != seen.version:
            raise FactChanged(fact_id=seen.id, current_version=seen.version)
        return _put_off(principal, seen, change, why)
    plan = index_plan(principal, policy, change.content)
    replaced = lock_fact(principal, fact_id, expect_version=expect_version, seen=seen)
    if is_against_a_person(principal, replaced, change, content):
        # Said or checked since it was seen.
        return _put_off(principal, replaced, change, _AGAINST)
    if replaced.is_held:
        raise LegalHoldActive(ids=[fact_id])
    fact = insert_revision(
        principal=principal,
        replaced=replaced,
        row=_next_row(principal, replaced, change, content, plan, policy),
        policy=policy,
    )
    if principal.is_agent:
        _check_keep_window(replaced, fact)
    else:
        write_down_after_commit(principal.tenant_id)
    check_source_time(change.source, fact)
    fact = indexed(principal, fact, plan)
    if change.retention is not None and change.retention.legal_hold:
        fact = place_fact_hold(principal=principal, fact=fact)
    if policy.has_webhooks:
        tell(principal, "fact.superseded", {"factId": fact.id, "version": fact.version})
    return fact


def _put_off(principal: Principal, seen: FactView, change: FactChange, why: str) -> Waiting:
    body = change.said or {"content": change.content}
    return put_off_for_review(
        principal, seen, "supersede", why, body=body, subjects=change.subjects
    )


def _next_row(
    principal: Principal,
    replaced: FactView,
    change: FactChange,
    content: SealedContent,
    plan: IndexPlan | None,
    policy: WritePolicy,
) -> RevisionRow:
    kind, writer = attribution_of(principal)
    retention = replaced.retention
    if change.retention is not None:
        retention = kept_within(
            principal,
            change.retention.after(retention),
            policy,
            now=clock.now(),
            replaced=replaced,
        )
    row = RevisionRow(
        content=content,
        retention=retention,
        # A source that is kept starts anew: its validators were of the old content.
        source=change.source or (replaced.source and replaced.source.of_other_content()),
        causes=change.causes,
        subjects=replaced.subjects if change.subjects is None else change.subjects,
        valid_from=change.valid_from or replaced.valid_from,
        valid_until=change.valid_until or replaced.valid_until,
        observed_at=change.observed_at or replaced.observed_at,
        trust=trust_of(principal),
        attributed_kind=kind,
        attributed_id=writer,
        words=plan.words if plan else None,
    )
    if not (principal.is_agent and is_a_persons(replaced)):
        return row
    # An agent said the same again: who said it, and who checked it, is as it was.
    return dataclasses.replace(
        row,
        trust=replaced.trust,
        verified_by=replaced.verified_by,
        verified_at=replaced.verified_at,
        attributed_kind=replaced.attributed_kind,
        attributed_id=replaced.attributed_id,
        generated_run_id=replaced.generated_run_id,
    )


def _check_keep_window(replaced: FactView, fact: FactView) -> None:
    ends = replaced.keep_ends_at
    if not replaced.is_kept or ends is None or replaced.keep_reason is None:
        return
    if fact.keep_ends_at is None or fact.keep_ends_at < ends:
        raise RetentionViolation(
            fact_id=fact.id, reason=replaced.keep_reason, until=instant_text(ends)
        )
