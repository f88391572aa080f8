"""Reading facts: one, a revision, as of a time, the history, a page; all under the read guard, all bounded.

Live is: not deleted, not past `expires_at`, not awaiting review. A current read sees live facts only. History (`version`,
`as_of`, revisions) also sees deleted ones, until the sweep; nothing sees one awaiting review, or a fact past its expiry, but
that those who govern see what a hold keeps, since somebody has to know what that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db import connection

from memory.access import Principal, Scope, read_guard
from memory.errors import FactNotFound
from memory.fact_shape import FactView
from memory.hold_naming import FACT_IS_HELD
from memory.search.visible import COLUMN_OF_SCOPE_KEY

MOST_REVISIONS = 1000

IS_STALE = (
    "s.ttl_seconds IS NOT NULL"
    " AND (s.last_verified_at IS NULL OR s.last_verified_at + s.ttl_seconds * interval '1 second' < statement_timestamp())"
)
COLUMNS = f"""
f.id, r.revision_id, f.type, f.scope_text, r.version, f.created_at, r.recorded_at, c.content_text, r.content_ref,
r.content_hash, r.size_bytes, r.retention_text, r.source_text, r.cause_ids, r.supersedes, r.trust, r.verified_by,
r.verified_at, r.attributed_kind, r.attributed_id, r.generated_run_id, r.subjects_text, r.valid_from, r.valid_until,
r.observed_at, r.invalidated_at, r.invalidated_by, r.invalidation_reason, f.expires_at, f.keep_ends_at, f.keep_reason,
f.unverified_until, coalesce(f.keep_ends_at > statement_timestamp(), false), f.hold_count > 0,
s.last_verified_at, s.etag, s.source_version, coalesce({IS_STALE}, false),
s.last_attempt_at, s.last_failure, e.model, e.model IS NULL AND t.fact_id IS NOT NULL
"""
# Freshness and index belong to the current revision of a fact that was not deleted.
JOINS = """
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id
LEFT JOIN fact_content c ON c.tenant_id = r.tenant_id AND c.fact_id = r.fact_id AND c.version = r.version
LEFT JOIN fact_freshness s ON s.tenant_id = r.tenant_id AND s.fact_id = r.fact_id AND r.invalidated_at IS NULL
LEFT JOIN fact_embedding e ON e.tenant_id = r.tenant_id AND e.fact_id = r.fact_id AND r.invalidated_at IS NULL
LEFT JOIN embedding_task t ON t.tenant_id = r.tenant_id AND t.fact_id = r.fact_id AND r.invalidated_at IS NULL
"""
READABLE = "f.review IS NULL AND (f.expires_at IS NULL OR f.expires_at > statement_timestamp())"
KEPT = f"f.review IS NULL AND (f.expires_at IS NULL OR f.expires_at > statement_timestamp() OR {FACT_IS_HELD})"
LIVE = f"f.deleted_at IS NULL AND {READABLE}"
AS_OF = "r.recorded_at <= %(as_of)s::timestamptz AND (r.invalidated_at IS NULL OR r.invalidated_at > %(as_of)s::timestamptz)"


def view_of(row: Sequence[Any]) -> FactView:
    """A fact from a row of COLUMNS."""
    values = list(row)
    values[9] = None if row[9] is None else bytes(row[9])
    values[13] = tuple(row[13])
    return FactView(*values)


def _one(principal: Principal, fact_id: str, condition: str, **more: Any) -> FactView:
    guard, parameters = read_guard(principal, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact f {JOINS} "
            f"WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text AND {condition} AND {guard}",
            {"tenant": principal.tenant_id, "id": fact_id, **more, **parameters},
        )
        row = cursor.fetchone()
    if row is None:
        raise FactNotFound
    return view_of(row)


def current_fact(principal: Principal, fact_id: str) -> FactView:
    """The current revision of a live fact. Raises FactNotFound."""
    return _one(principal, fact_id, f"{LIVE} AND r.version = f.current_version")


def fact_version(principal: Principal, fact_id: str, version: int) -> FactView:
    """One revision, of a deleted fact too. Raises FactNotFound."""
    return _one(principal, fact_id, f"{READABLE} AND r.version = %(version)s::int", version=version)


def fact_as_of(principal: Principal, fact_id: str, as_of: datetime) -> FactView:
    """The revision that was current at a time. Raises FactNotFound."""
    return _one(principal, fact_id, f"{READABLE} AND {AS_OF}", as_of=as_of)


def fact_revisions(
    principal: Principal,
    fact_id: str,
    *,
    before: int | None = None,
    limit: int = MOST_REVISIONS,
    if_kept: bool = False,
) -> list[FactView]:
    """The fact's revisions, newest first, those before a version, at most `limit`. Raises FactNotFound.

    if_kept: past its expiry too while a hold keeps it, for a caller who governs.
    """
    readable = KEPT if if_kept and principal.role in ("admin", "owner", "auditor") else READABLE
    guard, parameters = read_guard(principal, "f")
    earlier = "" if before is None else " AND r.version < %(before)s::int"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact f {JOINS} "
            f"WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text AND {readable} AND {guard}{earlier} "
            "ORDER BY r.version DESC LIMIT %(most)s::int",
            {
                "tenant": principal.tenant_id,
                "id": fact_id,
                "before": before,
                "most": limit,
                **parameters,
            },
        )
        found = [view_of(row) for row in cursor.fetchall()]
    if not found:
        raise FactNotFound
    return found


def facts_by_ids(principal: Principal, fact_ids: Sequence[str]) -> list[FactView]:
    """The current revisions of those of these facts that are live and readable, in the order of the ids."""
    guard, parameters = read_guard(principal, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS w (id, place) "
            f"JOIN fact f ON f.tenant_id = %(tenant)s::uuid AND f.id = w.id {JOINS} "
            f"WHERE {LIVE} AND r.version = f.current_version AND {guard} ORDER BY w.place",
            {"tenant": principal.tenant_id, "ids": list(fact_ids), **parameters},
        )
        return [view_of(row) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class FactFilters:
    """What a list shows. `scope` is partial. `container`: a project, or an org with the projects that facts name beside it."""

    type: str | None = None
    scope: Scope = field(default_factory=dict)
    container_kind: Literal["project", "org"] | None = None
    container_id: str | None = None
    as_of: datetime | None = None


def list_facts(
    principal: Principal,
    filters: FactFilters,
    *,
    after: tuple[str, str] | None = None,
    limit: int,
) -> list[FactView]:
    """Facts by first write, newest first: the current revision of each, or the one current at `as_of`.

    after: (createdAt, id) of the last fact of the page before.
    """
    guard, parameters = read_guard(principal, "f")
    conditions = ["f.tenant_id = %(tenant)s::uuid", guard, READABLE]
    if filters.as_of is None:
        conditions.append("f.deleted_at IS NULL")
        revision = "r.version = f.current_version"
    else:
        # Revisions follow each other without a gap, so one was current then.
        conditions.append(
            "f.created_at <= %(as_of)s::timestamptz AND (f.deleted_at IS NULL OR f.deleted_at > %(as_of)s::timestamptz)"
        )
        revision = AS_OF
    if filters.type is not None:
        conditions.append("f.type = %(type)s::text")
    for key, column in COLUMN_OF_SCOPE_KEY.items():
        if key in filters.scope:
            conditions.append(f"f.{column} = %(s_{column})s::text")
            parameters[f"s_{column}"] = filters.scope[key]
    if filters.container_kind == "project":
        conditions.append("f.project_id = %(container)s::text")
    elif filters.container_kind == "org":
        other_guard, _ = read_guard(principal, "o")
        conditions.append(
            "(f.org_id = %(container)s::text OR f.project_id IN ("
            "SELECT o.project_id FROM fact o WHERE o.tenant_id = %(tenant)s::uuid AND o.org_id = %(container)s::text"
            f" AND o.deleted_at IS NULL AND o.review IS NULL AND {other_guard}))"
        )
    if after is not None:
        conditions.append("(f.created_at, f.id) < (%(after_at)s::timestamptz, %(after_id)s::text)")
    parameters |= {
        "tenant": principal.tenant_id,
        "type": filters.type,
        "container": filters.container_id,
        "as_of": filters.as_of,
        "after_at": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit,
    }
    # The page is cut on heads alone, which one index orders; what belongs to its facts is joined after.
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH page AS MATERIALIZED (SELECT f.* FROM fact f WHERE {' AND '.join(conditions)} "
            "ORDER BY f.created_at DESC, f.id DESC LIMIT %(limit)s::int) "
            f"SELECT {COLUMNS} FROM page f {JOINS} WHERE {revision} ORDER BY f.created_at DESC, f.id DESC",
            parameters,
        )
        return [view_of(row) for row in cursor.fetchall()]
