"""The lock of a change: a fact's head row, then its current revision, read after the lock is held.

Two statements on purpose: in one, a writer that waited for the lock would join the new head with the revision of its old
snapshot. Whoever waited sees what the other wrote.
"""

import dataclasses

from django.db import connection

from memory.access import Principal, check_write, read_guard
from memory.errors import FactChanged, FactNotFound
from memory.fact_shape import FactView
from memory.hold_naming import FACT_IS_HELD
from memory.queries.facts import COLUMNS, JOINS, LIVE, current_fact, view_of
from memory.write_policy import POLICY_COLUMNS, WritePolicy, policy_of

_COLUMN_COUNT = len(dataclasses.fields(FactView))


def fact_to_change(principal: Principal, fact_id: str) -> tuple[FactView, WritePolicy]:
    """The current revision of a live, readable fact, and the policy of its type; nothing is locked. Raises FactNotFound."""
    guard, parameters = read_guard(principal, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS}, {POLICY_COLUMNS} FROM fact f {JOINS} JOIN tenant n ON n.id = f.tenant_id "
            "LEFT JOIN fact_type p ON p.tenant_id = f.tenant_id AND p.type = f.type "
            f"WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text AND {LIVE} AND r.version = f.current_version "
            f"AND {guard}",
            {"tenant": principal.tenant_id, "id": fact_id, **parameters},
        )
        row = cursor.fetchone()
    if row is None:
        raise FactNotFound
    fact = view_of(row[:_COLUMN_COUNT])
    return fact, policy_of(fact.type, row[_COLUMN_COUNT:])


def lock_fact(
    principal: Principal, fact_id: str, *, expect_version: int | None, seen: FactView | None = None
) -> FactView:
    """The current revision of a live fact that the caller may write, its head locked until commit.

    seen: what was read before the lock; it is returned when it is still current. Raises FactNotFound, PermissionDenied,
    FactChanged.
    """
    guard, parameters = read_guard(principal, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.current_version, {FACT_IS_HELD} FROM fact f "
            f"WHERE f.tenant_id = %(tenant)s::uuid AND f.id = %(id)s::text AND {LIVE} AND {guard} FOR UPDATE",
            {"tenant": principal.tenant_id, "id": fact_id, **parameters},
        )
        row = cursor.fetchone()
    if row is None:
        raise FactNotFound
    version, is_held = row
    fact = (
        seen
        if seen is not None and (seen.version, seen.is_held) == (version, is_held)
        else current_fact(principal, fact_id)
    )
    check_write(principal, fact.scope)
    if expect_version is not None and expect_version != version:
        raise FactChanged(fact_id=fact_id, current_version=version)
    return dataclasses.replace(fact, is_held=is_held)
