"""Large holds: in force at once, counted batch by batch, let go batch by batch, whatever cuts it off."""

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import Error, connection, transaction

from memory import hold_items
from memory.access import Principal, system_principal
from memory.actions.finish_holds import finish_holds
from memory.errors import DomainError, LegalHoldActive
from memory.fact_shape import Subject
from memory.hold_naming import named_facts, named_records
from memory.holds import HoldScope, NewHold
from memory.housekeeping import JOBS
from memory.tenancy import tenant_context
from tests.at_once import Together, at_once, crew
from tests.builders import TenantKit, make_tenant
from tests.lifecycle import test_hold_races as races
from tests.lifecycle.facts import age, count, delete, value, write, written_before
from tests.lifecycle.people import member
from tests.lifecycle.test_holds import NEXT_YEAR, find, place, release
from tests.lifecycle.test_sweep import sweep
from tests.records.builders import a_record, body_of, refusal

SOON = datetime.now(UTC) + timedelta(days=1)
FACTS, RECORDS, BATCH = 7, 5, 2
STEPS = 4 + 3
"""Batches of BATCH: the last of each kind is one that isn't full."""


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hold that names something is large."""
    monkeypatch.setattr(hold_items, "MOST_IN_ONE", 0)


def filled(kit: TenantKit) -> list[str]:
    """Facts and records about ann, and one of each about bob."""
    app = kit.client("app", users=["ann", "bob"])
    for n in range(RECORDS):
        body_of(app.post("/v1/memory/records", a_record(id=f"r{n}", key=f"k.n{n}")), 201)
    body_of(app.post("/v1/memory/records", a_record(id="bobs", subject="bob")), 201)
    for n in range(FACTS):
        write(kit, id=f"f{n}", subjects=(Subject("user", "ann"),))
    write(kit, id="free", subjects=(Subject("user", "bob"),))
    return [f"f{n}" for n in range(FACTS)]


def worker(kit: TenantKit) -> Principal:
    return system_principal(kit.id, kit.slug, id="holds")


def step(kit: TenantKit, *, dies: bool = False) -> bool:
    """One batch; killed before its commit, or not."""
    by = worker(kit)
    try:
        with tenant_context(kit.id):
            goes_on = hold_items.take_in_more(by, limit=BATCH) or hold_items.let_go_more(
                by, limit=BATCH
            )
            if dies:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        return True
    return goes_on


def counted(kit: TenantKit) -> tuple[int, int]:
    return count(kit, "fact_hold"), count(kit, "record_hold")


def test_a_large_hold_says_that_it_is_still_counting(acme: TenantKit) -> None:
    filled(acme)
    admin = acme.client("admin")
    body = {"matter": "m", "reason": "r", "scope": {"subjects": ["ann"]}}

    placed = body_of(admin.post("/v1/memory/legal-holds", body), 201)

    assert (placed["takingIn"], placed["facts"], placed["records"]) == (True, 0, 0)
    finish_holds(worker(acme))
    done = body_of(admin.get(f"/v1/memory/legal-holds/{placed['id']}"), 200)
    assert (done["facts"], done["records"]) == (FACTS, RECORDS)
    assert "takingIn" not in done
    log = body_of(acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log"), 200)
    [told] = [one["payload"] for one in log["data"] if one["payload"]["type"] == "hold.taken-in"]
    assert told == {
        "type": "hold.taken-in",
        "holdId": placed["id"],
        "facts": FACTS,
        "records": RECORDS,
    }


@pytest.mark.parametrize("at", range(STEPS))
def test_a_worker_that_dies_at_any_batch_leaves_everything_protected_and_nothing_counted_twice(
    live_acme: TenantKit, at: int
) -> None:
    ids = filled(live_acme)
    hold = place(live_acme, subject_ids=("ann",))
    for _ in range(at):
        assert step(live_acme)
    before = counted(live_acme)
    step(live_acme, dies=True)
    assert counted(live_acme) == before

    app = live_acme.client("app", users=["ann"], projects=["p1"])
    for one in ids:
        refusal(app.delete(f"/v1/memory/facts/{one}"), 409, "legal-hold")
    age(live_acme, *ids, "free")
    swept = sweep(live_acme)
    assert (swept.destroyed, swept.held) == (1, FACTS)

    while step(live_acme):
        pass
    kept = find(live_acme, hold)
    assert (kept.fact_count, kept.record_count, kept.is_taken_in) == (FACTS, RECORDS, True)
    heads = "SELECT array_agg(DISTINCT hold_count) FROM {} WHERE id <> ALL('{{free,bobs}}')"
    assert value(live_acme, heads.format("fact")) == [1]
    assert value(live_acme, heads.format("memory_record")) == [1]
    assert count(live_acme, "hold_item") == FACTS + RECORDS


def test_a_dry_run_and_the_ladder_know_it_before_it_is_counted(acme: TenantKit) -> None:
    ids = filled(acme)
    hold = place(acme, subject_ids=("ann",))
    age(acme, *ids, "free")
    dry = sweep(acme, dry_run=True)
    assert (dry.due, dry.held) == (1, FACTS)
    reader = acme.client("admin")
    ladder = body_of(reader.get(f"/v1/memory/retention/facts/{ids[0]}"), 200)
    assert (ladder["rule"], ladder["holds"]) == ("legal-hold", [str(hold.id)])


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM fact WHERE id = 'f0'",
        "DELETE FROM fact_revision WHERE fact_id = 'f0'",
        "DELETE FROM fact_content WHERE fact_id = 'f0'",
        "DELETE FROM fact_subject WHERE fact_id = 'f0'",
        "DELETE FROM record_value WHERE record_id = 'r0'",
        "UPDATE fact SET deleted_at = now() WHERE id = 'f0'",
        "UPDATE legal_hold SET named_until = now() - interval '1 year'",
        "UPDATE legal_hold SET subject_ids = '{bob}'",
    ],
)
def test_past_the_product_the_database_lets_nothing_named_go(
    acme: TenantKit, statement: str
) -> None:
    filled(acme)
    place(acme, subject_ids=("ann",))
    with (
        tenant_context(acme.id),
        pytest.raises(Error, match=r"legal hold|a hold is released once"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_what_is_written_later_is_not_named_unless_the_hold_says_so(live_acme: TenantKit) -> None:
    acme = live_acme
    filled(acme)
    place(acme, subject_ids=("ann",))
    write(acme, id="later", subjects=(Subject("user", "ann"),))
    place(acme, subject_ids=("bob",), covers_future=True)
    write(acme, id="bobs-later", subjects=(Subject("user", "bob"),))
    finish_holds(worker(acme))
    assert count(acme, "fact_hold", "fact_id = 'later'") == 0
    delete(acme, "later")
    assert count(acme, "fact_hold", "fact_id = 'bobs-later'") == 1
    assert count(acme, "hold_item", "item_id = 'bobs-later'") == 1


@pytest.mark.parametrize("at", range(5))
def test_a_large_release_lets_go_batch_by_batch_and_dies_anywhere(
    live_acme: TenantKit, at: int
) -> None:
    ids = filled(live_acme)
    hold = place(live_acme, subject_ids=("ann",))
    finish_holds(worker(live_acme))
    app = live_acme.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records/r0/forget", {}), 200)
    assert count(live_acme, "sealed_copy") == 1

    released = release(live_acme, hold, member(live_acme), member(live_acme))

    assert (released.status, released.fact_count) == ("released", FACTS)
    for _ in range(at):
        step(live_acme)
    before = counted(live_acme)
    step(live_acme, dies=True)
    assert counted(live_acme) == before
    still = value(live_acme, "SELECT array_agg(fact_id) FROM fact_hold") or []
    for one in still:
        with pytest.raises(LegalHoldActive):
            delete(live_acme, one)

    while step(live_acme):
        pass
    assert counted(live_acme) == (0, 0)
    assert count(live_acme, "sealed_copy") == 0
    assert value(live_acme, "SELECT max(hold_count) FROM fact") == 0
    age(live_acme, *ids)
    assert sweep(live_acme).destroyed == FACTS
    log = live_acme.client("auditor").get("/v1/memory/runs/kindmem.governance/log?limit=200")
    acts = [one["payload"]["type"] for one in log.json()["data"]]
    assert acts.count("hold.let-go") == 1
    assert acts.count("hold.released") == 1


def test_a_release_destroys_no_sealed_copy_that_another_hold_names_and_has_not_counted(
    live_acme: TenantKit,
) -> None:
    filled(live_acme)
    first = place(live_acme, record_ids=("r0",))
    finish_holds(worker(live_acme))
    app = live_acme.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records/r0/forget", {}), 200)
    second = place(live_acme, subject_ids=("ann",))

    release(live_acme, first, member(live_acme), member(live_acme))
    while _let_go_once(live_acme):
        pass

    assert count(live_acme, "sealed_copy") == 1
    finish_holds(worker(live_acme))
    assert find(live_acme, second).record_count == RECORDS
    assert count(live_acme, "sealed_copy") == 1


def _let_go_once(kit: TenantKit) -> bool:
    with tenant_context(kit.id):
        return hold_items.let_go_more(worker(kit), limit=BATCH)


def test_a_hold_that_is_released_before_it_counted_all_counts_no_more(
    live_acme: TenantKit,
) -> None:
    filled(live_acme)
    hold = place(live_acme, subject_ids=("ann",))
    step(live_acme)
    release(live_acme, hold, member(live_acme), member(live_acme))
    while step(live_acme):
        pass
    assert counted(live_acme) == (0, 0)
    delete(live_acme, "f6")


def test_the_worker_does_it(live_acme: TenantKit) -> None:
    filled(live_acme)
    hold = place(live_acme, subject_ids=("ann",))
    due = "SELECT work FROM work_due(ARRAY['finish-holds']) WHERE tenant_id = %s"
    assert value(live_acme, due, live_acme.id) == "finish-holds"
    next(job for name, _, job in JOBS if name == "finish-holds")()
    assert find(live_acme, hold).is_taken_in
    assert value(live_acme, due, live_acme.id) is None


@pytest.mark.parametrize(
    "scope",
    [
        {"subject_ids": ("ann",)},
        {"subject_ids": ("p1",)},
        {"subject_ids": ("nobody", "bob"), "fact_types": ("note",)},
        {"fact_types": ("note", "other")},
        {"run_ids": ("chat",)},
        {"run_ids": ("chat",), "subject_ids": ("bob",)},
        {"written_from": SOON},
        {"written_until": SOON, "run_ids": ("chat",)},
    ],
)
def test_what_a_scope_names_is_the_same_in_both_ways_of_asking(
    acme: TenantKit, scope: dict[str, Any]
) -> None:
    filled(acme)
    app = acme.client("app", users=["ann"], projects=["p1"])
    entry = {"id": "e1", "kind": "user-message", "scope": {"userId": "ann"}, "payload": {}}
    body_of(app.post("/v1/memory/runs/chat/log", entry), 201)
    told = a_record(id="told", key="k.told", evidence={"kind": "message", "ref": "e1"})
    body_of(app.post("/v1/memory/records", told), 201)
    write(acme, id="caused", causes=("e1",))
    given = HoldScope(**scope)
    new = NewHold("m", "r", given, NEXT_YEAR)
    with tenant_context(acme.id), connection.cursor() as cursor:
        hold_items.insert_hold(acme.principal("admin"), new)
        parameters = {"tenant": acme.id, "hold": new.id, **given.parameters()}
        for quick, slow in (
            (
                named_facts(given),
                "SELECT f.id FROM fact f, legal_hold h WHERE h.id = %(hold)s AND hold_names_fact(h, f)",
            ),
            (
                named_records(given),
                "SELECT m.id FROM memory_record m, legal_hold h WHERE h.id = %(hold)s AND hold_names_record(h, m)",
            ),
        ):
            cursor.execute(quick, parameters)
            found = {one for (one,) in cursor.fetchall()}
            cursor.execute(slow, parameters)
            assert found == {one for (one,) in cursor.fetchall()}


# ---- two hundred thousand -----------------------------------------------------------------------------------------------------

MANY, AT_ONCE = 200_000, 4_000


@pytest.mark.full
def test_a_hold_on_two_hundred_thousand_facts_keeps_no_writer_waiting(
    live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold_items, "MOST_IN_ONE", 2000)
    for first in range(0, MANY, AT_ONCE):
        written_before(live_acme, *(f"n{n}" for n in range(first, first + AT_ONCE)))
    took: dict[str, float] = {}

    def timed(name: str, act: Callable[[], Any]) -> Any:
        began = time.monotonic()
        done = act()
        took[name] = max(took.get(name, 0.0), time.monotonic() - began)
        return done

    hold = timed("place", lambda: place(live_acme, fact_types=("note",)))
    over = threading.Event()

    def write_on() -> None:
        number = 0
        while not over.is_set():
            number += 1
            timed("write", lambda n=number: write(live_acme, id=f"w{n}", type="other"))

    def work() -> None:
        try:
            timed("count", lambda: finish_holds(worker(live_acme)))
        finally:
            over.set()

    both = (work, write_on)
    results = at_once(2, lambda number: both[number]())
    assert not [one for one in results if isinstance(one, BaseException)]
    assert find(live_acme, hold).fact_count == MANY
    with pytest.raises(LegalHoldActive):
        delete(live_acme, "n77777")
    first, second = member(live_acme), member(live_acme)
    timed("release", lambda: release(live_acme, hold, first, second))
    over.clear()
    timed("let go", lambda: finish_holds(worker(live_acme)))
    assert counted(live_acme) == (0, 0)
    delete(live_acme, "n77777")
    print({name: round(seconds, 2) for name, seconds in took.items()})
    assert took["place"] < 5
    assert took["release"] < 5
    assert took["write"] < 2


# ---- races --------------------------------------------------------------------------------------------------------------------

PATHS = ("sweep", "delete", "erase")
A_TENANT = races.A_TENANT


def run_schedule(together: Together, kit: TenantKit, path: str, seed: int) -> None:
    """One destructive path against a large hold on the type of all its facts; what was there when it was placed stays."""
    chance = random.Random(f"large {path} {seed}")
    ids = [f"{path}-{seed}-{n}" for n in range(races.FACTS)]
    kind = f"type-{path}-{seed}"
    written_before(kit, *ids, type=kind)
    if path == "sweep":
        age(kit, *ids)
    if path == "erase":
        races.erase_one_by_one(kit, chance.sample(ids, races.ERASURES))
    found: list[str] = []

    def hold() -> None:
        with tenant_context(kit.id):
            hold_items.insert_hold(
                worker(kit), NewHold("m", "r", HoldScope(fact_types=(kind,)), NEXT_YEAR)
            )
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT f.id FROM fact f JOIN fact_content c ON c.fact_id = f.id"
                    " WHERE f.type = %s AND f.deleted_at IS NULL",
                    [kind],
                )
                found.extend(one for (one,) in cursor.fetchall())

    order = [
        lambda: races.destroy(kit, path, ids, chance.choice((1, 2, 6))),
        hold,
        lambda: finish_holds(worker(kit), batch=2),
    ]
    chance.shuffle(order)
    results = together(lambda number: order[number]())
    surprises = [
        one
        for one in results
        if isinstance(one, BaseException) and not isinstance(one, DomainError)
    ]
    assert not surprises, (path, seed, surprises)
    finish_holds(worker(kit), batch=2)
    kept = value(
        kit,
        "SELECT array_agg(k.fact_id ORDER BY k.fact_id) FROM fact_hold k"
        " JOIN fact f ON f.id = k.fact_id AND f.hold_count = 1 AND f.deleted_at IS NULL"
        " JOIN fact_content c ON c.fact_id = f.id WHERE f.type = %s",
        kind,
    )
    assert (kept or []) == sorted(found), (path, seed)


@pytest.mark.races
@pytest.mark.parametrize("path", PATHS)
def test_no_schedule_destroys_what_a_large_hold_found(live_db: None, path: str) -> None:
    kit = make_tenant()
    with crew(3) as together:
        for seed in range(12):
            run_schedule(together, kit, path, seed)


@pytest.mark.full
@pytest.mark.races
@pytest.mark.parametrize("path", PATHS)
def test_no_schedule_of_a_thousand_destroys_what_a_large_hold_found(
    live_db: None, path: str
) -> None:
    with crew(3) as together:
        for seed in range(1000, 2000):
            if seed % A_TENANT == 0:
                kit = make_tenant()  # what earlier schedules left is not swept over again
            run_schedule(together, kit, path, seed)
