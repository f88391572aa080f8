"""A run's entries as pages show them: everything but the payload, by sequence, in either direction, under the read guard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from corrections.run_standing import Standing, standing
from corrections.words import OF_THE_SEALS, Words, kind_words
from memory.access import Principal
from memory.hashing import tag
from memory.log_pseudonyms import actors_to_find
from memory.queries.run_log import STAMP, log_guard

_COLUMNS = f"""
e.id, e.sequence, e.kind, e.actor, {STAMP.format(column="e.recorded_at")}, octet_length(e.payload_text),
e.payload_erased_at IS NOT NULL, e.caused_by, e.entry_hash, e.writer
"""


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One entry without its payload. `at`: RFC 3339 text; `payload_bytes` is None for none."""

    id: str
    sequence: int
    kind: str
    actor: str | None
    at: str
    payload_bytes: int | None
    is_erased: bool
    caused_by: str | None
    entry_hash: str
    writer: str

    @property
    def kind_words(self) -> Words:
        return kind_words(self.kind)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run besides its entries."""

    run_id: str
    entry_count: int
    next_sequence: int
    head_hash: str
    first_at: str
    last_at: str
    state: str
    verified_to: int | None
    first_bad_sequence: int | None
    first_bad_class: str | None
    verified_at: str | None

    @property
    def standing(self) -> Standing:
        """What the last verification found, and which entries that is not about."""
        return standing(
            state=self.state,
            verified_to=self.verified_to,
            verified_at=self.verified_at,
            next_sequence=self.next_sequence,
        )

    @property
    def is_bad_elsewhere(self) -> bool:
        """Whether what is wrong is in the log of seals, so that `first_bad_sequence` is a leaf of it and no entry."""
        return self.first_bad_class in OF_THE_SEALS


def _line(row: Sequence[Any]) -> EntryLine:
    values = [*row[:8], tag(bytes(row[8] or b"")), row[9]]
    return EntryLine(*values)


def _conditions(
    principal: Principal, run_id: str, kind: str | None, actor: str | None
) -> tuple[str, dict[str, Any]]:
    rule, parameters = log_guard(principal, "e")
    where = f"e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND {rule}"
    if kind:
        where += " AND e.kind = %(kind)s::text"
    if actor:
        where += " AND e.actor = ANY(%(actor)s::text[])"
    actors = actors_to_find(principal, actor) if actor else []
    given = {"tenant": principal.tenant_id, "run": run_id, "kind": kind, "actor": actors}
    return where, {**given, **parameters}


def entry_lines(
    principal: Principal,
    run_id: str,
    *,
    kind: str | None = None,
    actor: str | None = None,
    after: int | None = None,
    before: int | None = None,
    limit: int,
) -> list[EntryLine]:
    """At most `limit` entries after (or before) a sequence, always in ascending order."""
    where, parameters = _conditions(principal, run_id, kind, actor)
    bound, order = "", "ASC"
    if before is not None:
        bound, order = " AND e.sequence < %(bound)s::bigint", "DESC"
    elif after is not None:
        bound = " AND e.sequence > %(bound)s::bigint"
    parameters |= {"bound": before if before is not None else after, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM log_entry e WHERE {where}{bound} ORDER BY e.sequence {order} LIMIT %(limit)s::int",
            parameters,
        )
        lines = [_line(row) for row in cursor.fetchall()]
    return lines if order == "ASC" else lines[::-1]


def neighbours(
    principal: Principal,
    run_id: str,
    sequence: int,
    *,
    kind: str | None = None,
    actor: str | None = None,
) -> tuple[int | None, int | None]:
    """The sequences before and after an entry, within the filter."""
    where, parameters = _conditions(principal, run_id, kind, actor)
    parameters["sequence"] = sequence
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT e.sequence FROM log_entry e WHERE {where} AND e.sequence < %(sequence)s::bigint "
            f"ORDER BY e.sequence DESC LIMIT 1), (SELECT e.sequence FROM log_entry e WHERE {where} "
            "AND e.sequence > %(sequence)s::bigint ORDER BY e.sequence LIMIT 1)",
            parameters,
        )
        row = cursor.fetchone()
    return row[0], row[1]


def run_facts(principal: Principal, run_id: str) -> RunFacts | None:
    """The run's head and what the last verification found; None for a run without a head."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT h.run_id, h.entry_count, h.next_sequence, h.head_hash, {STAMP.format(column="h.first_at")},
                   {STAMP.format(column="h.last_at")}, coalesce(v.state, 'unverified'), v.verified_to,
                   v.first_bad_sequence, v.first_bad_class, {STAMP.format(column="v.verified_at")}
            FROM run_head h LEFT JOIN run_verification v ON v.tenant_id = h.tenant_id AND v.run_id = h.run_id
            WHERE h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
            """,
            {"tenant": principal.tenant_id, "run": run_id},
        )
        row = cursor.fetchone()
    if row is None:
        return None
    values = [*row[:3], tag(bytes(row[3] or b"")), *row[4:]]
    return RunFacts(*values)


def named_after(principal: Principal, run_id: str, sequence: int) -> str | None:
    """The hash by which the next entry, or after the last one the run's head, names an entry."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT coalesce(
              (SELECT e.prev_hash FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
               AND e.sequence = %(sequence)s::bigint + 1 LIMIT 1),
              (SELECT h.head_hash FROM run_head h WHERE h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
               AND h.next_sequence = %(sequence)s::bigint + 1))
            """,
            {"tenant": principal.tenant_id, "run": run_id, "sequence": sequence},
        )
        [named] = cursor.fetchone()
    return None if named is None else tag(bytes(named))


@dataclass(frozen=True, slots=True)
class Covered:
    """What stands outside the database for a run: `to` is the last entry under a signed head, −1 for none."""

    to: int
    checkpoint: int | None
    anchored_at: str | None


def covered(principal: Principal, run_id: str) -> Covered:
    """Up to where signed heads cover the run, and the first of them that covers all of that."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT l.to_sequence, c.size, (
              SELECT {STAMP.format(column="min(a.anchored_at)")} FROM anchor a
              WHERE a.tenant_id = %(tenant)s::uuid AND a.size = c.size)
            FROM seal_leaf l
            CROSS JOIN LATERAL (
              SELECT size FROM checkpoint
              WHERE tenant_id = %(tenant)s::uuid AND size > l.leaf_index ORDER BY size LIMIT 1) c
            WHERE l.tenant_id = %(tenant)s::uuid AND l.run_id = %(run)s::text AND l.leaf_type = 'seal/v1'
            ORDER BY l.to_sequence DESC LIMIT 1
            """,
            {"tenant": principal.tenant_id, "run": run_id},
        )
        row = cursor.fetchone()
    return Covered(-1, None, None) if row is None else Covered(*row)


def count_of_runs(principal: Principal, *, most: int) -> int:
    """How many runs the tenant has, counted no further than `most`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 FROM run_head WHERE tenant_id = %(tenant)s::uuid LIMIT %(most)s::int) r",
            {"tenant": principal.tenant_id, "most": most},
        )
        return int(cursor.fetchone()[0])


def count_of_newer_runs(principal: Principal, since: str, *, most: int) -> int:
    """How many runs began after a moment."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 FROM run_head WHERE tenant_id = %(tenant)s::uuid "
            "AND date_trunc('milliseconds', first_at) > %(since)s::timestamptz LIMIT %(most)s::int) r",
            {"tenant": principal.tenant_id, "since": since, "most": most},
        )
        return int(cursor.fetchone()[0])


def count_of_entries(
    principal: Principal,
    run_id: str,
    *,
    kind: str | None = None,
    actor: str | None = None,
    after: int | None = None,
    most: int,
) -> int:
    """How many entries match, counted no further than `most`."""
    where, parameters = _conditions(principal, run_id, kind, actor)
    bound = " AND e.sequence > %(after)s::bigint" if after is not None else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM log_entry e WHERE {where}{bound} LIMIT %(most)s::int) r",
            {**parameters, "after": after, "most": most},
        )
        return int(cursor.fetchone()[0])
