"""What ended after a backup was made has ended after its restore: forgotten, corrected, withdrawn, deleted, swept, set aside."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memory.actions.replay_endings import as_they_stood
from memory.endings import write_down
from memory.ledgers import endings_path, read_endings
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit
from tests.commands.commands import answered
from tests.commands.test_backup import apart, backed_up, elsewhere, of
from tests.lifecycle.facts import age, count, value
from tests.lifecycle.test_erasure import rows_that_say
from tests.lifecycle.test_holds import place
from tests.lifecycle.test_sweep import sweep
from tests.records.builders import an_inference, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory

__all__ = ["apart", "elsewhere"]

FACTS = "/v1/memory/facts"
GONE = "shearwater"
"""In everything that must not come back."""


@dataclass
class Installation:
    """A tenant with an app, an agent and an admin whose keys are older than the backup."""

    kit: TenantKit
    app: Memory
    agent: ApiClient
    admin: ApiClient

    def fact(self, id: str, content: Any, **more: Any) -> None:
        body = {"id": id, "type": "note", "scope": {"userId": "ann"}, "content": content, **more}
        body_of(self.app.client.post(FACTS, body), 201)

    def route(self, record_id: str, name: str, form: dict[str, Any] | None = None) -> str:
        answer = self.app.client.post(f"{RECORDS}/{record_id}/routes/{name}", form or {})
        return str(body_of(answer, 200)["receipt"]["number"])

    def decision(self, key: str) -> tuple[str, Any]:
        said = self.app.recall(key)
        return said["decision"], said["value"]


@pytest.fixture
def here(live_acme: TenantKit) -> Installation:
    return Installation(
        live_acme,
        Memory(live_acme.client("app", users=["ann"])),
        live_acme.client("agent", users=["ann"]),
        live_acme.client("admin"),
    )


Switch = Callable[[], Any]


def test_memories_that_ended_after_the_backup_do_not_come_back(
    here: Installation, elsewhere: Switch, tmp_path: Path
) -> None:
    app = here.app
    for name in ("forgotten", "corrected", "withdrawn", "fired", "disputed", "regretted", "held"):
        given = {"bindings": {"trip": "T1"}, "level": "instance"} if name == "corrected" else {}
        more = {"revalidate_on": ["moved"]} if name == "fired" else {}
        app.remember(f"{GONE} {name}", id=name, key=f"k.{name}", **given, **more)
    app.remember(f"{GONE} derived", id="derived", key="k.derived", derived_from=["forgotten"])
    app.remember("same", id="same", key="k.same")
    app.remember("kept", id="kept", key="k.kept")
    out = backed_up(tmp_path)

    app.forget("forgotten", reason=f"{GONE}, my reason")
    app.correct("right", key="k.corrected", context={**ANN, "trip": "T1"})
    here.route("withdrawn", "wrong-person")
    assert app.emit("moved") == ["fired"]
    here.route("disputed", "dispute", {"statement": "no"})
    regretted = here.route("regretted", "forget")
    body_of(app.client.post(f"/v1/memory/receipts/{regretted}/undo"), 200)
    place(here.kit, record_ids=("held",))
    app.forget("held")

    with elsewhere():
        restored = of(here.kit, answered("restore", str(out)))
        assert restored["ended"] == {
            "records.deleted": 3,
            "records.disputed": 1,
            "records.expired": 1,
            "records.set-aside": 1,
            "records.superseded": 1,
        }
        assert (restored["holds"], restored["stillHeld"]) == (0 + 1, [])
        for name in ("forgotten", "derived", "withdrawn", "fired", "held"):
            assert here.decision(f"k.{name}") == ("none", None), name
        case = {**ANN, "trip": "T1"}
        assert app.recall("k.corrected", context=case)["decision"] == "none"
        assert app.recall("k.disputed")["reason"] == "disputed"
        assert here.decision("k.regretted") == ("apply", f"{GONE} regretted")
        assert here.decision("k.kept") == ("apply", "kept")
        forgotten = app.get("forgotten")
        assert (forgotten["value"], forgotten["lifecycle"]["status"]) == (None, "deleted")
        said = "SELECT count(*) FROM record_value WHERE record_id IN ('forgotten', 'derived', 'fired', 'held')"
        assert value(here.kit, said) == 0
        assert count(here.kit, "sealed_copy", "record_id = 'held' AND purpose = 'hold'") == 1
        # What may not be said again is known again, too.
        body_of(here.agent.post(RECORDS, an_inference("any", key="k.forgotten")), 202)
        waiting = body_of(here.admin.get("/v1/memory/reviews"), 200)["data"]
        assert ("withdrawn", "restored") in {(one["id"], one["reason"]) for one in waiting}


def test_facts_that_ended_after_the_backup_do_not_come_back(
    here: Installation, elsewhere: Switch, tmp_path: Path
) -> None:
    for name in ("deleted", "changed", "swept", "checked", "kept"):
        here.fact(name, f"{GONE} {name}")
    out = backed_up(tmp_path)
    client = here.app.client
    age(here.kit, "swept")
    assert sweep(here.kit).destroyed == 1
    body_of(client.delete(f"{FACTS}/deleted"), 200)
    body_of(client.post(f"{FACTS}/changed/supersede", {"content": "now this"}), 200)
    body_of(client.post(f"{FACTS}/checked/verify", {}), 200)
    with elsewhere():
        restored = of(here.kit, answered("restore", str(out)))
        assert restored["ended"] == {
            "facts.deleted": 1,
            "facts.destroyed": 1,
            "facts.set-aside": 1,
        }
        for name in ("deleted", "changed", "swept"):
            refusal(client.get(f"{FACTS}/{name}"), 404, "fact-not-found")
        found = body_of(client.get(FACTS), 200)["data"]
        assert {one["id"] for one in found} == {"checked", "kept"}
        query = {"mode": "keyword", "query": GONE}
        hits = body_of(client.post("/v1/memory/retrieve", query), 200)["results"]
        assert {one["fact"]["id"] for one in hits} == {"checked", "kept"}
        assert count(here.kit, "fact_content", "fact_id = 'swept'") == 0
        [waits] = body_of(here.admin.get("/v1/memory/reviews"), 200)["data"]
        assert (waits["kind"], waits["id"], waits["reason"]) == ("fact", "changed", "restored")
        body_of(here.admin.post("/v1/memory/reviews/fact/changed/approve"), 200)
        assert body_of(client.get(f"{FACTS}/changed"), 200)["content"] == f"{GONE} changed"


def test_what_was_quarantined_after_the_backup_waits_for_an_admin(
    here: Installation, elsewhere: Switch, tmp_path: Path
) -> None:
    here.app.remember(GONE, id="poison", key="k.poison")
    here.fact("poisoned", GONE)
    out = backed_up(tmp_path)
    prefix = str(here.app.client.token).removeprefix("kmk_")[:10]
    body_of(here.admin.post("/v1/memory/quarantines", {"key": prefix, "reason": "r"}), 201)
    with elsewhere():
        restored = of(here.kit, answered("restore", str(out)))
        assert restored["ended"] == {"facts.set-aside": 1, "records.set-aside": 1}
        assert here.decision("k.poison") == ("none", None)
        refusal(here.app.client.get(f"{FACTS}/poisoned"), 404, "fact-not-found")
        waiting = body_of(here.admin.get("/v1/memory/reviews"), 200)["data"]
        assert {(one["id"], one["reason"]) for one in waiting} == {
            ("poison", "restored"),
            ("poisoned", "restored"),
        }


def line(at: int, act: str, hmac: str = "aa", item: str = "fact", **more: Any) -> dict[str, Any]:
    said = {"at": f"2026-01-01T00:00:{at:02}Z", "item": item, "act": act, "hmac": hmac * 32}
    return {**said, **{name: one * 32 if name == "was" else one for name, one in more.items()}}


@pytest.mark.parametrize(
    ("lines", "stood"),
    [
        ([line(1, "superseded", version=1), line(2, "superseded", version=2)], [("superseded", 2)]),
        (
            [line(1, "superseded", version=1), line(2, "set-aside"), line(3, "back")],
            [("superseded", 1)],
        ),
        ([line(1, "set-aside"), line(2, "back")], []),
        ([line(1, "superseded", version=1), line(2, "kept")], []),
        ([line(1, "deleted", "aa"), line(2, "undone", "bb", was="aa")], []),
        (
            [
                line(1, "deleted", "aa"),
                line(2, "undone", "bb", was="aa"),
                line(3, "superseded", "bb"),
                line(4, "undone", "cc", was="bb"),
                line(5, "expired", "cc"),
            ],
            [("expired", None)],
        ),
        ([line(1, "disputed"), line(2, "set-aside"), line(3, "back")], [("disputed", None)]),
        ([line(1, "disputed"), line(2, "undisputed"), line(3, "marked", mark="m")], []),
    ],
)
def test_each_thing_ends_as_it_stood_last(
    lines: list[dict[str, Any]], stood: list[tuple[str, int | None]]
) -> None:
    found = as_they_stood(reversed(lines))
    assert [(one.act, one.version) for one in found] == stood
    if any("was" in one for one in lines) and found:
        assert found[0].digests == {bytes.fromhex(one * 32) for one in ("aa", "bb", "cc")}


@pytest.mark.usefixtures("apart")
def test_an_end_is_in_the_ledger_before_its_caller_is_answered_and_says_no_word_of_it(
    here: Installation,
) -> None:
    here.app.remember(GONE, id=f"r-{GONE}", key=f"k.{GONE}")
    here.fact(f"f-{GONE}", GONE)
    here.app.forget(f"r-{GONE}", reason=GONE)
    body_of(here.app.client.delete(f"{FACTS}/f-{GONE}"), 200)
    path = endings_path(here.kit.slug)
    acts = [(one["item"], one["act"]) for one in read_endings(path)]
    assert ("record", "deleted") in acts
    assert acts[-1] == ("fact", "deleted")
    text = path.read_text()
    assert GONE not in text
    assert "ann" not in text
    assert path.stat().st_mode & 0o077 == 0
    assert count(here.kit, "ended_item") == 0


@pytest.mark.usefixtures("apart")
def test_what_could_not_be_written_down_is_written_later_and_a_cut_line_is_none(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    here.fact("one", 1)
    here.fact("two", 2)
    with monkeypatch.context() as patched:
        patched.setattr("memory.endings.append_endings", full)
        body_of(here.app.client.delete(f"{FACTS}/one"), 200)
    assert count(here.kit, "ended_item") == 1
    path = endings_path(here.kit.slug)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"at": "2026-01-01T00:00:0')
    assert write_down(here.kit.id, here.kit.slug) == 1
    body_of(here.app.client.delete(f"{FACTS}/two"), 200)
    assert [one["act"] for one in read_endings(path)] == ["deleted", "deleted"]


def test_a_newer_file_of_ends_that_was_kept_elsewhere_is_taken(
    here: Installation, elsewhere: Switch, tmp_path: Path
) -> None:
    here.app.remember(GONE, id="gone", key="k.gone")
    out = backed_up(tmp_path)
    here.app.forget("gone")
    path = endings_path(here.kit.slug)
    copy = tmp_path / path.name
    path.rename(copy)
    with elsewhere():
        answer = answered("restore", str(out), "--ledger", f"{here.kit.slug}={copy}")
        assert of(here.kit, answer)["ended"] == {"records.deleted": 1}
        assert rows_that_say(here.kit, GONE) == {}
        with tenant_context(here.kit.id), connection.cursor() as cursor:
            cursor.execute(
                "SELECT payload_text FROM log_entry WHERE run_id = 'kindmem.governance'"
                " AND payload_text LIKE '%restore.ended-again%'"
            )
            [payload] = [json.loads(row[0]) for row in cursor.fetchall()]
        assert payload["counts"] == {"records.deleted": 1}
