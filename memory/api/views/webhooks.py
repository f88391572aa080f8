"""Webhooks over HTTP, for admins: who hears of what, how telling went, and telling again."""

from typing import Any

from memory.actions.keep_webhooks import (
    change_webhook,
    register_webhook,
    remove_webhook,
    rotate_webhook_secret,
    try_webhook,
)
from memory.actions.replay_deliveries import replay_deliveries
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, always, array_of, shape
from memory.errors import BadInput
from memory.instants import instant
from memory.webhooks.events import EVENTS
from memory.webhooks.store import (
    STATUSES,
    DeliveryView,
    WebhookView,
    find_webhook,
    list_deliveries,
    list_webhooks,
)

TAG = "Webhooks"
_NAME = {"type": "string", "minLength": 1, "maxLength": 100}
_URL = {"type": "string", "minLength": 1, "maxLength": 2048}
_EVENTS = array_of({"enum": list(EVENTS)}, most=len(EVENTS))
_SECRET = {
    "type": "string",
    "description": "Told this once; a repeated request is answered without it.",
}
REGISTER = Shape(shape({"name": _NAME, "url": _URL, "events": _EVENTS}, required=("name", "url")))
CHANGE = Shape(
    shape({"name": _NAME, "url": _URL, "events": _EVENTS, "enabled": {"type": "boolean"}})
)
REPLAY = Shape(shape({"deliveryId": ID, "from": INSTANT, "until": INSTANT}))
WEBHOOK: dict[str, Any] = {
    "type": "object",
    "required": ["id", "name", "url", "events", "enabled", "createdAt", "updatedAt"],
    "properties": {
        "id": ID,
        "name": TEXT,
        "url": TEXT,
        "events": array_of(TEXT, most=len(EVENTS)),
        "enabled": {"type": "boolean"},
        "disabledBecause": {"enum": ["paused", "gone", "failing"]},
        "failingSince": INSTANT,
        "previousSecretUntil": INSTANT,
        "createdAt": INSTANT,
        "updatedAt": INSTANT,
    },
}
WEBHOOK_WITH_SECRET = {**WEBHOOK, "properties": {**WEBHOOK["properties"], "secret": _SECRET}}
DELIVERY: dict[str, Any] = {
    "type": "object",
    "required": ["id", "eventId", "type", "occurredAt", "status", "queuedAt", "attempts"],
    "properties": {
        "id": ID,
        "eventId": TEXT,
        "type": TEXT,
        "occurredAt": INSTANT,
        "status": {"enum": list(STATUSES)},
        "queuedAt": INSTANT,
        "attempts": {"type": "integer", "minimum": 0},
        "nextAttemptAt": INSTANT,
        "endedAt": INSTANT,
        "lastAttempt": {"type": "object"},
    },
}
_ERRORS = ("bad-input", "unknown-field", "permission-denied")
_EXAMPLE = {
    "name": "Case system",
    "url": "https://hooks.example.com/kindmem",
    "events": ["record.corrected", "record.forgotten"],
}


def _told_once(status: int, webhook: WebhookView, secret: str) -> Answer:
    """What is kept for a repeated request is without the secret."""
    said = webhook.wire()
    return Answer(status, said, later=lambda: {**said, "secret": secret})


