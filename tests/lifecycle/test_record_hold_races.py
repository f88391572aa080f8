"""The hold race on records: a hold placed beside whatever ends, replaces or purges one. What it found is there afterwards.

A schedule is a seed: which records the hold names, and who starts first. What the hold found, in its own transaction and under
its own locks, must still be there at the end: as a value, or as the sealed copy that the hold keeps.
"""

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.access import Principal, system_principal
from memory.actions.append_log_entries import append_governance
from memory.actions.correct import correct
from memory.actions.emit_event import emit_event
from memory.actions.expire_overdue import expire_overdue
from memory.actions.forget_record import forget_record
from memory.actions.place_hold import place_hold
from memory.actions.remember import remember
from memory.actions.run_erasure import run_due_erasures
from memory.erasure.ledger import selector_digest
from memory.errors import DomainError
from memory.holds import HoldScope
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.sealing import destroy_overdue
from memory.records.shape import read_draft
from memory.tenancy import tenant_context
from tests.at_once import Together, crew
from tests.builders import TenantKit, make_tenant
from tests.lifecycle.test_holds import NEXT_YEAR
from tests.records.builders import a_record
from tests.worker.processes import one, until

pytestmark = pytest.mark.races
RECORDS = 3
A_TENANT = 50
"""Schedules played in one tenant."""
# What is there of a record that a hold keeps: as a value, or sealed for whatever purpose.
_WITH_CONTENT = """
SELECT k.record_id FROM record_hold k WHERE k.hold_id = %(hold)s::uuid AND (
  EXISTS (SELECT FROM record_value v WHERE v.record_id = k.record_id)
  OR EXISTS (SELECT FROM sealed_copy s WHERE s.record_id = k.record_id AND s.purpose = ANY(%(purposes)s::text[])))
"""


class Race:
    """One schedule: its records, in the state from which the path destroys them."""

    def __init__(self, kit: TenantKit, app: Principal, path: str, seed: int) -> None:
        self.kit, self.app, self.path = kit, app, path
        self.worker = system_principal(kit.id, kit.slug, id="worker")
        self.person = f"{path}-{seed}"
        self.ids = [f"{path}-{seed}-{n}" for n in range(RECORDS)]
        for number in range(RECORDS):
            self._remember(f"v{number}", number, id=self.ids[number], revalidate_on=[self.person])

    def _remember(self, value: str, number: int, **more: Any) -> None:
        body = a_record(
            value, subject=self.person, key=f"k.n{number}", bindings={"trip_id": "T"}, level="instance", **more
        )  # fmt: skip
        with tenant_context(self.kit.id):
            remember(principal=self.app, draft=read_draft(body))

    def remember_anew(self, number: int) -> None:
        """A newer word of the person's in the same place; what a hold refuses is refused."""
        try:
            self._remember("newer", number)
        except DomainError:
            return

    def each(self, act: Callable[[int], object]) -> None:
        """Each record in a transaction of its own; what a hold refuses is refused, and that is all."""
        for number in range(RECORDS):
            try:
                with tenant_context(self.kit.id):
                    act(number)
            except DomainError:
                continue

    def run(self, statement: str, **named: Any) -> None:
        with tenant_context(self.kit.id), connection.cursor() as cursor:
            cursor.execute(statement, {"ids": self.ids, **named})

    def forget(self, *, with_undo: bool = False) -> None:
        self.each(
            lambda number: forget_record(
                principal=self.app, record_id=self.ids[number], with_undo=with_undo
            )
        )


def _correct(race: Race, number: int) -> None:
    context = read_context({"user_id": race.person, "trip_id": "T"})
    correct(
        principal=race.app,
        asked=Correction("new", context, key=f"k.n{number}", record_id=race.ids[number]),
    )


def _emit(race: Race) -> None:
    with tenant_context(race.kit.id):
        emit_event(principal=race.app, type=race.person, bindings={"trip_id": "T"})


def _purge(race: Race) -> None:
    with tenant_context(race.kit.id):
        destroy_overdue(race.kit.id, timezone.now() + timedelta(days=60))


def _ask_erasure(race: Race) -> None:
    race.run(
        "INSERT INTO erasure (tenant_id, id, selector_kind, selector_id, selector_digest, key_id, requested_by)"
        " VALUES (%(tenant)s::uuid, gen_random_uuid(), 'user', %(who)s::text, %(digest)s::bytea, 'k', 'service:tests')",
        tenant=race.kit.id,
        who=race.person,
        digest=selector_digest(race.kit.id, "user", race.person),
    )


def _nothing(race: Race) -> None:
    """The records are as they were remembered."""


