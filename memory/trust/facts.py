"""Why an agent's act on a fact waits for a person: it reads like an instruction, would be read far and wide, or is against a
person's word. How it is kept until then. And how long an agent's word keeps a fact from being deleted.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.conf import settings

from memory.access import Principal, Scope
from memory.erasure.progress import check_none_erases_fact
from memory.fact_shape import (
    FactChange,
    FactDraft,
    FactView,
    Retention,
    SealedContent,
    Subject,
)
from memory.records.acts import Act
from memory.records.pending import put_off
from memory.trust.instructions import reads_like_instruction
from memory.write_policy import WritePolicy

MOST_DAYS_UNCHECKED: Final = 30
"""For so long an agent's word keeps a fact, where the setting lets unverified facts stay for ever."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A write that changed nothing that is served: the fact, or the act, of this id waits for review."""

    id: str


def is_wide(scope: Scope) -> bool:
    """Whether everybody in the tenant, or in an org, would read it. A project that the key holds is not wide."""
    return not any(scope.get(name) for name in ("projectId", "userId", "participantId", "threadId"))


def waits_because(principal: Principal, scope: Scope, said: FactDraft | FactChange) -> str | None:
    """`instruction`, `wide`, or None when it may be served at once. Every text of what is said counts, not its content alone."""
    if not principal.is_agent:
        return None
    if reads_like_instruction(said):
        return "instruction"
    return "wide" if is_wide(scope) else None


def is_a_persons(fact: FactView) -> bool:
    """Whether a person said what it says now, or it was checked: an agent alone neither changes nor deletes it."""
    return fact.trust == "verified" or fact.attributed_kind == "user"


def is_against_a_person(
    principal: Principal, fact: FactView, change: FactChange, content: SealedContent
) -> bool:
    """Whether an agent would change what a person said or checked. To say the same again is no change."""
    return principal.is_agent and is_a_persons(fact) and not _says_the_same(fact, change, content)


def _says_the_same(fact: FactView, change: FactChange, content: SealedContent) -> bool:
    window = fact.retention if change.retention is None else change.retention.after(fact.retention)
    return (
        (content.text, content.hash, content.ref)
        == (fact.content_text, fact.content_hash, fact.content_ref)
        and window.text() == fact.retention.text()
        and change.source in (None, fact.source)
        and change.subjects in (None, fact.subjects)
        and change.valid_from in (None, fact.valid_from)
        and change.valid_until in (None, fact.valid_until)
        and change.observed_at in (None, fact.observed_at)
    )


def kept_within(
    principal: Principal,
    said: Retention,
    policy: WritePolicy,
    *,
    now: datetime,
    replaced: FactView | None = None,
) -> Retention:
    """The window that is said; of an agent, no longer than its fact is read unchecked, or than what it changes, or policy, keeps.

    A keep window stands against deletion by anybody. How long that is, people and programs say; an agent may say less.
    """
    if not principal.is_agent or (said.keep_until is None and said.keep_days is None):
        return said
    day = timedelta(days=1)
    begins = now if replaced is None else replaced.created_at
    unchecked = settings.KINDMEM_UNVERIFIED_DAYS or MOST_DAYS_UNCHECKED
    ends = [now + unchecked * day, begins + (policy.keep_days or 0) * day]
    if replaced is not None:
        ends[0] = replaced.unverified_until or ends[0]
        ends += [] if replaced.keep_ends_at is None else [replaced.keep_ends_at]
    latest = max(ends)
    if said.keep_until is not None:
        return dataclasses.replace(said, keep_until=min(said.keep_until, latest))
    return dataclasses.replace(
        said, keep_days=min(said.keep_days or 1, max(1, math.ceil((latest - begins) / day)))
    )


def put_off_for_review(
    principal: Principal,
    fact: FactView,
    act: Literal["supersede", "delete"],
    why: str,
    *,
    body: Mapping[str, Any],
    subjects: Sequence[Subject] | None = None,
) -> Waiting:
    """Keep the act where nothing reads it. What it is about is what the fact was seen to be about. Raises ErasureInProgress."""
    check_none_erases_fact(principal.tenant_id, fact, subjects)
    named = [one.id for one in subjects or fact.subjects]
    person = fact.scope.get("userId") or fact.scope.get("participantId") or next(iter(named), None)
    return Waiting(
        put_off(
            Act(principal, "proposed"),
            name=act,
            body={**body, "expectVersion": fact.version},
            reason_code=why,
            fact_id=fact.id,
            subject=None if person is None else ("user", person),
        )
    )
