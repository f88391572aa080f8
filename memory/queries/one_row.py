"""Reading one thing by its id: the row as what it stands for, or the error that says there is none.

An id that can't be one is answered like one that isn't there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection

from memory.errors import DomainError

T = TypeVar("T")


def one_row(
    statement: str,
    parameters: Sequence[Any] | Mapping[str, Any],
    of: Callable[..., T],
    missing: type[DomainError],
) -> T:
    """What `of` makes of the row's columns. Raises `missing` when there is no row."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        row = cursor.fetchone()
    if row is None:
        raise missing
    return of(*row)


def as_uuid(given: UUID | str, missing: type[DomainError]) -> UUID:
    """The id. Raises `missing` for what is none."""
    try:
        return UUID(str(given))
    except ValueError:
        raise missing from None
