"""Refresh cached views: look at their sources outside any transaction, then write what was found, one transaction a fact.

Unchanged content moves `lastVerifiedAt` and makes no revision. Changed content is the next revision, with its cause in the log;
it is worth no more than what it replaces, and no longer verified. A failure, a held fact, content that a write would refuse, or
that reads like an instruction where the fact did not, changes nothing but the note of the failure. A reader waits: what is found
is written within the time that is left, a vector that would take longer is left to the back-fill, and a fact that somebody else
is changing is left to them.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import psycopg
from django.db import OperationalError, connection

from memory import admission
from memory.access import Principal, check_write, system_principal
from memory.actions.append_log_entries import append_governance
from memory.actions.write_fact import index_plan, indexed
from memory.content_schema import check_content
from memory.errors import (
    DomainError,
    FactNotFound,
    LegalHoldActive,
    RefreshFailed,
    RefreshHandlerMissing,
)
from memory.fact_head import fact_to_change, lock_fact
from memory.fact_rows import RevisionRow, insert_revision
from memory.fact_shape import FactView, SealedContent, Source, seal
from memory.fetcher import is_in_transaction
from memory.queries.facts import current_fact
from memory.refresh.handler import Fetched, RefreshError, RefreshRequest, Unchanged
from memory.refresh.look import Failed, Found, look_at_all
from memory.refresh.registry import TenantHandlers, tenant_handlers
from memory.search.index import EMBED_WITHIN_SECONDS, IndexPlan
from memory.tenancy import tenant_context
from memory.trust.instructions import reads_like_instruction

SECONDS_IN_ALL = 2.0
BEING_CHANGED = "fact-changing"
BRINGS_ORDERS = "source-reads-like-an-instruction"
# The rest is for writing what was found.
_SHARE_OF_LOOKING = 0.9
_LEAST_LOCK_SECONDS = 0.05
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


# Only while the revision that was looked after is still current: validators belong to its content.
_NOTE_UNCHANGED = """
UPDATE fact_freshness s
SET last_verified_at = clock_timestamp(), etag = coalesce(%(etag)s::text, s.etag),
    source_version = coalesce(%(source_version)s::text, s.source_version),
    last_attempt_at = clock_timestamp(), last_failure = NULL
FROM fact f
WHERE s.tenant_id = %(tenant)s::uuid AND s.fact_id = %(id)s::text
  AND f.tenant_id = s.tenant_id AND f.id = s.fact_id AND f.current_version = %(version)s::int
