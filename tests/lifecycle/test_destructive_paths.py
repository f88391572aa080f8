"""Every destructive path of the product's own table, tried on what a hold keeps; and the table itself, held to the code."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from django.db import Error, connection, transaction
from django.utils import timezone

from memory import hold_items
from memory.access import system_principal
from memory.actions.expire_overdue import expire_overdue
from memory.actions.finish_holds import finish_holds
from memory.actions.reindex_facts import reindex_changed_types
from memory.actions.replay_endings import Ended, EndedAgain, end_what_had_ended
from memory.actions.run_erasure import run_due_erasures
from memory.destructive_paths import PATHS, RELEASE, DestructivePath
from memory.erasure.ledger import selector_digest
from memory.records import clock
from memory.records.sealing import destroy_overdue
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.commands.commands import answered
from tests.completeness.sources import ROOT, files, name_of
from tests.facts.sources import set_settings, source_server, view
from tests.import_records.files import file_of, imported, whole
from tests.import_runs.transcripts import agent, result, user, written
from tests.lifecycle.facts import age, count, value, write
from tests.lifecycle.people import member
from tests.lifecycle.test_holds import find, place, release
from tests.lifecycle.test_sweep import sweep
from tests.records.builders import a_record, an_inference, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory

SECRET = "what the hold keeps"
HELD = "held"
CASE = {**ANN, "trip_id": "T1"}


@dataclass
class Scene:
    """A tenant with one thing under a hold, and an app that may write about ann."""

    kit: TenantKit
    app: Memory
    settings: Any
    folder: Path
    held: str = HELD
    is_large: bool = False
    """Whether the hold is one that protects before it has counted what it names."""

    @property
    def worker(self) -> Any:
        return system_principal(self.kit.id, self.kit.slug, id="worker")

    def hold_fact(self, **more: Any) -> None:
        body = {"id": HELD, "type": "note", "scope": {"userId": "ann"}, "content": SECRET, **more}
        body_of(self.app.client.post("/v1/memory/facts", body), 201)
        self.place(fact_types=("note",)) if self.is_large else self.place(fact_ids=(HELD,))

    def hold_record(self, **more: Any) -> None:
        given = {"bindings": {"trip_id": "T1"}, "level": "instance", **more}
        if self.is_large:
            given = {"evidence": {"kind": "message", "ref": "held-run"}, **given}
        self.app.remember(SECRET, id=HELD, key="k.held", **given)
        self.place(run_ids=("held-run",)) if self.is_large else self.place(record_ids=(HELD,))

    def place(self, **scope: Any) -> None:
        place(self.kit, **scope)

    def ask_erasure(self, kind: str, selector: str) -> None:
        """One that was asked for before the hold came."""
        with tenant_context(self.kit.id), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO erasure (tenant_id, id, selector_kind, selector_id, selector_digest, key_id, requested_by)"
                " VALUES (%s::uuid, gen_random_uuid(), %s::text, %s::text, %s::bytea, 'k', 'service:tests')",
                [self.kit.id, kind, selector, selector_digest(self.kit.id, kind, selector)],
            )


def refused(answer: Any) -> None:
    assert HELD in refusal(answer, 409, "legal-hold")["ids"]


def _delete(scene: Scene) -> None:
    scene.hold_fact()
    refused(scene.app.client.delete(f"/v1/memory/facts/{HELD}"))


def _supersede(scene: Scene) -> None:
    scene.hold_fact()
    refused(scene.app.client.post(f"/v1/memory/facts/{HELD}/supersede", {"content": "new"}))


def _refresh(scene: Scene) -> None:
    scene.settings.KINDMEM_DEVELOPMENT = True
    set_settings(scene.kit, refreshHosts=["127.0.0.1"], refreshHandlers=["crm"])
    with source_server() as source:
        scene.hold_fact(source=view(uri=source.url))
        refused(scene.app.client.post(f"/v1/memory/facts/{HELD}/refresh"))


def _sweep(scene: Scene) -> None:
    scene.hold_fact()
    age(scene.kit, HELD)
    result = sweep(scene.kit)
    assert (result.destroyed, result.held) == (0, 1)


def _re_index(scene: Scene) -> None:
    scene.hold_fact()
    body_of(
        scene.kit.client("admin").put(
            "/v1/memory/types/note", {"keyword": False, "semantic": False}
        ),
        200,
    )
    reindex_changed_types(tenant_id=scene.kit.id, language="english", most_seconds=30)


def _erasure_request(scene: Scene) -> None:
    scene.hold_fact()
    body = {"subject": {"kind": "user", "id": "ann"}}
    refused(scene.kit.client("admin").post("/v1/memory/erasures", body))


def _erasure_of_facts(scene: Scene) -> None:
    write(scene.kit, content=SECRET, id=HELD)
    scene.ask_erasure("fact", HELD)
    place(scene.kit, fact_ids=(HELD,))
    run_due_erasures(scene.worker)
    assert count(scene.kit, "erasure", "status <> 'completed'") == 1


def _erasure_of_records(scene: Scene) -> None:
    scene.hold_record()
    scene.ask_erasure("user", "ann")
    run_due_erasures(scene.worker)
    assert count(scene.kit, "erasure", "status <> 'completed'") == 1


def _erasure_of_payloads(scene: Scene) -> None:
    entry = {"id": HELD, "kind": "user-message", "scope": {"userId": "ann"}, "payload": SECRET}
    body_of(scene.app.client.post("/v1/memory/runs/r1/log", entry), 201)
    place(scene.kit, run_ids=("r1",))
    body = {"subject": {"kind": "user", "id": "ann"}}
    refused(scene.kit.client("admin").post("/v1/memory/erasures", body))
    scene.ask_erasure("user", "ann")
    run_due_erasures(scene.worker)


def _remember(scene: Scene) -> None:
    scene.hold_record()
    body = a_record("new", key="k.held", bindings={"trip_id": "T1"}, level="instance")
    refused(scene.app.client.post(RECORDS, body))


def _correct(scene: Scene) -> None:
    scene.hold_record()
    body = {"key": "k.held", "new_value": "new", "context": CASE}
    refused(scene.app.client.post("/v1/memory/correct", body))


def _import(scene: Scene) -> None:
    scene.hold_record()
    line = whole("new", key="k.held", bindings={"trip_id": "T1"}, level="instance")
    answer = imported(scene.kit, file_of(scene.folder, line), refused=1)
    assert answer["refusals"][0]["code"] == "legal-hold"


def _import_of_runs(scene: Scene) -> None:
    scene.settings.KINDMEM_EMBEDDINGS = "none"
    messages = [user("Go on")]
    for n, status in enumerate((SECRET, "new")):
        messages.append(agent(f"Step {n}", (f"c{n}", "update_order_status", '{"order_id": "O1"}')))
        messages.append(
            result(f"c{n}", json.dumps({"order_id": "O1", "user_id": "u1", "status": status}))
        )
        path = written(scene.folder / "x.jsonl", [{"messages": messages}])
        answered("import_runs", scene.kit.slug, str(path))
        if n == 0:
            scene.held = "x-0:order:O1"
            place(scene.kit, fact_ids=(scene.held,))
    assert count(scene.kit, "log_entry", "run_id = 'x-0'") == 7
    assert count(scene.kit, "hold_refusal") == 1


def _undo(scene: Scene) -> None:
    old = scene.app.remember("before", key="k.held", bindings={"trip_id": "T1"}, level="instance")
    form = {"new_value": SECRET, "context": CASE}
    path = f"{RECORDS}/{old['id']}/routes/fix-value"
    acted = body_of(scene.app.client.post(path, form), 200)
    with tenant_context(scene.kit.id), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM memory_record WHERE status = 'active' AND key = 'k.held'")
        (corrected,) = cursor.fetchone()
    place(scene.kit, record_ids=(corrected,))
    undone = scene.app.client.post(f"/v1/memory/receipts/{acted['receipt']['number']}/undo")
    assert refusal(undone, 409, "legal-hold")["ids"] == [corrected]
    assert scene.app.recall("k.held", context=CASE)["value"] == SECRET


def _forget(scene: Scene) -> None:
    scene.hold_record()
    scene.app.forget(HELD)


def _cascade(scene: Scene) -> None:
    scene.app.remember("p", key="k.parent", id="parent")
    scene.hold_record(derived_from=["parent"])
    scene.app.forget("parent")


def _expiry(scene: Scene) -> None:
    scene.hold_record()
    _pass_its_last_day(scene)
    expire_overdue(principal=scene.worker)


def _pass_its_last_day(scene: Scene) -> None:
    with tenant_context(scene.kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE memory_record SET valid_until = '2026-01-01'")


def _expiry_on_recall(scene: Scene) -> None:
    scene.hold_record()
    _pass_its_last_day(scene)
    assert scene.app.recall("k.held", context=CASE)["decision"] == "none"


def _beginning(scene: Scene) -> None:
    """Another word of a later day takes its place on that day."""
    scene.hold_record()
    tomorrow = timezone.now() + timedelta(days=1)
    given = {"bindings": {"trip_id": "T1"}, "level": "instance"}
    first_day = tomorrow.date().isoformat()
    scene.app.remember("new", key="k.held", valid_from=first_day, **given)
    with clock.fixed_at(tomorrow + timedelta(days=1)):
        expire_overdue(principal=scene.worker)


def _emit(scene: Scene) -> None:
    scene.hold_record(revalidate_on=["over"])
    assert scene.app.emit("over") == [HELD]


def _route(scene: Scene) -> None:
    scene.hold_record()
    body_of(scene.app.client.post(f"{RECORDS}/{HELD}/routes/out-of-date", {}), 200)


def _undo_purge(scene: Scene) -> None:
    """Forgotten with an undo first, held then: the undo's deadline takes nothing of the hold."""
    given = {"bindings": {"trip_id": "T1"}, "level": "instance"}
    scene.app.remember(SECRET, id=HELD, key="k.held", **given)
    body_of(scene.app.client.post(f"{RECORDS}/{HELD}/routes/forget", {}), 200)
    assert place(scene.kit, record_ids=(HELD,)).record_count == 1
    later = timezone.now() + timedelta(days=60)
    with tenant_context(scene.kit.id):
        assert destroy_overdue(scene.kit.id, later) == 1


