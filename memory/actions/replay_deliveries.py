"""Send again what a webhook was told, or should have been: one delivery, or every event of a time. For admins.

The event's id stays, so a receiver that has it already knows. What is pending is tried at once.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput, DeliveryNotFound, WebhookDisabled
from memory.webhooks.store import REST_NO_MORE, find_webhook
from memory.work import begin_soon

MOST_AT_ONCE = 10_000

_AGAIN = """
status = 'pending', queued_at = clock_timestamp(), tries = 0, next_at = clock_timestamp(), lease_until = NULL, ended_at = NULL
"""
_ONE = f"""
UPDATE webhook_delivery SET {_AGAIN}
WHERE tenant_id = %(tenant)s::uuid AND webhook_id = %(webhook)s::uuid AND id = %(id)s::uuid
"""
# Also events that came while the webhook was paused, where they were kept because another listened.
_RANGE = f"""
INSERT INTO webhook_delivery AS d (tenant_id, id, webhook_id, event_id)
SELECT %(tenant)s::uuid, gen_random_uuid(), w.id, e.id
FROM webhook w JOIN webhook_event e ON e.tenant_id = w.tenant_id
WHERE w.tenant_id = %(tenant)s::uuid AND w.id = %(webhook)s::uuid AND (w.events = '{{}}' OR e.type = ANY (w.events))
  AND e.type <> 'webhook.ping' AND e.occurred_at >= %(from)s::timestamptz AND e.occurred_at < %(until)s::timestamptz
ORDER BY e.occurred_at, e.id LIMIT %(limit)s::int
ON CONFLICT ON CONSTRAINT webhook_delivery_once_an_event DO UPDATE SET {_AGAIN}
"""


def replay_deliveries(
    *,
    principal: Principal,
    webhook_id: str | UUID,
    delivery_id: str | UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int:
    """How many are queued: the one delivery, or those of events from `since` to before `until`, oldest first.

    Raises PermissionDenied, WebhookNotFound, WebhookDisabled, DeliveryNotFound, BadInput.
    """
    principal.needs_role("admin", "owner")
    webhook = find_webhook(principal.tenant_id, webhook_id, lock="change")
    if not webhook.is_enabled:
        raise WebhookDisabled(because=webhook.disabled_because or "")
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "webhook": webhook.id,
        "limit": MOST_AT_ONCE,
    }
    with connection.cursor() as cursor:
        if delivery_id is not None:
            cursor.execute(_ONE, {**parameters, "id": _uuid(delivery_id)})
            if cursor.rowcount == 0:
                raise DeliveryNotFound
        elif since is None or until is None or since >= until:
            raise BadInput.at("/until", "must be after from")
        else:
            cursor.execute(_RANGE, {**parameters, "from": since, "until": until})
        queued = cursor.rowcount
        cursor.execute(REST_NO_MORE, parameters)
    if queued:
        begin_soon("deliver-webhooks", principal.tenant_id)
    append_governance(
        principal=principal,
        payload={"type": "webhook.replayed", "webhookId": str(webhook.id), "deliveries": queued},
    )
    return queued


def _uuid(text: str | UUID) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise DeliveryNotFound from None
