"""How long a fact stays, in one place: the ladder that says why it is kept and until when, and what is due to go.

Highest first: a hold, a lawful erasure, the fact's own keepUntil, its own keepDays, its type's policy, the tenant's default. The
windows themselves are `fact_windows` in SQL, kept on the fact's head at each write and each change of policy; here they are read,
explained, simulated, and turned into what a sweep takes. An unverified fact stops being read at the end of its window, but a keep
window that is longer keeps it from being destroyed until its own end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal, read_guard
from memory.destruction import Due
from memory.errors import FactNotFound
from memory.fact_shape import Retention
from memory.hold_naming import FACT_IS_HELD
from memory.instants import instant_text

Branch = Literal["expired", "deleted"]
BRANCHES: tuple[Branch, ...] = ("expired", "deleted")
MOST_DAYS = 36_500

# Days of grace between an API delete and the sweep that may take it; a setting of the tenant.
_GRACE = (
    "coalesce((SELECT (n.settings -> 'retention' ->> 'graceDays')::int FROM tenant n"
    " WHERE n.id = %(tenant)s::uuid), 0) * interval '24 hours'"
)
_NOT_KEPT = "(f.keep_ends_at IS NULL OR f.keep_ends_at <= statement_timestamp())"
_COLUMN = {"expired": "f.expires_at", "deleted": "f.deleted_at"}
IS_DUE = {
    "expired": f"f.expires_at <= statement_timestamp() AND {_NOT_KEPT}",
    "deleted": f"f.deleted_at <= statement_timestamp() - {_GRACE} AND {_NOT_KEPT}"
    " AND (f.expires_at IS NULL OR f.expires_at > statement_timestamp())",
}
# Whom an open erasure is about: it takes the fact itself, whole and with its evidence, or waits for the release of a hold.
IS_ERASING = """EXISTS (SELECT 1 FROM erasure e WHERE e.tenant_id = %(tenant)s::uuid AND e.status <> 'completed'
  AND CASE e.selector_kind WHEN 'fact' THEN e.selector_id = f.id WHEN 'conversation' THEN e.selector_id = f.thread_id
      ELSE e.selector_id IN (f.user_id, f.participant_id) OR EXISTS (
        SELECT 1 FROM fact_subject s
        WHERE s.tenant_id = %(tenant)s::uuid AND s.fact_id = f.id AND s.subject_id = e.selector_id) END)"""
# One that a hold stops may wait for years: what is due meanwhile, and not held, goes.
_IS_TAKEN = IS_ERASING.replace(
    "e.status <> 'completed'", "e.status <> 'completed' AND e.reaches_before IS NULL"
)
_DUE = {
    branch: f"FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND {condition} AND NOT {FACT_IS_HELD} AND NOT {_IS_TAKEN}"
    for branch, condition in IS_DUE.items()
}
"""What a sweep takes and a dry run counts: one question for both."""
RULE = """CASE WHEN f.deleted_at IS NOT NULL THEN 'deleted'
     WHEN f.unverified_until <= f.expires_at THEN 'unverified-window'
     WHEN f.keep_ends_at = f.expires_at THEN f.keep_reason
     ELSE 'delete-after-days' END"""


def due_facts(
    tenant_id: UUID, branch: Branch, *, after: tuple[datetime, str] | None, limit: int, lock: bool
) -> list[Due]:
    """The next facts that a sweep destroys, in order of when they became due; never a held one, nor one that is being erased.

    lock: take their heads, and pass over those that somebody else has; they are due next time too.
    """
    column = _COLUMN[branch]
    position = (
        ""
        if after is None
        else f" AND ({column}, f.id) > (%(after_at)s::timestamptz, %(after_id)s::text)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.id, {RULE}, {column}, f.type {_DUE[branch]}{position} ORDER BY {column}, f.id LIMIT %(limit)s::int"
            + (" FOR UPDATE SKIP LOCKED" if lock else ""),
            {
                "tenant": tenant_id,
                "limit": limit,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
            },
        )
        return [Due(*row) for row in cursor.fetchall()]


def count_due(tenant_id: UUID, branch: Branch) -> list[tuple[str, str, int]]:
    """How many facts of which rule and type the same question finds now: (rule, type, facts)."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT rule, type, count(*) FROM (SELECT {RULE} AS rule, f.type {_DUE[branch]}) d GROUP BY rule, type",
            {"tenant": tenant_id},
        )
        return cursor.fetchall()


def held_and_due(tenant_id: UUID) -> int:
    """How many facts a sweep would destroy if no hold kept them."""
    return _count_due(tenant_id, FACT_IS_HELD)


def erasing_and_due(tenant_id: UUID) -> int:
    """How many facts a sweep leaves to open erasures."""
    return _count_due(tenant_id, f"NOT {FACT_IS_HELD} AND {_IS_TAKEN}")


def _count_due(tenant_id: UUID, condition: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT "
            + " + ".join(
                f"(SELECT count(*) FROM fact f WHERE f.tenant_id = %(tenant)s::uuid AND {IS_DUE[branch]}"
                f" AND {condition})"
                for branch in BRANCHES
            ),
            {"tenant": tenant_id},
        )
        return int(cursor.fetchone()[0])


