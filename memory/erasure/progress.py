"""Whether something may be written while erasures run: not about whom, or what, one of them takes."""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connection

from memory.errors import ErasureInProgress
from memory.fact_shape import FactView, Subject
from memory.records.bindings import Bindings

_RUNNING: Final = """
SELECT EXISTS (SELECT FROM erasure e WHERE e.tenant_id = %(tenant)s::uuid AND e.status <> 'completed' AND e.reaches_before IS NULL
  AND CASE e.selector_kind WHEN 'conversation' THEN e.selector_id = %(thread)s::text
      WHEN 'fact' THEN e.selector_id = %(fact)s::text ELSE e.selector_id = ANY(%(people)s::text[]) END)
"""


def check_none_erases(
    tenant_id: UUID,
    people: Iterable[Any],
    *,
    thread_id: Any = None,
    fact_id: str | None = None,
) -> None:
    """Raises ErasureInProgress. courtesy; erasure_is_not_running decides, where something new is written."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RUNNING,
            {
                "tenant": tenant_id,
                "people": [one for one in people if isinstance(one, str)],
                "thread": thread_id if isinstance(thread_id, str) else None,
                "fact": fact_id,
            },
        )
        if cursor.fetchone() == (True,):
            raise ErasureInProgress


def check_none_erases_of(
    tenant_id: UUID, subject_type: str, subject_id: str, bindings: Bindings
) -> None:
    """The same of a record. Raises ErasureInProgress."""
    people = [bindings.get("user_id"), bindings.get("participant_id")]
    if subject_type == "user":
        people.append(subject_id)
    check_none_erases(tenant_id, people, thread_id=bindings.get("thread_id"))


def check_none_erases_fact(
    tenant_id: UUID, fact: FactView, subjects: Sequence[Subject] | None = None
) -> None:
    """The same of a fact, and of those whom it would be about. Raises ErasureInProgress."""
    named = [one.id for one in (*fact.subjects, *(subjects or ()))]
    people = [fact.scope.get("userId"), fact.scope.get("participantId"), *named]
    check_none_erases(tenant_id, people, thread_id=fact.scope.get("threadId"), fact_id=fact.id)
