"""kill -9 at the k-th commit, for every k: before it is done and after. What goes on afterwards ends as if nothing had been.

A process of its own runs the work and kills itself there; the next one runs it to its end. Leases of the dead are let run out.
"""

import os
import signal
from collections.abc import Callable
from typing import Literal

import pytest
from django.db import connection, connections

from memory import hold_items
from memory.access import Principal, system_principal
from memory.actions.finish_holds import finish_holds
from memory.actions.run_erasure import run_due_erasures
from memory.actions.sweep_retention import sweep_retention
from memory.erasure import stores
from memory.fact_shape import Subject
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.lifecycle.facts import age, count, value, write
from tests.lifecycle.people import member
from tests.lifecycle.test_holds import place, release
from tests.records.builders import a_record, body_of

pytestmark = pytest.mark.faults
FACTS, RECORDS, BATCH = 5, 3, 2
MOST_COMMITS = 60
When = Literal["before", "after"]
BOTH = pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.full)])


class _Dies:
    """In the process that dies: counts commits, and ends it at one of them."""

    def __init__(self, at: int, when: When) -> None:
        self._at, self._when, self._count = at, when, 0
        self._commit = connection._commit  # type: ignore[attr-defined]  # where every commit passes

    def __call__(self) -> None:
        self._count += 1
        if self._count == self._at and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        self._commit()
        if self._count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def dies(work: Callable[[], object], *, at: int, when: When) -> bool:
    """Run it in a process that is killed at its commit number `at`; whether it came that far."""
    connections.close_all()  # the child makes its own
    pid = os.fork()
    if pid == 0:
        try:
            connection.ensure_connection()
            connection._commit = _Dies(at, when)  # type: ignore[attr-defined]
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def forget_leases(kit: TenantKit) -> None:
    """As if the time of the dead process's leases were over."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        for table in ("sweep", "erasure"):
            cursor.execute(f"UPDATE {table} SET lease_until = now() WHERE lease_until IS NOT NULL")


def each_commit(play: Callable[[int], bool]) -> int:
    """Play a new scene for the first commit, the second, and so on, until the work ends by itself; how many there were."""
    for at in range(1, MOST_COMMITS):
        if not play(at):
            return at - 1
    raise AssertionError("it never came to its end")


def worker(kit: TenantKit) -> Principal:
    return system_principal(kit.id, kit.slug, id="worker")


def scene() -> tuple[TenantKit, list[str]]:
    kit = make_tenant()
    app = kit.client("app", users=["ann"])
    for n in range(RECORDS):
        body_of(app.post("/v1/memory/records", a_record(id=f"r{n}", key=f"k.n{n}")), 201)
    return kit, [
        write(kit, id=f"f{n}", subjects=(Subject("user", "ann"),)).id for n in range(FACTS)
    ]


def acts(kit: TenantKit, type: str) -> int:
    said = "SELECT count(*) FROM log_entry WHERE run_id = 'kindmem.governance' AND position(%s IN payload_text) > 0"
    return int(value(kit, said, f'"type":"{type}"'))


@BOTH
def test_a_sweep(live_db: None, when: When) -> None:
    def play(at: int) -> bool:
        kit, ids = scene()
        age(kit, *ids)
        was_killed = dies(
            lambda: sweep_retention(principal=worker(kit), batch_size=BATCH), at=at, when=when
        )
        gone = set(ids) - set(value(kit, "SELECT array_agg(id) FROM fact") or ())
        shown = set(value(kit, "SELECT array_agg(fact_id) FROM destroyed_fact") or ())
        assert gone == shown, at
        forget_leases(kit)
        sweep_retention(principal=worker(kit), batch_size=BATCH)
        assert count(kit, "fact") == 0
        assert count(kit, "destroyed_fact") == FACTS
        assert count(kit, "sweep", "destroyed_count > 0") == 1
        assert acts(kit, "sweep.batch") == 3
        return was_killed

    assert each_commit(play) > 3


@BOTH
def test_an_erasure(live_db: None, monkeypatch: pytest.MonkeyPatch, when: When) -> None:
    monkeypatch.setattr(stores, "FACTS_AT_ONCE", BATCH)
    monkeypatch.setattr(stores, "RECORDS_AT_ONCE", BATCH)

    def play(at: int) -> bool:
        kit, _ = scene()
        asked = {"subject": {"kind": "user", "id": "ann"}}
        erasure = body_of(kit.client("admin").post("/v1/memory/erasures", asked), 202)["id"]
        was_killed = dies(lambda: run_due_erasures(worker(kit)), at=at, when=when)
        forget_leases(kit)
        run_due_erasures(worker(kit))
        done = body_of(kit.client("admin").get(f"/v1/memory/erasures/{erasure}"), 200)
        assert done["status"] == "completed", at
        assert (done["counts"]["facts.fact"], done["counts"]["records"]) == (FACTS, RECORDS), at
        assert count(kit, "destroyed_fact") == FACTS
        assert acts(kit, "erasure.completed") == 1
        return was_killed

    assert each_commit(play) > 8


@BOTH
def test_a_large_hold_and_its_release(
    live_db: None, monkeypatch: pytest.MonkeyPatch, when: When
) -> None:
    monkeypatch.setattr(hold_items, "MOST_IN_ONE", 0)

    def play(at: int, *, released: bool) -> bool:
        kit, ids = scene()
        hold = place(kit, subject_ids=("ann",))
        if released:
            finish_holds(worker(kit))
            release(kit, hold, member(kit), member(kit))
        was_killed = dies(lambda: finish_holds(worker(kit), batch=BATCH), at=at, when=when)
        if not released:
            age(kit, *ids)
            assert sweep_retention(principal=worker(kit)).destroyed == 0, at
        finish_holds(worker(kit), batch=BATCH)
        kept = (0, 0) if released else (FACTS, RECORDS)
        assert (count(kit, "fact_hold"), count(kit, "record_hold")) == kept, at
        assert value(kit, "SELECT min(hold_count) = max(hold_count) FROM fact")
        assert count(kit, "hold_item") == FACTS + RECORDS
        assert acts(kit, "hold.let-go") == int(released)
        assert acts(kit, "hold.taken-in") == 1
        return was_killed

    assert each_commit(lambda at: play(at, released=False)) > 4
    assert each_commit(lambda at: play(at, released=True)) > 3