Windows = tuple[int | None, int | None]
"""keepDays and deleteAfterDays, in days from a fact's first write."""


@dataclass(frozen=True, slots=True)
class RetentionBasis:
    """Why a fact is kept and until when. `rule`: the highest rung that speaks; `until` None: nothing ends it.

    read_until: from then reads no longer see it; kept_until: until then nobody deletes it; hold_ids: the holds that keep it,
    whatever else is said. What the lower rungs say, whether they decide or not: own, type_windows, default_windows.
    """

    fact_id: str
    rule: str
    until: datetime | None
    read_until: datetime | None
    kept_until: datetime | None = None
    hold_ids: Sequence[str] = ()
    unverified_until: datetime | None = None
    own: Retention = field(default_factory=Retention)
    type_windows: Windows = (None, None)
    default_windows: Windows = (None, None)

    @property
    def sentence(self) -> str:
        """ "Kept because …, until …", for people."""
        until = "" if self.until is None else f", until {instant_text(self.until)}"
        if self.hold_ids:
            count = len(self.hold_ids)
            holds = "a legal hold keeps" if count == 1 else f"{count} legal holds keep"
            return (
                f"Kept because {holds} it, until {'it is' if count == 1 else 'all are'} released."
            )
        return f"Kept because {_BECAUSE[self.rule]}{until}.{self._what_when}"

    @property
    def _what_when(self) -> str:
        """What happens on which of two days, where they differ: from one on it may be deleted, from the other nobody reads it."""
        kept, read = self.kept_until, self.read_until
        if self.rule not in _WINDOWS_OF or kept is None or read is None or kept == read:
            return ""
        kept_text, read_text = instant_text(kept), instant_text(read)
        if kept < read:
            return (
                f" Until {kept_text} nobody can delete it; it is read until {read_text}, and the next sweep "
                "then destroys it."
            )
        return (
            f" It is read until {read_text}, and the first sweep after {kept_text} destroys it; until then "
            "nobody can delete it."
        )

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "factId": self.fact_id,
            "rule": "legal-hold" if self.hold_ids else self.rule,
            "until": None if self.hold_ids or self.until is None else instant_text(self.until),
            "readUntil": None if self.read_until is None else instant_text(self.read_until),
            "keptUntil": None if self.kept_until is None else instant_text(self.kept_until),
            "unverifiedUntil": None
            if self.unverified_until is None
            else instant_text(self.unverified_until),
            "holds": list(self.hold_ids) or None,
            "sentence": self.sentence,
        }
        return {name: value for name, value in said.items() if value is not None}


_BECAUSE = {
    "erasure": "an erasure is taking it away",
    "fact-keep-until": "the fact itself says keepUntil",
    "fact-keep-days": "the fact itself says keepDays",
    "type-policy": "the policy of its type says so",
    "tenant-default": "the tenant's default says so",
    "deleted": "the next sweep has not come yet; it was deleted",
    "unverified-window": "nobody has checked it yet; its window is open",
    "none": "no rule ends it",
}

_WINDOWS_OF = frozenset({"fact-keep-until", "fact-keep-days", "type-policy", "tenant-default"})

_BASIS = f"""
SELECT f.keep_ends_at, f.expires_at, f.unverified_until, f.deleted_at, r.retention_text,
       p.keep_days, p.delete_after_days,
       (n.settings -> 'retention' ->> 'keepDays')::int, (n.settings -> 'retention' ->> 'deleteAfterDays')::int,
       ARRAY(SELECT k.hold_id::text FROM fact_hold k WHERE k.tenant_id = f.tenant_id AND k.fact_id = f.id
             UNION SELECT h.id::text FROM legal_hold h
             WHERE h.tenant_id = %(tenant)s::uuid AND h.taken_in_at IS NULL AND h.released_at IS NULL AND hold_names_fact(h, f)
               AND (h.covers_future OR h.named_until IS NULL OR f.created_at < h.named_until)
             ORDER BY 1 LIMIT 100),
       {FACT_IS_HELD}, {IS_ERASING}
FROM fact f
JOIN tenant n ON n.id = f.tenant_id
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
LEFT JOIN fact_type p ON p.tenant_id = f.tenant_id AND p.type = f.type
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text AND f.review IS NULL AND {{guard}}
"""


