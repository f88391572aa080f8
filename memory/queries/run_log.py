"""Reading the log: a run's entries in order, one entry, and run heads; all under the read guard, all bounded.

Runs whose id starts with `kindmem.` are the server's own record of governance: admins, auditors and owners read them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import READS_ALL, Principal, read_guard
from memory.errors import LogNotFound
from memory.hashing import tag
from memory.integrity.states import entries_since
from memory.log_entry import StoredEntry
from memory.log_pseudonyms import actors_to_find, guard_parameters

# A time that somebody with access to the database put where none can be written is shown as the last year there is.
STAMP = """CASE WHEN {column} >= '1000-01-01 00:00:00+00' AND {column} < '9999-01-01 00:00:00+00'
  THEN to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  WHEN {column} IS NOT NULL THEN '9999-01-01T00:00:00.000Z' END"""
ENTRY_COLUMNS = f"""
e.id, e.run_id, e.sequence, e.kind, e.scope_text, e.actor, {STAMP.format(column="e.recorded_at")}, e.payload_text,
e.payload_salt, e.content_hash, e.prev_hash, e.entry_hash, e.hash_version, e.caused_by,
{STAMP.format(column="e.payload_erased_at")}, e.writer
"""


def log_guard(principal: Principal, alias: str) -> tuple[str, dict[str, Any]]:
    """The read guard, and the server's own runs for those who govern."""
    rule, parameters = read_guard(principal, alias)
    parameters = guard_parameters(principal, parameters)
    if principal.role not in READS_ALL and principal.kind != "system":
        rule = f"({rule} AND NOT starts_with({alias}.run_id, 'kindmem.'))"
    return rule, parameters


def stored_entry(row: Sequence[Any]) -> StoredEntry:
    """An entry from a row of ENTRY_COLUMNS, which are in the order of its fields."""
    values = list(row)
    values[9:12] = (None if value is None else bytes(value) for value in row[9:12])
    return StoredEntry(*values)


