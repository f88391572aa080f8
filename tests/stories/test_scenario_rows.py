"""Faults that real users of comparable systems reported, tried on this product: the rows M1 to M36 and M60 to M69 of the list.

Here are those that no test of one part holds whole; a row's other tests are where its part is. Docstrings name the rows.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from memory.access import system_principal
from memory.actions.correct import correct
from memory.actions.remember import remember
from memory.actions.seal_tenant import seal_tenant
from memory.actions.sweep_retention import sweep_retention
from memory.models import RecordValue, SealedCopy
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.sealing import destroy_overdue
from memory.records.shape import read_draft
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.facts.shapes import FACTS, at, written
from tests.import_records.files import file_of, imported, whole
from tests.pages.people import person, text_of
from tests.records.builders import a_record, an_inference, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory

ROOT = Path(__file__).resolve().parents[2]
T1 = {**ANN, "trip_id": "T1"}


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"]))


@pytest.fixture
def agent(acme: TenantKit) -> Memory:
    return Memory(acme.client("agent", users=["ann", "bob"], projects=["p1", "p2"], orgs=["acme"]))


def retrieved(client: Any, query: str, mode: str = "keyword") -> list[str]:
    body = {"mode": mode, "query": query, "limit": 50}
    answer = body_of(client.post("/v1/memory/retrieve", body), 200)
    return [hit["fact"]["id"] for hit in answer["results"]]


# ---- correcting -------------------------------------------------------------------------------------------------------------


def test_after_a_correction_there_is_one_answer(app: Memory, agent: Memory) -> None:
    """M1, M2."""
    first = app.remember("Flask and MySQL", key="tools.stack", bindings={"trip_id": "T1"})
    second = app.correct("Flask and MariaDB", key="tools.stack")["record"]
    assert [one["id"] for one in agent.list(key="tools.stack")] == [second["id"]]
    assert [one["id"] for one in agent.list(q="Flask")] == [second["id"]]
    told = agent.recall("tools.stack", context=T1)
    assert (told["value"], told["decision"]) == ("Flask and MariaDB", "apply")
    assert "candidates" not in told
    body = {"new_value": "Flask and SQLite", "context": T1}
    third = body_of(app.client.post(f"{RECORDS}/{second['id']}/correct", body), 201)["record"]
    assert third["correction"]["supersedes"] == [second["id"]]
    assert second["correction"]["supersedes"] == [first["id"]]
    assert [one["id"] for one in agent.list(key="tools.stack")] == [third["id"]]


def test_what_is_added_about_somebody_retires_nothing_else_about_them(
    app: Memory, agent: Memory
) -> None:
    """M4."""
    records = [app.remember(f"Osei {n}", key=f"osei.fact_{n}") for n in range(20)]
    facts = [written(app.client, content=f"Osei did thing {n}", id=f"o{n}") for n in range(20)]
    app.remember("Osei reviewed Lund's plan", key="osei.review")
    written(app.client, content="Osei reviewed Lund's plan")
    agent.client.post(RECORDS, an_inference("Osei reviews plans", key="osei.guess"))
    for record in records:
        assert app.get(record["id"]) == record
    assert set(retrieved(app.client, "Osei")) >= {fact["id"] for fact in facts}
    for fact in facts:
        assert body_of(app.client.get(at(fact)), 200)["version"] == 1


@pytest.mark.parametrize("before", ["Orion", 7, True, ["a"], {"a": 1}], ids=repr)
def test_corrections_have_one_life_whatever_they_say(app: Memory, before: Any) -> None:
    """M5."""
    lives = []
    for key, after in (("work.project", "Vega"), ("home.city", "Oslo"), ("a.b_c.d", 0)):
        old = app.remember(before, key=key, bindings={"trip_id": "T1"})
        new = app.correct(after, key=key)["record"]
        lives.append(
            (
                app.get(old["id"])["lifecycle"]["status"],
                new["lifecycle"]["status"],
                app.recall(key, context=T1)["value"] == after,
                [one["act"] for one in app.history(new["id"])],
            )
        )
    assert lives == [("superseded", "active", True, ["remembered", "corrected"])] * 3


# ---- forgetting -------------------------------------------------------------------------------------------------------------


def everything_read(kit: TenantKit, client: Any, words: str, *ids: str) -> str:
    """What lists, searches, recalls and single reads say, as one text."""
    seen = [
        client.get(RECORDS, {"limit": 200}).content,
        client.get(RECORDS, {"q": words}).content,
        client.get(RECORDS, {"status": "deleted"}).content,
        client.get(FACTS, {"limit": 200}).content,
        client.post("/v1/memory/recall", {"key_prefix": "k", "context": ANN}).content,
    ]
    for mode in ("keyword", "semantic", "both"):
        question = {"mode": mode, "query": words}
        seen.append(client.post("/v1/memory/retrieve", question).content)
    for one in ids:
        for path in ("", "/explain", "/history"):
            seen.append(client.get(f"{RECORDS}/{one}{path}").content)
        seen.append(client.get(f"{FACTS}/{one}").content)
    return b"\n".join(seen).decode()


def residue(superuser_url: str, words: str) -> dict[str, int]:
    """In which tables the words are still, and in how many rows, read past all walls."""
    left = {}
    with psycopg.connect(superuser_url) as database:
        tables = database.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            row = database.execute(
                f"SELECT count(*) FROM {table} t WHERE position(%s in t::text) > 0", [words]
            ).fetchone()
            if row and row[0]:
                left[table] = row[0]
    return left


def test_what_is_gone_from_the_list_is_gone_from_every_search_and_table(
    live_acme: TenantKit, superuser_url: str
) -> None:
    """M16, M20, M28."""
    word = f"xylograph{live_acme.slug.replace('-', '')}"
    client = live_acme.client("app", users=["ann"], projects=["p1"])
    app = Memory(client)
    record = app.remember(f"number {word}", key="k.number", id="source")
    app.remember({"summary": f"call {word}"}, key="k.summary", id="sum", derived_from=["source"])
    fact = written(client, content=f"it says {word}", id="said", scope={"projectId": "p1"})
    assert word in everything_read(live_acme, client, word, "source", "sum", "said")
    app.forget(record["id"])
    body_of(client.delete(at(fact)), 200)
    assert word not in everything_read(live_acme, client, word, "source", "sum", "said")
    principal = system_principal(live_acme.id, live_acme.slug, id="sweeper")
    assert sweep_retention(principal=principal).destroyed == 1
    assert residue(superuser_url, word) == {}
    # A second sweep finds nothing, and says so.
    assert sweep_retention(principal=principal).due == 0


def test_what_was_forgotten_on_a_page_is_recalled_by_no_agent(
    acme: TenantKit, app: Memory, agent: Memory
) -> None:
    """M17."""
    record = app.remember("the plan", key="k.plan")
    ann = person(acme, "person", subject="ann")
    page = ann.get(f"memory/{record['id']}/correct/forget")
    once = page.content.decode().split('name="once" value="', 1)[1].split('"', 1)[0]
    done = ann.post(f"memory/{record['id']}/correct/forget", {"once": once, "expect": record["id"]})
    assert done.status_code == 302, text_of(done)
    assert agent.recall("k.plan")["decision"] == "none"
    assert agent.list(q="plan") == []
    with tenant_context(acme.id):
        # Within the undo window a sealed copy is kept, which no route reads.
        assert not RecordValue.objects.exists()
        assert SealedCopy.objects.count() == 1
    assert "the plan" not in str(agent.explain(record["id"]))


def test_an_answer_made_of_two_memories_goes_with_either(app: Memory, agent: Memory) -> None:
    """M19, M22."""
    app.remember("lives in Oslo", key="k.city", id="city")
    app.remember("works nights", key="k.shift", id="shift")
    app.remember("call Oslo after noon", key="k.call", id="call", derived_from=["city", "shift"])
    app.remember("prefers afternoons", key="k.habit", id="habit", derived_from=["call"])
    app.forget("city")
    for _ in range(50):
        told = body_of(
            agent.client.post("/v1/memory/recall", {"key_prefix": "k", "context": ANN}), 200
        )
        assert set(told["results"]) == {"k.shift"}
        assert "Oslo" not in str(told)
    assert agent.explain("habit")["dead_ancestors"] == ["call", "city"]
    assert agent.explain("habit")["reason"] == "derived-from-forgotten"


def test_the_same_content_elsewhere_keeps_its_text_and_its_vector(app: Memory) -> None:
    """M23."""
    text = "the same sentence about seats"
    for project in ("p1", "p2"):
        written(app.client, content=text, id=f"in-{project}", scope={"projectId": project})
    one, other = (app.remember(text, key="k.s", subject=who)["id"] for who in ("ann", "bob"))
    body_of(app.client.delete(f"{FACTS}/in-p1"), 200)
    app.forget(one)
    for mode in ("keyword", "semantic", "both"):
        assert retrieved(app.client, text, mode) == ["in-p2"]
    assert app.get(other)["value"] == text
    assert [found["id"] for found in app.list(q="sentence")] == [other]


def test_forgetting_everything_about_somebody_leaves_what_governs_them(
    acme: TenantKit, app: Memory
) -> None:
    """M25."""
    admin = acme.client("admin")
    route = {"name": "desk", "label": "Desk"}
    source = {"match": "https://p.example.com/", "fetch_url": "https://p.example.com/"}
    hold = {"matter": "m", "reason": "r", "scope": {"subjects": ["bob"], "futureItems": True}}
    body_of(admin.post("/v1/memory/routes", route), 201)
    body_of(admin.post("/v1/memory/policy-sources", source), 201)
    body_of(admin.put("/v1/memory/types/note", {"keyword": True}), 200)
    body_of(admin.post("/v1/memory/legal-holds", hold), 201)
    ann, bob = person(acme, "person", subject="ann"), person(acme, "person", subject="bob")
    paths = ("routes", "policy-sources", "types", "legal-holds", "retention")

    def governed() -> list[Any]:
        return [body_of(admin.get(f"/v1/memory/{path}"), 200) for path in paths]

    for n in range(5):
        app.remember(n, key=f"k.n{n}", route="desk")
    kept = app.remember("bobs", key="k.bob", subject="bob")
    before = governed()
    for record in app.list(subject_id="ann"):
        app.forget(record["id"])
    assert app.list(subject_id="ann") == []
    assert governed() == before
    assert app.get(kept["id"])["value"] == "bobs"
    assert [one.get("memory/").status_code for one in (ann, bob)] == [200, 200]
    assert app.remember("new", key="k.n0", route="desk")["lifecycle"]["status"] == "active"


# ---- half-done acts ---------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The worker dies here."""