def _restore_again(scene: Scene, item: Literal["record", "fact"], act: str) -> EndedAgain:
    """As a restore does with what had ended since the backup."""
    digest = b"d" * 32
    thing = Ended(timezone.now(), item, act, {digest})
    return end_what_had_ended(
        principal=scene.worker, things=[thing], ids={(item, digest): scene.held}
    )


def _restore_of_facts(scene: Scene) -> None:
    scene.hold_fact()
    for act in ("deleted", "destroyed"):
        again = _restore_again(scene, "fact", act)
        assert (again.held, again.counts) == ([HELD], {})


def _restore(scene: Scene) -> None:
    scene.hold_record()
    assert _restore_again(scene, "record", "superseded").held == [HELD]
    assert _restore_again(scene, "record", "deleted").counts == {"records.deleted": 1}


def _let_wait(scene: Scene, table: str) -> None:
    """Let the held thing wait for a decision."""
    with tenant_context(scene.kit.id), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET review = 'pending', review_reason = 'wide'")


def _decide(scene: Scene, path: str) -> Any:
    return scene.kit.client("admin").post(f"/v1/memory/reviews/{path}", {})


def _rejection_of_a_fact(scene: Scene) -> None:
    scene.hold_fact()
    _let_wait(scene, "fact")
    refused(_decide(scene, f"fact/{HELD}/reject"))


