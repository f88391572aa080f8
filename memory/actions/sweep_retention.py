"""Destroy what is due, in batches that stand alone: each is one transaction with its evidence and its log entry.

One runner a tenant: the sweep's row is moved on in the same transaction as its batch, by the runner that holds the lease. Whoever
comes after a runner that died takes the same sweep up where it was. A dry run asks the same question, takes nothing, and counts
the same. A sweep refuses while the tenant has it switched off, and when the clock has jumped.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.canonical import canonical
from memory.destruction import MOST_AT_ONCE, destroy_facts
from memory.errors import SweepOff, SweepRefused, SweepRunning
from memory.ids import new_id
from memory.retention import (
    BRANCHES,
    Branch,
    count_due,
    due_facts,
    erasing_and_due,
    held_and_due,
)
from memory.tenancy import tenant_context

LEASE = timedelta(seconds=20)
CLOCKS_APART = timedelta(minutes=5)
LONGEST_SILENCE = timedelta(days=45)

_STATE = """
SELECT clock_timestamp(), coalesce((t.settings -> 'retention' ->> 'sweepIsOff')::bool, false), c.seen_at
FROM tenant t LEFT JOIN sweep_clock c ON c.tenant_id = t.id WHERE t.id = %(tenant)s::uuid
"""
_SEE = """
INSERT INTO sweep_clock AS c (tenant_id, seen_at) VALUES (%(tenant)s::uuid, %(now)s::timestamptz)
ON CONFLICT ON CONSTRAINT sweep_clock_pkey DO UPDATE SET seen_at = excluded.seen_at
"""
_RUNNING = """
SELECT id, branch, after_at, after_id, counts_text, types_text, batches, destroyed_count, lease_until > clock_timestamp()
FROM sweep WHERE tenant_id = %(tenant)s::uuid AND status = 'running' FOR UPDATE
"""
_TAKE_UP = """
UPDATE sweep SET runner = %(runner)s::uuid, lease_until = clock_timestamp() + %(lease)s::interval
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""
_BEGIN = """
INSERT INTO sweep (tenant_id, id, is_dry_run, status, started_by, runner, lease_until)
VALUES (%(tenant)s::uuid, %(id)s::uuid, false, 'running', %(by)s::text, %(runner)s::uuid, clock_timestamp() + %(lease)s::interval)
ON CONFLICT (tenant_id) WHERE status = 'running' DO NOTHING
"""
_MOVE_ON = """
UPDATE sweep
SET branch = %(branch)s::text, after_at = %(after_at)s::timestamptz, after_id = %(after_id)s::text,
    counts_text = %(counts)s::text, types_text = %(types)s::text, batches = %(batches)s::int,
    destroyed_count = %(destroyed)s::bigint, due_count = %(destroyed)s::bigint,
    lease_until = clock_timestamp() + %(lease)s::interval
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid AND status = 'running'
"""
_END = """
UPDATE sweep SET status = %(status)s::text, finished_at = clock_timestamp(), stopped_because = %(why)s::text,
                 held_count = %(held)s::bigint, erasing_count = %(erasing)s::bigint, runner = NULL, lease_until = NULL
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid AND status = 'running'
"""
_LET_GO = """
UPDATE sweep SET lease_until = NULL
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND runner = %(runner)s::uuid AND status = 'running'
"""
_KEEP_DRY_RUN = """
INSERT INTO sweep (tenant_id, id, is_dry_run, status, started_by, finished_at, due_count, held_count, erasing_count,
                   counts_text, types_text, batches)
VALUES (%(tenant)s::uuid, %(id)s::uuid, true, 'done', %(by)s::text, clock_timestamp(), %(due)s::bigint, %(held)s::bigint,
        %(erasing)s::bigint, %(counts)s::text, %(types)s::text, %(batches)s::int)
"""


