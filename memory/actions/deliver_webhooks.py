"""Tell webhooks what is due: one turn of the worker in one tenant.

What is due is leased in one transaction, sent outside any through the guarded fetcher, and what came of it is kept in another, so
that a worker may die anywhere: the lease ends, and the event is sent again under the same id. Each webhook has a thread of the
turn, so that a slow one holds up none of the others; and those that failed or took long when they were last told something have
turns of their own, on threads of their own, so that they hold up no other tenant either. A turn begins nothing once its time is
over. A failure is tried again later and later, with jitter, for a day; meanwhile the webhook hears of one event at a time, with
rests. 410 ends a webhook at once, five days without one success end it too, and what it waited with is given up; an admin may
enable it again.
"""

import random
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.fetch_rules import FetchError
from memory.fetcher import fetch
from memory.tenancy import tenant_context
from memory.webhooks.signing import open_secret, signature

TURN_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 10.0
SLOW_SECONDS: Final = 2.0
"""Who takes longer to answer is slow."""
SOON_SECONDS: Final = 4.0
"""For who is not known to be slow; the next try, among the slow ones, waits for all of TIMEOUT_SECONDS."""
AT_ONCE: Final = 4
OF_ONE_WEBHOOK: Final = 10
LEASE: Final = timedelta(seconds=20)
FIRST_PAUSE_SECONDS: Final = 5.0
LONGEST_PAUSE_SECONDS: Final = 6 * 3600.0
LONGEST_REST_SECONDS: Final = 300
GIVEN_UP_AFTER: Final = timedelta(days=1)
DISABLED_AFTER: Final = timedelta(days=5)
KEPT_DAYS: Final = 30
_PRUNED_AT_ONCE: Final = 500
_GONE: Final = 410

_TAKE = """
WITH due AS MATERIALIZED (
  SELECT d.id, w.url, w.secret, CASE WHEN w.previous_until > clock_timestamp() THEN w.previous_secret END AS previous
  FROM webhook w CROSS JOIN LATERAL (
    SELECT p.id FROM webhook_delivery p
    WHERE p.tenant_id = %(tenant)s::uuid AND p.webhook_id = w.id AND p.status = 'pending' AND p.next_at <= clock_timestamp()
      AND (p.lease_until IS NULL OR p.lease_until <= clock_timestamp())
    ORDER BY p.next_at, p.id LIMIT CASE WHEN w.failures > 0 THEN 1 ELSE %(limit)s::int END FOR UPDATE SKIP LOCKED) d
  WHERE w.tenant_id = %(tenant)s::uuid AND w.disabled_because IS NULL AND w.is_slow = %(slow)s::bool
    AND (w.rests_until IS NULL OR w.rests_until <= clock_timestamp())
), taken AS (
  UPDATE webhook_delivery d SET lease_until = clock_timestamp() + %(lease)s::interval
  FROM due WHERE d.tenant_id = %(tenant)s::uuid AND d.id = due.id
  RETURNING d.id, d.webhook_id, d.event_id, d.next_at, due.url, due.secret, due.previous
)
SELECT t.id, t.webhook_id, t.event_id, t.url, t.secret, t.previous, e.body_text
FROM taken t JOIN webhook_event e ON e.tenant_id = %(tenant)s::uuid AND e.id = t.event_id
ORDER BY t.next_at, t.id
"""
_LET_GO = """
UPDATE webhook_delivery SET lease_until = NULL WHERE tenant_id = %(tenant)s::uuid AND id = ANY (%(ids)s::uuid[])
"""
# A delivery that somebody else brought to its end meanwhile is left as it is.
_KEEP = """
UPDATE webhook_delivery
SET attempts = attempts + 1, tries = tries + 1, lease_until = NULL, status = %(status)s::text,
    ended_at = CASE WHEN %(status)s::text = 'pending' THEN NULL ELSE clock_timestamp() END,
    next_at = clock_timestamp() + %(pause)s::interval
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status = 'pending'
RETURNING attempts
"""
_TRIES = """
SELECT tries, clock_timestamp() - queued_at FROM webhook_delivery
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status = 'pending' FOR UPDATE
"""
_NOTE = """
INSERT INTO webhook_attempt (tenant_id, delivery_id, number, status, error, duration_ms)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(number)s::int, %(code)s::smallint, %(error)s::text, %(ms)s::int)
"""
_WENT_WELL = """
UPDATE webhook SET failing_since = NULL, failures = 0, rests_until = NULL, is_slow = %(slow)s::bool
WHERE tenant_id = %(tenant)s::uuid AND id = %(webhook)s::uuid AND (failures > 0 OR is_slow <> %(slow)s::bool)
"""
_WENT_BADLY = """
UPDATE webhook
SET failing_since = coalesce(failing_since, clock_timestamp()), failures = least(failures + 1, 1000), is_slow = true,
    rests_until = clock_timestamp() + least(2 ^ least(failures, 20), %(rest)s::int) * interval '1 second',
    disabled_because = CASE WHEN %(gone)s::bool THEN 'gone'
                            WHEN failing_since < clock_timestamp() - %(longest)s::interval THEN 'failing' END
WHERE tenant_id = %(tenant)s::uuid AND id = %(webhook)s::uuid AND disabled_because IS NULL
RETURNING disabled_because
"""
# Of one that was given up, all of it; of one that an admin paused, what is older than a try may be.
_GIVE_UP = """
UPDATE webhook_delivery d SET status = 'failed', ended_at = clock_timestamp(), lease_until = NULL FROM webhook w
WHERE d.tenant_id = %(tenant)s::uuid AND d.status = 'pending' AND w.tenant_id = d.tenant_id AND w.id = d.webhook_id
  AND w.disabled_because IS NOT NULL
  AND (w.disabled_because <> 'paused' OR d.queued_at < clock_timestamp() - %(given_up)s::interval)
"""
_PRUNE = (
    "DELETE FROM webhook_attempt a USING webhook_delivery d WHERE a.tenant_id = %(tenant)s::uuid"
    " AND d.tenant_id = a.tenant_id AND d.id = a.delivery_id AND d.event_id = ANY (%(ids)s::text[])",
    "DELETE FROM webhook_delivery WHERE tenant_id = %(tenant)s::uuid AND event_id = ANY (%(ids)s::text[])",
    "DELETE FROM webhook_event WHERE tenant_id = %(tenant)s::uuid AND id = ANY (%(ids)s::text[])",
)