def _approval(scene: Scene) -> None:
    scene.hold_record()
    agent_key = scene.kit.client("agent", users=["ann"])
    said = an_inference("new", key="k.held", bindings={"trip_id": "T1"}, level="instance")
    waits = body_of(agent_key.post(RECORDS, said), 202)["id"]
    refused(_decide(scene, f"record/{waits}/approve"))


def _rejection(scene: Scene) -> None:
    scene.hold_record()
    _let_wait(scene, "memory_record")
    body_of(_decide(scene, f"record/{HELD}/reject"), 200)


def _complaint(scene: Scene) -> None:
    scene.hold_record()
    told = body_of(scene.app.client.post(f"{RECORDS}/{HELD}/routes/wrong-person", {}), 200)
    body_of(_decide(scene, f"withdrawal/{told['receipt']['number']}/approve"), 200)


def _roll_back(scene: Scene) -> None:
    scene.hold_record()
    _roll_back_the_key(scene)


def _roll_back_of_facts(scene: Scene) -> None:
    scene.hold_fact()
    assert _roll_back_the_key(scene) == {"held": 1}


def _roll_back_the_key(scene: Scene) -> dict[str, int]:
    admin, token = scene.kit.client("admin"), str(scene.app.client.token)
    asked = {"key": token.removeprefix("kmk_")[:10], "reason": "r"}
    placed = body_of(admin.post("/v1/memory/quarantines", asked), 201)
    done = admin.post(f"/v1/memory/quarantines/{placed['id']}/roll-back", {})
    outcomes: dict[str, int] = body_of(done, 200)["outcomes"]
    return outcomes


