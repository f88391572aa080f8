"""Facts for the tests of search, written as rows: what a fact is is tested elsewhere, here only what finds it."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from memory.search.index import prepare, write_index
from memory.tenancy import tenant_context
from memory.type_policy import TypePolicy

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
KEYWORD_ONLY = TypePolicy("note", semantic=False)


def add_fact(
    tenant_id: UUID,
    fact_id: str,
    content: Any,
    *,
    scope: Mapping[str, str] | None = None,
    type: str = "note",
    policy: TypePolicy = KEYWORD_ONLY,
    language: str = "english",
    minute: int = 0,
    expires_at: datetime | None = None,
    review: str | None = None,
) -> None:
    """A live fact with its index, `minute` minutes after FIRST."""
    plan = prepare(policy=policy, language=language, content=content)
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO fact (tenant_id, id, type, scope_text, current_version, created_at, expires_at, review)"
            " VALUES (%s::uuid, %s, %s, %s, 1, %s, %s, %s)",
            [
                tenant_id,
                fact_id,
                type,
                json.dumps(scope or {}),
                FIRST + timedelta(minutes=minute),
                expires_at,
                review,
            ],
        )
        write_index(tenant_id=tenant_id, fact_id=fact_id, plan=plan)


def add_facts(tenant_id: UUID, contents: Mapping[str, Any] | Iterable[Any], **more: Any) -> None:
    """Several facts, a minute apart; without ids they are f0, f1, …"""
    named = (
        contents
        if isinstance(contents, Mapping)
        else {f"f{n}": content for n, content in enumerate(contents)}
    )
    for minute, (fact_id, content) in enumerate(named.items()):
        add_fact(tenant_id, fact_id, content, minute=minute, **more)


def change_fact(tenant_id: UUID, fact_id: str, content: Any = None, **columns: Any) -> None:
    """New content, or new values of the head's columns."""
    with tenant_context(tenant_id), connection.cursor() as cursor:
        for column, value in columns.items():
            cursor.execute(
                f"UPDATE fact SET {column} = %s WHERE tenant_id = %s::uuid AND id = %s",
                [value, tenant_id, fact_id],
            )
        if content is not None:
            plan = prepare(policy=KEYWORD_ONLY, language="english", content=content)
            write_index(tenant_id=tenant_id, fact_id=fact_id, plan=plan)


def count_rows(tenant_id: UUID, table: str) -> int:
    with tenant_context(tenant_id), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s::uuid", [tenant_id])
        return int(cursor.fetchone()[0])
