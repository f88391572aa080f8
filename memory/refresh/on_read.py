"""What a read does about cached views that are stale and refreshed on read: it runs their handlers first, in two seconds in all.

A list looks after its few most urgent ones and leaves out those that failed moments ago; what isn't refreshed goes out marked
stale. Of readers that come at once one looks, and the others wait for it.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from memory.access import Principal
from memory.actions.refresh_facts import SECONDS_IN_ALL, refresh_facts
from memory.fact_shape import FactView
from memory.queries.facts import facts_by_ids
from memory.queries.retrieve import Retrieval, Retrieved, retrieve
from memory.tenancy import tenant_context

MOST_AT_ONCE = 8
LIST_RETRIES_AFTER = timedelta(seconds=30)

_lock = threading.Lock()
_looking: dict[tuple[UUID, str], threading.Event] = {}


def due_on_read(facts: Sequence[FactView]) -> list[FactView]:
    """Those that a read has to look after before it answers, the most urgent first."""
    stale = [(fact, fact.source) for fact in facts if fact.is_stale and fact.invalidated_at is None]
    due = [
        (fact, source)
        for fact, source in stale
        if source is not None and source.strategy == "on-read"
    ]
    if len(facts) > 1:
        recently = datetime.now(UTC) - LIST_RETRIES_AFTER
        due = [
            (fact, source)
            for fact, source in due
            if fact.last_failure is None
            or fact.last_attempt_at is None
            or fact.last_attempt_at < recently
        ]
    due.sort(key=lambda one: one[1].priority or 0, reverse=True)
    return [fact for fact, _ in due[:MOST_AT_ONCE]]


def refreshed_on_read(principal: Principal, facts: Sequence[FactView]) -> list[FactView]:
    """These current facts as they are once the due ones were looked after; one that is gone by then is left out.

    Opens its own transactions; call it outside any.
    """
    due = due_on_read(facts)
    if not due:
        return list(facts)
    deadline = time.monotonic() + SECONDS_IN_ALL
    with _claimed(principal.tenant_id, due) as (mine, others):
        refresh_facts(principal=principal, facts=mine, seconds=SECONDS_IN_ALL)
    for event in others:
        event.wait(max(0.0, deadline - time.monotonic()))
    with tenant_context(principal.tenant_id):
        now = {fact.id: fact for fact in facts_by_ids(principal, [fact.id for fact in due])}
    looked_after = {fact.id for fact in due}
    return [
        now.get(fact.id, fact) for fact in facts if fact.id in now or fact.id not in looked_after
    ]


def retrieved_on_read(principal: Principal, asked: Retrieval) -> Retrieved:
    """What a search finds, refreshed like any read; scores are of the content that was searched.

    Opens its own transactions; call it outside any. Raises what `retrieve` raises.
    """
    found = retrieve(principal, asked)
    scores = {fact.id: score for fact, score in found.results}
    now = refreshed_on_read(principal, [fact for fact, _ in found.results])
    return Retrieved([(fact, scores[fact.id]) for fact in now], found.meta, found.alike)


@contextmanager
def _claimed(
    tenant_id: UUID, facts: Sequence[FactView]
) -> Iterator[tuple[list[FactView], list[threading.Event]]]:
    """Those of the facts that nobody in this process looks after yet, and what to wait for about the others."""
    mine: list[FactView] = []
    others: list[threading.Event] = []
    with _lock:
        for fact in facts:
            running = _looking.get((tenant_id, fact.id))
            if running is None:
                _looking[tenant_id, fact.id] = threading.Event()
                mine.append(fact)
            else:
                others.append(running)
    try:
        yield mine, others
    finally:
        with _lock:
            done = [_looking.pop((tenant_id, fact.id)) for fact in mine]
        for event in done:
            event.set()
