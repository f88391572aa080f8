"""Refusals about memory records: what was forgotten or corrected, whose word counts, and the routes of correction."""

from dataclasses import dataclass
from typing import Any

from memory.errors.base import DomainError, NotFound


class RecordNotFound(NotFound):
    code = "record-not-found"
    message = "There is no such memory record, or you may not see it."


class RouteNotFound(NotFound):
    code = "route-not-found"
    message = "There is no correction route of this name."


class ReceiptNotFound(NotFound):
    code = "receipt-not-found"
    message = "There is no such receipt, or you may not see what it is about."


class PolicySourceNotFound(NotFound):
    code = "policy-source-not-found"
    message = "There is no such policy source."


@dataclass(eq=False)
class RecordChanged(DomainError):
    """`active_id`: what stands there now. `differs`: which of value, scope and status are not what the caller saw."""

    code = "record-changed"
    message = "What is remembered is not what the caller saw. Read it again and decide anew."
    active_id: str | None = None
    expected_id: str | None = None
    status: str | None = None
    differs: list[str] | None = None
    current: dict[str, Any] | None = None


@dataclass(eq=False)
class AlreadyDisputed(DomainError):
    code = "already-disputed"
    message = "It is disputed already, with a statement that an admin has yet to decide on. Undo that first to say it otherwise."
    receipt: str


@dataclass(eq=False)
class IdReused(DomainError):
    code = "id-reused"
    message = (
        "This record id was used before. Ids are never used again; leave it out to get a new one."
    )
    id: str


class Forgotten(DomainError):
    code = "forgotten"
    message = "This was forgotten at its person's wish. Only a newer word of theirs brings it back."


class Retired(DomainError):
    code = "retired"
    message = "This value was corrected, or was said to be about somebody else. Only a newer word of the person brings it back."


class InferenceRefused(DomainError):
    code = "inference-refused"
    message = "The person does not want this to be inferred about them. Stop inferring it; what they say themselves is taken."


class EvidenceUnresolved(DomainError):
    code = "evidence-unresolved"
    message = (
        "An agent's word for a person needs evidence: the id of a user-message that an app or the person appended, about this "
        "subject, newer than the record, and not used before."
    )


@dataclass(eq=False)
class LineageForgotten(DomainError):
    code = "lineage-forgotten"
    message = "derived_from names what was forgotten, and nothing may be built on it. Leave that id out, or derive it anew."
    ids: list[str]


class InstanceUnnamed(DomainError):
    code = "instance-unnamed"
    message = "A correction binds to the case at hand, and the context names none. Say which, such as a trip or task id."


class SubjectRequired(DomainError):
    code = "subject-required"
    message = "It is not clear whom this is about. Name the subject: {type, id}."


@dataclass(eq=False)
class PolicyNotCorrectable(DomainError):
    code = "policy-not-correctable"
    message = "A policy is owned elsewhere, and memory only points at it. Use its correction route."
    record_id: str
    route: str
    correction_url: str


@dataclass(eq=False)
class RouteExternal(DomainError):
    code = "route-external"
    message = "This correction route is an outside page. Open it."
    url: str


@dataclass(eq=False)
class RouteExists(DomainError):
    code = "route-exists"
    message = "A correction route of this name exists. Change it instead."
    name: str


@dataclass(eq=False)
class UndoClosed(DomainError):
    """`reason`: no-undo, deadline, undone or changed."""

    code = "undo-closed"
    message = (
        "This can't be undone: it never could, its time is over, it was undone, or things changed since. "
        "Correct it anew instead."
    )
    reason: str


class PolicySourceExists(DomainError):
    code = "policy-source-exists"
    message = "A policy source with this match exists. Change it instead."
