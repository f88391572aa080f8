"""One unit of work in one transaction, repeated where a repeat can tell."""

from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connection, transaction

from memory.api.errors import RETRIED, is_connection_lost, sqlstate_of
from memory.errors import EntryIdTaken

T = TypeVar("T")
_MOST_ATTEMPTS = 3


def in_transaction(unit: Callable[[], T], *, has_begun: Callable[[], bool] = lambda: True) -> T:
    """Run one unit in a transaction; again after a deadlock or serialization failure, and after a lost connection while
    `has_begun` is false. Again also where a twin of this request stored the same entry meanwhile: now it is found.
    Inside an outer transaction there is no second try."""
    if connection.in_atomic_block:
        with transaction.atomic():
            return unit()
    attempt = 1
    while True:
        try:
            with transaction.atomic():
                return unit()
        except (DatabaseError, InterfaceError, EntryIdTaken) as error:
            if isinstance(error, EntryIdTaken):
                may_repeat = error.is_of_this_moment and attempt == 1
            elif is_connection_lost(error):
                connection.close()
                may_repeat = not has_begun()
            else:
                may_repeat = sqlstate_of(error) in RETRIED
            if not may_repeat or attempt >= _MOST_ATTEMPTS:
                raise
            attempt += 1