@dataclass(slots=True)
class SweepResult:
    """What a sweep did, or would do. `counts`: rule → facts, `types`: type → facts; due, but `held` by a hold, or left
    to an open erasure.
    """

    id: UUID
    is_dry_run: bool
    due: int = 0
    destroyed: int = 0
    held: int = 0
    erasing: int = 0
    batches: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)

    def wire(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "dryRun": self.is_dry_run,
            "due": self.due,
            "destroyed": self.destroyed,
            "held": self.held,
            "erasing": self.erasing,
            "batches": self.batches,
            "counts": self.counts,
            "types": self.types,
        }


def _nothing(result: SweepResult) -> None:
    """Nobody watches."""


@dataclass(slots=True)
class _Sweep:
    principal: Principal
    runner: UUID
    result: SweepResult
    batch_size: int
    branch: Branch = "expired"
    after: tuple[datetime, str] | None = None

    @property
    def tenant_id(self) -> UUID:
        return self.principal.tenant_id

    def parameters(self, **more: Any) -> dict[str, Any]:
        return {
            "tenant": self.tenant_id,
            "id": self.result.id,
            "runner": self.runner,
            "lease": LEASE,
            **more,
        }


def sweep_retention(
    *,
    principal: Principal,
    dry_run: bool = False,
    accept_clock: bool = False,
    batch_size: int = MOST_AT_ONCE,
    on_batch: Callable[[SweepResult], None] = _nothing,
) -> SweepResult:
    """Sweep one tenant. Opens its own transactions; call it outside any.

    accept_clock: an operator says that the clock is right. Raises SweepOff, SweepRunning, SweepRefused.
    """
    if not 1 <= batch_size <= MOST_AT_ONCE:
        raise ValueError("a batch has 1 to 500 facts")
    if dry_run:
        return _dry_run(principal, batch_size)
    sweep = _begin(principal, batch_size, accept_clock)
    try:
        batches = sweep.result.batches
        while _batch(sweep):
            if sweep.result.batches > batches:
                batches = sweep.result.batches
                on_batch(sweep.result)
    except BaseException:
        _let_go(sweep)
        raise
    return sweep.result


def _check(principal: Principal, *, accept_clock: bool) -> None:
    """Raise SweepOff when switched off, SweepRefused when the clock is not where it should be; note the moment."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"tenant": principal.tenant_id})
        now, is_off, seen_at = cursor.fetchone()
        if is_off:
            raise SweepOff
        if not accept_clock:
            if abs(now.timestamp() - time.time()) > CLOCKS_APART.total_seconds():
                raise SweepRefused(reason="clocks-differ")
            if seen_at is not None and now < seen_at - CLOCKS_APART:
                raise SweepRefused(reason="clock-went-back")
            if seen_at is not None and now > seen_at + LONGEST_SILENCE:
                raise SweepRefused(reason="clock-jumped-ahead")
        cursor.execute(_SEE, {"tenant": principal.tenant_id, "now": now})


def _begin(
    principal: Principal,
    batch_size: int,
    accept_clock: bool,
) -> _Sweep:
    """Take up the sweep that a dead runner left, or start one."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        _check(principal, accept_clock=accept_clock)
        cursor.execute(_RUNNING, {"tenant": principal.tenant_id})
        row = cursor.fetchone()
        sweep = _Sweep(principal, new_id(), SweepResult(new_id(), False), batch_size)
        if row is None:
            cursor.execute(_BEGIN, sweep.parameters(by=principal.writer))
            if cursor.rowcount == 0:
                raise SweepRunning
            return sweep
        sweep_id, branch, after_at, after_id, counts, types, batches, destroyed, is_leased = row
        if is_leased:
            raise SweepRunning
        sweep.result = SweepResult(
            sweep_id,
            False,
            due=destroyed,
            destroyed=destroyed,
            batches=batches,
            counts=json.loads(counts),
            types=json.loads(types),
        )
        sweep.branch = branch
        sweep.after = None if after_at is None else (after_at, after_id)
        cursor.execute(_TAKE_UP, sweep.parameters())
        return sweep


