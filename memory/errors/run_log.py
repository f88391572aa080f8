"""Refusals of the run log: its entries and runs, what is sealed, proven and verified of them."""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from memory.errors.base import DomainError, NotFound


@dataclass(eq=False)
class RunReserved(DomainError):
    code = "run-reserved"
    message = "Run ids that start with 'kindmem.' are the server's own."
    run_id: str


@dataclass(eq=False)
class RunClosed(DomainError):
    code = "run-closed"
    message = "This run was closed and takes no more entries. Begin another run."
    run_id: str


@dataclass(eq=False)
class RunDamaged(DomainError):
    """What is stored of the run does not end as its head says: somebody else than the server wrote to the database."""

    code = "run-damaged"
    message = (
        "What is stored of this run was cut or changed outside the product, so nothing can be added to it, and nothing was done. "
        "An operator verifies the tenant's log (verify_log), restores the last good backup, and then runs restore_epoch."
    )
    run_id: str
    tenant: ClassVar[tuple[UUID, str] | None] = None
    """Whose run: its id and slug, for who notes the damage; no part of the answer."""

    @classmethod
    def of(cls, tenant_id: UUID, tenant_slug: str, run_id: str) -> "RunDamaged":
        error = cls(run_id=run_id)
        error.__dict__["tenant"] = (tenant_id, tenant_slug)
        return error


class LogNotFound(NotFound):
    code = "log-not-found"
    message = "There is no such log entry or run."


@dataclass(eq=False)
class EntryIdTaken(DomainError):
    code = "id-taken"
    message = "This log entry id is taken."
    id: str

    @property
    def is_of_this_moment(self) -> bool:
        """Whether the database said so while it was written: it was free a moment ago."""
        return self.__cause__ is not None


@dataclass(eq=False)
class RunDiffers(DomainError):
    code = "run-differs"
    message = "A run with this id is there already and begins otherwise. Choose another prefix for the run ids."
    run_id: str
    sequence: int


@dataclass(eq=False)
class ExportTooLarge(DomainError):
    code = "export-too-large"
    message = "The run is too long to be exported in one request. Use the command export_evidence."
    limit_entries: int


class CheckpointNotFound(DomainError):
    code = "checkpoint-not-found"
    message = "There is no checkpoint of this size."


class VerificationNotFound(NotFound):
    code = "verification-not-found"
    message = "There is no such verification."


@dataclass(eq=False)
class RunNotSealed(DomainError):
    code = "run-not-sealed"
    message = "No checkpoint covers this entry yet. The worker seals every few seconds; ask again."
    run_id: str


class LogDamaged(DomainError):
    code = "log-damaged"
    message = "The stored log of seals lacks what it needs for a proof. Verify the tenant's log."


@dataclass(eq=False)
class SealRefused(DomainError):
    """`reason`: checkpoint, anchor, restored, lost or leaf; `size`: the tree size, or leaf, at which it shows."""

    code = "seal-refused"
    message = (
        "The stored log of seals is not what was signed or anchored, so nothing was sealed. Verify the tenant's log; after a "
        "restore from an older backup, or where the anchor file is lost and no copy of it can be put back, run restore_epoch."
    )
    reason: str
    size: int
