"""Webhooks and their deliveries as stored, for lists, pages and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from django.db import connection

from memory.errors import WebhookNotFound
from memory.instants import instant_text
from memory.queries.one_row import as_uuid, one_row

MOST_WEBHOOKS: Final = 200
COLUMNS: Final = """
w.id, w.name, w.url, w.events, w.disabled_because, w.failing_since, w.previous_until, w.created_at, w.changed_at
"""
REST_NO_MORE: Final = (
    "UPDATE webhook SET rests_until = NULL"
    " WHERE tenant_id = %(tenant)s::uuid AND id = %(webhook)s::uuid AND rests_until IS NOT NULL"
)
_LOCKS: Final = {None: "", "change": " FOR NO KEY UPDATE", "remove": " FOR UPDATE"}
STATUSES: Final = ("pending", "delivered", "failed")


@dataclass(frozen=True, slots=True)
class WebhookView:
    """A webhook without its secrets. `events` empty: every event."""

    id: UUID
    name: str
    url: str
    events: list[str]
    disabled_because: str | None
    failing_since: datetime | None
    previous_until: datetime | None
    created_at: datetime
    changed_at: datetime

    @property
    def is_enabled(self) -> bool:
        return self.disabled_because is None

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "id": str(self.id),
            "name": self.name,
            "url": self.url,
            "events": self.events,
            "enabled": self.is_enabled,
            "disabledBecause": self.disabled_because,
            "failingSince": _time(self.failing_since),
            "previousSecretUntil": _time(self.previous_until),
            "createdAt": instant_text(self.created_at),
            "updatedAt": instant_text(self.changed_at),
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One event for one webhook, and what came of the last attempt."""

    id: UUID
    event_id: str
    event_type: str
    occurred_at: datetime
    status: str
    queued_at: datetime
    attempts: int
    next_at: datetime
    ended_at: datetime | None
    last_at: datetime | None
    last_status: int | None
    last_error: str | None
    last_ms: int | None

    def wire(self) -> dict[str, Any]:
        last = {
            "at": _time(self.last_at),
            "status": self.last_status,
            "error": self.last_error,
            "durationMs": self.last_ms,
        }
        said: dict[str, Any] = {
            "id": str(self.id),
            "eventId": self.event_id,
            "type": self.event_type,
            "occurredAt": instant_text(self.occurred_at),
            "status": self.status,
            "queuedAt": instant_text(self.queued_at),
            "attempts": self.attempts,
            "nextAttemptAt": _time(self.next_at) if self.status == "pending" else None,
            "endedAt": _time(self.ended_at),
            "lastAttempt": {name: value for name, value in last.items() if value is not None}
            or None,
        }
        return {name: value for name, value in said.items() if value is not None}


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


def list_webhooks(
    tenant_id: UUID, *, after: Sequence[str] | None = None, limit: int = MOST_WEBHOOKS
) -> list[WebhookView]:
    """Webhooks, newest first. after: (createdAt, id) of the last of the page before."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM webhook w WHERE w.tenant_id = %(tenant)s::uuid"
            " AND (%(at)s::timestamptz IS NULL OR (w.created_at, w.id) < (%(at)s::timestamptz, %(id)s::uuid))"
            " ORDER BY w.created_at DESC, w.id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "at": after[0] if after else None,
                "id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [WebhookView(*row) for row in cursor.fetchall()]


def find_webhook(
    tenant_id: UUID, webhook_id: str | UUID, *, lock: Literal["change", "remove"] | None = None
) -> WebhookView:
    """One webhook, locked for what is done to it: a change lets acts go on queueing for it. Raises WebhookNotFound."""
    statement = f"SELECT {COLUMNS} FROM webhook w WHERE w.tenant_id = %s::uuid AND w.id = %s::uuid"
    given = [tenant_id, as_uuid(webhook_id, WebhookNotFound)]
    return one_row(statement + _LOCKS[lock], given, WebhookView, WebhookNotFound)


def list_deliveries(
    tenant_id: UUID,
    webhook_id: UUID,
    *,
    status: str | None = None,
    after: Sequence[str] | None = None,
    limit: int,
) -> list[DeliveryView]:
    """What was queued for a webhook, newest first. after: (queuedAt, id) of the last of the page before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT d.id, d.event_id, e.type, e.occurred_at, d.status, d.queued_at, d.attempts, d.next_at, d.ended_at,"
            " a.at, a.status, a.error, a.duration_ms"
            " FROM webhook_delivery d JOIN webhook_event e ON e.tenant_id = d.tenant_id AND e.id = d.event_id"
            " LEFT JOIN webhook_attempt a"
            "   ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id AND a.number = d.attempts"
            " WHERE d.tenant_id = %(tenant)s::uuid AND d.webhook_id = %(webhook)s::uuid"
            " AND (%(status)s::text IS NULL OR d.status = %(status)s::text)"
            " AND (%(at)s::timestamptz IS NULL OR (d.queued_at, d.id) < (%(at)s::timestamptz, %(id)s::uuid))"
            " ORDER BY d.queued_at DESC, d.id DESC LIMIT %(limit)s::int",
            {
                "tenant": tenant_id,
                "webhook": webhook_id,
                "status": status,
                "at": after[0] if after else None,
                "id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [DeliveryView(*row) for row in cursor.fetchall()]


def delivery_counts(tenant_id: UUID, webhook_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """By webhook how many deliveries have which status."""
    counts: dict[UUID, dict[str, int]] = {one: dict.fromkeys(STATUSES, 0) for one in webhook_ids}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT webhook_id, status, count(*) FROM webhook_delivery"
            " WHERE tenant_id = %s::uuid AND webhook_id = ANY (%s::uuid[]) GROUP BY webhook_id, status",
            [tenant_id, list(webhook_ids)],
        )
        for webhook_id, status, count in cursor.fetchall():
            counts[webhook_id][status] = int(count)
    return counts