def _batch(sweep: _Sweep) -> bool:
    """One batch and one transaction; whether there may be more."""
    result = sweep.result
    with tenant_context(sweep.tenant_id), connection.cursor() as cursor:
        _check(sweep.principal, accept_clock=True)
        due = due_facts(
            sweep.tenant_id, sweep.branch, after=sweep.after, limit=sweep.batch_size, lock=True
        )
        if not due:
            return _next_branch(sweep, cursor)
        done = destroy_facts(tenant_id=sweep.tenant_id, due=due, cause="sweep", cause_id=result.id)
        batch = result.batches + 1
        counts, types = dict(result.counts), dict(result.types)
        for one in done.destroyed:
            counts[one.rule] = counts.get(one.rule, 0) + 1
            types[one.type] = types.get(one.type, 0) + 1
        destroyed = result.destroyed + len(done.destroyed)
        last = due[-1]
        assert last.due_at is not None
        cursor.execute(
            _MOVE_ON,
            sweep.parameters(
                branch=sweep.branch,
                after_at=last.due_at,
                after_id=last.fact_id,
                counts=canonical(counts),
                types=canonical(types),
                batches=batch,
                destroyed=destroyed,
            ),
        )
        if cursor.rowcount == 0:
            # Another runner took the sweep up: nothing of this batch is kept.
            raise SweepRunning
        if done.destroyed:
            append_governance(
                principal=sweep.principal,
                payload={
                    "type": "sweep.batch",
                    "sweepId": str(result.id),
                    "batch": batch,
                    "factIds": [one.fact_id for one in done.destroyed],
                    "rows": dict(done.rows),
                },
            )
    # What is told is what was committed.
    sweep.after = (last.due_at, last.fact_id)
    result.batches, result.counts, result.types = batch, counts, types
    result.destroyed = result.due = destroyed
    return True


def _next_branch(sweep: _Sweep, cursor: Any) -> bool:
    """Go on with the other way that facts become due, or end."""
    place = BRANCHES.index(sweep.branch) + 1
    if place < len(BRANCHES):
        sweep.branch, sweep.after = BRANCHES[place], None
        return True
    result = sweep.result
    result.held = held_and_due(sweep.tenant_id)
    result.erasing = erasing_and_due(sweep.tenant_id)
    cursor.execute(
        _END, sweep.parameters(status="done", why=None, held=result.held, erasing=result.erasing)
    )
    if cursor.rowcount == 0:
        raise SweepRunning
    return False


def _let_go(sweep: _Sweep) -> None:
    """Give the lease back, so that the next runner needn't wait for its end."""
    if connection.in_atomic_block:
        return
    with tenant_context(sweep.tenant_id), connection.cursor() as cursor:
        cursor.execute(_LET_GO, sweep.parameters())


def _dry_run(principal: Principal, batch_size: int) -> SweepResult:
    """The same question, counted: nothing locked and nothing taken."""
    result = SweepResult(new_id(), True)
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        for branch in BRANCHES:
            found = 0
            for rule, type, count in count_due(principal.tenant_id, branch):
                found += count
                result.counts[rule] = result.counts.get(rule, 0) + count
                result.types[type] = result.types.get(type, 0) + count
            result.due += found
            result.batches += -(-found // batch_size)
        result.held = held_and_due(principal.tenant_id)
        result.erasing = erasing_and_due(principal.tenant_id)
        cursor.execute(
            _KEEP_DRY_RUN,
            {
                "tenant": principal.tenant_id,
                "id": result.id,
                "by": principal.writer,
                "due": result.due,
                "held": result.held,
                "erasing": result.erasing,
                "counts": canonical(result.counts),
                "types": canonical(result.types),
                "batches": result.batches,
            },
        )
    return result
