"""`export_subject`, and its file imported elsewhere: everything about the person, in its state, and held where it was held."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from memory.actions import export_subject as exporting
from tests.builders import TenantKit, make_tenant
from tests.commands.governance import governance
from tests.facts.shapes import FACTS, written
from tests.import_records.files import codes, exported, imported, of_kind, stored
from tests.records.builders import a_record, an_inference, body_of, valid
from tests.records.conftest import ANN, Memory

SECRET = "the-forgotten-value"


@pytest.fixture
def acme(live_acme: TenantKit) -> TenantKit:
    """Committed: an export reads one snapshot of the database, and one transaction belongs to one tenant."""
    return live_acme


@pytest.fixture
def app(acme: TenantKit) -> Memory:
    return Memory(acme.client("app", users=["ann", "bob"], projects=["p1"]))


@pytest.fixture
def other(acme: TenantKit) -> TenantKit:
    return make_tenant()


def hold(kit: TenantKit, *record_ids: str) -> str:
    body = {"matter": "a case", "reason": "why", "scope": {"records": list(record_ids)}}
    return str(body_of(kit.client("admin").post("/v1/memory/legal-holds", body), 201)["id"])


def lived(app: Memory) -> dict[str, str]:
    """A life of Ann's memory: one record in every state, and Bob's beside it."""
    ids = {"active": app.remember("aisle", key="a.active")["id"]}
    wide = app.remember("paper", key="a.case", level="instance", bindings={"trip_id": "T1"})
    corrected = app.correct("screen", key="a.case", context={**ANN, "trip_id": "T1"})
    ids |= {"superseded": wide["id"], "corrected": corrected["record"]["id"]}
    ids["expired"] = app.remember("old", key="a.over", retain=True, revalidate_on=["over"])["id"]
    app.emit("over")
    gone = app.remember(SECRET, key="a.gone", id="gone")
    ids["child"] = app.remember(f"of {SECRET}", key="a.child", derived_from=["gone"])["id"]
    ids["other-slot"] = app.remember("elsewhere", key="a.gone", bindings={"trip_id": "T9"})["id"]
    app.forget(gone["id"])
    ids["gone"] = "gone"
    ids["disputed"] = app.remember("wrong", key="a.disputed")["id"]
    app.client.post(f"/v1/memory/records/{ids['disputed']}/routes/dispute", {"statement": "not so"})
    guess = body_of(app.client.post("/v1/memory/records", an_inference("g", key="a.guess")), 201)
    ids["guess"] = app.confirm(guess["id"])["id"]
    ids["policy"] = app.remember(
        None, key="a.policy", authority="policy", source_of_truth="https://x.example/p"
    )["id"]
    app.remember("bobs", key="a.active", subject="bob")
    return ids


def statuses(kit: TenantKit, ids: dict[str, str]) -> dict[str, str]:
    return {name: stored(kit, one).status for name, one in ids.items()}


def test_an_export_holds_every_state_and_nothing_of_anybody_else(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    ids = lived(app)
    lines = exported(acme, "ann", tmp_path / "ann.jsonl")
    records = [line["record"] for line in of_kind(lines, "record")]
    assert {one["id"] for one in records} == set(ids.values())
    assert {one["subject"]["id"] for one in records} == {"ann"}
    assert {valid(one)["lifecycle"]["status"] for one in records} == {
        "active",
        "superseded",
        "expired",
        "deleted",
    }
    assert lines[0]["kind"] == "export"
    assert lines[0]["subject"] == {"type": "user", "id": "ann"}
    assert lines[-1]["kind"] == "end"
    assert lines[-1]["counts"]["record"] == len(records)
    assert "bobs" not in json.dumps(lines)


def test_what_was_forgotten_is_in_no_line_of_an_export(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    lived(app)
    lines = exported(acme, "ann", tmp_path / "ann.jsonl")
    assert SECRET not in json.dumps(lines)
    gone = [one["record"] for one in of_kind(lines, "record") if one["record"]["id"] == "gone"]
    assert [one["value"] for one in gone] == [None]


def test_what_waits_for_a_decision_or_is_somebody_elses_is_not_exported(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    app.remember("aisle", level="task")
    agent = acme.client("agent", users=["ann"])
    body_of(agent.post("/v1/memory/records", an_inference("a pending guess")), 202)
    foreign = app.remember("somebody elses", key="a.foreign")
    app.client.post(f"/v1/memory/records/{foreign['id']}/routes/wrong-person", {})
    text = json.dumps(exported(acme, "ann", tmp_path / "ann.jsonl"))
    assert "a pending guess" not in text
    assert "somebody elses" not in text


def test_facts_come_with_their_revisions_entries_by_id_and_receipts_whole(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    person = {"subjects": [{"kind": "external", "id": "ann"}], "scope": {"projectId": "p1"}}
    fact = written(app.client, content="first", **person)
    app.client.post(
        f"{FACTS}/{fact['id']}/supersede", {"content": "second", **{"subjects": person["subjects"]}}
    )
    written(app.client, content="of nobody", scope={"projectId": "p1"})
    said = app.says("ann", "a message of hers")
    record = app.remember("aisle")
    app.recall(run_id="run-1")
    receipt = app.correct("window", context={**ANN, "trip_id": "T1"})["receipt"]
    lines = exported(acme, "ann", tmp_path / "ann.jsonl")
    (told,) = of_kind(lines, "fact")
    assert told["id"] == fact["id"]
    assert [one["content"] for one in told["revisions"]] == ["second", "first"]
    entries = {one["id"]: one for one in of_kind(lines, "log-entry")}
    assert entries[said]["because"] == ["about"]
    used = [one for one in entries.values() if "use" in one["because"]]
    assert [(one["runId"], one["entryKind"]) for one in used] == [("run-1", "retrieval")]
    acts = {one for one, entry in entries.items() if "act" in entry["because"]}
    assert receipt["log_entry_id"] in acts
    assert set(app.explain(record["id"])["log_refs"]) <= acts | {said}
    assert "a message of hers" not in json.dumps(lines)
    (kept,) = of_kind(lines, "receipt")
    assert kept["receipt"]["number"] == receipt["number"]
    assert kept["receipt"]["after"]["value"] == "window"


def test_an_export_is_logged_without_the_persons_id(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    app.remember("aisle")
    exported(acme, "ann", tmp_path / "ann.jsonl")
    (entry,) = [one for one in governance(acme) if one["type"] == "memory.exported"]
    assert set(entry) == {"type", "exportId", "subjectDigest"}
    assert "ann" not in json.dumps(entry)


def test_nobody_known_makes_an_empty_export(acme: TenantKit, tmp_path: Path) -> None:
    lines = exported(acme, "nobody", tmp_path / "nobody.jsonl")
    assert [one["kind"] for one in lines] == ["export", "end"]


def test_a_file_is_there_whole_or_as_it_was(
    acme: TenantKit, app: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.remember("aisle")
    path = tmp_path / "ann.jsonl"
    path.write_text("before")

    def breaks(*_: Any) -> Any:
        yield {"kind": "record"}
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr(exporting, "_PARTS", (breaks,))
    with pytest.raises(Exception, match="No space left"):
        call_command("export_subject", acme.slug, "ann", "--out", str(path))
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["ann.jsonl"]
    monkeypatch.undo()
    exported(acme, "ann", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_import_elsewhere_keeps_every_state_and_revives_nothing(
    acme: TenantKit, other: TenantKit, app: Memory, tmp_path: Path
) -> None:
    ids = lived(app)
    path = tmp_path / "ann.jsonl"
    lines = exported(acme, "ann", path)
    answer = imported(other, str(path))
    assert answer["added"] == len(ids)
    assert answer["skipped"] == len(lines) - len(ids)
    assert statuses(other, ids) == statuses(acme, ids)
    again = exported(other, "ann", tmp_path / "again.jsonl")
    first = {one["record"]["id"]: one for one in of_kind(lines, "record")}
    second = {one["record"]["id"]: one for one in of_kind(again, "record")}
    for one, line in first.items():
        for member in ("record", "trust", "disputedAt"):
            assert second[one].get(member) == line.get(member), (one, member)
    there = Memory(other.client("app", users=["ann"]))
    assert there.recall("a.child")["decision"] == "none"
    assert there.recall("a.gone", context={**ANN, "trip_id": "T9"})["value"] == "elsewhere"
    assert there.recall("a.case", context={**ANN, "trip_id": "T1"})["value"] == "screen"
    assert there.recall("a.disputed")["reason"] == "disputed"
    assert SECRET not in json.dumps(there.list())
    # The forgotten key is obeyed there too: an agent's next guess waits.
    agent = other.client("agent", users=["ann"])
    guess = an_inference(SECRET, key="a.gone", bindings={"trip_id": "T2"})
    body_of(agent.post("/v1/memory/records", guess), 202)


def test_an_import_back_home_adds_nothing_and_revives_nothing(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    ids = lived(app)
    path = tmp_path / "ann.jsonl"
    exported(acme, "ann", path)
    app.forget(ids["active"])
    before = exported(acme, "ann", tmp_path / "before.jsonl")
    answer = imported(acme, str(path), refused=1)
    assert [code for _, code in codes(answer)] == ["id-reused"]
    assert (answer["added"], answer["present"]) == (0, len(ids) - 1)
    after = exported(acme, "ann", tmp_path / "after.jsonl")
    assert of_kind(after, "record") == of_kind(before, "record")
    assert app.recall("a.active")["decision"] == "none"


def test_what_was_held_is_held_after_an_import_and_stays_so(
    acme: TenantKit, other: TenantKit, app: Memory, tmp_path: Path
) -> None:
    """M32, U13."""
    held = [app.remember("aisle", key=f"a.held_{n}")["id"] for n in range(3)]
    free = app.remember("free", key="a.free")["id"]
    first, second = hold(acme, *held), hold(acme, held[0])
    path = tmp_path / "ann.jsonl"
    lines = exported(acme, "ann", path)
    told = {one["record"]["id"]: one.get("holds", []) for one in of_kind(lines, "record")}
    assert {one["id"] for one in told[held[0]]} == {first, second}
    assert told[free] == []
    # Neither the case nor its reason is in what the person may be given.
    assert "a case" not in path.read_text()
    assert imported(other, str(path))["held"] == 3
    assert [stored(other, one).hold_count for one in (*held, free)] == [2, 1, 1, 0]
    admin = other.client("admin")
    holds = body_of(admin.get("/v1/memory/legal-holds"), 200)["data"]
    assert sorted((one["matter"], one["records"]) for one in holds) == sorted(
        [(f"Imported hold {first}", 3), (f"Imported hold {second}", 1)]
    )
    # Whatever would destroy it is refused there, as it was here.
    there = other.client("app", users=["ann"])
    answer = there.post("/v1/memory/records", a_record("window", key="a.held_1"))
    assert body_of(answer, 409)["error"]["code"] == "legal-hold"
    again = imported(other, str(path))
    assert (again["added"], again["held"], again["present"]) == (0, 0, 4)
    assert len(body_of(admin.get("/v1/memory/legal-holds"), 200)["data"]) == 2


def test_of_a_held_tombstone_only_the_tombstone_travels(
    acme: TenantKit, other: TenantKit, app: Memory, tmp_path: Path
) -> None:
    record = app.remember(SECRET)
    hold(acme, record["id"])
    app.forget(record["id"])
    path = tmp_path / "ann.jsonl"
    assert SECRET not in json.dumps(exported(acme, "ann", path))
    answer = imported(other, str(path))
    assert (answer["added"], answer["held"]) == (1, 0)
    there = stored(other, record["id"])
    assert (there.status, there.value_text, there.hold_count) == ("deleted", None, 0)
    assert stored(acme, record["id"]).hold_count == 1