# How the records come into the state from which they are destroyed, and what destroys them.
PATHS: dict[str, tuple[Callable[[Race], None], Callable[[Race], object]]] = {
    "forget": (_nothing, Race.forget),
    "cascade": (
        lambda race: race.run(
            "INSERT INTO record_lineage (tenant_id, record_id, parent_id, position) SELECT tenant_id, id, %(parent)s::text, 0"
            " FROM memory_record WHERE id = ANY(%(ids)s::text[]) AND id <> %(parent)s::text",
            parent=race.ids[0],
        ),
        lambda race: race.each(
            lambda number: number or forget_record(principal=race.app, record_id=race.ids[0])
        ),
    ),
    "emit": (_nothing, _emit),
    "expiry": (
        lambda race: race.run(
            "UPDATE memory_record SET valid_until = '2026-01-01' WHERE id = ANY(%(ids)s::text[])"
        ),
        lambda race: expire_overdue(principal=race.worker),
    ),
    "remember": (
        _nothing,
        lambda race: [race.remember_anew(number) for number in range(RECORDS)],
    ),
    "correct": (_nothing, lambda race: race.each(lambda number: _correct(race, number))),
    "undo-purge": (lambda race: race.forget(with_undo=True), _purge),
    "erase": (_ask_erasure, lambda race: run_due_erasures(race.worker)),
}


def hold(race: Race, named: list[str]) -> tuple[Any, set[str]]:
    """Place it; which of what it names had content then, read in its own transaction."""
    with tenant_context(race.kit.id):
        placed = place_hold(
            principal=system_principal(race.kit.id, race.kit.slug, id="tests"),
            matter="race",
            reason="race",
            scope=HoldScope(record_ids=tuple(named)),
            review_on=NEXT_YEAR,
        )
        return placed.id, with_content(placed.id, "hold", "undo")


def with_content(hold_id: Any, *purposes: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WITH_CONTENT, {"hold": hold_id, "purposes": list(purposes)})
        return {row[0] for row in cursor.fetchall()}


def run_schedule(together: Together, kit: TenantKit, app: Principal, path: str, seed: int) -> None:
    chance = random.Random(f"{path} {seed}")
    race = Race(kit, app, path, seed)
    prepare, destroy = PATHS[path]
    prepare(race)
    named = chance.sample(race.ids, chance.randint(1, RECORDS))
    order: list[Callable[[], Any]] = [lambda: destroy(race), lambda: hold(race, named)]
    holds_at = 1
    if chance.random() < 0.5:
        order.reverse()
        holds_at = 0
    results = together(lambda number: order[number]())
    surprises = [one for one in results if isinstance(one, BaseException)]
    assert not surprises, (path, seed, surprises)
    hold_id, found = results[holds_at]
    with tenant_context(kit.id):
        assert found <= with_content(hold_id, "hold"), (path, seed)


def make(kit: TenantKit) -> Principal:
    return kit.principal("app", everything=True)


@pytest.mark.parametrize("path", PATHS)
def test_no_schedule_destroys_a_record_that_a_hold_found(live_db: None, path: str) -> None:
    kit = make_tenant()
    app = make(kit)
    with crew(2) as together:
        for seed in range(7):
            run_schedule(together, kit, app, path, seed)


def test_an_erasure_that_waits_for_a_record_keeps_nobody_from_the_governance_log(
    live_db: None,
) -> None:
    kit = make_tenant()
    race = Race(kit, make(kit), "erase", 0)
    _ask_erasure(race)
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"

    def in_the_way() -> None:
        with tenant_context(kit.id), connection.cursor() as cursor:
            cursor.execute(
                "SELECT FROM memory_record WHERE tenant_id = %s::uuid AND id = %s::text FOR UPDATE",
                [kit.id, race.ids[1]],
            )
            begun.set()
            until(lambda: one(waits))
            append_governance(principal=race.worker, payload={"type": "hold.placed"})

    def erase() -> None:
        assert begun.wait(30)
        run_due_erasures(race.worker)

    begun = threading.Event()
    with crew(2) as together:
        assert together(lambda number: (in_the_way, erase)[number]()) == [None, None]
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM record_value WHERE record_id = ANY(%s::text[])", [race.ids]
        )
        assert cursor.fetchone()[0] == 0


@pytest.mark.full
@pytest.mark.parametrize("path", PATHS)
def test_no_schedule_of_a_thousand_destroys_a_record_that_a_hold_found(
    live_db: None, path: str
) -> None:
    with crew(2) as together:
        for seed in range(1000, 2000):
            if seed % A_TENANT == 0:
                kit = make_tenant()
                app = make(kit)
            run_schedule(together, kit, app, path, seed)
