"""Write a new fact: its head, first revision and index in the caller's transaction.

Who may: the write guard on the scope. What the server says: version, times, hash, size, trust, attribution, the run of the
causes. A taken id answers the same whether the caller could see its fact or not.
"""

import dataclasses

from memory.access import Principal, check_write, own_scope
from memory.actions.append_log_entries import append_governance
from memory.actions.place_fact_hold import check_may_place_hold, place_fact_hold
from memory.canonical import canonical
from memory.content_schema import check_content
from memory.errors import BadInput, InvariantViolated
from memory.fact_rows import RevisionRow, attribution_of, insert_fact, trust_of
from memory.fact_shape import FactDraft, FactView, Source, seal_draft
from memory.ids import is_addressable, new_text_id
from memory.instants import CLOCKS_APART
from memory.log_entry import ABSENT
from memory.records import clock
from memory.search.index import EMBED_WITHIN_SECONDS, IndexPlan, prepare, write_index
from memory.trust.facts import Waiting, kept_within, waits_because
from memory.write_policy import WritePolicy, write_policy


def write_fact(*, principal: Principal, draft: FactDraft) -> FactView | Waiting:
    """The fact as stored, version 1; or, of an agent, what waits for review, stored and not served.

    Raises ScopeMismatch, InvariantViolated, PermissionDenied, BadInput, ContentTooLarge, ContentHashMismatch,
    ContentSchemaViolated, IdTaken.
    """
    scope = own_scope(principal, draft.scope)
    if "participantId" in scope and "projectId" not in scope:
        # courtesy; fact_participant_needs_project decides
        raise InvariantViolated(invariant="participant-needs-project")
    if draft.id is not None and not is_addressable("fact", draft.id):
        raise BadInput.at("/id", "must not end like a path of the API, such as /verify")
    check_write(principal, scope)
    if draft.retention.legal_hold:
        check_may_place_hold(principal)
    content = seal_draft(draft)
    policy = write_policy(principal.tenant_id, draft.type)
    if draft.content is not ABSENT:
        check_content(draft.type, policy.schema_text, draft.content)
    plan = index_plan(principal, policy, draft.content)
    kind, writer = attribution_of(principal)
    row = RevisionRow(
        content=content,
        retention=kept_within(principal, draft.retention, policy, now=clock.now()),
        source=draft.source,
        causes=draft.causes,
        subjects=draft.subjects,
        valid_from=draft.valid_from,
        valid_until=draft.valid_until,
        observed_at=draft.observed_at,
        trust=trust_of(principal),
        attributed_kind=kind,
        attributed_id=writer,
        words=plan.words if plan else None,
        waits_because=waits_because(principal, scope, draft),
    )
    fact = insert_fact(
        principal=principal,
        fact_id=draft.id or new_text_id(),
        type=draft.type,
        scope_text=canonical(scope),
        row=row,
        policy=policy,
    )
    check_source_time(draft.source, fact)
    fact = indexed(principal, fact, plan)
    if draft.retention.legal_hold:
        fact = place_fact_hold(principal=principal, fact=fact)
    if row.waits_because is None:
        return fact
    append_governance(
        principal=principal,
        payload={"type": "fact.proposed", "factId": fact.id, "reason": row.waits_because},
    )
    return Waiting(fact.id)


def index_plan(
    principal: Principal,
    policy: WritePolicy,
    content: object,
    *,
    within_seconds: float = EMBED_WITHIN_SECONDS,
) -> IndexPlan | None:
    """What search will know of the content; computed before any lock. None when only a blob holds it."""
    if content is ABSENT:
        return None
    return prepare(
        policy=policy.type,
        language=principal.search_language,
        content=content,
        within_seconds=within_seconds,
    )


def indexed(principal: Principal, fact: FactView, plan: IndexPlan | None) -> FactView:
    """The fact with its index written, in the running transaction."""
    if plan is None:
        return fact
    write_index(tenant_id=principal.tenant_id, fact_id=fact.id, plan=plan)
    return dataclasses.replace(
        fact,
        embedding_model=None if plan.pending else plan.embedding_model,
        embedding_is_pending=plan.pending,
    )


def check_source_time(source: Source | None, fact: FactView) -> None:
    """A source can't have been checked after the write that says so, clocks a little apart aside. Raises BadInput."""
    said = source.last_verified_at if source is not None else None
    if said is not None and said > fact.recorded_at + CLOCKS_APART:
        raise BadInput.at("/source/freshness/lastVerifiedAt", "must not be in the future")
