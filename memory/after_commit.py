"""What is written outside the database once a transaction is committed, before its caller is answered.

Where it can't be written the act is done all the same, and the worker writes it within a minute; that is logged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, connection, transaction

from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.ledger")

Write = Callable[[UUID, str], object]
"""Writes what is new of a tenant, given its id and slug."""


def after_commit(write: Write, tenant_id: UUID) -> None:
    """Have it written once after this transaction, however often it is asked for."""
    waiting = _AfterCommit(write, tenant_id)
    if not any(one[1] == waiting for one in connection.run_on_commit):
        transaction.on_commit(waiting)


@dataclass(frozen=True, slots=True)
class _AfterCommit:
    write: Write
    tenant_id: UUID

    def __call__(self) -> None:
        try:
            with tenant_context(self.tenant_id), connection.cursor() as cursor:
                cursor.execute("SELECT slug FROM tenant WHERE id = %s::uuid", [self.tenant_id])
                [slug] = cursor.fetchone()
            self.write(self.tenant_id, slug)
        except (OSError, DatabaseError, InterfaceError) as error:
            log.error("ledger not written yet", reason=type(error).__name__)
