"""Webhooks: what is told, to whom, signed how, again when, and what is never told."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from cryptography.exceptions import InvalidTag
from django.db import connection, transaction

from corrections.webhook_words import EVENT_WORDS
from memory.actions import deliver_webhooks as module
from memory.housekeeping import deliver, deliver_slowly, prune_webhook_log
from memory.tenancy import tenant_context
from memory.webhooks.events import EVENTS, tell_of_governance
from memory.webhooks.signing import new_secret, open_secret, seal_secret, signature
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.records.builders import a_record
from tests.webhooks.receiver import Heard, Receiver, is_signed
from tests.webhooks.receiver import tell as turn

WEBHOOKS = "/v1/memory/webhooks"
CANARY = "canary-9f3e an aisle seat"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.KINDMEM_DEVELOPMENT = True
    with Receiver() as listening:
        yield listening


@pytest.fixture
def admin(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("admin", may=("read", "write", "append", "emit", "tenant-wide"))


def listen(admin: ApiClient, receiver: Receiver, *events: str) -> dict[str, Any]:
    body = {"name": "cases", "url": receiver.url, "events": list(events)}
    answer = admin.post(WEBHOOKS, body)
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


def sql(kit: TenantKit, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(statement, [kit.id, *parameters])
        return list(cursor.fetchall()) if cursor.description else []


def due_again(kit: TenantKit) -> None:
    """As if every pause were over."""
    sql(
        kit,
        "UPDATE webhook_delivery SET next_at = clock_timestamp() WHERE tenant_id = %s::uuid AND status = 'pending'",
    )
    sql(kit, "UPDATE webhook SET rests_until = NULL WHERE tenant_id = %s::uuid")


def deliveries(admin: ApiClient, webhook: dict[str, Any], **query: str) -> list[dict[str, Any]]:
    answer = admin.get(f"{WEBHOOKS}/{webhook['id']}/deliveries", query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def a_fact(admin: ApiClient) -> str:
    body = {"type": "note", "scope": {}, "content": CANARY}
    return str(admin.post("/v1/memory/facts", body).json()["id"])


def supersede(admin: ApiClient, fact: str) -> None:
    answer = admin.post(f"/v1/memory/facts/{fact}/supersede", {"content": f"{CANARY} again"})
    assert answer.status_code == 200, answer.content


def test_a_signature_is_that_of_the_specifications_own_example() -> None:
    signed = signature(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_is_kept_sealed_and_opens_for_its_webhook_alone() -> None:
    tenant, webhook, secret = uuid4(), uuid4(), new_secret()
    sealed = seal_secret(tenant, webhook, secret)
    assert secret.encode() not in sealed
    assert open_secret(tenant, webhook, sealed) == secret
    with pytest.raises(InvalidTag):
        open_secret(tenant, uuid4(), sealed)


def test_what_happens_is_told_signed_and_without_a_word_of_it(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    fact = a_fact(admin)
    supersede(admin, fact)
    assert admin.delete(f"/v1/memory/facts/{fact}").status_code == 200
    turn(live_acme)
    assert sorted(receiver.types()) == ["fact.deleted", "fact.superseded"]
    for heard in receiver.heard:
        assert is_signed(heard, webhook["secret"])
        assert not is_signed(heard, new_secret())
        assert abs(int(heard.headers["webhook-timestamp"]) - time.time()) < 60
        assert heard.headers["content-type"] == "application/json"
        assert heard.event["data"]["factId"] == fact
        assert heard.event["data"]["tenantId"] == live_acme.slug
        assert b"canary" not in heard.body
    assert {one["status"] for one in deliveries(admin, webhook)} == {"delivered"}
    [last] = {one["lastAttempt"]["status"] for one in deliveries(admin, webhook)}
    assert last == 200


def test_acts_on_memories_holds_and_erasures_are_told(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    listen(admin, receiver)
    app = live_acme.client("app", users=["ann"], may=("read", "write", "append", "emit"))
    record = app.post("/v1/memory/records", a_record("canary-aisle")).json()
    context = {"user_id": "ann", "trip": "t-1"}
    corrected = app.post(
        f"/v1/memory/records/{record['id']}/correct",
        {"key": "travel.seat", "new_value": "canary-window", "context": context},
    )
    assert corrected.status_code == 201, corrected.content
    assert app.post(f"/v1/memory/records/{record['id']}/confirm", {}).status_code == 200
    forgotten = app.post(f"/v1/memory/records/{record['id']}/forget", {"reason": "canary"})
    assert forgotten.status_code == 200, forgotten.content
    hold = {"matter": "canary v. acme", "reason": "canary", "scope": {"subjects": ["bob"]}}
    assert admin.post("/v1/memory/legal-holds", hold).status_code == 201
    assert admin.post("/v1/memory/erasures", {"factId": "nothing"}).status_code == 202
    turn(live_acme)
    assert {
        "record.corrected",
        "record.confirmed",
        "record.forgotten",
        "hold.placed",
        "erasure.requested",
    } <= set(receiver.types())
    for heard in receiver.heard:
        assert b"canary" not in heard.body
        assert b'"ann"' not in heard.body


def test_an_event_is_queued_with_the_act_or_not_at_all(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    principal = live_acme.principal("admin")
    listen(admin, receiver)
    payload = {"type": "hold.released", "holdId": str(uuid4()), "counts": {}}
    with tenant_context(live_acme.id):
        tell_of_governance(principal, payload)
        transaction.set_rollback(True)
    turn(live_acme)
    assert receiver.heard == []
    with tenant_context(live_acme.id):
        tell_of_governance(principal, payload)
    turn(live_acme)
    assert receiver.types() == ["hold.released"]


def test_a_verification_is_told_of_only_when_it_found_something(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    principal = live_acme.principal("admin")
    listen(admin, receiver)
    for state in ("verified", "tampered"):
        with tenant_context(live_acme.id):
            tell_of_governance(principal, {"type": "log.verified", "runId": "r", "state": state})
    turn(live_acme)
    assert receiver.types() == ["run.verification-failed"]


def test_a_webhook_hears_of_what_it_named_alone_and_of_nothing_while_paused(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver, "fact.deleted")
    fact = a_fact(admin)
    supersede(admin, fact)
    path = f"{WEBHOOKS}/{webhook['id']}"
    paused = admin.request("PATCH", path, {"enabled": False}).json()
    assert (paused["enabled"], paused["disabledBecause"]) == (False, "paused")
    assert admin.delete(f"/v1/memory/facts/{fact}").status_code == 200
    turn(live_acme)
    assert receiver.heard == []
    assert admin.request("PATCH", path, {"enabled": True}).json()["enabled"] is True
    assert admin.delete(f"/v1/memory/facts/{a_fact(admin)}").status_code == 200
    turn(live_acme)
    assert receiver.types() == ["fact.deleted"]


def test_nothing_is_kept_where_nobody_listens(live_acme: TenantKit, admin: ApiClient) -> None:
    supersede(admin, a_fact(admin))
    assert sql(live_acme, "SELECT count(*) FROM webhook_event WHERE tenant_id = %s::uuid") == [(0,)]


def test_a_failure_is_tried_again_under_the_same_id_with_growing_pauses(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    receiver.answer = lambda heard: (503, {})
    supersede(admin, a_fact(admin))
    pauses = []
    for _ in range(4):
        turn(live_acme)
        pauses += sql(
            live_acme,
            "SELECT extract(epoch FROM next_at - clock_timestamp())::float8 FROM webhook_delivery WHERE tenant_id = %s::uuid",
        )
        turn(live_acme)
        due_again(live_acme)
    assert len(receiver.heard) == 4, "the pause was not kept"
    assert len({heard.id for heard in receiver.heard}) == 1
    seconds = [pause for (pause,) in pauses]
    for number, pause in enumerate(seconds):
        assert 0.7 * 5 * 4**number < pause < 1.3 * 5 * 4**number
    receiver.answer = lambda heard: (200, {})
    turn(live_acme)
    [told] = deliveries(admin, webhook)
    assert (told["status"], told["attempts"]) == ("delivered", 5)
    assert sql(
        live_acme,
        "SELECT status FROM webhook_attempt WHERE tenant_id = %s::uuid ORDER BY number",
    ) == [(503,)] * 4 + [(200,)]
    assert "failingSince" not in admin.get(f"{WEBHOOKS}/{webhook['id']}").json()


def test_a_receiver_that_asks_for_time_gets_it(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    listen(admin, receiver)
    receiver.answer = lambda heard: (429, {"retry-after": "900"})
    supersede(admin, a_fact(admin))
    turn(live_acme)
    [(pause,)] = sql(
        live_acme,
        "SELECT extract(epoch FROM next_at - clock_timestamp())::float8 FROM webhook_delivery WHERE tenant_id = %s::uuid",
    )
    assert 890 < pause < 901


def test_after_a_day_an_event_is_given_up_and_may_be_replayed(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    receiver.answer = lambda heard: (500, {})
    supersede(admin, a_fact(admin))
    sql(
        live_acme,
        "UPDATE webhook_delivery SET queued_at = queued_at - interval '24 hours' WHERE tenant_id = %s::uuid",
    )
    turn(live_acme)
    [told] = deliveries(admin, webhook, status="failed")
    receiver.answer = lambda heard: (200, {})
    replayed = admin.post(f"{WEBHOOKS}/{webhook['id']}/replay", {"deliveryId": told["id"]})
    assert (replayed.status_code, replayed.json()) == (202, {"queued": 1})
    turn(live_acme)
    assert [heard.id for heard in receiver.heard] == [told["eventId"]] * 2
    assert deliveries(admin, webhook)[0]["status"] == "delivered"


def test_410_ends_a_webhook_at_once_and_an_admin_lets_it_begin_anew(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    receiver.answer = lambda heard: (410, {})
    supersede(admin, a_fact(admin))
    turn(live_acme)
    path = f"{WEBHOOKS}/{webhook['id']}"
    assert admin.get(path).json()["disabledBecause"] == "gone"
    refused = admin.post(f"{path}/test", {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "webhook-disabled")
    assert _governance(live_acme)[-1] == {
        "type": "webhook.disabled",
        "webhookId": webhook["id"],
        "reason": "gone",
    }
    supersede(admin, a_fact(admin))
    turn(live_acme)
    assert len(receiver.heard) == 1
    assert admin.request("PATCH", path, {"enabled": True}).json()["enabled"] is True


def _governance(kit: TenantKit) -> list[dict[str, Any]]:
    rows = sql(
        kit,
        "SELECT payload_text FROM log_entry WHERE tenant_id = %s::uuid AND run_id = 'kindmem.governance' ORDER BY sequence",
    )
    return [json.loads(text) for (text,) in rows]


def test_days_without_a_success_end_a_webhook(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    receiver.answer = lambda heard: (500, {})
    supersede(admin, a_fact(admin))
    turn(live_acme)
    assert admin.get(f"{WEBHOOKS}/{webhook['id']}").json()["enabled"] is True
    sql(
        live_acme,
        "UPDATE webhook SET failing_since = failing_since - interval '6 days' WHERE tenant_id = %s::uuid",
    )
    due_again(live_acme)
    turn(live_acme)
    assert admin.get(f"{WEBHOOKS}/{webhook['id']}").json()["disabledBecause"] == "failing"


def test_every_event_of_a_time_is_told_again_also_those_of_a_pause(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver, "fact.superseded")
    listen(admin, receiver, "fact.superseded")
    supersede(admin, a_fact(admin))
    admin.request("PATCH", f"{WEBHOOKS}/{webhook['id']}", {"enabled": False})
    supersede(admin, a_fact(admin))
    admin.request("PATCH", f"{WEBHOOKS}/{webhook['id']}", {"enabled": True})
    turn(live_acme)
    assert len(receiver.heard) == 3
    now = datetime.now(UTC)
    asked = {
        "from": (now - timedelta(minutes=5)).isoformat(),
        "until": (now + timedelta(minutes=5)).isoformat(),
    }
    path = f"{WEBHOOKS}/{webhook['id']}/replay"
    assert admin.post(path, asked).json() == {"queued": 2}
    turn(live_acme)
    assert len(receiver.heard) == 5
    assert len({heard.id for heard in receiver.heard}) == 2
    early = {**asked, "until": (now - timedelta(minutes=4)).isoformat()}
    assert admin.post(path, early).json() == {"queued": 0}
    for body in ({}, {"from": asked["from"]}, {"deliveryId": "x", **asked}):
        assert admin.post(path, body).status_code == 400
    unknown = admin.post(path, {"deliveryId": str(uuid4())})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "delivery-not-found")


def test_a_secret_is_told_once_and_two_are_good_while_one_is_replaced(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    body = {"name": "cases", "url": receiver.url}
    first = admin.post(WEBHOOKS, body, Idempotency_Key="once").json()
    again = admin.post(WEBHOOKS, body, Idempotency_Key="once").json()
    assert {**again, "secret": first["secret"]} == first
    assert "secret" not in again
    kept = sql(live_acme, "SELECT answer FROM idempotency_key WHERE tenant_id = %s::uuid")
    assert first["secret"] not in str(kept)
    path = f"{WEBHOOKS}/{first['id']}"
    assert "secret" not in admin.get(path).json()
    second = admin.post(f"{path}/rotate-secret", {}).json()
    assert second["secret"] != first["secret"]
    assert "previousSecretUntil" in second
    admin.post(f"{path}/test", {})
    turn(live_acme)
    [ping] = receiver.heard
    assert ping.event["type"] == "webhook.ping"
    assert is_signed(ping, first["secret"])
    assert is_signed(ping, second["secret"])
    sql(
        live_acme,
        "UPDATE webhook SET previous_until = now() - interval '1 second' WHERE tenant_id = %s::uuid",
    )
    admin.post(f"{path}/test", {})
    turn(live_acme)
    assert not is_signed(receiver.heard[-1], first["secret"])
    assert is_signed(receiver.heard[-1], second["secret"])
    stored = sql(
        live_acme, "SELECT secret || previous_secret FROM webhook WHERE tenant_id = %s::uuid"
    )
    assert first["secret"].encode() not in bytes(stored[0][0])


def test_one_that_is_slow_or_dead_holds_up_no_other(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 1.0)
    with Receiver() as slow:
        slow.answer = lambda heard: (time.sleep(3), (200, {}))[1]
        silent = listen(admin, slow)
        listen(admin, receiver)
        for _ in range(5):
            supersede(admin, a_fact(admin))
        began = time.monotonic()
        turn(live_acme)
        assert time.monotonic() - began < 4
        assert len(receiver.heard) == 5
        assert len(slow.heard) == 1, "it was asked again while it failed"
    [tried] = [one for one in deliveries(admin, silent) if one["attempts"]]
    assert tried["lastAttempt"]["error"] == "fetch-timeout"


def _due(kit: TenantKit, *works: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT work FROM work_due(%s::text[]) WHERE tenant_id = %s::uuid",
            [list(works), kit.id],
        )
        return [row[0] for row in cursor.fetchall()]


def test_one_that_failed_or_took_long_has_turns_of_its_own_until_it_answers_soon(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(admin, receiver)

    def hears(*, of_slow: bool, due: str) -> int:
        supersede(admin, a_fact(admin))
        due_again(live_acme)
        assert _due(live_acme, "deliver-webhooks", "deliver-slowly") == [due]
        before = len(receiver.heard)
        (deliver_slowly if of_slow else deliver).turn(live_acme.id, live_acme.slug)
        return len(receiver.heard) - before

    assert hears(of_slow=True, due="deliver-webhooks") == 0
    receiver.answer = lambda heard: (500, {})
    assert hears(of_slow=False, due="deliver-webhooks") == 1
    assert hears(of_slow=False, due="deliver-slowly") == 0
    receiver.answer = lambda heard: (200, {})
    assert hears(of_slow=True, due="deliver-slowly") == 1
    turn(live_acme)
    monkeypatch.setattr(module, "SLOW_SECONDS", 0.0)
    assert hears(of_slow=False, due="deliver-webhooks") == 1
    assert hears(of_slow=False, due="deliver-slowly") == 0


def test_a_turn_begins_with_nobody_once_its_time_is_over(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2)
    receiver.answer = lambda heard: (time.sleep(0.5), (200, {}))[1]
    for _ in range(6):
        listen(admin, receiver, "fact.superseded")
    supersede(admin, a_fact(admin))
    principal = live_acme.principal("admin")
    assert module.deliver_webhooks(principal=principal, seconds=0.3)
    assert len(receiver.heard) == 2
    # What it let go is not leased: the next turn takes it at once.
    receiver.answer = lambda heard: (200, {})
    turn(live_acme)
    assert len(receiver.heard) == 6


def test_what_a_disabled_webhook_waited_with_is_given_up_and_may_be_told_again(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    gone, paused = listen(admin, receiver), listen(admin, receiver)
    for _ in range(3):
        supersede(admin, a_fact(admin))
    admin.request("PATCH", f"{WEBHOOKS}/{paused['id']}", {"enabled": False})
    receiver.answer = lambda heard: (410, {})
    turn(live_acme)
    assert [one["status"] for one in deliveries(admin, gone)] == ["failed"] * 3
    prune_webhook_log.turn(live_acme.id, live_acme.slug)
    assert [one["status"] for one in deliveries(admin, paused)] == ["pending"] * 3
    assert _due(live_acme, "prune-webhook-log") == []
    sql(
        live_acme,
        "UPDATE webhook_delivery SET queued_at = queued_at - interval '26 hours' WHERE tenant_id = %s::uuid",
    )
    assert _due(live_acme, "prune-webhook-log") == ["prune-webhook-log"]
    prune_webhook_log.turn(live_acme.id, live_acme.slug)
    assert [one["status"] for one in deliveries(admin, paused)] == ["failed"] * 3
    path = f"{WEBHOOKS}/{gone['id']}"
    admin.request("PATCH", path, {"enabled": True})
    receiver.answer = lambda heard: (200, {})
    told = deliveries(admin, gone)[0]["id"]
    assert admin.post(f"{path}/replay", {"deliveryId": told}).status_code == 202
    turn(live_acme)
    assert deliveries(admin, gone, status="delivered")[0]["id"] == told


def test_a_worker_that_dies_between_telling_and_noting_tells_again_under_the_same_id(
    live_acme: TenantKit,
    admin: ApiClient,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listen(admin, receiver)
    supersede(admin, a_fact(admin))

    class Died(BaseException):
        pass

    def dies(*words: Any) -> bool:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(module, "_keep", dies)
        with pytest.raises(Died):
            turn(live_acme)
    turn(live_acme)
    assert len(receiver.heard) == 1, "another turn took what is still leased"
    sql(
        live_acme,
        "UPDATE webhook_delivery SET lease_until = now() - interval '1 second' WHERE tenant_id = %s::uuid",
    )
    turn(live_acme)
    assert len(receiver.heard) == 2
    assert receiver.heard[0].id == receiver.heard[1].id
    turn(live_acme)
    assert len(receiver.heard) == 2


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest",
        "https://localhost/",
        "https://hooks.example.com:8443/",
        "https://ann:secret@hooks.example.com/",
        "ftp://hooks.example.com/",
        "nonsense",
    ],
)
def test_an_address_that_the_fetcher_would_not_go_to_is_refused(
    live_acme: TenantKit, admin: ApiClient, url: str
) -> None:
    answer = admin.post(WEBHOOKS, {"name": "x", "url": url})
    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["issues"][0]["path"] == "/url"


def test_another_tenants_webhook_hears_nothing_and_is_not_there(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    other = make_tenant()
    theirs = listen(other.client("admin"), receiver)
    supersede(admin, a_fact(admin))
    turn(live_acme)
    turn(other)
    assert receiver.heard == []
    nowhere = admin.get(f"{WEBHOOKS}/{uuid4()}")
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"enabled": False}),
        ("DELETE", "", None),
        ("GET", "/deliveries", None),
        ("POST", "/test", {}),
        ("POST", "/rotate-secret", {}),
        ("POST", "/replay", {"deliveryId": str(uuid4())}),
    ):
        answer = admin.request(method, f"{WEBHOOKS}/{theirs['id']}{path}", body)
        assert answer.status_code == 404, (method, path)
        assert answer.json()["error"]["code"] == nowhere.json()["error"]["code"]


def test_what_is_removed_is_gone_with_its_log_and_each_change_is_governed(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    path = f"{WEBHOOKS}/{webhook['id']}"
    supersede(admin, a_fact(admin))
    turn(live_acme)
    admin.request("PATCH", path, {"name": "renamed"})
    admin.post(f"{path}/rotate-secret", {})
    assert admin.delete(path).json()["name"] == "renamed"
    assert admin.get(path).status_code == 404
    for table in ("webhook", "webhook_delivery", "webhook_attempt"):
        assert sql(live_acme, f"SELECT count(*) FROM {table} WHERE tenant_id = %s::uuid") == [(0,)]
    acts = [one["type"] for one in _governance(live_acme)]
    assert [act for act in acts if act.startswith("webhook.")] == [
        "webhook.registered",
        "webhook.changed",
        "webhook.secret-rotated",
        "webhook.removed",
    ]
    assert receiver.url not in json.dumps(_governance(live_acme))


def test_the_log_of_deliveries_goes_back_thirty_days(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    supersede(admin, a_fact(admin))
    supersede(admin, a_fact(admin))
    turn(live_acme)
    sql(
        live_acme,
        "UPDATE webhook_delivery SET queued_at = queued_at WHERE tenant_id = %s::uuid",
    )
    [first, _] = deliveries(admin, webhook)
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM work_due(ARRAY['prune-webhook-log']) WHERE tenant_id = %s",
            [live_acme.id],
        )
        assert cursor.fetchone() == (0,)
    _older(live_acme, first["eventId"])
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM work_due(ARRAY['prune-webhook-log']) WHERE tenant_id = %s",
            [live_acme.id],
        )
        assert cursor.fetchone() == (1,)
    prune_webhook_log.turn(live_acme.id, live_acme.slug)
    assert first["id"] not in [one["id"] for one in deliveries(admin, webhook)]
    assert len(deliveries(admin, webhook)) == 1


def _older(kit: TenantKit, event: str) -> None:
    """An event of a month and a day ago: events are not changed, so its copy takes its place."""
    with tenant_context(kit.id), connection.cursor() as cursor:
        old = "evt_" + "0" * 32
        cursor.execute(
            "INSERT INTO webhook_event SELECT tenant_id, %s::text, type, occurred_at - interval '31 days', body_text "
            "FROM webhook_event WHERE tenant_id = %s::uuid AND id = %s::text",
            [old, kit.id, event],
        )
        cursor.execute(
            "UPDATE webhook_delivery SET event_id = %s::text WHERE tenant_id = %s::uuid AND event_id = %s::text",
            [old, kit.id, event],
        )


def test_deliveries_are_listed_page_by_page(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    webhook = listen(admin, receiver)
    for _ in range(5):
        supersede(admin, a_fact(admin))
    path = f"{WEBHOOKS}/{webhook['id']}/deliveries"
    page = admin.get(path, {"limit": 2}).json()
    seen = [one["id"] for one in page["data"]]
    while page["hasMore"]:
        page = admin.get(path, {"limit": 2, "cursor": page["nextCursor"]}).json()
        seen += [one["id"] for one in page["data"]]
    assert len(seen) == len(set(seen)) == 5


def test_every_event_is_described_in_words_and_in_the_documents() -> None:
    said = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
    for name, words in EVENTS.items():
        assert words
        assert EVENT_WORDS[name]
        assert f"`{name}`" in said, name


def test_what_a_receiver_answers_is_kept_nowhere(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver
) -> None:
    def loud(heard: Heard) -> tuple[int, dict[str, str]]:
        return 500, {"x-said": "canary-answer"}

    receiver.answer = loud
    listen(admin, receiver)
    supersede(admin, a_fact(admin))
    turn(live_acme)
    kept = sql(live_acme, "SELECT a::text FROM webhook_attempt a WHERE tenant_id = %s::uuid")
    assert len(kept) == 1
    assert "canary" not in str(kept)


def test_an_act_does_not_fail_over_a_webhook_that_is_being_removed(
    live_acme: TenantKit, admin: ApiClient, receiver: Receiver, app_conninfo: str
) -> None:
    webhook = listen(admin, receiver)
    fact = a_fact(admin)
    with psycopg.connect(app_conninfo) as removing:
        removing.execute("SELECT set_config('kindmem.tenant_id', %s::text, true)", [live_acme.id])
        removing.execute("DELETE FROM webhook WHERE id = %s::uuid", [webhook["id"]])
        threading.Timer(0.5, removing.commit).start()
        supersede(admin, fact)
    assert sql(live_acme, "SELECT count(*) FROM webhook_event WHERE tenant_id = %s::uuid") == [(0,)]
