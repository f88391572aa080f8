"""What the worker does, by the names of `memory.work`: each job does one turn in one tenant, or, called, in every tenant.

A turn is small and bounded, in transactions of its own, and may be cut off anywhere: what is left is done the next time. It says
True when it stopped before its end and wants another turn soon.
"""

import functools
import time
from collections.abc import Callable
from uuid import UUID

import structlog
from django.db import connection

from memory.access import Principal, system_principal
from memory.actions.ask_witnesses import ask_witnesses
from memory.actions.back_fill_embeddings import back_fill_embeddings
from memory.actions.deliver_webhooks import deliver_webhooks, prune_deliveries
from memory.actions.expire_overdue import expire_overdue
from memory.actions.finish_holds import finish_holds
from memory.actions.maintain_pages import maintain_when_due
from memory.actions.note_damage import note_damage
from memory.actions.refresh_stale import refresh_stale
from memory.actions.reindex_facts import reindex_changed_types
from memory.actions.roll_back_quarantine import roll_back_freed
from memory.actions.run_erasure import run_due_erasures
from memory.actions.run_verifications import run_verifications
from memory.actions.seal_tenant import seal_tenant
from memory.actions.stamp_checkpoint import stamp_checkpoint
from memory.actions.sweep_retention import sweep_retention
from memory.endings import write_down
from memory.errors import DomainError, RunDamaged
from memory.integrity.rounds import Rounds, Turns
from memory.integrity.timestamps import chosen_authorities
from memory.integrity.witnesses import chosen_witnesses
from memory.ledgers import keep_ledger
from memory.records import clock
from memory.records.sealing import destroy_overdue
from memory.tenancy import all_tenants, tenant_context
from memory.work import WORKS

log = structlog.get_logger("kindmem.worker")

_ANSWERS_OF_ONE_STEP = 500
_REFRESH_SECONDS = 3.0
_REINDEX_SECONDS = 3.0
_ERASURE_SECONDS = 3.0
_HOLD_SECONDS = 3.0
_WITNESS_SECONDS = 4.0
_DROP_OLD_ANSWERS = """
DELETE FROM idempotency_key WHERE (tenant_id, principal, key) IN (
  SELECT tenant_id, principal, key FROM idempotency_key
  WHERE tenant_id = %(tenant)s::uuid AND expires_at <= now()
  ORDER BY expires_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED)
"""


class TenantJob:
    """A job that, called, takes each open tenant in turn. A rule that refuses in one tenant keeps no other from its turn."""

    def __init__(self, step: Callable[[UUID, str], object]) -> None:
        self._step = step
        functools.update_wrapper(self, step)

    def turn(self, tenant_id: UUID, slug: str) -> object:
        """One turn in one tenant. Raises whatever stopped it; a run that was found damaged is noted."""
        try:
            return self._step(tenant_id, slug)
        except RunDamaged as error:
            note_damage(error)
            raise

    def __call__(self) -> None:
        for tenant_id, slug in all_tenants():
            try:
                self.turn(tenant_id, slug)
            except DomainError as error:
                log.warning("job refused", job=self._step.__name__, tenant=slug, code=error.code)


def for_each_tenant(turn: Callable[[UUID, str], object]) -> TenantJob:
    """The job that does this turn, given a tenant's id and slug, in every tenant."""
    return TenantJob(turn)


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
            "SELECT hash_version, search_language, time_zone, log_ids FROM tenant WHERE id = %s::uuid",
            [tenant_id],
        )
        version, language, zone, log_ids = cursor.fetchone()
    return system_principal(
        tenant_id,
        slug,
        id=id,
        hash_version=version,
        search_language=language,
        time_zone=zone,
        log_ids=log_ids,
    )


@for_each_tenant
def sweep(tenant_id: UUID, slug: str) -> None:
    """What is past its retention and kept by no hold; and of records what nothing else says is due."""
    sweeper = server(tenant_id, slug, "sweeper")
    expire_overdue(principal=sweeper)
    roll_back_freed(principal=sweeper)
    sweep_retention(principal=sweeper)


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
def erase(tenant_id: UUID, slug: str) -> bool:
    """Erasures that wait, for some seconds a turn."""
    ends_at = time.monotonic() + _ERASURE_SECONDS
    run_due_erasures(server(tenant_id, slug, "eraser"), most_seconds=_ERASURE_SECONDS)
    return time.monotonic() >= ends_at


@for_each_tenant
def finish_large_holds(tenant_id: UUID, slug: str) -> bool:
    """Large holds that still take in what they name, or let go what they kept; a few seconds a turn."""
    return finish_holds(server(tenant_id, slug, "holds"), most_seconds=_HOLD_SECONDS)


def keep_ledgers() -> None:
    """Erasures, holds and what ended of every tenant, written down outside the database for a restore."""
    for tenant_id, slug in all_tenants():
        keep_ledger(tenant_id, slug)
        write_down(tenant_id, slug)


def maintain_pages() -> None:
    """Disk pages, after erasures: once a day at most, and only when there is something to clear."""
    maintain_when_due()


@for_each_tenant
def refresh(tenant_id: UUID, slug: str) -> bool:
    """Stale views that are refreshed in the background; a few seconds a turn, because their sources may be slow."""
    by = server(tenant_id, slug, "refresh")
    return not refresh_stale(principal=by, most_seconds=_REFRESH_SECONDS).is_done


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
def verify(tenant_id: UUID, slug: str) -> bool:
    """Verifications that were asked for, a few seconds a turn."""
    return run_verifications(server(tenant_id, slug, "verifier"))


@for_each_tenant
def deliver(tenant_id: UUID, slug: str) -> bool:
    """Events that webhooks wait for, a few seconds a turn: those webhooks that answer."""
    return deliver_webhooks(principal=server(tenant_id, slug, "webhooks"))


@for_each_tenant
def deliver_slowly(tenant_id: UUID, slug: str) -> bool:
    """The same for those that failed or took long when they were last told something."""
    return deliver_webhooks(principal=server(tenant_id, slug, "webhooks"), to_slow=True)


@for_each_tenant
def prune_webhook_log(tenant_id: UUID, slug: str) -> None:
    """Events and deliveries that are older than the log of deliveries goes back."""
    while prune_deliveries(tenant_id=tenant_id):
        pass


_CALLS: dict[str, Callable[[], None]] = {
    "seal": seal_moved,
    "witness": witness,
    "stamp": stamp,
    "fill-in-vectors": fill_in_vectors,
    "drop-old-answers": drop_old_answers,
    "sweep-retention": sweep,
    "expire-records": expire,
    "destroy-undo-copies": destroy_undo_copies,
    "run-erasures": erase,
    "keep-ledgers": keep_ledgers,
    "maintain-pages": maintain_pages,
    "finish-holds": finish_large_holds,
    "verify": verify,
    "refresh-stale": refresh,
    "reindex": reindex,
    "deliver-webhooks": deliver,
    "deliver-slowly": deliver_slowly,
    "prune-webhook-log": prune_webhook_log,
}
JOBS: list[tuple[str, float, Callable[[], None]]] = [
    (name, work.every_seconds, _CALLS[name]) for name, work in WORKS.items()
]
"""Name, how often the worker looks whether it is due, what does it in every tenant."""