TRIES: dict[str, Callable[[Scene], None]] = {
    "delete": _delete,
    "supersede": _supersede,
    "refresh": _refresh,
    "sweep": _sweep,
    "re-index": _re_index,
    "erasure-request": _erasure_request,
    "erasure-of-facts": _erasure_of_facts,
    "erasure-of-records": _erasure_of_records,
    "erasure-of-payloads": _erasure_of_payloads,
    "rejection-of-a-fact": _rejection_of_a_fact,
    "roll-back-of-facts": _roll_back_of_facts,
    "approval": _approval,
    "rejection": _rejection,
    "complaint": _complaint,
    "roll-back": _roll_back,
    "remember": _remember,
    "correct": _correct,
    "import": _import,
    "import-of-runs": _import_of_runs,
    "undo": _undo,
    "forget": _forget,
    "cascade": _cascade,
    "expiry": _expiry,
    "expiry-on-recall": _expiry_on_recall,
    "beginning": _beginning,
    "emit": _emit,
    "route": _route,
    "undo-purge": _undo_purge,
    "restore-of-facts": _restore_of_facts,
    "restore": _restore,
    "undo-purge-of-a-restore": _undo_purge,
}


def test_every_path_of_the_table_is_tried() -> None:
    assert set(TRIES) == {path.name for path in PATHS}
    assert len({path.name for path in PATHS}) == len(PATHS)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_what_a_hold_keeps_survives(
    live_acme: TenantKit, settings: Any, tmp_path: Path, path: DestructivePath
) -> None:
    """M31, S29."""
    app = Memory(live_acme.client("app", users=["ann"], projects=["p1"]))
    check_survives(Scene(live_acme, app, settings, tmp_path), path)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_what_a_large_hold_names_survives_before_it_is_counted(
    live_acme: TenantKit,
    settings: Any,
    tmp_path: Path,
    path: DestructivePath,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hold_items, "MOST_IN_ONE", 0)
    app = Memory(live_acme.client("app", users=["ann"], projects=["p1"]))
    check_survives(Scene(live_acme, app, settings, tmp_path, is_large=True), path)
    finish_holds(system_principal(live_acme.id, live_acme.slug))
    assert count(live_acme, "legal_hold", "taken_in_at IS NULL") == 0
    if path.name != "import-of-runs":
        held = {"facts": "fact_hold", "records": "record_hold"}.get(path.of)
        assert held is None or count(live_acme, held) == 1


def check_survives(scene: Scene, path: DestructivePath) -> None:
    live_acme, app = scene.kit, scene.app
    TRIES[path.name](scene)
    if path.of == "facts":
        kept = "SELECT content_text FROM fact_content WHERE fact_id = %s"
        assert SECRET in value(live_acme, kept, scene.held)
        version = "SELECT current_version FROM fact WHERE id = %s AND deleted_at IS NULL"
        assert value(live_acme, version, scene.held) == 1
    elif path.of == "payloads":
        kept = value(live_acme, "SELECT payload_text FROM log_entry WHERE id = %s", HELD)
        assert kept == f'"{SECRET}"'
    elif path.outcome == "sealed":
        assert count(live_acme, "record_value", f"record_id = '{HELD}'") == 0
        assert count(live_acme, "sealed_copy", f"record_id = '{HELD}' AND purpose = 'hold'") == 1
        assert app.recall("k.held", context=CASE)["value"] is None
    else:
        said = "SELECT count(*) FROM record_value WHERE value_text = %s"
        assert value(live_acme, said, f'"{SECRET}"') == 1
        assert app.recall("k.held", context=CASE)["value"] == SECRET
    if path.outcome == "refused" and not path.name.startswith("erasure-of"):
        assert count(live_acme, "hold_refusal") == 1


