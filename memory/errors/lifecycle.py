"""Refusals of keeping and destroying: retention, legal holds, sweeps, erasures."""

from dataclasses import dataclass

from memory.errors.base import DomainError, NotFound


@dataclass(eq=False)
class LegalHoldActive(DomainError):
    code = "legal-hold"
    message = "A legal hold keeps this. It can be changed or removed when the hold is released."
    ids: list[str]


class HoldNotFound(NotFound):
    code = "hold-not-found"
    message = "There is no such legal hold."


class ErasureNotFound(NotFound):
    code = "erasure-not-found"
    message = "There is no such erasure."


@dataclass(eq=False)
class ReleaseRefused(DomainError):
    """`reason`: released, not-requested, already-requested, same-person, cooling-off or reauthenticate."""

    code = "release-refused"
    message = (
        "This hold can't be released so: it takes a reason and two different signed-in admins, each of whom has just "
        "re-authenticated and has the role for longer than the cooling-off time."
    )
    reason: str


class SweepOff(DomainError):
    code = "sweep-off"
    message = "Sweeping is switched off for this tenant. A dry run still counts."


class SweepRunning(DomainError):
    code = "sweep-running"
    message = "Another sweep of this tenant is running. Try again in half a minute."


@dataclass(eq=False)
class SweepRefused(DomainError):
    """`reason`: clocks-differ, clock-went-back or clock-jumped-ahead."""

    code = "sweep-refused"
    message = (
        "The clock is not where the last sweep left it, so nothing was destroyed. Set it right, or say that it is right "
        "with --accept-clock."
    )
    reason: str


@dataclass(eq=False)
class RetentionViolation(DomainError):
    code = "retention-violation"
    message = "A retention rule keeps this until details.until. It can be deleted then."
    fact_id: str
    reason: str
    until: str


class ErasureInProgress(DomainError):
    code = "erasure-in-progress"
    message = "An erasure for this person is running. Try again when it is done."


class ErasureNotHeldUp(DomainError):
    code = "erasure-not-held-up"
    message = "No hold stops this erasure: it runs to its end, or it has ended."


class LedgerUnwritable(DomainError):
    code = "ledger-unwritable"
    message = "The ledger outside the database can't be written."