@dataclass(frozen=True, slots=True)
class _Due:
    id: UUID
    webhook_id: UUID
    event_id: str
    url: str
    secrets: tuple[str, ...] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: int | None
    error: str | None
    duration_ms: int
    retry_after_seconds: float = 0.0

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def deliver_webhooks(
    *, principal: Principal, seconds: float = TURN_SECONDS, to_slow: bool = False
) -> bool:
    """Send for about so long, to those that answer or to the slow ones; whether more may be due.

    Opens its own transactions; call it outside any.
    """
    until = time.monotonic() + seconds
    timeout = TIMEOUT_SECONDS if to_slow else min(SOON_SECONDS, TIMEOUT_SECONDS)
    groups = _taken(principal.tenant_id, to_slow)
    if not groups:
        return False
    left: list[UUID] = []
    # A webhook is begun when a thread is free for it: what waits for one is still let go when the turn is over.
    begun = iter([iter(group) for group in groups])
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook") as threads:
        waiting: dict[Future[_Outcome], tuple[_Due, Iterator[_Due]]] = {}

        def go_on(rest: Iterator[_Due]) -> None:
            """With this webhook's next event, else with the next webhook."""
            for group in chain([rest], begun):
                if time.monotonic() >= until:
                    left.extend(one.id for one in group)
                elif (one := next(group, None)) is not None:
                    waiting[threads.submit(_send, one, timeout)] = (one, group)
                    return

        for _ in range(AT_ONCE):
            go_on(iter(()))
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                one, rest = waiting.pop(future)
                if not _keep(principal, one, future.result()):
                    left.extend(other.id for other in rest)
                go_on(rest)
    if left:
        with tenant_context(principal.tenant_id), connection.cursor() as cursor:
            cursor.execute(_LET_GO, {"tenant": principal.tenant_id, "ids": left})
    return bool(left) or any(len(group) == OF_ONE_WEBHOOK for group in groups)


def _taken(tenant_id: UUID, to_slow: bool) -> list[list[_Due]]:
    given: dict[str, Any] = {
        "tenant": tenant_id,
        "limit": OF_ONE_WEBHOOK,
        "lease": LEASE,
        "slow": to_slow,
    }
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(_TAKE, given)
        rows = cursor.fetchall()
    groups: dict[UUID, list[_Due]] = defaultdict(list)
    for delivery_id, webhook_id, event_id, url, *sealed, body in rows:
        secrets = tuple(
            open_secret(tenant_id, webhook_id, bytes(one)) for one in sealed if one is not None
        )
        groups[webhook_id].append(
            _Due(delivery_id, webhook_id, event_id, url, secrets, body.encode())
        )
    return list(groups.values())


