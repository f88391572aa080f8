"""What the worker does again and again, for every tenant: the list that `work` runs.

Each job takes one tenant at a time, in small bounded steps with transactions of their own, and may be cut off anywhere: what is
left is done the next time.
"""

import functools
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from memory.access import Principal, system_principal
from memory.actions.ask_witnesses import ask_witnesses
from memory.actions.back_fill_embeddings import back_fill_embeddings
from memory.actions.expire_overdue import expire_overdue
from memory.actions.maintain_pages import maintain_when_due
from memory.actions.note_damage import note_damage
from memory.actions.refresh_stale import refresh_stale
from memory.actions.reindex_facts import reindex_changed_types
from memory.actions.run_erasure import run_due_erasures
from memory.actions.run_verifications import run_verifications
from memory.actions.seal_tenant import seal_tenant
from memory.actions.stamp_checkpoint import stamp_checkpoint
from memory.actions.sweep_retention import sweep_retention
from memory.beside import Beside
from memory.errors import DomainError, RunDamaged
from memory.integrity.rounds import Rounds, Turns
from memory.integrity.timestamps import chosen_authorities
from memory.integrity.witnesses import chosen_witnesses
from memory.records import clock
from memory.records.sealing import destroy_overdue
from memory.tenancy import all_tenants, tenant_context

log = structlog.get_logger("kindmem.worker")

_ANSWERS_OF_ONE_STEP = 500
_REFRESH_SECONDS = 3.0
_REINDEX_SECONDS = 3.0
_WITNESS_SECONDS = 4.0
_DROP_OLD_ANSWERS = """
DELETE FROM idempotency_key WHERE (tenant_id, principal, key) IN (
  SELECT tenant_id, principal, key FROM idempotency_key
  WHERE tenant_id = %(tenant)s::uuid AND expires_at <= now()
  ORDER BY expires_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED)
"""


def for_each_tenant(step: Callable[[UUID, str], Any]) -> Callable[[], None]:
    """A job that takes each open tenant in turn. A rule that refuses in one tenant keeps no other from its turn."""

    @functools.wraps(step)
    def job() -> None:
        for tenant_id, slug in all_tenants():
            try:
                step(tenant_id, slug)
            except DomainError as error:
                if isinstance(error, RunDamaged):
                    note_damage(error)
                log.warning("job refused", job=step.__name__, tenant=slug, code=error.code)

    return job


@for_each_tenant
def fill_in_vectors(tenant_id: UUID, slug: str) -> None:
    """Vectors that could not be made with their write, until none is due."""
    while back_fill_embeddings(tenant_id=tenant_id).stored:
        pass


@for_each_tenant
def drop_old_answers(tenant_id: UUID, slug: str) -> None:
    """Answers kept for retries, once their day is over."""
    while True:
        with tenant_context(tenant_id), connection.cursor() as cursor:
            cursor.execute(_DROP_OLD_ANSWERS, {"tenant": tenant_id, "limit": _ANSWERS_OF_ONE_STEP})
            if cursor.rowcount < _ANSWERS_OF_ONE_STEP:
                return


def server(tenant_id: UUID, slug: str, id: str) -> Principal:
    """The server itself at work in one tenant: in its language and time zone, its log entries of its hash version."""
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT hash_version, search_language, time_zone FROM tenant WHERE id = %s::uuid",
            [tenant_id],
        )
        version, language, zone = cursor.fetchone()
    return system_principal(
        tenant_id,
        slug,
        id=id,
        hash_version=version,
        search_language=language,
        time_zone=zone,
    )


@for_each_tenant
def sweep(tenant_id: UUID, slug: str) -> None:
    """What is past its retention and kept by no hold."""
    sweep_retention(principal=server(tenant_id, slug, "sweeper"))


@for_each_tenant
def expire(tenant_id: UUID, slug: str) -> None:
    """Memory records past their last day, which lose their values with it."""
    expire_overdue(principal=server(tenant_id, slug, "sweeper"))