class Webhooks(ApiView):
    @operation(
        id="memory.listWebhooks",
        summary="List webhooks (admin)",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(WEBHOOK)},
        errors=_ERRORS,
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        limit = call.query["limit"]
        after = read_cursor(call.principal, "listWebhooks", {}, call.query["cursor"])
        found = list_webhooks(call.principal.tenant_id, after=after, limit=limit + 1)

        def cursor_after(webhook: WebhookView) -> str:
            position = [webhook.wire()["createdAt"], str(webhook.id)]
            return make_cursor(call.principal, "listWebhooks", {}, position)

        return Answer(200, page(found, limit, render=WebhookView.wire, next_cursor=cursor_after))

    @operation(
        id="memory.registerWebhook",
        summary="Have an address told of events (admin)",
        description=(
            "`events` names those it hears of; none: all. What is sent holds ids and codes, never what is remembered, and is "
            "signed by the rules of Standard Webhooks with the `secret`, which this answer tells once."
        ),
        ability="write",
        matters=always,
        body=REGISTER,
        answers={201: WEBHOOK_WITH_SECRET},
        changes=True,
        errors=_ERRORS,
        example=_EXAMPLE,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        said = call.body
        webhook, secret = register_webhook(
            principal=call.principal,
            name=said["name"],
            url=said["url"],
            events=said.get("events", ()),
        )
        return _told_once(201, webhook, secret)


class OneWebhook(ApiView):
    @operation(
        id="memory.getWebhook",
        summary="Read a webhook (admin)",
        ability="read",
        answers={200: WEBHOOK},
        errors=("webhook-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        found = find_webhook(call.principal.tenant_id, call.path["webhook_id"])
        return Answer(200, found.wire())

    @operation(
        id="memory.changeWebhook",
        summary="Change, pause or enable a webhook (admin)",
        description="`enabled: true` also lets one begin anew that was given up.",
        ability="write",
        matters=always,
        body=CHANGE,
        answers={200: WEBHOOK},
        changes=True,
        errors=("webhook-not-found", *_ERRORS),
        example={"enabled": False},
        tag=TAG,
    )
    def patch(self, call: Call) -> Answer:
        webhook = change_webhook(
            principal=call.principal, webhook_id=call.path["webhook_id"], **call.body
        )
        return Answer(200, webhook.wire())

    @operation(
        id="memory.removeWebhook",
        summary="Remove a webhook (admin)",
        description="Its log of deliveries goes with it. Answers with the webhook that was.",
        ability="write",
        matters=always,
        answers={200: WEBHOOK},
        changes=True,
        errors=("webhook-not-found", *_ERRORS),
        tag=TAG,
    )
    def delete(self, call: Call) -> Answer:
        removed = remove_webhook(principal=call.principal, webhook_id=call.path["webhook_id"])
        return Answer(200, removed.wire())


class WebhookSecret(ApiView):
    @operation(
        id="memory.rotateWebhookSecret",
        summary="Give a webhook a new secret (admin)",
        description="Told once, in this answer. For 24 hours what is sent is signed with the one before too.",
        ability="write",
        matters=always,
        answers={200: WEBHOOK_WITH_SECRET},
        changes=True,
        errors=("webhook-not-found", *_ERRORS),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        webhook, secret = rotate_webhook_secret(
            principal=call.principal, webhook_id=call.path["webhook_id"]
        )
        return _told_once(200, webhook, secret)


class WebhookTest(ApiView):
    @operation(
        id="memory.tryWebhook",
        summary="Send a webhook a `webhook.ping` (admin)",
        ability="write",
        answers={202: {"type": "object", "required": ["eventId"], "properties": {"eventId": TEXT}}},
        changes=True,
        errors=("webhook-not-found", "webhook-disabled", *_ERRORS),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        event_id = try_webhook(principal=call.principal, webhook_id=call.path["webhook_id"])
        return Answer(202, {"eventId": event_id})


class WebhookDeliveries(ApiView):
    @operation(
        id="memory.listWebhookDeliveries",
        summary="What a webhook was told, and how that went (admin)",
        description="Newest first, kept for 30 days. `lastAttempt` has the status that was answered, or the kind of failure.",
        ability="read",
        query=(
            parameters.choice("status", STATUSES, "Only those."),
            parameters.LIMIT,
            parameters.CURSOR,
        ),
        answers={200: page_of(DELIVERY)},
        errors=("webhook-not-found", *_ERRORS),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        webhook = find_webhook(call.principal.tenant_id, call.path["webhook_id"])
        limit, status = call.query["limit"], call.query["status"]
        filters = {"status": status, "webhook": str(webhook.id)}
        name = "listWebhookDeliveries"
        found = list_deliveries(
            call.principal.tenant_id,
            webhook.id,
            status=status,
            after=read_cursor(call.principal, name, filters, call.query["cursor"]),
            limit=limit + 1,
        )

        def cursor_after(one: DeliveryView) -> str:
            position = [one.wire()["queuedAt"], str(one.id)]
            return make_cursor(call.principal, name, filters, position)

        return Answer(200, page(found, limit, render=DeliveryView.wire, next_cursor=cursor_after))


class WebhookReplay(ApiView):
    @operation(
        id="memory.replayWebhook",
        summary="Tell a webhook again (admin)",
        description=(
            "One delivery by `deliveryId`, or every event that it hears of `from` an instant and before `until`. The event's id, "
            "which is the `webhook-id` header, stays: who has it already can know it."
        ),
        ability="write",
        body=REPLAY,
        answers={
            202: {
                "type": "object",
                "required": ["queued"],
                "properties": {"queued": {"type": "integer", "minimum": 0}},
            }
        },
        changes=True,
        errors=("webhook-not-found", "webhook-disabled", "delivery-not-found", *_ERRORS),
        example={"from": "2026-01-31T00:00:00Z", "until": "2026-02-01T00:00:00Z"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        said = call.body
        if ("deliveryId" in said) == ("from" in said or "until" in said):
            raise BadInput.at("", "name either deliveryId, or from and until")
        queued = replay_deliveries(
            principal=call.principal,
            webhook_id=call.path["webhook_id"],
            delivery_id=said.get("deliveryId"),
            since=instant(said["from"]) if "from" in said else None,
            until=instant(said["until"]) if "until" in said else None,
        )
        return Answer(202, {"queued": queued})
