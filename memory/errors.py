"""Every rule that can refuse has one class here, with a stable kebab-case code and no HTTP in it.

`details` is built from the fields (camelCase); messages are for people and never hold memory text. Database constraints speak
through `CONSTRAINT_ERRORS`: constraint name → the class that the rule raises in Python. Unknown names re-raise.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import IntegrityError


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class DomainError(Exception):
    """The request can't be done."""

    code: ClassVar[str] = "invariant-violated"
    message: ClassVar[str] = "The request can't be done."

    @property
    def details(self) -> dict[str, Any]:
        """What the error names, ready for the wire; absent values are left out."""
        if not is_dataclass(self):
            return {}
        pairs = ((camel(field.name), getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class BadInput(DomainError):
    """The input is malformed: shape, type, range or inadmissible JSON."""

    code = "bad-input"
    message = "The input is not valid. See details.issues for where and why."
    issues: list[dict[str, str]]

    @classmethod
    def at(cls, path: str, message: str) -> "BadInput":
        """One issue at one JSON Pointer (or parameter name)."""
        return cls(issues=[{"path": path, "message": message}])


@dataclass(eq=False)
class UnknownField(DomainError):
    code = "unknown-field"
    message = "The request names a field, parameter or scope key that is not known here."
    issues: list[dict[str, str]]

    @classmethod
    def named(cls, *paths: str) -> "UnknownField":
        return cls(issues=[{"path": path, "message": "is not known here"} for path in paths])


@dataclass(eq=False)
class ContentTooLarge(DomainError):
    code = "content-too-large"
    message = (
        "The content is too large to keep inline. Put it in blob storage and send contentRef: "
        "blob://<provider>/<bucket>/<key>."
    )
    limit_bytes: int


class BodyTooLarge(ContentTooLarge):
    message = "The request body is larger than this route takes."


class AuthMissing(DomainError):
    code = "auth-missing"
    message = "Send a valid API key as 'Authorization: Bearer <api key>', or sign in."


class AuthExpired(DomainError):
    code = "auth-expired"
    message = "This API key has expired. Ask an admin for a new one."


class AuthRevoked(DomainError):
    code = "auth-revoked"
    message = "This API key was revoked. Ask an admin for a new one."


class CsrfFailed(DomainError):
    code = "permission-denied"
    message = "The CSRF token is missing or old. Reload the page and send its token in X-CSRFToken."


@dataclass(eq=False)
class ProofWanted(DomainError):
    """A browser session signed in, or proved who it is, too long ago for what it asks."""

    code = "proof-wanted"
    message = (
        "This matters, and it is a while since you signed in. Prove that it is you at details.proveAt, in this browser, "
        "then send it again."
    )
    prove_at: str
    within_seconds: int


@dataclass(eq=False)
class PermissionDenied(DomainError):
    code = "permission-denied"
    message = "The caller may not do this."
    needs: str

    def __str__(self) -> str:
        return f"The caller may not do this: it needs {self.needs}."


@dataclass(eq=False)
class ScopeMismatch(DomainError):
    code = "scope-mismatch"
    message = "scope.tenantId is not the caller's tenant."
    field: str = "scope.tenantId"


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


class NotFound(DomainError):
    """What doesn't exist and what the caller may not see answer the same."""

    code = "not-found"
    message = "There is nothing at this address, or you may not see it."


class FactNotFound(NotFound):
    code = "fact-not-found"
    message = "There is no such fact, or you may not see it."


class LogNotFound(NotFound):
    code = "log-not-found"
    message = "There is no such log entry or run."


class TypeNotFound(NotFound):
    code = "type-not-found"
    message = (
        "Nobody declared this type. Facts may have it all the same; declare it to give it rules."
    )


class KeyNotFound(NotFound):
    code = "key-not-found"
    message = "There is no API key with this prefix: the ten characters after kmk_."


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


class ValueTooLarge(ContentTooLarge):
    message = "The value is larger than a record takes. Remember a pointer to it instead."


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


@dataclass(eq=False)
class MethodNotAllowed(DomainError):
    code = "method-not-allowed"
    message = "This route doesn't take that method."
    allowed: list[str]


class UnsupportedMediaType(DomainError):
    code = "unsupported-media-type"
    message = "Send JSON: Content-Type: application/json, no Content-Encoding."


class NotAcceptable(DomainError):
    code = "bad-input"
    message = "Answers are JSON only."


@dataclass(eq=False)
class FactChanged(DomainError):
    code = "fact-changed"
    message = "Someone changed this fact first. Read it again and decide anew."
    fact_id: str
    current_version: int


@dataclass(eq=False)
class IdTaken(DomainError):
    code = "id-taken"
    message = "This id is taken."
    id: str


@dataclass(eq=False)
class LegalHoldActive(DomainError):
    code = "legal-hold"
    message = "A legal hold keeps this. It can be changed or removed when the hold is released."
    ids: list[str]


class HoldNotFound(NotFound):
    code = "hold-not-found"
    message = "There is no such legal hold."


class MemberNotFound(NotFound):
    code = "member-not-found"
    message = "There is no such member."


class ReviewNotFound(NotFound):
    code = "review-not-found"
    message = "Nothing of this kind and id waits for a decision. It may have been decided."


class QuarantineNotFound(NotFound):
    code = "quarantine-not-found"
    message = "There is no such quarantine."


class NothingToQuarantine(DomainError):
    code = "nothing-to-quarantine"
    message = "Nothing that is in use was written so. Look at the preview."


@dataclass(eq=False)
class QuarantineClosed(DomainError):
    """`status`: rolling-back, lifted or rolled-back."""

    code = "quarantine-closed"
    message = "This quarantine has ended, or is being rolled back."
    status: str


class WebhookNotFound(NotFound):
    code = "webhook-not-found"
    message = "There is no such webhook."


class DeliveryNotFound(NotFound):
    code = "delivery-not-found"
    message = "There is no such delivery of this webhook."


@dataclass(eq=False)
class WebhookDisabled(DomainError):
    """`because`: paused, gone or failing."""

    code = "webhook-disabled"
    message = "This webhook is disabled, so nothing is sent to it. Enable it first."
    because: str


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


@dataclass(eq=False)
class ContentHashMismatch(DomainError):
    code = "content-hash-mismatch"
    message = "The contentHash or size that was sent is not that of the content."
    field: str


@dataclass(eq=False)
class ContentSchemaViolated(DomainError):
    code = "content-schema-violated"
    message = "The content does not fit the schema of its type: details.issues says where."
    type: str
    issues: list[dict[str, str]]


class SemanticUnavailable(DomainError):
    code = "semantic-unavailable"
    message = "Search by meaning needs an embedding provider, and none is set up here."


@dataclass(eq=False)
class EmbeddingModelUnknown(DomainError):
    code = "embedding-model-unknown"
    message = (
        "This embedding model is not available here. GET /v1/memory/types shows which are in use."
    )
    model: str


@dataclass(eq=False)
class RefreshHandlerMissing(DomainError):
    code = "refresh-handler-missing"
    message = "This fact has no source, or no refresh handler is registered under its handler id."
    fact_id: str


@dataclass(eq=False)
class RefreshFailed(DomainError):
    code = "refresh-failed"
    message = "The source could not be read; the fact is as it was."
    fact_id: str
    reason: str


@dataclass(eq=False)
class InvariantViolated(DomainError):
    code = "invariant-violated"
    message = (
        "A rule refuses this: details.invariant names it, and docs/errors.md says what it means."
    )
    invariant: str


class ErasureInProgress(DomainError):
    code = "erasure-in-progress"
    message = "An erasure for this person is running. Try again when it is done."


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


class IdempotencyBodyMismatch(DomainError):
    code = "idempotency-key-body-mismatch"
    message = "This Idempotency-Key was used with another request. Use a new key for a new request."


class IdempotencyInFlight(DomainError):
    code = "idempotency-key-in-flight"
    message = "The first request with this Idempotency-Key is still running. Try again in a moment."


class IdempotencyWithheld(DomainError):
    code = "idempotency-key-replay-withheld"
    message = (
        "The request was done. Its first answer held something that was forgotten or erased since, or was too large to keep: "
        "read what is there now."
    )


@dataclass(eq=False)
class RateLimited(DomainError):
    code = "rate-limited"
    message = "Too much at once. Wait as long as Retry-After says."
    retry_after_seconds: int


class Unavailable(DomainError):
    code = "unavailable"
    message = (
        "The service can't answer right now. A change may or may not have been made: send it again with the same "
        "Idempotency-Key."
    )


class TenantClosed(DomainError):
    code = "auth-revoked"
    message = "This tenant is closed. Its owner closed it, and an operator can open it again."


class InternalError(DomainError):
    code = "internal-error"
    message = "Something went wrong on our side. Quote the request id."


@dataclass(eq=False)
class MemberKeepsAnOwner(DomainError):
    code = "last-owner"
    message = "A tenant keeps at least one owner. Appoint another first."


@dataclass(eq=False)
class MemberExists(DomainError):
    code = "member-exists"
    message = "This person is a member already, with another role or subject."
    role: str


def _invariant(name: str) -> Callable[[], DomainError]:
    return lambda: InvariantViolated(invariant=name)


CONSTRAINT_ERRORS: dict[str, Callable[[], DomainError]] = {
    "member_keeps_an_owner": MemberKeepsAnOwner,
    "fact_pkey": lambda: IdTaken(id=""),
    "log_entry_id_is_unique": lambda: EntryIdTaken(id=""),
    "fact_is_not_held": lambda: LegalHoldActive(ids=[]),
    "fact_hold_keeps_fact": lambda: LegalHoldActive(ids=[]),
    "erasure_is_not_running": ErasureInProgress,
    "fact_participant_needs_project": _invariant("participant-needs-project"),
    "fact_revision_valid_times_in_order": _invariant("valid-times-in-order"),
    "log_entry_append_only": _invariant("log-append-only"),
    "run_head_is_open": lambda: RunClosed(run_id=""),
    "log_entry_continues_chain": _invariant("log-continues-chain"),
    "memory_record_pkey": lambda: IdReused(id=""),
    "memory_record_one_active_per_slot": lambda: RecordChanged(),
    "memory_record_wide_inference_is_confirmed": _invariant("I1"),
    "memory_record_policy_points_to_its_source": _invariant("I2"),
    "memory_record_correction_is_of_one_instance": _invariant("I4"),
    "memory_record_sensitive_ends": _invariant("I6"),
    "memory_record_valid_dates_in_order": _invariant("valid-dates-in-order"),
    "memory_record_moves_forward": lambda: RecordChanged(),
    "record_supersession_one_successor": lambda: RecordChanged(),
    "record_value_held_is_sealed": lambda: LegalHoldActive(ids=[]),
    "correction_route_pkey": lambda: RouteExists(name=""),
    "policy_source_once_per_match": PolicySourceExists,
}
"""Constraint name → what the rule is called when it refuses."""


def constraint_of(error: BaseException) -> str | None:
    """The name of the constraint that a database error speaks of, if any."""
    cause = error.__cause__
    diagnostics = getattr(cause, "diag", None)
    return getattr(diagnostics, "constraint_name", None)


@contextmanager
def constraint_errors(**named: DomainError) -> Iterator[None]:
    """Turn a violated constraint into its rule's error; `named` says it better for this place.

    The transaction is spent afterwards: let the error leave it. Unknown constraint names re-raise.
    """
    try:
        yield
    except (IntegrityError, DatabaseError) as error:
        name = constraint_of(error)
        if name in named:
            raise named[name] from error
        if name in CONSTRAINT_ERRORS:
            raise CONSTRAINT_ERRORS[name]() from error
        raise