def entries_by_ids(tenant_id: UUID, ids: Sequence[str]) -> dict[str, StoredEntry]:
    """Entries with these ids, whoever may read them: for the server's own comparisons only."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {ENTRY_COLUMNS} FROM log_entry e "
            "WHERE e.tenant_id = %(tenant)s::uuid AND e.id = ANY(%(ids)s::text[])",
            {"tenant": tenant_id, "ids": list(ids)},
        )
        return {row[0]: stored_entry(row) for row in cursor.fetchall()}


def entry_by_id(principal: Principal, entry_id: str) -> StoredEntry:
    """One entry. Raises LogNotFound."""
    rule, parameters = log_guard(principal, "e")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {ENTRY_COLUMNS} FROM log_entry e "
            f"WHERE e.tenant_id = %(tenant)s::uuid AND e.id = %(id)s::text AND {rule}",
            {"tenant": principal.tenant_id, "id": entry_id, **parameters},
        )
        row = cursor.fetchone()
    if row is None:
        raise LogNotFound
    return stored_entry(row)


def run_log(
    principal: Principal,
    run_id: str,
    *,
    since_sequence: int = 0,
    kind: str | None = None,
    actor: str | None = None,
    limit: int,
) -> list[StoredEntry]:
    """Readable entries of a run from `since_sequence` on, in order, at most `limit`.

    Raises LogNotFound when the run has no entry that the caller may read.
    """
    rule, parameters = log_guard(principal, "e")
    filters = ""
    if kind is not None:
        filters += " AND e.kind = %(kind)s::text"
    if actor is not None:
        filters += " AND e.actor = ANY(%(actor)s::text[])"
    given = {
        "tenant": principal.tenant_id,
        "run": run_id,
        "since": since_sequence,
        "kind": kind,
        "actor": actors_to_find(principal, actor) if actor is not None else [],
        "limit": limit,
        **parameters,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {ENTRY_COLUMNS} FROM log_entry e "
            "WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.sequence >= %(since)s::bigint "
            f"AND {rule}{filters} ORDER BY e.sequence LIMIT %(limit)s::int",
            given,
        )
        entries = [stored_entry(row) for row in cursor.fetchall()]
        if not entries:
            _check_run_is_readable(cursor, principal, run_id)
    return entries


def _check_run_is_readable(cursor: Any, principal: Principal, run_id: str) -> None:
    rule, parameters = log_guard(principal, "e")
    # Who reads everything also reads that a run has a head and no entries, or a seal and neither.
    or_head = (
        " OR EXISTS (SELECT 1 FROM run_head h WHERE h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text)"
        " OR EXISTS (SELECT 1 FROM seal_leaf l WHERE l.tenant_id = %(tenant)s::uuid AND l.run_id = %(run)s::text)"
        if rule == "TRUE"
        else ""
    )
    cursor.execute(
        "SELECT EXISTS (SELECT 1 FROM log_entry e "
        f"WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND {rule}){or_head}",
        {"tenant": principal.tenant_id, "run": run_id, **parameters},
    )
    if not cursor.fetchone()[0]:
        raise LogNotFound


def check_run_is_readable(principal: Principal, run_id: str) -> None:
    """Raises LogNotFound for a run without an entry that the caller may read."""
    with connection.cursor() as cursor:
        _check_run_is_readable(cursor, principal, run_id)


def has_unreadable_entry(principal: Principal, run_id: str) -> bool:
    """Whether the run holds an entry that the caller may not read."""
    rule, parameters = log_guard(principal, "e")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid "
            f"AND e.run_id = %(run)s::text AND ({rule}) IS NOT TRUE)",
            {"tenant": principal.tenant_id, "run": run_id, **parameters},
        )
        return bool(cursor.fetchone()[0])


def run_heads(
    principal: Principal,
    *,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    actor: str | None = None,
    kind: str | None = None,
    after: tuple[str, str] | None = None,
    limit: int,
) -> list[dict[str, Any]]:
    """Heads of runs with an entry that the caller may read, newest start first, at most `limit`.

    Ordered by when a run began, which never changes, so that no run is skipped or repeated while runs grow. `since` and `until`
    bound a run's last and first entry: the runs that were active in between. Filters by actor and kind look at readable entries;
    `status` is what the last verification found, `unverified` where there was none.
    """
    rule, parameters = log_guard(principal, "e")
    filters = ""
    if actor is not None:
        filters += " AND e.actor = ANY(%(actor)s::text[])"
    if kind is not None:
        filters += " AND e.kind = %(kind)s::text"
    shown = ""
    if rule != "TRUE" or filters:  # who reads everything also sees a run that lost its entries
        shown = (
            " AND EXISTS (SELECT 1 FROM log_entry e"
            f" WHERE e.tenant_id = h.tenant_id AND e.run_id = h.run_id AND {rule}{filters})"
        )
    bounds = ""
    if since is not None:
        bounds += " AND h.last_at >= %(since)s::timestamptz"
    if until is not None:
        bounds += " AND h.first_at <= %(until)s::timestamptz"
    if status is not None:
        bounds += " AND coalesce(v.state, 'unverified') = %(status)s::text"
    if after is not None:
        bounds += " AND (h.first_at, h.run_id) < (%(after_at)s::timestamptz, %(after_run)s::text)"
    given = {
        "tenant": principal.tenant_id,
        "status": status,
        "since": since,
        "until": until,
        "actor": actors_to_find(principal, actor) if actor is not None else [],
        "kind": kind,
        "after_at": after[0] if after else None,
        "after_run": after[1] if after else None,
        "limit": limit,
        **parameters,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT h.run_id, h.entry_count, {STAMP.format(column="h.first_at")}, {STAMP.format(column="h.last_at")},
                   h.head_hash, v.state, v.verified_to, {STAMP.format(column="v.verified_at")}, h.next_sequence
            FROM run_head h
            LEFT JOIN run_verification v ON v.tenant_id = h.tenant_id AND v.run_id = h.run_id
            WHERE h.tenant_id = %(tenant)s::uuid{bounds}{shown}
            ORDER BY h.first_at DESC, h.run_id DESC LIMIT %(limit)s::int
            """,
            given,
        )
        return [_head(row) for row in cursor.fetchall()]


def _head(row: Sequence[Any]) -> dict[str, Any]:
    run, count, first, last, head, state, verified_to, verified_at, next_sequence = row
    integrity: dict[str, Any] = {"state": "unverified"}
    if state is not None:
        since = entries_since(state, verified_to, next_sequence)
        integrity = {
            "state": state,
            "verifiedTo": verified_to,
            "verifiedAt": verified_at,
            "entriesSince": since,
        }
    return {
        "runId": run,
        "entries": count,
        "firstAt": first,
        "lastAt": last,
        **({} if head is None else {"headHash": tag(bytes(head))}),
        "integrity": integrity,
    }
