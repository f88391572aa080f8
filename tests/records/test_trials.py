"""Correct, then look for the old value; forget, then look: many times over, at every door, and never once found."""

import io
import json
import random
from typing import Any

import pytest

from memory.access import system_principal
from memory.actions.export_subject import export_subject
from tests.builders import TenantKit
from tests.records.builders import a_record, an_inference
from tests.records.conftest import RECORDS, Memory


def doors(
    memory: Memory, record_ids: list[str], key: str, context: dict[str, Any], value: str
) -> str:
    """All that can be read about a thing, as one text."""
    seen: list[Any] = [
        memory.recall(key, context=context),
        memory.client.post("/v1/memory/recall", {"keys": [key], "context": context}).json(),
        memory.client.post("/v1/memory/recall", {"key_prefix": key, "context": context}).json(),
        memory.list(key=key),
        memory.list(q=value),
    ]
    for record_id in record_ids:
        for path in ("", "/explain", "/history"):
            seen.append(memory.client.get(f"{RECORDS}/{record_id}{path}").json())
    return str(seen)


def correct_then_look(app: Memory, agent: Memory, number: int, dice: random.Random) -> int:
    """How often the old value was found after a correction: where it was corrected, or anywhere once it was superseded."""
    who, key, old, new = f"u{number}", f"t.k{number}", f"oldq{number}x", f"newq{number}x"
    is_replaced = dice.random() < 0.5
    bindings = {"case": number} if is_replaced else {}
    body = a_record(old, key=key, subject=who, bindings=bindings)
    app.client.post(RECORDS, body, Idempotency_Key=f"c{number}")
    here = {"user_id": who, "case": number}
    app.client.post("/v1/memory/correct", {"key": key, "new_value": new, "context": here})
    for _ in range(dice.randrange(3)):
        guess = an_inference(
            dice.choice([old, old.upper(), f" {old} "]),
            key=key,
            subject=who,
            level=dice.choice(["instance", "task"]),
            bindings=dice.choice([{}, {"case": number}]),
        )
        agent.client.post(RECORDS, guess)
    answer = agent.recall(key, context=here)
    found = answer["value"] != new or answer["decision"] != "apply"
    if is_replaced:
        retried = app.client.post(RECORDS, body, Idempotency_Key=f"c{number}").content.decode()
        places = [
            agent.list(key=key),
            agent.list(q=old),
            agent.recall(key, context={"user_id": who}),
        ]
        found = found or old in str(places) or old in retried
    return int(found)


def forget_then_look(app: Memory, agent: Memory, number: int, dice: random.Random) -> int:
    """How often a value was found after it was forgotten, with what was derived from it and whatever an agent tries since."""
    who, key, value = f"u{number}", f"t.k{number}", f"gone{number}x"
    body = a_record(value, key=key, subject=who, retain=dice.random() < 0.5)
    record = app.client.post(RECORDS, body, Idempotency_Key=f"f{number}").json()
    ids = [record["id"]]
    for depth in range(dice.randrange(4)):
        child = a_record(
            f"about {value}", key=f"{key}.d{depth}", subject=who, derived_from=[ids[-1]]
        )
        ids.append(app.client.post(RECORDS, child).json()["id"])
    if dice.random() < 0.3:
        context = {"user_id": who, "case": 1, "broaden_to": {"level": "user", "bindings": {}}}
        wide = {"key": key, "new_value": f"new{number}", "context": context, "broaden": True}
        ids.append(app.client.post("/v1/memory/correct", wide).json()["record"]["id"])
        app.forget(ids[-1])
    else:
        app.forget(record["id"])
    for _ in range(dice.randrange(3)):
        agent.client.post(RECORDS, an_inference(value, key=key, subject=who))
    retried = [
        app.client.post(RECORDS, body, Idempotency_Key=f"f{number}").content.decode(),
        app.client.post(RECORDS, body).content.decode(),
    ]
    seen = doors(agent, ids, key, {"user_id": who, "case": 1}, value)
    return int(value in seen or any(value in one for one in retried))


def exported(tenant: TenantKit, number: int) -> list[dict[str, Any]]:
    """The lines of the export of the person of a trial."""
    target = io.BytesIO()
    operator = system_principal(tenant.id, tenant.slug, id="tests")
    export_subject(principal=operator, subject_id=f"u{number}", target=target)
    return [json.loads(line) for line in target.getvalue().splitlines()]


def export_then_look(tenant: TenantKit, number: int, *, is_forgotten: bool) -> int:
    """Whether an export holds what was forgotten, or has the old value in a record that is still in use."""
    lines = exported(tenant, number)
    if is_forgotten:
        return int(f"gone{number}x" in json.dumps(lines))
    active = [
        line["record"]
        for line in lines
        if line["kind"] == "record" and line["record"]["lifecycle"]["status"] == "active"
    ]
    corrected = [one for one in active if one["source"]["type"] == "user_correction"]
    return int(len(corrected) != 1 or corrected[0]["value"] != f"newq{number}x")


def trials(tenant: TenantKit, count: int) -> tuple[int, int]:
    """How many of `count` trials of each kind found what must not be found."""
    app = Memory(tenant.client("app", everything=True))
    agent = Memory(tenant.client("agent", everything=True))
    dice = random.Random(20_260_301)
    corrected = sum(correct_then_look(app, agent, number, dice) for number in range(count))
    forgotten = sum(forget_then_look(app, agent, count + number, dice) for number in range(count))
    corrected += sum(export_then_look(tenant, n, is_forgotten=False) for n in range(count))
    forgotten += sum(export_then_look(tenant, count + n, is_forgotten=True) for n in range(count))
    return corrected, forgotten


def test_old_and_forgotten_values_are_never_found(live_acme: TenantKit) -> None:
    assert trials(live_acme, 50) == (0, 0)


@pytest.mark.full
def test_old_and_forgotten_values_are_never_found_in_a_thousand_trials(
    live_acme: TenantKit,
) -> None:
    assert trials(live_acme, 500) == (0, 0)