@for_each_tenant
def destroy_undo_copies(tenant_id: UUID, slug: str) -> None:
    """Sealed copies whose undo is over."""
    while True:
        with tenant_context(tenant_id):
            if destroy_overdue(tenant_id, clock.now()) == 0:
                return


@for_each_tenant
def erase(tenant_id: UUID, slug: str) -> None:
    """Erasures that wait, each to its end."""
    run_due_erasures(server(tenant_id, slug, "eraser"))


def maintain_pages() -> None:
    """Disk pages, after erasures: once a day at most, and only when there is something to clear."""
    maintain_when_due()


@for_each_tenant
def refresh(tenant_id: UUID, slug: str) -> None:
    """Stale views that are refreshed in the background; a few seconds a turn, because their sources may be slow."""
    refresh_stale(principal=server(tenant_id, slug, "refresh"), most_seconds=_REFRESH_SECONDS)


@for_each_tenant
def reindex(tenant_id: UUID, slug: str) -> None:
    """Facts of types whose declaration changed their searches; `fill_in_vectors` makes their vectors."""
    language = server(tenant_id, slug, "indexer").search_language
    reindex_changed_types(tenant_id=tenant_id, language=language, most_seconds=_REINDEX_SECONDS)


_ROUNDS = Rounds()
_WITNESSED = Turns()
_STAMPED = Turns()


@for_each_tenant
def seal_moved(tenant_id: UUID, slug: str) -> None:
    """Seal, sign and anchor what moved in the run log."""
    since = _ROUNDS.since(tenant_id)
    sealed = seal_tenant(tenant_id=tenant_id, tenant_slug=slug, since=since)
    _ROUNDS.took(tenant_id, since, sealed.looked_at)


def witness() -> None:
    """The newest checkpoints, to the chosen witnesses; a few seconds a turn, beginning where the last one ended."""
    witnesses = chosen_witnesses()
    if not witnesses:
        return
    ends_at = time.monotonic() + _WITNESS_SECONDS
    silent: set[str] = set()
    for tenant_id, slug in _WITNESSED.turn(all_tenants()):
        try:
            ask_witnesses(
                principal=system_principal(tenant_id, slug, id="witness"),
                witnesses=witnesses,
                silent=silent,
                seconds=ends_at - time.monotonic(),
            )
        except DomainError as error:
            log.warning("job refused", job="witness", tenant=slug, code=error.code)
        if time.monotonic() >= ends_at:
            return


def stamp() -> None:
    """The newest checkpoints, to the chosen time stamp authorities; a few seconds a turn, as with witnesses."""
    authorities = chosen_authorities()
    if not authorities:
        return
    ends_at = time.monotonic() + _WITNESS_SECONDS
    silent: set[str] = set()
    for tenant_id, slug in _STAMPED.turn(all_tenants()):
        stamp_checkpoint(
            principal=system_principal(tenant_id, slug, id="stamper"),
            authorities=authorities,
            silent=silent,
            seconds=ends_at - time.monotonic(),
        )
        if time.monotonic() >= ends_at:
            return


@for_each_tenant
def verify(tenant_id: UUID, slug: str) -> None:
    """Verifications that were asked for, a few seconds a turn."""
    run_verifications(server(tenant_id, slug, "verifier"))


JOBS: list[tuple[str, float, Callable[[], None]]] = [
    ("seal", 3.0, seal_moved),
    ("witness", 3.0, Beside(witness)),
    ("stamp", 30.0, Beside(stamp)),
    ("fill-in-vectors", 2.0, fill_in_vectors),
    ("drop-old-answers", 600.0, drop_old_answers),
    ("sweep-retention", 3600.0, sweep),
    ("expire-records", 300.0, expire),
    ("destroy-undo-copies", 60.0, destroy_undo_copies),
    ("run-erasures", 3.0, erase),
    ("maintain-pages", 600.0, maintain_pages),
    ("verify", 1.0, verify),
    ("refresh-stale", 5.0, refresh),
    ("reindex", 2.0, reindex),
]
"""Name, seconds between two turns, what to call."""