"""
_NOTE_FAILURE = """
UPDATE fact_freshness SET last_attempt_at = clock_timestamp(), last_failure = %(failure)s::text
WHERE tenant_id = %(tenant)s::uuid AND fact_id = %(id)s::text
"""


def refresh_fact(*, principal: Principal, fact_id: str) -> FactView:
    """The fact after its handler ran now. Opens its own transactions.

    Raises FactNotFound, PermissionDenied, RefreshHandlerMissing, RefreshFailed; LegalHoldActive when it brought something new.
    """
    with tenant_context(principal.tenant_id):
        fact = current_fact(principal, fact_id)
        check_write(principal, fact.scope)
    (failure,) = refresh_facts(principal=principal, facts=[fact])
    if failure == RefreshHandlerMissing.code:
        raise RefreshHandlerMissing(fact_id=fact_id)
    if failure == LegalHoldActive.code:
        raise LegalHoldActive(ids=[fact_id])
    if failure is not None:
        raise RefreshFailed(fact_id=fact_id, reason=failure)
    with tenant_context(principal.tenant_id):
        return current_fact(principal, fact_id)


def refresh_facts(
    *, principal: Principal, facts: Sequence[FactView], seconds: float = SECONDS_IN_ALL
) -> list[str | None]:
    """For each of these current facts the code of what failed, or None. `seconds` bound all of it together.

    The caller may read them; the server writes. Opens its own transactions; inside another one nothing is looked at.
    """
    if is_in_transaction():
        return ["in-transaction" for _ in facts]
    deadline = time.monotonic() + seconds
    with tenant_context(principal.tenant_id):
        registered = tenant_handlers(principal.tenant_id)
    asked = []
    for fact in facts:
        source = fact.source
        handler = registered.handler_of(source) if source is not None else None
        asked.append(
            None
            if source is None or handler is None
            else (handler, _request(principal, fact, source, registered))
        )
    found = iter(
        look_at_all([one for one in asked if one is not None], seconds=seconds * _SHARE_OF_LOOKING)
    )
    server = system_principal(
        principal.tenant_id,
        principal.tenant_slug,
        id="refresh",
        search_language=principal.search_language,
        hash_version=principal.hash_version,
        log_ids=principal.log_ids,
    )
    failures: list[str | None] = []
    for fact, one in zip(facts, asked, strict=True):
        outcome = Failed(RefreshHandlerMissing.code) if one is None else next(found)
        failures.append(_settle(server, fact, outcome, deadline))
    return failures


def _request(
    principal: Principal, fact: FactView, source: Source, registered: TenantHandlers
) -> RefreshRequest:
    return RefreshRequest(
        tenant=principal.tenant_slug,
        fact_id=fact.id,
        type=fact.type,
        source_kind=source.kind,
        uri=source.uri,
        etag=fact.etag,
        source_version=fact.source_version,
        hosts=registered.hosts,
    )


def _settle(server: Principal, fact: FactView, found: Found, deadline: float) -> str | None:
    """Write what was found. Returns the code of what failed."""
    try:
        if isinstance(found, Fetched):
            with _writing(server.tenant_id, deadline):
                _write_found(server, fact, found, deadline)
        elif isinstance(found, Unchanged):
            _check_validators(found)
            with _writing(server.tenant_id, deadline):
                _note_unchanged(server, fact, found.etag, found.source_version)
    except admission.BadInput:
        found = Failed("bad-input")
    except (DomainError, RefreshError) as error:
        found = Failed(error.code)
    except OperationalError as error:
        if not isinstance(error.__cause__, _BUSY):
            raise
        return BEING_CHANGED  # whoever holds the fact may hold its note too
    if not isinstance(found, Failed):
        return None
    with _writing(server.tenant_id, deadline), connection.cursor() as cursor:
        cursor.execute(
            _NOTE_FAILURE, {"tenant": server.tenant_id, "id": fact.id, "failure": found.code}
        )
    return found.code


def _brings_orders(fact: FactView, found: Fetched) -> bool:
    """Whether it reads like an instruction to an agent, and what a person or program wrote there does not."""
    return reads_like_instruction(found) and not (
        fact.content_text is not None and reads_like_instruction(json.loads(fact.content_text))
    )


def _check_validators(found: Fetched | Unchanged) -> None:
    """Validators go out with the fact, so they may tell nobody what to do, whatever the fact says. Raises RefreshError."""
    if reads_like_instruction([found.etag, found.source_version]):
        raise RefreshError(BRINGS_ORDERS)


@contextmanager
def _writing(tenant_id: UUID, deadline: float) -> Iterator[None]:
    """A transaction that waits for no lock past the deadline, a moment aside."""
    seconds = max(deadline - time.monotonic(), _LEAST_LOCK_SECONDS)
    with tenant_context(tenant_id):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('lock_timeout', %s::text, true)", [f"{round(seconds * 1000)}ms"]
            )
        yield


def _note_unchanged(
    server: Principal, fact: FactView, etag: str | None, source_version: str | None
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            _NOTE_UNCHANGED,
            {
                "tenant": server.tenant_id,
                "id": fact.id,
                "version": fact.version,
                "etag": etag,
                "source_version": source_version,
            },
        )


def _write_found(
    server: Principal, looked_after: FactView, found: Fetched, deadline: float
) -> None:
    """Raises admission.BadInput, RefreshError, and what a write raises."""
    content = seal(admission.admit_value(found.content))
    _check_validators(found)
    if content.hash == looked_after.content_hash:
        _note_unchanged(server, looked_after, found.etag, found.source_version)
        return
    if _brings_orders(looked_after, found):
        raise RefreshError(BRINGS_ORDERS)
    seen, policy = fact_to_change(server, looked_after.id)
    check_content(seen.type, policy.schema_text, found.content)
    left = min(EMBED_WITHIN_SECONDS, deadline - time.monotonic())
    plan = index_plan(server, policy, found.content, within_seconds=left)
    replaced = lock_fact(server, looked_after.id, expect_version=looked_after.version, seen=seen)
    if replaced.source is None:
        raise FactNotFound
    if replaced.is_held:
        raise LegalHoldActive(ids=[replaced.id])
    handler = replaced.source.handler or replaced.source.kind
    cause = append_governance(
        principal=server,
        payload={
            "type": "fact.refreshed",
            "factId": replaced.id,
            "version": replaced.version + 1,
            "handler": handler,
        },
    )
    fact = insert_revision(
        principal=server,
        replaced=replaced,
        row=_next_row(replaced, replaced.source, content, found, cause.id, handler, plan),
        policy=policy,
    )
    indexed(server, fact, plan)


def _next_row(
    replaced: FactView,
    source: Source,
    content: SealedContent,
    found: Fetched,
    cause_id: str,
    handler: str,
    plan: IndexPlan | None,
) -> RevisionRow:
    return RevisionRow(
        content=content,
        retention=replaced.retention,
        source=source.of_other_content(),
        etag=found.etag,
        source_version=found.source_version,
        causes=(cause_id,),
        subjects=replaced.subjects,
        valid_from=replaced.valid_from,
        valid_until=replaced.valid_until,
        observed_at=replaced.observed_at,
        trust="unverified" if replaced.trust == "unverified" else "asserted",
        attributed_kind="service",
        attributed_id=handler,
        words=plan.words if plan else None,
    )
