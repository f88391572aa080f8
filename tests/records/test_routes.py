"""The named routes: the built-in seven with their effects, receipts and undo, and a tenant's own."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.models import MemoryRecord, SealedCopy
from memory.path_segments import segment_of
from memory.records import clock
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.records.builders import a_record, an_inference, body_of, refusal, valid
from tests.records.conftest import ANN, RECORDS, Memory, governance

SEVEN = {
    "confirm",
    "fix-value",
    "out-of-date",
    "wrong-person",
    "dispute",
    "forget",
    "never-infer",
}


def act(
    memory: Memory, record_id: str, name: str, status: int = 200, **form: Any
) -> dict[str, Any]:
    return body_of(memory.client.post(f"{RECORDS}/{record_id}/routes/{name}", form), status)


def undo(memory: Memory, number: str, status: int = 200) -> dict[str, Any]:
    return body_of(memory.client.post(f"/v1/memory/receipts/{number}/undo", {}), status)


def undo_refused(memory: Memory, number: str, reason: str) -> None:
    answer = memory.client.post(f"/v1/memory/receipts/{number}/undo", {})
    assert refusal(answer, 409, "undo-closed") == {"reason": reason}


def routes(memory: Memory) -> dict[str, dict[str, Any]]:
    return {
        one["name"]: one for one in body_of(memory.client.get("/v1/memory/routes"), 200)["data"]
    }


# ---- effects and undo -------------------------------------------------------------------------------------------------------


def test_every_route_has_a_receipt_with_number_hash_and_deadline(app: Memory) -> None:
    forms: dict[str, dict[str, Any]] = {
        "confirm": {},
        "fix-value": {"new_value": "window", "context": {**ANN, "trip_id": "T1"}},
        "dispute": {"statement": "never said so"},
        "never-infer": {},
        "wrong-person": {},
        "out-of-date": {},
        "forget": {},
    }
    assert set(forms) == SEVEN
    numbers = set()
    for name, form in forms.items():
        record = app.remember("aisle", key=f"k.{name.replace('-', '_')}")
        receipt = act(app, record["id"], name, **form)["receipt"]
        assert receipt["route"] == name
        assert receipt["log_entry_hash"].startswith("sha256:")
        assert receipt["undo_until"] > receipt["at"]
        numbers.add(receipt["number"])
        undo(app, receipt["number"])
        undo_refused(app, receipt["number"], "undone")
    assert len(numbers) == 7


def test_confirm_is_undone_in_place(app: Memory, agent: Memory) -> None:
    record = body_of(
        agent.client.post(RECORDS, an_inference(bindings={"task_id": "t1"}, level="task")), 201
    )
    answer = act(app, record["id"], "confirm", broaden_to={"level": "user", "bindings": {}})
    assert answer["record"]["scope"]["level"] == "user"
    assert answer["receipt"]["before"]["scope"] == {"level": "task", "bindings": {"task_id": "t1"}}
    (back,) = undo(app, answer["receipt"]["number"])["records"]
    assert valid(back)["id"] == record["id"]
    assert back["scope"] == record["scope"]
    assert back["usage"]["last_confirmed_at"] is None
    assert back["correction"]["broadened"] is False


def test_a_corrections_undo_puts_the_old_value_back_under_a_new_id(app: Memory) -> None:
    old = app.remember("aisle", bindings={"trip_id": "T1"})
    child = app.remember("x", key="k.child", derived_from=[old["id"]], bindings={"trip_id": "T1"})
    receipt = app.correct("window")["receipt"]
    assert app.get(child["id"])["lifecycle"]["status"] == "expired"
    answer = undo(app, receipt["number"])
    back = {one["key"]: valid(one) for one in answer["records"]}
    restored = back["travel.seat"]
    assert restored["value"] == "aisle"
    assert restored["id"] not in (old["id"], receipt["after"]["record_id"])
    assert restored["correction"]["supersedes"] == [receipt["after"]["record_id"]]
    assert back["k.child"]["value"] == "x"
    answer = app.recall(context={**ANN, "trip_id": "T1"})
    assert (answer["value"], answer["decision"]) == ("aisle", "apply")
    body = a_record("aisle", source_type="system_record", level="task", bindings={"trip_id": "T1"})
    body_of(app.client.post(RECORDS, body), 201)


@pytest.mark.parametrize("which", ["the one that was replaced", "the one that came back"])
def test_what_an_undo_brought_back_is_forgotten_with_what_it_came_from(
    app: Memory, which: str
) -> None:
    old = app.remember("aisle", bindings={"trip_id": "T1"})
    receipt = app.correct("window")["receipt"]
    back = undo(app, receipt["number"])["records"][0]
    forgotten = old["id"] if which == "the one that was replaced" else back["id"]
    body_of(app.client.post(f"{RECORDS}/{forgotten}/forget", {}), 200)
    assert app.list() == []
    for one in (old["id"], receipt["after"]["record_id"], back["id"]):
        assert app.get(one)["lifecycle"]["status"] == "deleted"
    assert app.recall(context={**ANN, "trip_id": "T1"})["decision"] == "none"


def test_what_was_kept_of_an_ended_record_goes_with_what_an_undo_made_of_it(app: Memory) -> None:
    old = app.remember("aisle", retain=True)
    path = f"{RECORDS}/{old['id']}/routes/out-of-date"
    number = body_of(app.client.post(path, {}), 200)["receipt"]["number"]
    back = undo(app, number)["records"][0]
    assert app.get(old["id"])["value"] == "aisle"
    body_of(app.client.post(f"{RECORDS}/{back['id']}/forget", {}), 200)
    assert app.get(old["id"])["value"] is None


def test_undoing_a_correction_of_one_instance_leaves_the_wider_record(app: Memory) -> None:
    app.remember("aisle")
    receipt = app.correct("window")["receipt"]
    undo(app, receipt["number"])
    assert app.recall(context={**ANN, "trip_id": "T1"})["value"] == "aisle"
    assert app.get(receipt["after"]["record_id"])["lifecycle"]["status"] == "expired"


def test_what_changed_since_is_not_undone(app: Memory) -> None:
    app.remember("aisle")
    first = app.correct("window")["receipt"]
    second = app.correct("middle")["receipt"]
    undo_refused(app, first["number"], "changed")
    undo(app, second["number"])
    assert app.recall(context={**ANN, "trip_id": "T1"})["value"] == "window"


def test_out_of_date_ends_it_as_of_the_day_before_and_is_undone_from_a_sealed_copy(
    app: Memory, acme: TenantKit
) -> None:
    record = app.remember("aisle", valid_until="2030-01-01")
    answer = act(app, record["id"], "out-of-date")
    ended = valid(answer["record"])
    yesterday = (datetime.now(UTC).date() - timedelta(days=1)).isoformat()
    assert (ended["lifecycle"]["status"], ended["value"]) == ("expired", None)
    assert ended["scope"]["valid_until"] == yesterday
    assert app.recall()["decision"] == "none"
    with tenant_context(acme.id):
        assert b"aisle" not in bytes(SealedCopy.objects.get().ciphertext)
    (back,) = undo(app, answer["receipt"]["number"])["records"]
    assert back["value"] == "aisle"
    assert back["id"] != record["id"]
    assert back["scope"]["valid_until"] == "2030-01-01"
    assert app.recall()["record_id"] == back["id"]
    with tenant_context(acme.id):
        assert not SealedCopy.objects.exists()
    earlier = app.remember("x", key="k.earlier", valid_from="2026-01-01")
    ended = act(app, earlier["id"], "out-of-date", since="2026-03-01")["record"]
    assert ended["scope"]["valid_until"] == "2026-02-28"


def test_wrong_person_withdraws_it_from_every_read_until_undone(
    app: Memory, agent: Memory, admin: Memory, acme: TenantKit
) -> None:
    record = app.remember("aisle")
    child = app.remember("x", key="k.child", derived_from=[record["id"]])
    answer = act(app, record["id"], "wrong-person")
    assert "record" not in answer
    for one in (record, child):
        for reader in (app, agent, admin):
            refusal(reader.client.get(f"{RECORDS}/{one['id']}"), 404, "record-not-found")
            refusal(reader.client.get(f"{RECORDS}/{one['id']}/explain"), 404, "record-not-found")
    assert app.recall()["decision"] == "none"
    assert app.list() == []
    with tenant_context(acme.id):
        assert MemoryRecord.objects.filter(review="withdrawn").count() == 2
    app.remember("window")
    undo_refused(app, answer["receipt"]["number"], "changed")
    app.forget(app.list()[0]["id"])
    back = undo(app, answer["receipt"]["number"])["records"]
    assert {one["id"] for one in back} == {record["id"], child["id"]}
    assert app.recall()["value"] == "aisle"


def test_what_is_disputed_is_asked_until_undone(app: Memory, agent: Memory) -> None:
    record = app.remember("aisle")
    copy = app.remember(
        "B-1", key="k.copy", source_type="system_record", derived_from=[record["id"]]
    )
    refusal(app.client.post(f"{RECORDS}/{record['id']}/routes/dispute", {}), 400, "bad-input")
    answer = act(app, record["id"], "dispute", statement="I never said that.")
    for key in ("travel.seat", "k.copy"):
        asked = agent.recall(key)
        assert (asked["decision"], asked["reason"]) == ("ask", "disputed")
    explained = app.explain(record["id"])
    assert (explained["disputed"], explained["reason"]) == (True, "disputed")
    assert explained["statements"] == ["I never said that."]
    undo(app, answer["receipt"]["number"])
    assert agent.recall()["decision"] == "apply"
    assert agent.recall("k.copy")["decision"] == "revalidate"
    assert copy["id"]


def test_disputing_again_makes_no_second_statement(app: Memory) -> None:
    record = app.remember("aisle")
    first = act(app, record["id"], "dispute", statement="I never said that.")["receipt"]
    again = act(app, record["id"], "dispute", statement="I never said that.")["receipt"]
    assert again == first
    path = f"{RECORDS}/{record['id']}/routes/dispute"
    for form in ({"statement": "Not at all."}, {}):
        details = refusal(app.client.post(path, form), 409, "already-disputed")
        assert details == {"receipt": first["number"]}
    assert app.explain(record["id"])["statements"] == ["I never said that."]
    undo(app, first["number"])
    act(app, record["id"], "dispute", statement="Not at all.")
    assert app.explain(record["id"])["statements"] == ["Not at all."]


def test_what_is_disputed_for_itself_stays_so_when_the_dispute_of_its_source_is_undone(
    app: Memory, agent: Memory
) -> None:
    source = app.remember("aisle")
    copy = app.remember(
        "B-1", key="k.copy", source_type="system_record", derived_from=[source["id"]]
    )
    act(app, copy["id"], "dispute", statement="Another flight.")
    of_source = act(app, source["id"], "dispute", statement="I never said that.")
    undo(app, of_source["receipt"]["number"])
    assert agent.recall()["decision"] == "apply"
    assert agent.recall("k.copy")["reason"] == "disputed"


def test_the_forget_route_can_be_undone_until_its_deadline_with_what_went_along(
    app: Memory, agent: Memory
) -> None:
    record = app.remember("aisle", id="r1")
    app.remember("likes aisles", key="k.child", id="r2", derived_from=["r1"])
    receipt = act(app, record["id"], "forget")["receipt"]
    assert receipt["tombstoned"] == ["r1", "r2"]
    assert app.recall()["decision"] == "none"
    back = {one["key"]: valid(one) for one in undo(app, receipt["number"])["records"]}
    assert back["travel.seat"]["value"] == "aisle"
    assert back["k.child"]["lineage"]["derived_from"] == [back["travel.seat"]["id"]]
    for stone in ("r1", "r2"):
        assert app.get(stone)["lifecycle"]["status"] == "deleted"
    body_of(agent.client.post(RECORDS, an_inference("aisle", level="task")), 201)
    later = act(app, back["travel.seat"]["id"], "forget")["receipt"]
    with clock.fixed_at(datetime.fromisoformat(later["undo_until"])):
        undo_refused(app, later["number"], "deadline")
    assert undo_closed_for_api_forget(app)


def undo_closed_for_api_forget(app: Memory) -> bool:
    receipt = app.forget(app.remember("x", key="k.api")["id"])
    undo_refused(app, receipt["number"], "no-undo")
    return True


def test_a_tenant_without_undo_keeps_no_sealed_copy(acme: TenantKit, app: Memory) -> None:
    from memory.models import Tenant

    with tenant_context(acme.id):
        Tenant.objects.filter(id=acme.id).update(undo_hours=0)
    receipt = act(app, app.remember("aisle")["id"], "forget")["receipt"]
    assert receipt["undo_until"] is None
    with tenant_context(acme.id):
        assert not SealedCopy.objects.exists()
    undo_refused(app, receipt["number"], "no-undo")


def test_never_infer_refuses_later_guesses_under_the_prefix_and_ends_those_there_are(
    app: Memory, agent: Memory
) -> None:
    guess = body_of(agent.client.post(RECORDS, an_inference("vegan", key="diet.kind")), 201)
    other = body_of(agent.client.post(RECORDS, an_inference("nuts", key="diet.allergy")), 201)
    said = app.remember("kosher", key="diet.said")
    refusal(
        app.client.post(f"{RECORDS}/{guess['id']}/routes/never-infer", {"prefix": "travel"}),
        400,
        "bad-input",
    )
    receipt = act(app, guess["id"], "never-infer", prefix="diet")["receipt"]
    assert agent.recall("diet.kind")["decision"] == "none"
    assert agent.recall("diet.allergy")["decision"] == "none"
    assert agent.recall("diet.said")["value"] == "kosher"
    for memory in (agent, app):
        for key in ("diet", "diet.kind", "diet.kind.more"):
            body = an_inference("x", key=key)
            refusal(memory.client.post(RECORDS, body), 409, "inference-refused")
    body_of(agent.client.post(RECORDS, an_inference("x", key="diets")), 201)
    body_of(agent.client.post(RECORDS, an_inference("x", key="diet.kind", subject="bob")), 201)
    back = undo(app, receipt["number"])["records"]
    assert {one["value"] for one in back} == {"vegan", "nuts"}
    body_of(agent.client.post(RECORDS, an_inference("x", key="diet.new")), 201)
    assert said["id"]
    assert other["id"]


def test_undo_is_for_whoever_may_write_about_the_subject(acme: TenantKit, app: Memory) -> None:
    receipt = act(app, app.remember("aisle")["id"], "out-of-date")["receipt"]
    stranger = Memory(acme.client("app", users=["bob"]))
    path = f"/v1/memory/receipts/{receipt['number']}/undo"
    refused = refusal(stranger.client.post(path, {}), 404, "receipt-not-found")
    assert refused == refusal(
        app.client.post("/v1/memory/receipts/R-0000-0000-0000/undo", {}), 404, "receipt-not-found"
    )
    of_agent = acme.client("agent", users=["ann"])
    assert body_of(of_agent.post(path, {}), 202)["review"] == "pending"
    assert app.recall()["decision"] == "none"


def test_acts_and_undo_are_governance_entries(app: Memory, admin: Memory) -> None:
    record = app.remember("aisle")
    number = act(app, record["id"], "out-of-date", reason="moved")["receipt"]["number"]
    undo(app, number)
    log = governance(admin)
    assert [one["type"] for one in log] == [
        "record.remembered",
        "record.expired",
        "record.undone",
    ]
    assert log[1]["route"] == "out-of-date"
    assert log[2]["undoes"] == number
    assert "moved" not in str(log)


def test_a_retried_undo_does_not_bring_back_what_was_forgotten_since(app: Memory) -> None:
    app.remember("aisle", id="r1")
    app.remember("likes aisles", key="k.child", id="r2", derived_from=["r1"])
    receipt = act(app, "r1", "forget")["receipt"]
    path = f"/v1/memory/receipts/{receipt['number']}/undo"
    first = app.client.post(path, {}, Idempotency_Key="u1")
    assert "likes aisles" in first.content.decode()
    child = next(one for one in first.json()["records"] if one["key"] == "k.child")
    app.forget(child["id"])
    refusal(app.client.post(path, {}, Idempotency_Key="u1"), 409, "idempotency-key-replay-withheld")


# ---- the registry -----------------------------------------------------------------------------------------------------------


def test_the_seven_are_there_from_the_start_for_every_tenant(app: Memory) -> None:
    known = routes(app)
    assert set(known) == SEVEN
    assert all(one["built_in"] and one["configured"] for one in known.values())
    assert all(one["page"] == "built-in" for one in known.values())


def test_a_name_that_nobody_knows_is_registered_unconfigured_with_the_built_in_page(
    app: Memory, admin: Memory
) -> None:
    record = app.remember("aisle", route="ask the desk")
    route = routes(admin)["ask the desk"]
    assert (route["configured"], route["page"], route["built_in"]) == (False, "built-in", False)
    answer = app.recall()
    assert answer["correction_route"] == "ask the desk"
    assert answer["correction_url"].endswith(
        f"/{record['id']}/correct/{segment_of('ask the desk')}"
    )
    form = {"new_value": "window", "context": {**ANN, "trip_id": "T1"}}
    corrected = act(app, record["id"], "ask the desk", **form)
    assert corrected["receipt"]["route"] == "ask the desk"
    assert corrected["record"]["value"] == "window"


def test_an_admin_configures_an_outside_page_and_records_point_there(
    app: Memory, admin: Memory
) -> None:
    record = app.remember("aisle", id="a/b c", route="ask-finance")
    changed = body_of(
        admin.client.request(
            "PATCH",
            "/v1/memory/routes/ask-finance",
            {"label": "Ask finance", "url_template": "https://fin.example.com/fix?r={record_id}"},
        ),
        200,
    )
    assert (changed["configured"], changed["page"]) == (True, "external")
    url = "https://fin.example.com/fix?r=a%2Fb%20c"
    assert app.recall()["correction_url"] == url
    assert app.explain(record["id"])["correction_url"] == url
    answer = app.client.post(f"{RECORDS}/a/b c/routes/ask-finance", {"new_value": 1})
    assert refusal(answer, 422, "route-external") == {"url": url}


@pytest.mark.parametrize(
    "template",
    [
        "http://fin.example.com/{record_id}",
        "https://fin.example.com/",
        "https://{record_id}.example.com/",
        "https://user@example.com/{record_id}",
        "javascript:alert('{record_id}')",
        "//example.com/{record_id}",
        "https://example.com/#{record_id}",
        "https://exa mple.com/{record_id}",
        "",
    ],
)
def test_a_template_that_is_no_https_page_is_refused(admin: Memory, template: str) -> None:
    body = {"name": "n", "label": "N", "url_template": template}
    refusal(admin.client.post("/v1/memory/routes", body), 400, "bad-input")


def test_routes_are_the_admins(app: Memory, agent: Memory, admin: Memory) -> None:
    body = {"name": "ask", "label": "Ask", "needs_evidence": True, "may_broaden": False}
    for memory in (app, agent):
        refusal(memory.client.post("/v1/memory/routes", body), 403, "permission-denied")
        refusal(
            memory.client.request("PATCH", "/v1/memory/routes/confirm", {"label": "x"}),
            403,
            "permission-denied",
        )
    assert body_of(admin.client.post("/v1/memory/routes", body), 201)["name"] == "ask"
    refusal(admin.client.post("/v1/memory/routes", body), 409, "route-exists")
    refusal(admin.client.post("/v1/memory/routes", {**body, "name": "forget"}), 409, "route-exists")
    patch = admin.client.request("PATCH", "/v1/memory/routes/forget", {"label": "Let it go"})
    assert body_of(patch, 200)["label"] == "Let it go"
    refusal(
        admin.client.request("PATCH", "/v1/memory/routes/forget", {"may_broaden": True}),
        400,
        "bad-input",
    )
    refusal(
        admin.client.request("PATCH", "/v1/memory/routes/none", {"label": "x"}),
        404,
        "route-not-found",
    )
    record = app.remember("aisle", route="ask")
    form = {"new_value": "w", "context": {**ANN, "trip_id": "T1"}}
    path = f"{RECORDS}/{record['id']}/routes/ask"
    refusal(app.client.post(path, form), 422, "evidence-unresolved")
    form["evidence"] = {"kind": "message", "ref": "m1"}
    to = {"level": "user", "bindings": {}}
    wide = {**form, "broaden": True, "context": {**form["context"], "broaden_to": to}}
    refusal(app.client.post(path, wide), 403, "permission-denied")
    body_of(app.client.post(path, form), 200)


def test_a_form_holds_only_its_own_fields(app: Memory) -> None:
    record = app.remember("aisle")
    for name, form in (
        ("confirm", {"new_value": 1}),
        ("forget", {"statement": "x"}),
        ("dispute", {"statement": "x", "prefix": "travel"}),
    ):
        answer = app.client.post(f"{RECORDS}/{record['id']}/routes/{name}", form)
        refusal(answer, 400, "unknown-field")
    refusal(
        app.client.post(f"{RECORDS}/{record['id']}/routes/none-such", {}), 404, "route-not-found"
    )
    refusal(app.client.post(f"{RECORDS}/{record['id']}/routes/fix-value", {}), 400, "bad-input")


def test_each_act_without_a_persons_word_waits_and_changes_nothing(
    app: Memory, agent: Memory
) -> None:
    record = app.remember("aisle")
    forms: dict[str, dict[str, Any]] = {
        "confirm": {},
        "fix-value": {"new_value": "window", "context": {**ANN, "trip_id": "T1"}},
        "dispute": {"statement": "x"},
        "never-infer": {},
        "wrong-person": {},
        "out-of-date": {},
        "forget": {},
    }
    for name, form in forms.items():
        assert act(agent, record["id"], name, 202, **form)["review"] == "pending"
    assert app.get(record["id"]) == record
    assert app.recall(context={**ANN, "trip_id": "T1"})["decision"] == "apply"
    for name, form in forms.items():
        fresh = app.remember("x", key=f"k.{name.replace('-', '_')}")
        word = app.says()
        evidence = {"kind": "message", "ref": word}
        act(agent, fresh["id"], name, 200, **form, evidence=evidence)


def test_a_route_may_ask_for_evidence_forbid_widening_or_be_the_admins(
    app: Memory, admin: Memory
) -> None:
    for body in (
        {"name": "ask", "label": "Ask", "needs_evidence": True, "may_broaden": False},
        {"name": "office", "label": "Office", "audience": "admin"},
    ):
        body_of(admin.client.post("/v1/memory/routes", body), 201)
    record = app.remember("aisle", route="ask")
    path = f"{RECORDS}/{record['id']}/routes"
    form = {"new_value": "window", "context": {**ANN, "trip_id": "T1"}}
    refusal(app.client.post(f"{path}/ask", form), 422, "evidence-unresolved")
    form["evidence"] = {"kind": "message", "ref": "msg-1"}
    wide = {**form["context"], "broaden_to": {"level": "user", "bindings": {}}}
    widened = {**form, "context": wide, "broaden": True}
    refusal(app.client.post(f"{path}/ask", widened), 403, "permission-denied")
    refusal(app.client.post(f"{path}/office", form), 403, "permission-denied")
    answer = body_of(app.client.post(f"{path}/ask", form), 200)
    assert answer["record"]["source"]["evidence"] == form["evidence"]
    assert answer["receipt"]["route"] == "ask"