def test_what_an_undo_sealed_and_a_hold_then_kept_is_purged_on_release(
    acme: TenantKit, tmp_path: Path, settings: Any
) -> None:
    app = Memory(acme.client("app", users=["ann"], projects=["p1"]))
    _undo_purge(Scene(acme, app, settings, tmp_path))
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM legal_hold")
        hold = cursor.fetchone()[0]

    class Named:
        id = hold

    release(acme, find(acme, Named), member(acme), member(acme))  # type: ignore[arg-type]
    assert count(acme, "sealed_copy") == 0


# ---- the table, held to the code ----------------------------------------------------------------------------------------------

_CONTENT = (
    r"fact|fact_content|fact_revision|fact_subject|fact_cause|record_value|memory_record|sealed_copy|record_observation|"
    r"log_entry|\{table\}"
)
_DESTROYS = re.compile(
    rf"DELETE FROM (?:{_CONTENT})\b|DELETE FROM \{{table\}}|payload_text = NULL|content_text = NULL|value_text = NULL"
)
# Where the statements themselves are: each asks the holds, or destroys what is no hold's.
_STATEMENTS = {
    "memory/destruction.py": "facts: looks at the holds in a second statement",
    "memory/records/ending.py": "records: what is held is sealed first, or refused",
    "memory/records/sealing.py": "copies of an undo alone",
    "memory/actions/erase_payloads.py": "payloads: an erasure asks the holds before",
    RELEASE: "the release of a hold",
}
_CALLS = re.compile(
    r"(?<!def )\b(?:destroy_facts|delete_fact|supersede_fact|erase_payloads|destroy_overdue|reindex)\("
    r"|(?<![.\w])(?<!def )(?:forget|expire|supersede|discard|discard_fact)\("
)
_PASS_ON = {
    "memory/records/ending.py": "what ends together with something else",
    "memory/actions/approve_review.py": "by the action",
    "memory/api/views/facts.py": "by the action",
    "corrections/views/me_fact_acts.py": "by the action",
    "kindmem/demo/seed.py": "by the action",
}


def test_no_module_destroys_without_being_in_the_table() -> None:
    """S29."""
    found = {
        name_of(path)
        for path in files(".py")
        if "migrations" not in path.parts and _DESTROYS.search(path.read_text("utf-8"))
    }
    assert found == set(_STATEMENTS)


def test_whoever_calls_what_destroys_is_in_the_table() -> None:
    """S29."""
    found = {
        name_of(path)
        for path in files(".py")
        if "migrations" not in path.parts and _CALLS.search(_code(path))
    }
    assert set(_PASS_ON) <= found
    assert found - set(_PASS_ON) <= {path.module for path in PATHS}, found
    assert {path.module for path in PATHS} <= {name_of(one) for one in files(".py")}
    assert (ROOT / RELEASE).exists()


def _code(path: Path) -> str:
    """The module without its strings of documentation."""
    return re.sub(r'"""(?:.|\n)*?"""', "", path.read_text("utf-8"))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM fact",
        "DELETE FROM fact_revision",
        "DELETE FROM fact_content",
        "DELETE FROM record_value",
        "UPDATE fact SET deleted_at = now()",
    ],
)
def test_past_the_product_the_database_lets_nothing_held_go(
    acme: TenantKit, statement: str, settings: Any, tmp_path: Path
) -> None:
    scene = Scene(acme, Memory(acme.client("app", users=["ann"])), settings, tmp_path)
    scene.hold_fact()
    scene.hold_record()
    with (
        tenant_context(acme.id),
        pytest.raises(Error, match="legal hold"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