def _send(due: _Due, timeout_seconds: float = TIMEOUT_SECONDS) -> _Outcome:
    """One attempt, outside any transaction."""
    at = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": due.event_id,
        "webhook-timestamp": str(at),
        "webhook-signature": signature(due.secrets, due.event_id, at, due.body),
    }
    began = time.monotonic()
    try:
        answer = fetch(
            due.url,
            headers=headers,
            method="POST",
            content=due.body,
            timeout_seconds=timeout_seconds,
            allow_loopback=settings.KINDMEM_DEVELOPMENT,
        )
    except FetchError as error:
        return _Outcome(None, error.code, _milliseconds(began))
    wait_seconds = answer.headers.get("retry-after", "")
    asked = float(wait_seconds) if wait_seconds.isdecimal() and len(wait_seconds) < 6 else 0.0
    return _Outcome(answer.status, None, _milliseconds(began), asked)


def _milliseconds(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _keep(principal: Principal, due: _Due, outcome: _Outcome) -> bool:
    """Note what came of an attempt; whether the webhook is to hear of more now."""
    key: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "id": due.id,
        "webhook": due.webhook_id,
        "gone": outcome.status == _GONE,
        "longest": DISABLED_AFTER,
        "rest": LONGEST_REST_SECONDS,
        "slow": outcome.duration_ms > SLOW_SECONDS * 1000,
        "given_up": GIVEN_UP_AFTER,
    }
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(_TRIES, key)
        row = cursor.fetchone()
        if row is None:
            return True
        tries, age = row
        pause = _pause(tries + 1, outcome.retry_after_seconds)
        if outcome.is_taken:
            status = "delivered"
        elif outcome.status == _GONE or age + timedelta(seconds=pause) > GIVEN_UP_AFTER:
            status = "failed"
        else:
            status = "pending"
        ending: dict[str, Any] = {"status": status, "pause": timedelta(seconds=pause)}
        cursor.execute(_KEEP, key | ending)
        [number] = cursor.fetchone()
        cursor.execute(
            _NOTE,
            {
                **key,
                "number": number,
                "code": outcome.status,
                "error": outcome.error,
                "ms": outcome.duration_ms,
            },
        )
        if outcome.is_taken:
            cursor.execute(_WENT_WELL, key)
            return True
        cursor.execute(_WENT_BADLY, key)
        row = cursor.fetchone()
        because = row[0] if row is not None else None
        if because is not None:
            cursor.execute(_GIVE_UP, key)
            append_governance(
                principal=principal,
                payload={
                    "type": "webhook.disabled",
                    "webhookId": str(due.webhook_id),
                    "reason": because,
                },
            )
        # One that fails now would fail with the next event too.
        return False


def _pause(tries: int, asked_seconds: float) -> float:
    """Seconds until the next attempt: four times as long each time, at the most six hours, and a fifth more or less."""
    pause = min(FIRST_PAUSE_SECONDS * 4.0 ** (tries - 1), LONGEST_PAUSE_SECONDS)
    jitter = random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, guards nothing
    return max(pause * jitter, min(asked_seconds, LONGEST_PAUSE_SECONDS))


def prune_deliveries(*, tenant_id: UUID) -> int:
    """Drop the oldest events past the log's time, and their deliveries; how many events went. What a paused webhook waits with
    for longer than a day is given up.
    """
    with tenant_context(tenant_id), connection.cursor() as cursor:
        named: dict[str, Any] = {"tenant": tenant_id, "given_up": GIVEN_UP_AFTER}
        cursor.execute(_GIVE_UP, named)
        cursor.execute(
            "SELECT id FROM webhook_event WHERE tenant_id = %s::uuid"
            " AND occurred_at < clock_timestamp() - make_interval(days => %s::int)"
            " ORDER BY occurred_at LIMIT %s::int",
            [tenant_id, KEPT_DAYS, _PRUNED_AT_ONCE],
        )
        ids: list[Any] = [row[0] for row in cursor.fetchall()]
        for statement in _PRUNE if ids else ():
            cursor.execute(statement, {"tenant": tenant_id, "ids": ids})
    return len(ids)