@pytest.mark.parametrize("act", ["correct", "remember", "broaden"])
def test_an_act_that_dies_between_retiring_and_writing_leaves_the_originals(
    live_acme: TenantKit, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """M26."""
    app = Memory(live_acme.client("app", users=["ann"]))
    first = app.remember("aisle", bindings={"trip_id": "T1"}, level="instance")
    wide = app.remember("aisle", key="k.wide")
    app.remember(
        "of it",
        key="k.child",
        derived_from=[first["id"], wide["id"]],
        bindings={"trip_id": "T1"},
        level="instance",
    )
    before = [app.get(one["id"]) for one in app.list()]
    principal = live_acme.principal("app", users=["ann"])

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    # What is written last of the records' rows, after the others have ended.
    for module in ("memory.actions.correct", "memory.actions.remember"):
        monkeypatch.setattr(f"{module}.insert_record", dies)
    wider = {"broaden_to": {"level": "user", "bindings": {}}}
    acts: dict[str, Callable[[], Any]] = {
        "correct": lambda: correct(
            principal=principal,
            asked=Correction(new_value="window", context=read_context(T1), key="travel.seat"),
        ),
        "remember": lambda: remember(
            principal=principal,
            draft=read_draft(a_record("window", bindings={"trip_id": "T1"}, level="instance")),
        ),
        "broaden": lambda: correct(
            principal=principal,
            asked=Correction(
                new_value="x", context=read_context({**ANN, **wider}), key="k.wide", broaden=True
            ),
        ),
    }
    with pytest.raises(Killed), tenant_context(live_acme.id):
        acts[act]()
    monkeypatch.undo()
    assert [app.get(one["id"]) for one in app.list()] == before
    assert app.recall(context=T1)["value"] == "aisle"


# ---- holds ------------------------------------------------------------------------------------------------------------------

SECRET = "what a hold keeps"


def hold(kit: TenantKit, *record_ids: str) -> None:
    body = {"matter": "m", "reason": "r", "scope": {"records": list(record_ids)}}
    body_of(kit.client("admin").post("/v1/memory/legal-holds", body), 201)


@pytest.fixture
def held(acme: TenantKit, app: Memory) -> dict[str, Any]:
    record = app.remember(
        SECRET,
        key="k.held",
        id="held",
        bindings={"trip_id": "T1"},
        level="instance",
        revalidate_on=["over"],
        derived_from=["parent"],
    )
    hold(acme, record["id"])
    return record


def _correct(kit: TenantKit, app: Memory) -> Any:
    return app.client.post(
        "/v1/memory/correct", {"key": "k.held", "new_value": "new", "context": T1}
    )


def _correct_by_id(kit: TenantKit, app: Memory) -> Any:
    return app.client.post(f"{RECORDS}/held/correct", {"new_value": "new", "context": T1})


def _broaden(kit: TenantKit, app: Memory) -> Any:
    wider = {"level": "user", "bindings": {}}
    context = {**T1, "broaden_to": wider}
    body = {"key": "k.held", "new_value": "new", "context": context, "broaden": True}
    return app.client.post("/v1/memory/correct", body)


def _remember(kit: TenantKit, app: Memory) -> Any:
    body = a_record("new", key="k.held", bindings={"trip_id": "T1"}, level="instance")
    return app.client.post(RECORDS, body)


def _supersede(kit: TenantKit, app: Memory) -> Any:
    return app.client.post(RECORDS, a_record("new", key="k.held", supersedes=["held"]))


def _fix_by_route(kit: TenantKit, app: Memory) -> Any:
    form = {"new_value": "new", "context": T1}
    return app.client.post(f"{RECORDS}/held/routes/fix-value", form)


def _erase(kit: TenantKit, app: Memory) -> Any:
    body = {"subject": {"kind": "user", "id": "ann"}}
    return kit.client("admin").post("/v1/memory/erasures", body)


@pytest.mark.parametrize(
    "path",
    [_correct, _correct_by_id, _broaden, _remember, _supersede, _fix_by_route, _erase],
    ids=lambda path: path.__name__.strip("_"),
)
def test_what_would_replace_or_erase_the_held_is_refused_and_logged(
    acme: TenantKit, app: Memory, held: dict[str, Any], path: Callable[..., Any]
) -> None:
    """M31."""
    details = refusal(path(acme, app), 409, "legal-hold")
    assert details["ids"] == ["held"]
    assert app.get("held") == held
    assert app.recall("k.held", context=T1)["value"] == SECRET
    log = body_of(
        acme.client("admin").get("/v1/memory/runs/kindmem.governance/log", {"limit": 200}), 200
    )["data"]
    refused = [one["payload"] for one in log if one["payload"]["type"] == "hold.refused"]
    assert [one["ids"] for one in refused] == [["held"]]


def test_an_import_does_not_replace_the_held(
    acme: TenantKit, app: Memory, held: dict[str, Any], tmp_path: Path
) -> None:
    """M31."""
    line = whole("new", key="k.held", bindings={"trip_id": "T1"}, level="instance")
    answer = imported(acme, file_of(tmp_path, line), refused=1)
    assert answer["refusals"][0]["code"] == "legal-hold"
    assert app.get("held") == held


def _forget(app: Memory) -> None:
    app.forget("held")


def _forget_by_route(app: Memory) -> None:
    body_of(app.client.post(f"{RECORDS}/held/routes/forget", {}), 200)


def _forget_its_parent(app: Memory) -> None:
    parent = app.remember("p", key="k.parent", id="parent")
    app.forget(parent["id"])


def _end_its_parent(app: Memory) -> None:
    app.remember("p", key="k.parent", id="parent", revalidate_on=["parent_over"])
    app.emit("parent_over")


def _emit(app: Memory) -> None:
    assert app.emit("over") == ["held"]


def _out_of_date(app: Memory) -> None:
    body_of(app.client.post(f"{RECORDS}/held/routes/out-of-date", {}), 200)


@pytest.mark.parametrize(
    "path",
    [_forget, _forget_by_route, _forget_its_parent, _end_its_parent, _emit, _out_of_date],
    ids=lambda path: path.__name__.strip("_"),
)
def test_where_use_must_stop_the_held_is_sealed_and_served_no_more(
    acme: TenantKit,
    app: Memory,
    agent: Memory,
    held: dict[str, Any],
    path: Callable[[Memory], None],
) -> None:
    """M31, M34."""
    path(app)
    assert agent.recall("k.held", context=T1)["decision"] == "none"
    assert SECRET not in str(
        [agent.get("held"), agent.explain("held"), agent.history("held"), agent.list(q="keeps")]
    )
    with tenant_context(acme.id):
        assert not RecordValue.objects.filter(record_id="held").exists()
        assert SealedCopy.objects.filter(record_id="held", purpose="hold").exists()
    # The end of an undo's window, and the worker's rounds, take nothing of a hold.
    with tenant_context(acme.id):
        destroy_overdue(acme.id, timezone.now() + timedelta(days=60))
        assert [one.purpose for one in SealedCopy.objects.filter(record_id="held")] == ["hold"]


# ---- the log and its people -------------------------------------------------------------------------------------------------


def test_a_log_that_one_process_wrote_another_finds_intact(
    live_acme: TenantKit, app_conninfo: str
) -> None:
    """M65."""
    client = live_acme.client("app", projects=["p1"])
    entries = [
        {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {"n": n / 7, "t": "é\u2028"}}
        for n in range(20)
    ]
    body_of(client.post("/v1/memory/runs/r/log/batch", {"entries": entries}), 201)
    for entry in entries[:3]:
        body_of(client.post("/v1/memory/runs/r/log", entry), 201)
    seal_tenant(tenant_id=live_acme.id, tenant_slug=live_acme.slug)
    done = subprocess.run(
        [sys.executable, "manage.py", "verify_log", live_acme.slug, "--run", "r", "--json"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": app_conninfo},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_records_history_has_every_act_in_order_with_who_and_when(
    app: Memory, agent: Memory
) -> None:
    """M67."""
    first = app.remember("a", key="k.h", bindings={"trip_id": "T1"})
    second = app.correct("b", key="k.h")["record"]
    app.forget(second["id"])
    rows = agent.history(first["id"])
    assert [one["act"] for one in rows] == ["remembered", "corrected", "forgotten"]
    assert [(one["from"]["status"], one["to"]["status"]) for one in rows] == [
        (None, "active"),
        (None, "active"),
        ("active", "deleted"),
    ]
    assert [one["when"] for one in rows] == sorted(one["when"] for one in rows)
    assert all(one["who"] and one["log_ref"] for one in rows)
