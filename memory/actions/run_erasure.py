"""Run an erasure from wherever it is to its end: each step is one transaction that moves its row on, so any of them
may be the last before a crash. One runner an erasure, by a lease.

settle waits once for the writers that could not know of it; after that nothing new can appear. A hold that came in between stops
it: it waits for the release, says so, and is tried again; from then it reaches what was there, and no writer waits for it. It is
in the ledger outside the database as completed before it is told so.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.canonical import canonical
from memory.erasure import stores
from memory.erasure.ledger import COLUMNS, HELD_UP, ErasureView, find_erasure, unfinished
from memory.erasure.reach import held_in_reach
from memory.erasure.rest import clear_rest
from memory.errors import ErasureNotFound, LedgerUnwritable, LegalHoldActive
from memory.ids import new_id
from memory.ledgers import write_ledger
from memory.page_maintenance import ask_for_maintenance
from memory.tenancy import tenant_context

LEASE = timedelta(seconds=20)
TRY_AGAIN = timedelta(minutes=5)
STORES: Final = ("facts", "records", "log", "rest")

_TAKE = """
UPDATE erasure SET runner = %(runner)s::uuid, lease_until = clock_timestamp() + %(lease)s::interval, status = 'running',
       started_at = coalesce(started_at, clock_timestamp())
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status <> 'completed'
  AND (lease_until IS NULL OR lease_until <= clock_timestamp())
