"""Reading the registry of fact types."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.api.json_text import Raw
from memory.errors import TypeNotFound
from memory.instants import instant_text

COLUMNS = """p.type, p.keyword, p.semantic, p.embedding_model, p.content_schema, p.keep_days, p.delete_after_days,
p.created_at, p.updated_at, p.updated_by"""


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A declaration as it stands. `schema_text` is canonical JSON; windows are in days from a fact's first write."""

    type: str
    keyword: bool
    semantic: bool
    embedding_model: str | None
    schema_text: str | None
    keep_days: int | None
    delete_after_days: int | None
    created_at: datetime
    updated_at: datetime
    updated_by: str

    def wire(self) -> dict[str, Any]:
        windows = {"keepDays": self.keep_days, "deleteAfterDays": self.delete_after_days}
        retention = {name: days for name, days in windows.items() if days is not None}
        said: dict[str, Any] = {
            "type": self.type,
            "keyword": self.keyword,
            "semantic": self.semantic,
            "embeddingModel": self.embedding_model,
            "contentSchema": None if self.schema_text is None else Raw(self.schema_text),
            "retention": retention or None,
            "createdAt": instant_text(self.created_at),
            "updatedAt": instant_text(self.updated_at),
            "updatedBy": self.updated_by,
        }
        return {name: value for name, value in said.items() if value is not None}


def declared_type_of(row: Sequence[Any]) -> DeclaredType:
    """A declaration from a row of COLUMNS."""
    return DeclaredType(*row)


def declared_type(principal: Principal, type: str) -> DeclaredType:
    """One declaration. Raises TypeNotFound."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact_type p WHERE p.tenant_id = %(tenant)s::uuid AND p.type = %(type)s::text",
            {"tenant": principal.tenant_id, "type": type},
        )
        row = cursor.fetchone()
    if row is None:
        raise TypeNotFound
    return declared_type_of(row)


def declared_types(principal: Principal, *, after: str | None, limit: int) -> list[DeclaredType]:
    """Declarations by name, those after a name."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM fact_type p WHERE p.tenant_id = %(tenant)s::uuid "
            "AND (%(after)s::text IS NULL OR p.type > %(after)s::text) ORDER BY p.type LIMIT %(limit)s::int",
            {"tenant": principal.tenant_id, "after": after, "limit": limit},
        )
        return [declared_type_of(row) for row in cursor.fetchall()]
