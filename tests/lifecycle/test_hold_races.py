"""The hold race: a hold placed between what a sweep selects and what it destroys. Nothing held is ever destroyed.

A schedule is a seed: it says how many facts are due, which of them the hold names, how large batches are, whether the sweep is
stopped before or after its locks, and which other destructive path joins. Threads meet at events, never at sleeps.
"""

import random
import threading
from typing import Any

import pytest
from django.db import connection

from memory.access import system_principal
from memory.actions import sweep_retention as module
from memory.actions.delete_fact import delete_fact
from memory.actions.place_hold import place_hold
from memory.actions.run_erasure import run_due_erasures
from memory.actions.supersede_fact import supersede_fact
from memory.destruction import Due
from memory.erasure.ledger import selector_digest
from memory.errors import DomainError
from memory.fact_shape import FactChange
from memory.holds import HoldScope
from memory.retention import due_facts
from memory.tenancy import tenant_context
from tests.at_once import Together, at_once, crew
from tests.builders import TenantKit, make_tenant
from tests.lifecycle.facts import age, value, written_before
from tests.lifecycle.test_holds import NEXT_YEAR

pytestmark = pytest.mark.races
PATHS = ("sweep", "delete", "supersede", "erase")
FACTS = 6
ERASURES = 2
"""Of so many of the facts, each by itself: an erasure is a dozen transactions."""
A_TENANT = 50
"""Schedules played in one tenant."""


@pytest.fixture(autouse=True)
def _without_vectors(settings: Any) -> None:
    """A schedule is about locks; a model that makes vectors takes most of its time."""
    settings.KINDMEM_EMBEDDINGS = "none"


def hold(kit: TenantKit, ids: list[str]) -> None:
    with tenant_context(kit.id):
        place_hold(
            principal=system_principal(kit.id, kit.slug, id="tests"),
            matter="race",
            reason="race",
            scope=HoldScope(fact_ids=tuple(ids)),
            review_on=NEXT_YEAR,
        )


def destroy(kit: TenantKit, path: str, ids: list[str], batch: int) -> None:
    """One destructive path over all the facts; what a hold refuses is refused, and that is all."""
    principal = system_principal(kit.id, kit.slug, id="destroyer")
    if path == "sweep":
        module.sweep_retention(principal=principal, batch_size=batch)
        return
    if path == "erase":
        run_due_erasures(principal)
        return
    for one in ids:
        try:
            with tenant_context(kit.id):
                if path == "delete":
                    delete_fact(principal=principal, fact_id=one)
                else:
                    supersede_fact(principal=principal, fact_id=one, change=FactChange(content=2))
        except DomainError:
            continue


def held_and_harmed(kit: TenantKit) -> int:
    """Matches of a hold whose fact is gone, was closed, changed or lost its content."""
    return int(
        value(
            kit,
            "SELECT count(*) FROM fact_hold k LEFT JOIN fact f ON f.tenant_id = k.tenant_id AND f.id = k.fact_id"
            " LEFT JOIN fact_content c ON c.tenant_id = k.tenant_id AND c.fact_id = k.fact_id AND c.version = f.current_version"
            " WHERE f.id IS NULL OR c.fact_id IS NULL OR f.hold_count <> 1",
        )
    )


def run_schedule(together: Together, kit: TenantKit, path: str, seed: int) -> None:
    """Play one schedule in a tenant of its own kind of facts, and look."""
    chance = random.Random(f"{path} {seed}")
    ids = [f"{path}-{seed}-{n}" for n in range(FACTS)]
    written_before(kit, *ids)
    named = chance.sample(ids, chance.randint(1, FACTS))
    if path == "sweep":
        age(kit, *ids)
    if path == "erase":
        erase_one_by_one(kit, chance.sample(ids, ERASURES))
    batch = chance.choice((1, 2, 6))
    order = [lambda: destroy(kit, path, ids, batch), lambda: hold(kit, named)]
    chance.shuffle(order)
    results = together(lambda number: order[number]())
    surprises = [one for one in results if isinstance(one, BaseException)]
    assert not surprises, (path, seed, surprises)
    assert held_and_harmed(kit) == 0, (path, seed)


def erase_one_by_one(kit: TenantKit, ids: list[str]) -> None:
    """An erasure a fact, asked for before the hold comes."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        for one in ids:
            cursor.execute(
                "INSERT INTO erasure (tenant_id, id, selector_kind, selector_id, selector_digest, key_id, requested_by)"
                " VALUES (%s::uuid, gen_random_uuid(), 'fact', %s::text, %s::bytea, 'k', 'service:tests')",
                [kit.id, one, selector_digest(kit.id, "fact", one)],
            )


@pytest.mark.parametrize("path", PATHS)
def test_no_schedule_destroys_what_a_hold_keeps(live_db: None, path: str) -> None:
    kit = make_tenant()
    with crew(2) as together:
        for seed in range(13 if path in ("sweep", "erase") else 12):
            run_schedule(together, kit, path, seed)


@pytest.mark.full
@pytest.mark.parametrize("path", PATHS)
def test_no_schedule_of_a_thousand_destroys_what_a_hold_keeps(live_db: None, path: str) -> None:
    with crew(2) as together:
        for seed in range(1000, 2000):
            if seed % A_TENANT == 0:
                kit = make_tenant()  # what earlier schedules left is not swept over again
            run_schedule(together, kit, path, seed)


@pytest.mark.parametrize("has_locked", [False, True], ids=["before-its-locks", "after-its-locks"])
def test_a_hold_placed_between_a_sweeps_select_and_its_delete_wins_or_is_told(
    live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch, has_locked: bool
) -> None:
    """U14, S29."""
    ids = [f"f{n}" for n in range(4)]
    written_before(live_acme, *ids)
    age(live_acme, *ids)
    selected, placed = threading.Event(), threading.Event()

    def stopped(tenant_id: Any, branch: Any, **how: Any) -> list[Due]:
        if branch != "expired" or how["after"] is not None:
            return due_facts(tenant_id, branch, **how)
        if has_locked:
            found = due_facts(tenant_id, branch, **how)
            selected.set()
            # The placer now waits for these locks; nothing else can be waited for.
            return found
        # A select that took no lock, as a careless sweep would: the second look must see the hold.
        found = due_facts(tenant_id, branch, **{**how, "lock": False})
        selected.set()
        assert placed.wait(timeout=30)
        return found

    monkeypatch.setattr(module, "due_facts", stopped)

    def work(number: int) -> None:
        if number == 0:
            destroy(live_acme, "sweep", ids, 10)
            return
        assert selected.wait(timeout=30)
        hold(live_acme, ids[:2])
        placed.set()

    assert at_once(2, work) == [None, None]
    assert held_and_harmed(live_acme) == 0
    left = value(live_acme, "SELECT array_agg(id ORDER BY id) FROM fact")
    kept = value(live_acme, "SELECT array_agg(fact_id ORDER BY fact_id) FROM fact_hold")
    assert left == kept
    if not has_locked:
        assert left == ids[:2]