"""
_MINE = f"""
SELECT {COLUMNS} FROM erasure WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid FOR UPDATE
"""
_MOVE_ON = """
UPDATE erasure SET phase = %(phase)s::text, store = %(store)s::text, after_run = %(run)s::text,
       after_sequence = %(sequence)s::bigint,
       counts_text = %(counts)s::text, last_error = NULL, lease_until = clock_timestamp() + %(lease)s::interval
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""
_COMPLETE = """
UPDATE erasure SET status = 'completed', phase = 'done', selector_id = NULL, selector_in_log = NULL,
       completed_at = clock_timestamp(), after_run = NULL, after_sequence = NULL, runner = NULL,
       lease_until = NULL, last_error = NULL
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""
_LET_GO = """
UPDATE erasure SET runner = NULL, lease_until = NULL
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid
"""
_PUT_OFF = """
UPDATE erasure SET attempts = attempts + 1, last_error = %(code)s::text, runner = NULL, lease_until = NULL,
       next_at = clock_timestamp() + %(later)s::interval,
       status = CASE WHEN %(held)s::bool THEN 'pending' ELSE status END,
       reaches_before = CASE WHEN %(held)s::bool THEN coalesce(reaches_before, clock_timestamp()) ELSE reaches_before END
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid
"""


def _nothing(erasure: ErasureView) -> None:
    """Nobody watches."""


def _always() -> bool:
    """To its end."""
    return True


@dataclass(frozen=True, slots=True)
class _Run:
    principal: Principal
    erasure_id: UUID
    runner: UUID

    def parameters(self, **more: Any) -> dict[str, Any]:
        return {
            "tenant": self.principal.tenant_id,
            "id": self.erasure_id,
            "runner": self.runner,
            "lease": LEASE,
            **more,
        }


def run_erasure(
    *,
    principal: Principal,
    erasure_id: UUID,
    on_step: Callable[[ErasureView], None] = _nothing,
    goes_on: Callable[[], bool] = _always,
) -> ErasureView:
    """The erasure, completed, or as another runner or a hold left it. Opens its own transactions; call it outside any.

    `goes_on` is asked after each step; a no leaves the rest to the next runner. Raises ErasureNotFound.
    """
    run = _Run(principal, erasure_id, new_id())
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        find_erasure(principal.tenant_id, erasure_id)
        cursor.execute(_TAKE, run.parameters())
        is_mine = cursor.rowcount == 1
    try:
        while is_mine:
            step = _step(run)
            if step is None:
                break
            on_step(step)
            is_mine = step.status != "completed"
            if is_mine and not goes_on():
                _let_go(run)
                is_mine = False
    except LegalHoldActive:
        _put_off(run, HELD_UP)
    except LedgerUnwritable as error:
        _put_off(run, error.code)
    except BaseException:
        _put_off(run, "interrupted")
        raise
    with tenant_context(principal.tenant_id):
        return find_erasure(principal.tenant_id, erasure_id)


def run_due_erasures(principal: Principal, *, most_seconds: float | None = None) -> int:
    """Run what waits, oldest first, for about so long; how many were taken up."""
    deadline = None if most_seconds is None else time.monotonic() + most_seconds

    def goes_on() -> bool:
        return deadline is None or time.monotonic() < deadline

    with tenant_context(principal.tenant_id):
        ids = unfinished(principal.tenant_id)
    for taken, erasure_id in enumerate(ids):
        if not goes_on():
            return taken
        run_erasure(principal=principal, erasure_id=erasure_id, goes_on=goes_on)
    return len(ids)


def _let_go(run: _Run) -> None:
    """Give the lease back, so that the next turn needn't wait for its end."""
    with tenant_context(run.principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(_LET_GO, run.parameters())


def _put_off(run: _Run, code: str) -> None:
    later = timedelta(0) if code == "interrupted" else TRY_AGAIN
    is_held_up = code == HELD_UP
    with tenant_context(run.principal.tenant_id), connection.cursor() as cursor:
        before = find_erasure(run.principal.tenant_id, run.erasure_id)
        cursor.execute(_PUT_OFF, run.parameters(code=code, later=later, held=is_held_up))
        if cursor.rowcount and is_held_up and before.last_error != HELD_UP:
            append_governance(
                principal=run.principal,
                payload={"type": "erasure.held-up", "erasureId": str(run.erasure_id)},
            )


def _step(run: _Run) -> ErasureView | None:
    """One transaction; the erasure after it, None when it is not ours any more."""
    tenant_id = run.principal.tenant_id
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(_MINE, run.parameters())
        row = cursor.fetchone()
        if row is None:
            return None
        erasure = ErasureView(*row)
        if erasure.phase != "erase":
            erasure = _prepare(run, erasure, cursor)
        elif erasure.store != "end":
            erasure = _clear(run, erasure)
        else:
            _complete(run, erasure, cursor)
            return find_erasure(tenant_id, run.erasure_id)
        cursor.execute(
            _MOVE_ON,
            run.parameters(
                phase=erasure.phase,
                store=erasure.store,
                run=erasure.after_run,
                sequence=erasure.after_sequence,
                counts=erasure.counts_text,
            ),
        )
        return erasure


def _prepare(run: _Run, erasure: ErasureView, cursor: Any) -> ErasureView:
    """seed and expand look at what is reached, settle waits for writers; each asks the holds. Raises LegalHoldActive."""
    if erasure.selector_id is None:
        raise ErasureNotFound
    if erasure.phase == "settle":
        cursor.execute(
            "SELECT pg_advisory_xact_lock(new_items_lock(%s::uuid))", [run.principal.tenant_id]
        )
    if held := held_in_reach(
        run.principal.tenant_id, erasure.kind, erasure.selector_id, before=erasure.reaches_before
    ):
        raise LegalHoldActive(ids=held)
    following = {"seed": "expand", "expand": "settle", "settle": "erase"}[erasure.phase]
    return replace(erasure, phase=following)


def _clear(run: _Run, erasure: ErasureView) -> ErasureView:
    after: tuple[str, int] | None = None
    if erasure.store == "facts":
        counts = stores.clear_facts(run.principal, erasure)
        is_empty = not counts
    elif erasure.store == "records":
        counts = stores.clear_records(run.principal, erasure)
        is_empty = not counts
    elif erasure.store == "log":
        before = (
            None
            if erasure.after_run is None or erasure.after_sequence is None
            else (erasure.after_run, erasure.after_sequence)
        )
        counts, after = stores.clear_payloads(run.principal, erasure, before)
        is_empty = after is None
    else:
        counts, is_empty = clear_rest(run.principal, erasure), True
    total = erasure.counts
    for store, count in counts.items():
        total[store] = total.get(store, 0) + count
    place = STORES.index(erasure.store) + 1
    following = (*STORES, "end")[place] if is_empty else erasure.store
    return replace(
        erasure,
        store=following,
        counts_text=canonical(total),
        after_run=after[0] if after else None,
        after_sequence=after[1] if after else None,
    )


def _complete(run: _Run, erasure: ErasureView, cursor: Any) -> None:
    """The identifier goes with the end. Raises LegalHoldActive never: nothing is left to hold; LedgerUnwritable."""
    if stores.has_remains(run.principal.tenant_id, erasure):
        raise RuntimeError("an erasure ended with something left")
    cursor.execute(_COMPLETE, run.parameters())
    ask_for_maintenance()
    append_governance(
        principal=run.principal,
        payload={
            "type": "erasure.completed",
            "erasureId": str(erasure.id),
            "selectorKind": erasure.kind,
            "selectorHmac": None if erasure.digest is None else bytes(erasure.digest).hex(),
            "counts": erasure.counts,
        },
    )
    done = find_erasure(run.principal.tenant_id, run.erasure_id)
    try:
        write_ledger(run.principal.tenant_slug, {"erasures": [done.ledger_entry()]})
    except OSError as error:
        raise LedgerUnwritable from error