def retention_basis(principal: Principal, fact_id: str) -> RetentionBasis:
    """The ladder for one fact that the caller may read, a deleted one too. Raises FactNotFound."""
    guard, parameters = read_guard(principal, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            _BASIS.format(guard=guard), {"tenant": principal.tenant_id, "id": fact_id, **parameters}
        )
        row = cursor.fetchone()
    if row is None:
        raise FactNotFound
    (
        keep_ends,
        expires,
        unverified,
        deleted,
        own_text,
        type_keep,
        type_delete,
        default_keep,
        default_delete,
        holds,
        is_held,
        erasing,
    ) = row
    own = Retention.of_text(own_text)
    type_windows, defaults = (type_keep, type_delete), (default_keep, default_delete)
    if erasing:
        rule = "erasure"
    elif own.keep_until is not None:
        rule = "fact-keep-until"
    elif own.keep_days is not None:
        rule = "fact-keep-days"
    elif any(type_windows):
        rule = "type-policy"
    elif any(defaults):
        rule = "tenant-default"
    else:
        rule = "unverified-window" if unverified is not None else "none"
    until = max((one for one in (keep_ends, expires) if one is not None), default=None)
    if erasing:
        until = None
    elif deleted is not None:
        rule, until = ("deleted", None) if keep_ends is None else (rule, keep_ends)
    return RetentionBasis(
        fact_id=fact_id,
        rule=rule,
        until=until,
        read_until=deleted if deleted is not None else expires,
        kept_until=keep_ends if deleted is None else None,
        hold_ids=holds if is_held else (),
        unverified_until=unverified,
        own=own,
        type_windows=type_windows,
        default_windows=defaults,
    )


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a policy would do if it applied now. `due`: facts that the next sweep would take; `due_now`: without the change."""

    facts: int
    changed: int
    due: int
    due_now: int
    held: int


_POLICY_FACTS = """
FROM fact f
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
LEFT JOIN fact_type p ON p.tenant_id = f.tenant_id AND p.type = f.type,
LATERAL fact_windows(f.created_at, NULL, NULL,
  CASE WHEN %(type)s::text IS NULL THEN p.keep_days ELSE %(keep)s::int END,
  CASE WHEN %(type)s::text IS NULL THEN p.delete_after_days ELSE %(delete)s::int END,
  CASE WHEN %(type)s::text IS NULL THEN %(keep)s::int ELSE %(tenant_keep)s::int END,
  CASE WHEN %(type)s::text IS NULL THEN %(delete)s::int ELSE %(tenant_delete)s::int END,
  f.unverified_until) w
WHERE f.tenant_id = %(tenant)s::uuid AND f.deleted_at IS NULL AND r.retention_text IS NULL
  AND (%(type)s::text IS NULL OR f.type = %(type)s::text)
"""
_CHANGES = (
    "(f.keep_ends_at, f.keep_reason, f.expires_at) IS DISTINCT FROM"
    " (w.keep_ends_at, w.keep_reason, w.expires_at)"
)
_WOULD_GO = "w.expires_at <= now() AND (w.keep_ends_at IS NULL OR w.keep_ends_at <= now())"
_SIMULATE = f"""
SELECT count(*), count(*) FILTER (WHERE {_CHANGES}),
       count(*) FILTER (WHERE {_WOULD_GO} AND NOT {FACT_IS_HELD}),
       count(*) FILTER (WHERE f.expires_at <= now() AND (f.keep_ends_at IS NULL OR f.keep_ends_at <= now())
                              AND NOT {FACT_IS_HELD}),
       count(*) FILTER (WHERE {_WOULD_GO} AND {FACT_IS_HELD})
{_POLICY_FACTS}
"""
_APPLY = f"""
WITH due AS MATERIALIZED (
  SELECT f.id, w.keep_ends_at, w.keep_reason, w.expires_at {_POLICY_FACTS} AND {_CHANGES}
  ORDER BY f.id FOR UPDATE OF f
)
UPDATE fact f SET keep_ends_at = due.keep_ends_at, keep_reason = due.keep_reason, expires_at = due.expires_at
FROM due WHERE f.tenant_id = %(tenant)s::uuid AND f.id = due.id
"""


def _policy_parameters(
    tenant_id: UUID, type: str | None, keep_days: int | None, delete_after_days: int | None
) -> dict[str, Any]:
    keep, delete = (None, None) if type is None else default_windows(tenant_id)
    return {
        "tenant": tenant_id,
        "type": type,
        "keep": keep_days,
        "delete": delete_after_days,
        "tenant_keep": keep,
        "tenant_delete": delete,
    }


def default_windows(tenant_id: UUID) -> tuple[int | None, int | None]:
    """The tenant's default keepDays and deleteAfterDays."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (settings -> 'retention' ->> 'keepDays')::int, (settings -> 'retention' ->> 'deleteAfterDays')::int "
            "FROM tenant WHERE id = %s::uuid",
            [tenant_id],
        )
        keep, delete = cursor.fetchone()
    return keep, delete


def simulate(
    tenant_id: UUID, *, type: str | None, keep_days: int | None, delete_after_days: int | None
) -> Simulation:
    """What this policy would do to the facts that say nothing of their own. type None: the tenant's default."""
    with connection.cursor() as cursor:
        cursor.execute(_SIMULATE, _policy_parameters(tenant_id, type, keep_days, delete_after_days))
        return Simulation(*cursor.fetchone())


def apply_policy(
    tenant_id: UUID, *, type: str | None, keep_days: int | None, delete_after_days: int | None
) -> int:
    """Set anew the windows of the facts that this policy speaks for; how many changed. type None: the tenant's default."""
    with connection.cursor() as cursor:
        cursor.execute(_APPLY, _policy_parameters(tenant_id, type, keep_days, delete_after_days))
        return cursor.rowcount
