"""Which events webhooks hear of, and what is told of each: ids and codes, never values, words or whom something is about.

Most events are acts that the record of governance names too, so they are told where that entry is written, in the same
transaction; facts, which have no such entry, are told by their actions. An event that nobody listens for is not kept.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connection

from memory.access import Principal
from memory.canonical import canonical
from memory.instants import instant_text
from memory.work import WORKS

_RECORD: Final = ("recordId", "receipt", "level", "broadened")
_REVIEWED: Final = ("recordId", "factId", "pendingId", "act")
EVENTS: Final[dict[str, str]] = {
    "record.corrected": "A memory was corrected.",
    "record.confirmed": "A memory was confirmed.",
    "record.forgotten": "A memory was forgotten, with what was derived from it.",
    "record.expired": "Memories came to the end of their time.",
    "record.erased": "An erasure took a memory.",
    "record.undone": "A correction, a forgetting or another act was undone.",
    "review.waiting": "Something waits for a person to look at it.",
    "review.approved": "What waited was approved.",
    "review.rejected": "What waited was rejected.",
    "quarantine.placed": "What one key or one run wrote is out of use.",
    "quarantine.lifted": "What was out of use is in use again.",
    "quarantine.rolled-back": "What one key or one run wrote was rolled back.",
    "fact.superseded": "A fact has a new revision.",
    "fact.deleted": "A fact was deleted.",
    "fact.verified": "A person found a fact right.",
    "fact.destroyed": "Facts past their retention were destroyed.",
    "hold.placed": "A legal hold was placed.",
    "hold.release-requested": "Somebody asks for a legal hold's release.",
    "hold.released": "A legal hold was released.",
    "erasure.requested": "An erasure was asked for.",
    "erasure.done": "An erasure came to its end.",
    "run.verification-failed": "A run, or the log of seals, does not verify.",
    "key.created": "An API key was made.",
    "key.rotated": "An API key was replaced.",
    "key.revoked": "An API key was revoked.",
}
"""Name → when it is told."""
PING: Final = "webhook.ping"
"""Told to one webhook alone, when an admin tries it."""

# What the record of governance calls it → our name, and which fields are told. A field that is not there is left out.
_OF_GOVERNANCE: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "record.corrected": (
        "record.corrected",
        (*_RECORD, "route", "corrects", "supersedes", "expired"),
    ),
    "record.confirmed": ("record.confirmed", _RECORD),
    "record.forgotten": ("record.forgotten", (*_RECORD, "tombstoned", "held")),
    "record.expired": ("record.expired", ("recordIds", "recordCount", "reason")),
    "record.erased": ("record.erased", ("recordId", "erasureId", "tombstoned")),
    "record.undone": ("record.undone", ("receipt", "undoes", "recordIds", "restored")),
    "record.proposed": ("review.waiting", ("act", "pendingId", "recordId", "reason")),
    "fact.proposed": ("review.waiting", ("factId", "reason")),
    **dict.fromkeys(
        ("record.approved", "fact.approved", "review.approved"), ("review.approved", _REVIEWED)
    ),
    **dict.fromkeys(
        ("record.rejected", "fact.rejected", "review.rejected"), ("review.rejected", _REVIEWED)
    ),
    "quarantine.placed": ("quarantine.placed", ("quarantineId",)),
    "quarantine.lifted": ("quarantine.lifted", ("quarantineId",)),
    "quarantine.rolled-back": ("quarantine.rolled-back", ("quarantineId",)),
    "fact.verified": ("fact.verified", ("factId", "version")),
    "sweep.batch": ("fact.destroyed", ("sweepId", "factIds")),
    "hold.placed": (
        "hold.placed",
        ("holdId", "facts", "records", "futureItems", "factIds", "recordIds"),
    ),
    "hold.release-requested": ("hold.release-requested", ("holdId",)),
    "hold.released": ("hold.released", ("holdId", "counts")),
    "erasure.requested": ("erasure.requested", ("erasureId", "selectorKind")),
    "erasure.completed": ("erasure.done", ("erasureId", "selectorKind", "counts")),
    "log.verified": (
        "run.verification-failed",
        ("runId", "state", "firstBad", "verificationId", "tampered"),
    ),
    "seal.refused": ("run.verification-failed", ("runId", "firstBad")),
    "key.created": ("key.created", ("prefix", "role")),
    "key.rotated": ("key.rotated", ("prefix", "newPrefix", "role")),
    "key.revoked": ("key.revoked", ("prefix", "role")),
}

_TELL = """
WITH listening AS (
  SELECT id FROM webhook
  WHERE tenant_id = %(tenant)s::uuid AND disabled_because IS NULL
    AND CASE WHEN %(only)s::uuid IS NULL THEN events = '{}' OR %(type)s::text = ANY (events) ELSE id = %(only)s::uuid END
  -- One that is being removed is waited for, so that no act fails over it.
  FOR KEY SHARE
), told AS (
  INSERT INTO webhook_event (tenant_id, id, type, occurred_at, body_text)
  SELECT %(tenant)s::uuid, %(event)s::text, %(type)s::text, %(at)s::timestamptz, %(body)s::text
  WHERE EXISTS (SELECT FROM listening)
), queued AS (
  INSERT INTO webhook_delivery (tenant_id, id, webhook_id, event_id)
  SELECT %(tenant)s::uuid, gen_random_uuid(), id, %(event)s::text FROM listening
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT FROM queued)
            THEN defer_work('deliver-webhooks', %(queue)s::text, %(urgency)s::int, %(tenant)s::uuid) END
"""


def tell_of_governance(principal: Principal, payload: Mapping[str, Any]) -> None:
    """Queue what a governance entry says for those who listen, where it is an event of theirs; in the caller's transaction."""
    known = _OF_GOVERNANCE.get(payload["type"])
    if known is None or (payload["type"] == "log.verified" and payload["state"] != "tampered"):
        return
    name, fields = known
    tell(principal, name, {field: payload[field] for field in fields if field in payload})


def tell(
    principal: Principal, name: str, ids: Mapping[str, Any], *, only: UUID | None = None
) -> str:
    """Queue one event in the caller's transaction; its id. `only`: for this webhook alone."""
    event_id, at = f"evt_{uuid4().hex}", datetime.now(UTC)
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "type": name,
        "event": event_id,
        "at": at,
        "body": body_of(principal.tenant_slug, name, at, ids),
        "only": only,
        "queue": WORKS["deliver-webhooks"].queue,
        "urgency": WORKS["deliver-webhooks"].urgency,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TELL, parameters)
    return event_id


def body_of(tenant_slug: str, name: str, at: datetime, ids: Mapping[str, Any]) -> str:
    """What is sent, byte for byte, at each try."""
    said = {"type": name, "timestamp": instant_text(at), "data": {"tenantId": tenant_slug, **ids}}
    return canonical(json.loads(json.dumps(said)))
