"""What is set on pages and holds outside them: the undo window, and the person's switch."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from tests.at_once import at_once
from tests.builders import TenantKit
from tests.pages.people import Person, person, sign_in, text_of
from tests.records.builders import a_record, an_inference, body_of, refusal


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def governance(kit: TenantKit, *types: str) -> list[dict[str, Any]]:
    log = kit.client("auditor").get("/v1/memory/runs/kindmem.governance/log?limit=200")
    return [one["payload"] for one in log.json()["data"] if one["payload"]["type"] in types]


def forgotten(kit: TenantKit, ann: Person) -> str:
    app = kit.client("app", users=["ann"])
    record = body_of(app.post("/v1/memory/records", a_record()), 201)["id"]
    return ann.post(f"memory/{record}/correct/forget")["Location"]


def test_the_undo_window_that_an_admin_sets_is_the_one_of_the_next_forget(ann: Person) -> None:
    admin = person(ann.kit, "admin")
    assert "24 hours" in text_of(admin.get("admin/workspace/"))
    before = forgotten(ann.kit, ann)
    assert admin.post("admin/workspace/", {"undo_hours": "2"}).status_code == 302
    after = forgotten(ann.kit, ann)
    with time_machine.travel(timezone.now() + timedelta(hours=3), tick=False):
        sign_in(ann)
        assert ann.post(f"{after}undo").status_code == 409
        assert ann.post(f"{before}undo").status_code == 302
    assert governance(ann.kit, "undo-window.set") == [
        {"type": "undo-window.set", "beforeHours": 24, "afterHours": 2}
    ]


def test_without_a_window_a_forget_has_no_undo(ann: Person) -> None:
    person(ann.kit, "owner").post("admin/workspace/", {"undo_hours": "0"})
    receipt = text_of(ann.get(forgotten(ann.kit, ann)))
    assert "Erased for good after" not in receipt
    assert "Undo" not in receipt


def test_an_admin_has_the_log_name_people_by_keyed_hashes(ann: Person) -> None:
    admin = person(ann.kit, "admin")
    page = "admin/workspace/"
    admin.post(page, {"undo_hours": "24", "pseudonymise": "on"})
    assert "checked" in admin.get(page).content.decode()
    entry = body_of(
        ann.kit.client("app", users=["ann"]).post(
            "/v1/memory/runs/r1/log", {"kind": "user-message", "scope": {"userId": "ann"}}
        ),
        201,
    )
    assert entry["scope"]["userId"].startswith("pseudonym:")
    admin.post(page, {"undo_hours": "24"})
    assert "checked" not in admin.get(page).content.decode()
    assert governance(ann.kit, "log.ids-changed") == [
        {"type": "log.ids-changed", "pseudonymiseLogIds": True},
        {"type": "log.ids-changed", "pseudonymiseLogIds": False},
    ]


def test_a_window_out_of_range_is_refused_with_the_text_kept_and_nothing_logged(
    acme: TenantKit,
) -> None:
    admin = person(acme, "admin")
    for hours in ("721", "-1", "soon"):
        answer = admin.post("admin/workspace/", {"undo_hours": hours})
        assert answer.status_code == 422
        assert f'value="{hours}"' in answer.content.decode()
    admin.post("admin/workspace/", {"undo_hours": "24"})
    assert governance(acme, "undo-window.set") == []


def test_only_admins_who_proved_themselves_set_the_window(acme: TenantKit) -> None:
    for role in ("auditor", "person"):
        assert person(acme, role).post("admin/workspace/", {"undo_hours": "1"}).status_code == 403
    admin = person(acme, "admin")
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        answer = admin.post("admin/workspace/", {"undo_hours": "1"})
    assert "Is it you?" in text_of(answer)
    assert governance(acme, "undo-window.set") == []


def guess(kit: TenantKit, key: str = "food.diet", **changes: Any) -> Any:
    agent = kit.client("agent", users=["ann", "bob"])
    given = {"bindings": {"trip_id": "PUNE"}, **changes}
    return agent.post("/v1/memory/records", an_inference("vegan", key=key, **given))


def test_switched_off_no_agent_remembers_a_guess_whatever_its_key(ann: Person) -> None:
    kept = body_of(guess(ann.kit, "old.guess"), 201)["id"]
    listed = ann.path("memory/?state=guessed")
    answer = ann.post("switch", {"allow": "no", "back": listed})
    assert answer["Location"] == listed
    assert "may not remember new guesses" in text_of(ann.get(listed))
    for key in ("food.diet", "zip", "a.b.c.d"):
        refusal(guess(ann.kit, key), 409, "inference-refused")
    app = ann.kit.client("app", users=["ann"])
    body_of(app.post("/v1/memory/records", a_record(key="food.diet")), 201)
    body_of(guess(ann.kit, subject="bob"), 201)
    assert ann.get(f"memory/{kept}/").status_code == 200
    assert "Turn on" in text_of(ann.get("settings/"))


def test_switched_on_again_agents_guess_as_before(ann: Person) -> None:
    for allow in ("no", "no", "yes", "yes"):
        ann.post("switch", {"allow": allow})
    body_of(guess(ann.kit), 201)
    told = governance(ann.kit, "inferences.refused", "inferences.allowed")
    assert [one["type"] for one in told] == ["inferences.refused", "inferences.allowed"]
    assert "ann" not in str(told)


def test_a_rule_about_one_key_stays_when_the_switch_goes_on(ann: Person) -> None:
    record = body_of(guess(ann.kit), 201)["id"]
    ann.post(f"memory/{record}/correct/never-infer", {"prefix": "food"})
    for allow in ("no", "yes"):
        ann.post("switch", {"allow": allow})
    refusal(guess(ann.kit, "food.wine"), 409, "inference-refused")
    body_of(guess(ann.kit, "travel.seat"), 201)


def test_guesses_at_the_moment_of_switching_are_kept_before_it_or_refused(
    live_acme: TenantKit,
) -> None:
    ann = person(live_acme, "person", subject="ann")
    agent = live_acme.client("agent", users=["ann"])

    def infer(number: int) -> int:
        body = an_inference("x", key=f"k.n{number}", bindings={"trip_id": "PUNE"})
        return agent.post("/v1/memory/records", body).status_code

    def act(number: int) -> int:
        return infer(number) if number else ann.post("switch", {"allow": "no"}).status_code

    answers = at_once(5, act)
    assert answers[0] == 302
    assert set(answers[1:]) <= {201, 409}
    assert infer(99) == 409
    shown = text_of(ann.get("memory/"))
    assert shown.count("k › n") >= answers.count(201)


def test_nobody_switches_for_another(acme: TenantKit) -> None:
    assert person(acme, "auditor").post("switch", {"allow": "no"}).status_code == 403
    body_of(guess(acme), 201)
