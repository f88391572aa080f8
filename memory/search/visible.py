"""Which facts a search may answer with: what the read guard and the filters let through, not past its time, not in review.

Every search carries this condition before its limit, and counts what it ranks by (how many facts there are, how many hold a
word) over the same facts: what a caller may not see changes nothing of what they get.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from memory.access import Principal, read_guard

COLUMN_OF_SCOPE_KEY: dict[str, str] = {
    "userId": "user_id",
    "orgId": "org_id",
    "projectId": "project_id",
    "threadId": "thread_id",
    "sessionId": "session_id",
    "participantId": "participant_id",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """`scope` is partial: a fact fits when its scope has each of these keys with the same value."""

    type: str | None = None
    scope: Mapping[str, str] = field(default_factory=dict)


def visible(principal: Principal, filters: Filters, alias: str) -> tuple[str, dict[str, Any]]:
    """SQL over the columns of `fact_document` or `fact_embedding` under `alias`, and its named parameters.

    Neither table has a row of a deleted fact.
    """
    guard, parameters = read_guard(principal, alias)
    conditions = [
        f"{alias}.tenant_id = %(tenant)s::uuid",
        f"{alias}.review IS NULL",
        f"({alias}.expires_at IS NULL OR {alias}.expires_at > statement_timestamp())",
        guard,
    ]
    parameters = {**parameters, "tenant": principal.tenant_id}
    if filters.type is not None:
        conditions.append(f"{alias}.type = %(f_type)s::text")
        parameters["f_type"] = filters.type
    for key, column in COLUMN_OF_SCOPE_KEY.items():
        if key in filters.scope:
            conditions.append(f"{alias}.{column} = %(f_{column})s::text")
            parameters[f"f_{column}"] = filters.scope[key]
    return " AND ".join(conditions), parameters


def pin_plans() -> None:
    """Make the rest of the transaction read by index.

    Statements are prepared, and a plan made while a table was small would otherwise go on reading all of it, other tenants' rows
    included, until the table is analysed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('enable_seqscan', 'off', true)")
