"""Who looked: sign-ins, reveals, exports and verifications, from the tenant's own log of governance, newest first."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memory.access import Principal
from memory.models.log import GOVERNANCE_RUN
from memory.queries.run_log import STAMP

ACTS: dict[str, Promise] = {
    "member.signed-in": _("Signed in"),
    "entry.revealed": _("Revealed an entry"),
    "entries.revealed": _("Revealed entries by the API"),
    "record.revealed": _("Revealed a memory"),
    "fact.revealed": _("Revealed a fact"),
    "log.exported": _("Exported a run"),
    "evidence.exported": _("Exported evidence"),
    "access-log.exported": _("Exported the access log"),
    "memory.exported": _("Downloaded a person's memory"),
    "log.verified": _("Verified"),
    "page-link.made": _("Made a page link"),
}
"""Types of governance entries that tell of looking, rather than of changing."""


@dataclass(frozen=True, slots=True)
class Access:
    """One act of looking. `details`: the entry's payload, which holds ids and codes only."""

    sequence: int
    at: str
    writer: str
    act: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AccessWanted:
    """Which lines: one filter for the page, its pages and its file. `run_id`: the run that was looked at."""

    act: str | None = None
    run_id: str | None = None
    writer: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def accesses(
    principal: Principal, wanted: AccessWanted, *, before: int | None = None, limit: int
) -> list[Access]:
    """At most `limit`, newest first, those before a sequence."""
    where, parameters = _where(principal, wanted)
    if before is not None:
        where += " AND e.sequence < %(before)s::bigint"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT e.sequence, {STAMP.format(column="e.recorded_at")}, e.writer, e.payload_text
            FROM log_entry e WHERE {where} ORDER BY e.sequence DESC LIMIT %(limit)s::int
            """,
            {**parameters, "before": before, "limit": limit},
        )
        rows = cursor.fetchall()
    found = []
    for sequence, at, who, payload_text in rows:
        details = json.loads(payload_text)
        found.append(Access(sequence, at, who, details.pop("type"), details))
    return found


def count_of_accesses(principal: Principal, wanted: AccessWanted, *, most: int) -> int:
    """How many lines there are, counted no further than `most`."""
    where, parameters = _where(principal, wanted)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM log_entry e WHERE {where} LIMIT %(most)s::int) a",
            {**parameters, "most": most},
        )
        return int(cursor.fetchone()[0])


def _where(principal: Principal, wanted: AccessWanted) -> tuple[str, dict[str, Any]]:
    where = (
        "e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.payload_text IS NOT NULL"
        " AND e.payload_text::jsonb ->> 'type' = ANY(%(acts)s::text[])"
    )
    if wanted.run_id:
        where += " AND e.payload_text::jsonb ->> 'runId' = %(of)s::text"
    if wanted.writer:
        where += " AND e.writer = %(writer)s::text"
    if wanted.since is not None:
        where += " AND e.recorded_at >= %(since)s::timestamptz"
    if wanted.until is not None:
        where += " AND e.recorded_at < %(until)s::timestamptz"
    return where, {
        "tenant": principal.tenant_id,
        "run": GOVERNANCE_RUN,
        "of": wanted.run_id,
        "acts": [wanted.act] if wanted.act else list(ACTS),
        "writer": wanted.writer,
        "since": wanted.since,
        "until": wanted.until,
    }
