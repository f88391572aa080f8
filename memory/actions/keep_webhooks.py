"""Webhooks, for admins: register an address, change, pause and remove it, give it another secret, try it.

An address is one that the guarded fetcher would go to. A secret is told once; when it is replaced, both are good for a day.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput, WebhookDisabled
from memory.fetch_rules import FetchRefused, parse_target
from memory.ids import new_id
from memory.webhooks.events import EVENTS, PING, tell
from memory.webhooks.signing import new_secret, seal_secret
from memory.webhooks.store import (
    MOST_WEBHOOKS,
    REST_NO_MORE,
    WebhookView,
    find_webhook,
    list_webhooks,
)

BOTH_GOOD_HOURS = 24

_INSERT = """
INSERT INTO webhook (tenant_id, id, name, url, events, secret, created_at, changed_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(name)s::text, %(url)s::text, %(events)s::text[], %(secret)s::bytea,
        clock_timestamp(), clock_timestamp())
"""
_CHANGE = """
UPDATE webhook
SET name = %(name)s::text, url = %(url)s::text, events = %(events)s::text[], changed_at = clock_timestamp(),
    disabled_because = %(disabled)s::text,
    failing_since = CASE WHEN %(anew)s::bool THEN NULL ELSE failing_since END,
    failures = CASE WHEN %(anew)s::bool THEN 0 ELSE failures END,
    rests_until = CASE WHEN %(anew)s::bool THEN NULL ELSE rests_until END,
    is_slow = is_slow AND NOT %(anew)s::bool
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""
_ROTATE = """
UPDATE webhook
SET previous_secret = secret, previous_until = clock_timestamp() + make_interval(hours => %(hours)s::int),
    secret = %(secret)s::bytea, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""
_REMOVE = (
    "DELETE FROM webhook_attempt a USING webhook_delivery d WHERE a.tenant_id = %(tenant)s::uuid AND d.tenant_id = a.tenant_id"
    " AND d.id = a.delivery_id AND d.webhook_id = %(id)s::uuid",
    "DELETE FROM webhook_delivery WHERE tenant_id = %(tenant)s::uuid AND webhook_id = %(id)s::uuid",
    "DELETE FROM webhook WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid",
)


def register_webhook(
    *, principal: Principal, name: str, url: str, events: Sequence[str] = ()
) -> tuple[WebhookView, str]:
    """The webhook and its secret, which is told this once. Raises PermissionDenied, BadInput."""
    principal.needs_role("admin", "owner")
    _check(url, events)
    if len(list_webhooks(principal.tenant_id)) >= MOST_WEBHOOKS:
        raise BadInput.at("/url", f"a tenant has at most {MOST_WEBHOOKS} webhooks")
    webhook_id, secret = new_id(), new_secret()
    _execute(
        _INSERT,
        {
            "tenant": principal.tenant_id,
            "id": webhook_id,
            "name": name,
            "url": url,
            "events": sorted(set(events)),
            "secret": seal_secret(principal.tenant_id, webhook_id, secret),
        },
    )
    _log(principal, "webhook.registered", webhook_id, events=sorted(set(events)))
    return find_webhook(principal.tenant_id, webhook_id), secret


def change_webhook(
    *,
    principal: Principal,
    webhook_id: str | UUID,
    name: str | None = None,
    url: str | None = None,
    events: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> WebhookView:
    """The webhook as it is then; what is None stays. Enabling one that was given up lets it begin anew.

    Raises PermissionDenied, WebhookNotFound, BadInput.
    """
    principal.needs_role("admin", "owner")
    before = find_webhook(principal.tenant_id, webhook_id, lock="change")
    _check(before.url if url is None else url, before.events if events is None else events)
    disabled = before.disabled_because
    if enabled is not None:
        disabled = None if enabled else (before.disabled_because or "paused")
    changed = [
        field
        for field, value in (("name", name), ("url", url), ("events", events))
        if value is not None
    ]
    if disabled != before.disabled_because:
        changed.append("enabled")
    _execute(
        _CHANGE,
        {
            "tenant": principal.tenant_id,
            "id": before.id,
            "name": before.name if name is None else name,
            "url": before.url if url is None else url,
            "events": before.events if events is None else sorted(set(events)),
            "disabled": disabled,
            "anew": disabled is None and not before.is_enabled,
        },
    )
    _log(principal, "webhook.changed", before.id, changed=changed, enabled=disabled is None)
    return find_webhook(principal.tenant_id, before.id)


def rotate_webhook_secret(
    *, principal: Principal, webhook_id: str | UUID
) -> tuple[WebhookView, str]:
    """The webhook and its new secret, told this once; the one before signs too for a day.

    Raises PermissionDenied, WebhookNotFound.
    """
    principal.needs_role("admin", "owner")
    before = find_webhook(principal.tenant_id, webhook_id, lock="change")
    secret = new_secret()
    _execute(
        _ROTATE,
        {
            "tenant": principal.tenant_id,
            "id": before.id,
            "secret": seal_secret(principal.tenant_id, before.id, secret),
            "hours": BOTH_GOOD_HOURS,
        },
    )
    _log(principal, "webhook.secret-rotated", before.id)
    return find_webhook(principal.tenant_id, before.id), secret


def remove_webhook(*, principal: Principal, webhook_id: str | UUID) -> WebhookView:
    """The webhook that was; its log of deliveries goes with it. Raises PermissionDenied, WebhookNotFound."""
    principal.needs_role("admin", "owner")
    before = find_webhook(principal.tenant_id, webhook_id, lock="remove")
    for statement in _REMOVE:
        _execute(statement, {"tenant": principal.tenant_id, "id": before.id})
    _log(principal, "webhook.removed", before.id)
    return before


def try_webhook(*, principal: Principal, webhook_id: str | UUID) -> str:
    """Queue a ping for one webhook; the event's id. Raises PermissionDenied, WebhookNotFound, WebhookDisabled."""
    principal.needs_role("admin", "owner")
    found = find_webhook(principal.tenant_id, webhook_id)
    if not found.is_enabled:
        raise WebhookDisabled(because=found.disabled_because or "")
    _execute(REST_NO_MORE, {"tenant": principal.tenant_id, "webhook": found.id})
    event_id = tell(principal, PING, {"webhookId": str(found.id)}, only=found.id)
    _log(principal, "webhook.tried", found.id, eventId=event_id)
    return event_id


def _check(url: str, events: Sequence[str]) -> None:
    try:
        parse_target(url, allow_loopback=settings.KINDMEM_DEVELOPMENT)
    except FetchRefused as refused:
        raise BadInput.at(
            "/url", f"must be an https URL of a public host ({refused.reason})"
        ) from None
    if unknown := sorted(set(events) - set(EVENTS)):
        raise BadInput.at("/events", f"there is no event {unknown[0]}")


def _log(principal: Principal, act: str, webhook_id: UUID, **more: Any) -> None:
    append_governance(
        principal=principal, payload={"type": act, "webhookId": str(webhook_id), **more}
    )


def _execute(statement: str, parameters: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
